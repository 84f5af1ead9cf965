"""Answers to images that come again, bounded in bytes; and equal requests at the same time computed once.

An answer is known by the digest of the image's bytes and by everything else that makes it: the pack, the version of the
preprocessing, and how many labels were asked for. So no answer outlives a change of the model. Lives on the event loop.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from assay.telemetry import Telemetry
from assay.vision.errors import ImageError
from assay.vision.preprocess import VERSION

Key = tuple[bytes, str, int, int]
"""SHA-256 of the image's bytes, digest of the pack, `VERSION` of the preprocessing, labels wanted."""

Predictions = tuple[tuple[int, str, float], ...]
"""(class index, label, score), best first. A tuple, because everybody who asks gets the same one."""

_ENTRY_BYTES = 280
_PREDICTION_BYTES = 128
"""Memory of an entry and of each of its predictions, CPython 3.11 (tracemalloc, 11,000 to 43,000 entries; the
dictionary grows in steps, and this is the upper end): the key's tuple and digest, its places in the dictionary and in
its order, the tuples, the numbers. Labels belong to the pack."""

_SLICE = 512 << 10
"""Bytes hashed before the event loop may turn to others: 0.3 ms at the 1.75 GB/s of SHA extensions, 1 ms without."""


async def key_of(data: bytes, pack_digest: str, top_k: int) -> Key:
    """The key of a request.

    Hashed on the event loop: 0.06 ms for 100 KB where the CPU has SHA extensions, while another thread would cost a
    hand-off of 0.16 ms, and a worker would have a hit wait behind all that is being computed. `hashlib` releases the
    interpreter's lock meanwhile, so the workers go on; a large image is taken in slices, so that others get their turn.
    """
    if len(data) <= _SLICE:
        digest = hashlib.sha256(data)
    else:
        digest = hashlib.sha256()
        view = memoryview(data)
        for start in range(0, len(data), _SLICE):
            digest.update(view[start : start + _SLICE])
            await asyncio.sleep(0)
    return digest.digest(), pack_digest, VERSION, top_k


class Cache:
    """The answers used last, as many as fit into ``max_bytes``."""

    def __init__(self, max_bytes: int, telemetry: Telemetry) -> None:
        self._max_bytes = max_bytes
        self._telemetry = telemetry
        self._entries: OrderedDict[Key, Predictions] = OrderedDict()
        self._flights: dict[Key, list[asyncio.Future[Predictions | ImageError | None]]] = {}
        self.bytes = 0
        """Memory that the entries take."""

    async def find(self, key: Key) -> Predictions | None:
        """The answer, if it is here or being computed. With None the caller computes it, inside `lead`, at once.

        Raises the `ImageError` that an equal request under way has met: the same bytes are broken for everybody. Any
        other failure is that request's own; who waited for it then tries for himself, the first of them in the lead.
        """
        while True:
            if (found := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                self._telemetry.cache_hits.inc()
                return found
            followers = self._flights.get(key)
            if followers is None:
                self._telemetry.cache_misses.inc()
                return None
            future: asyncio.Future[Predictions | ImageError | None] = asyncio.get_running_loop().create_future()
            followers.append(future)
            outcome = await future
            if isinstance(outcome, ImageError):
                raise type(outcome)(*outcome.args)
            if outcome is not None:
                self._telemetry.cache_hits.inc()
                return outcome

    @contextmanager
    def lead(self, key: Key) -> Iterator[Callable[[Predictions], None]]:
        """Compute the answer for everybody who asks for it meanwhile; what is given takes it.

        However the block ends, by cancellation too, those who wait are told.
        """
        followers: list[asyncio.Future[Predictions | ImageError | None]] = []
        self._flights[key] = followers
        outcome: Predictions | ImageError | None = None

        def land(predictions: Predictions) -> None:
            nonlocal outcome
            outcome = predictions
            self._keep(key, predictions)

        try:
            yield land
        except ImageError as error:
            outcome = error
            raise
        finally:
            del self._flights[key]
            for future in followers:
                if not future.done():
                    future.set_result(outcome)

    def _keep(self, key: Key, predictions: Predictions) -> None:
        size = _size(predictions)
        if size > self._max_bytes:
            return
        self._entries[key] = predictions
        self.bytes += size
        while self.bytes > self._max_bytes:
            _, dropped = self._entries.popitem(last=False)
            self.bytes -= _size(dropped)
            self._telemetry.cache_evictions.inc()


def _size(predictions: Predictions) -> int:
    return _ENTRY_BYTES + _PREDICTION_BYTES * len(predictions)

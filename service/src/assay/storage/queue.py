"""The queue between answered requests and the sink: bounded in bytes, never waited for, written by its own thread.

An answer that finds no room is dropped, not one that waits already: what was taken is kept as long as there is hope.
While the sink takes nothing, attempts are repeated with growing pauses and the queue fills; requests notice nothing.
"""

import asyncio
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

import structlog

from assay.storage.names import image_suffix, object_name
from assay.storage.sinks import Sink, SinkError
from assay.telemetry import Telemetry

WRITERS = 16
"""Answers written at once, two objects each: at 100 ms an object, as to a distant store, 80 answers a second."""

ATTEMPTS = 8
"""Failures after which an answer is given up, provided that the sink took others since its first: then it is the answer
that cannot be stored. While the sink takes nothing at all, nothing is given up, and after so many attempts (half a
minute) an answer goes to the end of the queue, lest a few that are never taken keep every writer for themselves."""

FIRST_PAUSE_S = 0.25
"""Seconds before a second attempt; doubled each time."""

LONGEST_PAUSE_S = 15.0
"""Longest pause: with all writers waiting, a dead sink is asked once a second."""

HURRIED_PAUSE_S = 0.25
"""Longest pause during the drain: its deadline is a few seconds."""

OVERHEAD_BYTES = 1024
"""Bytes counted for an answer beyond its image and result: what Python and the allocator need around them."""

_WARNING_EVERY_S = 60.0
_CLOSE_S = 1.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What is kept of a request: the encoded image as it came, and the result as it was sent (JSON)."""

    request_id: str
    image: bytes
    result: bytes
    at: float

    @property
    def size(self) -> int:
        """Bytes it counts for in the queue."""
        return len(self.image) + len(self.result) + OVERHEAD_BYTES


class _Outcome(Enum):
    WRITTEN = "written"
    REFUSED = "refused"
    LATER = "later"


@dataclass(slots=True)
class _Delivery:
    """An answer under way: the objects still to be written, the last one first, and how that went so far."""

    answer: StoredAnswer
    objects: list[tuple[str, bytes]] = field(default_factory=list)
    failures: int = 0
    taken_before: int = 0
    """Objects of others the sink had taken when this one failed first."""


class StoreQueue:
    """Answers on their way to a sink. `offer` and `flush` are called on the event loop of the requests."""

    def __init__(self, sink: Sink, limit_bytes: int, telemetry: Telemetry) -> None:
        self._sink = sink
        self._limit = limit_bytes
        self._written, self._dropped = telemetry.store_written, telemetry.store_dropped
        self._lock = threading.Lock()
        self._held = 0
        self._pending = 0
        self._closed = False
        self._taken = 0  # objects the sink has taken
        self._failing = False
        self._warn_again = 0.0
        self._waiting: asyncio.Queue[_Delivery] = asyncio.Queue()  # bounded by `offer`, in bytes
        self._hurry = asyncio.Event()
        self._writers: list[asyncio.Task[None]] = []
        self._loop = asyncio.new_event_loop()
        # A daemon: a file system that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    @property
    def held_bytes(self) -> int:
        """Bytes of the answers that wait or are being written."""
        return self._held

    def offer(self, request_id: str, image: bytes, result: bytes) -> None:
        """Take an answer to be stored, or drop and count it where there is no room. Never waits, never raises."""
        answer = StoredAnswer(request_id, image, result, time.time())
        with self._lock:
            if not self._closed and self._held + answer.size <= self._limit:
                self._held += answer.size
                self._pending += 1
                self._loop.call_soon_threadsafe(self._waiting.put_nowait, _Delivery(answer))
                return
            reason = "DrainDeadline" if self._closed else "QueueFull"
        self._dropped[reason].inc()

    async def flush(self, timeout_s: float) -> int:
        """Take nothing more, and write what waits within so many seconds. How many answers were lost."""
        with self._lock:
            if self._closed:
                return 0
            self._closed = True
        ended = asyncio.run_coroutine_threadsafe(self._finish(timeout_s), self._loop)
        with suppress(TimeoutError):  # the thread itself is stuck, in a file system that hangs
            async with asyncio.timeout(timeout_s + _CLOSE_S):
                await asyncio.wrap_future(ended)
        with self._lock:
            lost, self._pending = self._pending, 0
        self._dropped["DrainDeadline"].inc(lost)
        return lost

    def close(self) -> None:
        """Stop at once; what still waits is lost. After `flush`, and before the interpreter ends."""
        with self._lock:
            self._closed = True
            with suppress(RuntimeError):  # its loop has ended already
                self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join(_CLOSE_S)

    # What follows runs on the store's own thread.

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._write_all())
        finally:
            with self._lock:
                self._closed = True  # nothing is handed to a loop that is closed
            self._loop.close()

    async def _write_all(self) -> None:
        self._writers = [asyncio.create_task(self._write()) for _ in range(WRITERS)]
        await asyncio.wait(self._writers)

    def _cancel(self) -> None:
        for writer in self._writers:
            writer.cancel()

    async def _finish(self, timeout_s: float) -> None:
        self._hurry.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._waiting.join()
        self._cancel()

    async def _write(self) -> None:
        while True:
            delivery = await self._waiting.get()
            outcome = _Outcome.REFUSED
            try:
                outcome = await self._deliver(delivery)
            except Exception:
                _log.exception("An answer could not be stored, by a fault of this program; please report it.")
            if outcome is _Outcome.LATER:
                self._waiting.put_nowait(delivery)
                self._waiting.task_done()
            else:
                self._settle(delivery.answer, written=outcome is _Outcome.WRITTEN)
            del delivery  # not kept while waiting for the next

    def _settle(self, answer: StoredAnswer, *, written: bool) -> None:
        with self._lock:
            self._held -= answer.size
            self._pending -= 1
        # After the bytes are free: who reads of the last answer finds the queue empty.
        (self._written if written else self._dropped["SinkFailed"]).inc()
        self._waiting.task_done()

    async def _deliver(self, delivery: _Delivery) -> _Outcome:
        for _ in range(ATTEMPTS):
            try:
                await self._put(delivery)
            except SinkError as error:
                self._tell_failure(error)
                delivery.failures += 1
                if delivery.failures == 1:
                    delivery.taken_before = self._taken
                elif delivery.failures >= ATTEMPTS and self._taken > delivery.taken_before:
                    return _Outcome.REFUSED
                await self._pause(delivery.failures)
            else:
                return _Outcome.WRITTEN
        return _Outcome.LATER

    async def _put(self, delivery: _Delivery) -> None:
        """Write the objects that are left. The result comes last: where it is, its image is too. Raises `SinkError`."""
        if not delivery.objects:
            answer = delivery.answer
            name = object_name(answer.request_id, answer.at)
            delivery.objects = [(name + ".json", answer.result), (name + image_suffix(answer.image), answer.image)]
        while delivery.objects:
            await self._sink.put(*delivery.objects[-1])
            delivery.objects.pop()
            self._taken += 1
            delivery.taken_before += 1  # its own objects say nothing of how others fare
            self._tell_success()

    async def _pause(self, failures: int) -> None:
        """Wait before another attempt; at random, so that writers (and pods) do not all come back at once."""
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 16))
        pause_s = longest * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
        if self._hurry.is_set():
            await asyncio.sleep(min(pause_s, HURRIED_PAUSE_S))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._hurry.wait()

    def _tell_failure(self, error: SinkError) -> None:
        if self._failing or time.monotonic() < self._warn_again:
            return
        self._failing, self._warn_again = True, time.monotonic() + _WARNING_EVERY_S
        _log.warning(
            "The store takes no answers. They wait and are tried again; new ones are dropped once the queue is full. "
            "Check the place and the credentials.",
            uri=self._sink.uri,
            why=str(error),
        )

    def _tell_success(self) -> None:
        if self._failing:
            self._failing = False
            _log.info("The store takes answers again.", uri=self._sink.uri)

"""How much memory pictures may take while they are decoded, over all workers.

A body of 50 KB can hold 16 million pixels, and some decoders need four times what the picture itself needs. Small
pictures are bounded by the number of workers; large ones go through a lane that holds only so many bytes at once and
never takes every worker, so that whoever sends them waits for others of their kind and nobody else does.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

from assay.vision.errors import TooManyPixels
from assay.vision.header import ImageHeader

_SMALL_SHARE = 8
"""A picture of up to this fraction of the budget is small: with the default of 48 MiB, 1.5 megapixels of a PNG, 12
megapixels of a baseline JPEG (which is decoded at a scale)."""


@dataclass(slots=True)
class _Waiting:
    need: int
    turn: asyncio.Future[None]


class PictureMemory:
    """The memory of one process for decoded pictures: ``limit_bytes``, and an eighth of it per worker more at most.

    Lives on the event loop.
    """

    def __init__(self, limit_bytes: int, workers: int) -> None:
        self.limit_bytes = limit_bytes
        self._small = limit_bytes // _SMALL_SHARE
        self._most = max(1, workers - 1)
        self._held = 0
        self._inside = 0
        self._waiting: deque[_Waiting] = deque()

    def check(self, header: ImageHeader, need: int) -> None:
        """Raise `TooManyPixels` for a picture that needs more bytes than there may be."""
        if need > self.limit_bytes:
            raise TooManyPixels(
                f"Decoding this {header.format} file of {header.width} x {header.height} pixels takes "
                f"{need >> 20} MiB of memory; {self.limit_bytes >> 20} are allowed: scale it down, or send it as a "
                "baseline JPEG, which takes the least."
            )

    def is_large(self, need: int) -> bool:
        """Whether a picture that needs so many bytes must go through the lane."""
        return need > self._small

    async def enter(self, need: int) -> None:
        """Wait for a place in the lane, first come, first served."""
        if not self._waiting and self._fits(need):
            self._take(need)
            return
        waiting = _Waiting(need, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:  # its turn had come already
                self.leave(need)
            raise

    def leave(self, need: int) -> None:
        """Give the place back."""
        self._held -= need
        self._inside -= 1
        while self._waiting and self._fits(self._waiting[0].need):
            waiting = self._waiting.popleft()
            self._take(waiting.need)
            waiting.turn.set_result(None)

    def _fits(self, need: int) -> bool:
        return self._inside < self._most and self._held + need <= self.limit_bytes

    def _take(self, need: int) -> None:
        self._held += need
        self._inside += 1

"""A work queue as Kubernetes controllers use it: a key waits at most once and is worked on by one worker at a time.

A key that is added while it is being worked on is worked on once more afterwards. One that failed comes back after a
wait that doubles with each failure, spread at random so that many do not come back together.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

FIRST_BACKOFF_S = 0.5  # a conflict is over by then
LONGEST_BACKOFF_S = 60.0  # the resync comes as often anyway

Key = tuple[str, str]
"""Namespace and name."""

log = structlog.get_logger(__name__)


class WorkQueue:
    """The queue. `work` does one pass and returns after how many seconds to come back (None: not of itself)."""

    def __init__(self, work: Callable[[Key], Awaitable[float | None]], workers: int) -> None:
        self._work = work
        self._workers = workers
        self._waiting: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._not_before: dict[Key, float] = {}

    def add(self, key: Key) -> None:
        """Have the key worked on as soon as a worker is free; later, where the API server has asked for a pause."""
        pause_s = self._not_before.get(key, 0.0) - asyncio.get_running_loop().time()
        if pause_s > 0:
            self.add_later(key, pause_s)
            return
        self._cancel_timer(key)
        if key in self._active:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._waiting.put_nowait(key)

    def add_later(self, key: Key, delay_s: float) -> None:
        """Have the key worked on after a while, unless it is added before. The earliest of several times counts."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + delay_s:
            return
        self._cancel_timer(key)
        self._timers[key] = loop.call_later(delay_s, self._ring, key)

    def _ring(self, key: Key) -> None:
        """A timer has gone off. It is forgotten first: while it is known, a later one would not be set."""
        del self._timers[key]
        self.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            key = await self._waiting.get()
            self._queued.discard(key)
            self._active.add(key)
            try:
                await self._pass(key)
            finally:
                self._active.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    async def _pass(self, key: Key) -> None:
        try:
            delay_s = await self._work(key)
        except Exception as error:  # one key's trouble must not stop the others
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            pause_s = getattr(error, "retry_after_s", None) or 0.0
            self._not_before[key] = asyncio.get_running_loop().time() + pause_s
            wait_s = max(backoff_s(failures), pause_s)
            log.warning(
                "a pass failed and is repeated",
                namespace=key[0],
                name=key[1],
                error=str(error),
                wait_s=round(wait_s, 1),
                exc_info=_unexpected(error),
            )
            self.add_later(key, wait_s)
            return
        self._failures.pop(key, None)
        self._not_before.pop(key, None)
        if delay_s is not None:
            self.add_later(key, delay_s) if delay_s > 0 else self._again.add(key)

    def _cancel_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()


def backoff_s(failures: int) -> float:
    """The wait after so many failures in a row: between half and the whole of a doubling time."""
    whole: float = min(FIRST_BACKOFF_S * 2 ** min(failures - 1, 10), LONGEST_BACKOFF_S)
    share: float = random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, hides no secret
    return whole * share


def _unexpected(error: Exception) -> bool:
    return not hasattr(error, "retry_after_s")

"""The worker threads: as many as there are cores to use, one hand-off per request each way.

Not `concurrent.futures`: its futures take a lock and a condition per request, and are then wrapped again for the event
loop. Here a request crosses over by one queue and returns by one callback.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")
_Job = Callable[[], None]


class Executor:
    """A fixed pool of threads that run synchronous work for an event loop, first come, first served."""

    def __init__(self, threads: int) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        # Daemons: a decoder that hangs must not keep the process from ending once the drain has timed out.
        self._threads = [threading.Thread(target=self._work, name=f"worker-{n}", daemon=True) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # keeps neither image nor answer while waiting for the next

    def submit(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Run ``work`` on a worker; the future belongs to the running loop. Cancelling it does not stop the work."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def settle(result: Result | None, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type] # None only when that is what the work returned

        def job() -> None:
            result, error = None, None
            try:
                result = work()
            except BaseException as caught:  # goes to whoever awaits the future
                error = caught
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(settle, result, error)

        self._jobs.put(job)
        return future

    def close(self) -> None:
        """Let the threads end once they have worked off what is queued; does not wait for them."""
        for _ in self._threads:
            self._jobs.put(None)

"""The worker threads: as many as there are cores to use, one hand-off per request each way.

Not `concurrent.futures`: its futures take a lock and a condition per request, and are then wrapped again for the event
loop. Here a request crosses over by one queue and returns by one callback.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

Result = TypeVar("Result")
_Job = Callable[[], None]


class Reply(Generic[Result]):
    """Where the result for one request goes: awaited on the event loop that made it, settled from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Result] = self._loop.create_future()

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits any more; read from any thread, and true at most once too late."""
        return self.future.cancelled()

    def settle(self, result: Result) -> None:
        """Deliver the result; what comes after the first is dropped."""
        self._call(result, None)

    def fail(self, error: BaseException) -> None:
        """Deliver an error instead."""
        self._call(None, error)

    def _call(self, result: Result | None, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._deliver, result, error)

    def _deliver(self, result: Result | None, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)  # type: ignore[arg-type] # None only when that is the result


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
        reply: Reply[Result] = Reply()

        def job() -> None:
            try:
                result = work()
            except BaseException as error:  # goes to whoever awaits the future
                reply.fail(error)
            else:
                reply.settle(result)

        self._jobs.put(job)
        return reply.future

    def submit_for(self, reply: Reply[Result], work: Callable[[], None]) -> None:
        """Run ``work``, which sees to it that ``reply`` is settled, here or elsewhere; here if it raises."""

        def job() -> None:
            try:
                work()
            except BaseException as error:  # as above
                reply.fail(error)

        self._jobs.put(job)

    def close(self) -> None:
        """Let the threads end once they have worked off what is queued; does not wait for them."""
        for _ in self._threads:
            self._jobs.put(None)

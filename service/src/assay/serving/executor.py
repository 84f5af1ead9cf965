"""The worker threads: as many as there are cores to use, one hand-off per request each way; and one for dear work.

A thread cannot be called back from a picture that takes ten times what others take, and with one or two workers whoever
comes next would wait for all of it. Dear work therefore runs on a thread of its own, of low priority, unless workers
are idle: there it yields to everything else, and what it takes from others is a tenth of a core.

Not `concurrent.futures`: its futures take a lock and a condition per request, and are then wrapped again for the event
loop. Here a request crosses over by one queue and returns by one callback.
"""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

_NICE = 10
"""Steps of priority below the workers: to a thread of theirs, Linux gives nine times the share of one that is ten below
(sched(7): each step is a factor of about 1.25)."""

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
        self._dear: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._workers = threads
        self._taken = 0  # jobs that workers have, or will take
        self._lock = threading.Lock()
        # Daemons: a decoder that hangs must not keep the process from ending once the drain has timed out.
        self._threads = [threading.Thread(target=self._work, name=f"worker-{n}", daemon=True) for n in range(threads)]
        self._threads.append(threading.Thread(target=self._work_dear, name="worker-dear", daemon=True))
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # keeps neither image nor answer while waiting for the next
            with self._lock:
                self._taken -= 1

    def _work_dear(self) -> None:
        if sys.platform == "linux":  # elsewhere a thread has no priority of its own
            thread = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICE)
        while (job := self._dear.get()) is not None:
            job()
            del job

    def _put(self, job: _Job, *, dear: bool) -> None:
        with self._lock:
            # Dear work is a worker's only if that leaves another one idle: so it never keeps others waiting, and where
            # there is nothing but dear work it has every core.
            if dear and self._taken + 2 > self._workers:
                self._dear.put(job)
                return
            self._taken += 1
        self._jobs.put(job)

    def submit(self, work: Callable[[], Result], *, dear: bool = False) -> asyncio.Future[Result]:
        """Run ``work`` on a worker; the future belongs to the running loop. Cancelling it does not stop the work.

        ``dear``: it takes many times what others take.
        """
        reply: Reply[Result] = Reply()

        def job() -> None:
            try:
                result = work()
            except BaseException as error:  # goes to whoever awaits the future
                reply.fail(error)
            else:
                reply.settle(result)

        self._put(job, dear=dear)
        return reply.future

    def submit_for(self, reply: Reply[Result], work: Callable[[], None], *, dear: bool = False) -> None:
        """Run ``work``, which sees to it that ``reply`` is settled, here or elsewhere; here if it raises."""

        def job() -> None:
            try:
                work()
            except BaseException as error:  # as above
                reply.fail(error)

        self._put(job, dear=dear)

    def close(self) -> None:
        """Let the threads end once they have worked off what is queued; does not wait for them."""
        for _ in range(self._workers):
            self._jobs.put(None)
        self._dear.put(None)

"""Work goes to a fixed number of threads and comes back to the loop that sent it."""

import asyncio
import os
import sys
import threading

import pytest

from assay.serving.executor import Executor, Reply


def test_results_come_back_in_their_own_futures():
    async def main():
        executor = Executor(3)
        results = await asyncio.gather(*(executor.submit(lambda n=n: n * n) for n in range(200)))
        executor.close()
        return results

    assert asyncio.run(main()) == [n * n for n in range(200)]


def test_errors_come_back_as_they_were_raised():
    async def main():
        executor = Executor(1)
        with pytest.raises(ZeroDivisionError):
            await executor.submit(lambda: 1 // 0)
        assert await executor.submit(lambda: "still working") == "still working"
        executor.close()

    asyncio.run(main())


def test_no_more_threads_run_than_there_are_workers():
    seen, together = set(), threading.Barrier(2, timeout=30)

    def work():
        seen.add(threading.current_thread().name)
        together.wait()

    async def main():
        executor = Executor(2)
        await asyncio.gather(*(executor.submit(work) for _ in range(20)))
        executor.close()

    asyncio.run(main())
    assert seen == {"worker-0", "worker-1"}


def test_cancelled_request_leaves_the_worker_intact():
    async def main():
        executor, gate = Executor(1), threading.Event()
        blocked = executor.submit(lambda: gate.wait(30))
        blocked.cancel()
        gate.set()
        assert await executor.submit(lambda: 7) == 7
        executor.close()

    asyncio.run(main())


def test_reply_is_settled_by_whoever_has_it_and_by_an_error_of_the_work():
    async def main():
        executor, handed_on = Executor(1), Reply()
        threads = []
        executor.submit_for(handed_on, lambda: threads.append(threading.Thread(target=handed_on.settle, args=[7])))
        await executor.submit(lambda: threads[0].start())
        assert await handed_on.future == 7
        handed_on.settle(8)  # too late, and harmless
        failed = Reply()
        executor.submit_for(failed, lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            await failed.future
        executor.close()

    asyncio.run(main())


def test_dear_work_on_a_single_worker_keeps_nobody_waiting():
    names = []

    async def main():
        executor, gate = Executor(1), threading.Event()

        def dear():
            gate.wait(30)
            names.append(threading.current_thread().name)

        slow = executor.submit(dear, dear=True)
        assert await executor.submit(lambda: threading.current_thread().name) == "worker-0"
        gate.set()
        await slow
        executor.close()

    asyncio.run(main())
    assert names == ["worker-dear"]


def test_dear_work_leaves_one_worker_idle_and_has_every_core_where_there_is_nothing_else():
    async def main():
        executor, together = Executor(3), threading.Barrier(4, timeout=30)

        def dear():
            together.wait()
            return threading.current_thread().name

        dears = [executor.submit(dear, dear=True) for _ in range(3)]  # two on workers, the third on the thread for it
        quick = await executor.submit(lambda: threading.current_thread().name)
        last = executor.submit(dear)
        found = await asyncio.gather(*dears, last)
        executor.close()
        return quick, found

    quick, found = asyncio.run(main())
    assert set(found) == {"worker-0", "worker-1", "worker-2", "worker-dear"}
    assert quick in {"worker-0", "worker-1", "worker-2"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives a thread a priority of its own")
def test_dear_work_yields_to_everything_else():
    async def main():
        executor = Executor(1)
        priorities = [
            await executor.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), dear=dear)
            for dear in (False, True)
        ]
        executor.close()
        return priorities

    ordinary, dear = asyncio.run(main())
    assert dear == min(ordinary + 10, 19)

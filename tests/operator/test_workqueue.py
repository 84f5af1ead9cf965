"""The work queue: each key once, one worker per key, failures later and later."""

import asyncio

import pytest

from assay_operator.errors import ApiError
from assay_operator.workqueue import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, WorkQueue, backoff_s

A, B = ("ns", "a"), ("ns", "b")


class Work:
    """Records passes; a pass lasts until it is let go."""

    def __init__(self):
        self.begun = []
        self.running = 0
        self.most = 0
        self.go = asyncio.Event()
        self.answers = {}

    async def __call__(self, key):
        self.begun.append(key)
        self.running += 1
        self.most = max(self.most, self.running)
        await self.go.wait()
        self.running -= 1
        answer = self.answers.get(key)
        if callable(answer):
            return answer()
        return answer


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - the queue announces nothing to wait for
            await asyncio.sleep(0)


def run(scenario, workers=4):
    async def whole():
        work = Work()
        queue = WorkQueue(work, workers)
        task = asyncio.create_task(queue.run())
        try:
            await scenario(queue, work)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(whole())


def test_key_waits_once_however_often_it_is_added():
    async def scenario(queue, work):
        work.go.set()
        for _ in range(5):
            queue.add(A)
        await until(lambda: work.begun == [A])
        queue.add(B)
        await until(lambda: B in work.begun)
        assert work.begun == [A, B]

    run(scenario)


def test_key_added_while_it_is_worked_on_is_worked_on_once_more_and_never_twice_at_a_time():
    async def scenario(queue, work):
        queue.add(A)
        await until(lambda: work.begun == [A])
        for _ in range(3):
            queue.add(A)
        work.go.set()
        await until(lambda: work.begun == [A, A])
        await until(lambda: not work.running)
        queue.add(B)
        await until(lambda: work.begun == [A, A, B])
        assert work.most == 1

    run(scenario)


def test_pool_is_bounded():
    async def scenario(queue, work):
        for number in range(10):
            queue.add(("ns", str(number)))
        await until(lambda: work.running == 2)
        work.go.set()
        await until(lambda: len(work.begun) == 10)
        assert work.most == 2

    run(scenario, workers=2)


def test_pass_that_wants_to_come_back_at_once_does():
    async def scenario(queue, work):
        work.go.set()
        answers = iter([0.0, None])
        work.answers[A] = lambda: next(answers)
        queue.add(A)
        await until(lambda: work.begun == [A, A])

    run(scenario)


def test_earliest_of_several_times_counts():
    async def scenario(queue, work):
        work.go.set()
        queue.add_later(A, 3600)
        queue.add_later(A, 0.01)
        queue.add_later(A, 3600)
        await until(lambda: work.begun == [A])

    run(scenario)


@pytest.mark.parametrize("error", [ApiError("the API server is away"), RuntimeError("a bug")])
def test_failed_pass_is_repeated_and_does_not_stop_the_others(error):
    async def scenario(queue, work):
        work.go.set()
        failures = iter([True, False])

        def answer():
            if next(failures):
                raise error

        work.answers[A] = answer
        queue.add(A)
        queue.add(B)
        await until(lambda: B in work.begun)
        await until(lambda: work.begun.count(A) == 2)

    run(scenario)


def test_pause_that_the_api_server_asks_for_is_kept_whatever_else_is_heard():
    async def scenario(queue, work):
        work.go.set()
        pauses = iter([ApiError("429", retry_after_s=3600), None])

        def answer():
            if error := next(pauses):
                raise error

        work.answers[A] = answer
        queue.add(A)
        await until(lambda: work.begun == [A])
        await until(lambda: not work.running)
        queue.add(A)
        queue.add(B)
        await until(lambda: B in work.begun)
        assert work.begun == [A, B]

    run(scenario)


def test_key_that_rings_within_such_a_pause_comes_back_after_it():
    async def scenario(queue, work):
        pauses = iter([ApiError("429", retry_after_s=0.2), None])

        def answer():
            if error := next(pauses):
                raise error

        work.answers[A] = answer
        work.go.set()
        queue.add(A)
        await until(lambda: work.begun == [A] and not work.running)
        queue.add_later(A, 0.0)  # as a resync does
        await until(lambda: work.begun == [A, A])

    run(scenario)


def test_backoff_doubles_up_to_a_limit_and_is_spread():
    assert all(FIRST_BACKOFF_S / 2 <= backoff_s(1) <= FIRST_BACKOFF_S for _ in range(50))
    assert all(LONGEST_BACKOFF_S / 2 <= backoff_s(1000) <= LONGEST_BACKOFF_S for _ in range(50))
    assert len({backoff_s(5) for _ in range(10)}) > 1

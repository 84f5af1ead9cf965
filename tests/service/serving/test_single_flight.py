"""Equal requests at the same time are computed once, and nobody's failure or departure harms another."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.serving.cache import Cache
from assay.serving.errors import DeadlineExceededError, OverloadedError
from assay.telemetry import Telemetry
from assay.vision.errors import ImageBroken
from assay.vision.preprocess import VERSION

ANSWER = ((0, "red", 0.9), (1, "green", 0.1))
KEY = (b"k", "sha256:0", VERSION, 2)


async def ask(cache, compute, computed):
    """A request: the answer, as `RequestPath` gets it."""
    if (found := await cache.find(KEY)) is not None:
        return found
    with cache.lead(KEY) as land:
        computed.append(asyncio.current_task().get_name())
        answer = await compute()
        land(answer)
    return answer


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


def asking(cache, compute, computed, requests):
    return [asyncio.create_task(ask(cache, compute, computed), name=str(number)) for number in range(requests)]


def test_equal_requests_at_the_same_time_are_computed_once():
    async def main():
        telemetry, gate, computed = Telemetry(), asyncio.Event(), []
        cache = Cache(10_000, telemetry)

        async def compute():
            await gate.wait()
            return ANSWER

        tasks = asking(cache, compute, computed, 20)
        await turns()
        gate.set()
        assert await asyncio.gather(*tasks) == [ANSWER] * 20
        assert computed == ["0"]
        assert telemetry.registry.get_sample_value("assay_cache_misses_total") == 1
        assert telemetry.registry.get_sample_value("assay_cache_hits_total") == 19

    asyncio.run(main())


def test_equal_requests_are_computed_once_even_if_nothing_can_be_kept():
    async def main():
        gate, computed = asyncio.Event(), []

        async def compute():
            await gate.wait()
            return ANSWER

        tasks = asking(Cache(1, Telemetry()), compute, computed, 3)
        await turns()
        gate.set()
        assert await asyncio.gather(*tasks) == [ANSWER] * 3
        assert computed == ["0"]

    asyncio.run(main())


def test_cancelled_leader_hands_the_lead_to_who_waited_longest():
    async def main():
        gate, computed = asyncio.Event(), []

        async def compute():
            await gate.wait()
            return ANSWER

        cache = Cache(10_000, Telemetry())
        tasks = asking(cache, compute, computed, 4)
        await turns()
        tasks[0].cancel()
        await turns()
        gate.set()
        assert await asyncio.gather(*tasks[1:]) == [ANSWER] * 3
        assert computed == ["0", "1"]
        assert cache._flights == {}

    asyncio.run(main())


def test_cancelled_follower_disturbs_nobody():
    async def main():
        gate, computed = asyncio.Event(), []

        async def compute():
            await gate.wait()
            return ANSWER

        tasks = asking(Cache(10_000, Telemetry()), compute, computed, 3)
        await turns()
        tasks[1].cancel()
        gate.set()
        assert await tasks[0] == await tasks[2] == ANSWER
        assert tasks[1].cancelled()

    asyncio.run(main())


@pytest.mark.parametrize("error", [DeadlineExceededError("late"), OverloadedError("full", 1), MemoryError()])
def test_failure_of_the_leader_is_its_own(error):
    async def main():
        gate, computed = asyncio.Event(), []

        async def compute():
            await gate.wait()
            if len(computed) == 1:
                raise error
            return ANSWER

        tasks = asking(Cache(10_000, Telemetry()), compute, computed, 4)
        await turns()
        gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results == [error, ANSWER, ANSWER, ANSWER]
        assert computed == ["0", "1"]

    asyncio.run(main())


def test_broken_image_is_broken_for_everybody_who_sent_it():
    async def main():
        gate, computed = asyncio.Event(), []

        async def compute():
            await gate.wait()
            raise ImageBroken("cut off")

        cache = Cache(10_000, Telemetry())
        tasks = asking(cache, compute, computed, 3)
        await turns()
        gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [(type(result), str(result)) for result in results] == [(ImageBroken, "cut off")] * 3
        assert len({id(result) for result in results}) == 3
        assert computed == ["0"]
        assert await cache.find(KEY) is None  # and nothing was kept

    asyncio.run(main())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["good", "late", "broken"]), st.booleans()), max_size=30))
def test_whoever_is_not_cancelled_gets_an_answer_or_a_failure_of_his_own_kind(requests):
    """Images asked for at the same time; each computation ends as its request says, some requests are cancelled."""

    async def one(cache, number, ending):
        key = (bytes([number]), *KEY[1:])
        if (found := await cache.find(key)) is not None:
            return found
        with cache.lead(key) as land:
            await turns(3)
            if ending == "late":
                raise DeadlineExceededError("late")
            if ending == "broken":
                raise ImageBroken("broken")
            land(ANSWER)
        return ANSWER

    async def main():
        cache = Cache(10_000, Telemetry())
        tasks = [asyncio.create_task(one(cache, number, ending)) for number, ending, _ in requests]
        await turns(2)
        for task, (_, _, cancelled) in zip(tasks, requests, strict=True):
            if cancelled:
                task.cancel()
        async with asyncio.timeout(60):
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for (number, ending, cancelled), result in zip(requests, results, strict=True):
            if isinstance(result, asyncio.CancelledError):
                assert cancelled
            elif isinstance(result, DeadlineExceededError):
                assert ending == "late"
            elif isinstance(result, ImageBroken):
                assert any(other == number and how == "broken" for other, how, _ in requests)
            else:
                assert result == ANSWER
        assert cache._flights == {}

    asyncio.run(main())

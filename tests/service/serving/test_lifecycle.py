"""Phases let requests in and keep them out; the drain waits for those inside."""

import asyncio

import pytest

from assay.serving.errors import DrainingError, NotReadyError
from assay.serving.lifecycle import Lifecycle, Phase
from assay.telemetry import Telemetry


@pytest.fixture
def lifecycle():
    return Lifecycle(Telemetry())


def test_nobody_comes_in_before_the_model_is_loaded(lifecycle):
    with pytest.raises(NotReadyError):
        lifecycle.enter()
    assert "loaded" in lifecycle.unready_reason()
    lifecycle.loaded()
    lifecycle.enter()
    assert lifecycle.unready_reason() is None


def test_drain_waits_for_requests_inside_and_refuses_new_ones(lifecycle):
    async def main():
        lifecycle.loaded()
        lifecycle.enter()
        drain = asyncio.create_task(lifecycle.drain(0, 30))
        for _ in range(3):  # turns of the loop: to begin, to pass the delay of nothing, to refuse
            await asyncio.sleep(0)
        with pytest.raises(DrainingError):
            lifecycle.enter()
        assert not drain.done()
        lifecycle.leave()
        assert await drain

    asyncio.run(main())


def test_requests_still_come_in_during_the_delay(lifecycle):
    async def main():
        lifecycle.loaded()
        drain = asyncio.create_task(lifecycle.drain(0.05, 30))
        await asyncio.sleep(0)
        assert lifecycle.phase is Phase.LEAVING
        assert lifecycle.unready_reason() is not None
        lifecycle.enter()
        lifecycle.leave()
        assert await drain

    asyncio.run(main())


def test_drain_gives_up_after_its_time(lifecycle):
    async def main():
        lifecycle.loaded()
        lifecycle.enter()
        return await lifecycle.drain(0, 0.01)

    assert asyncio.run(main()) is False


def test_process_told_to_end_while_it_loads_never_becomes_ready(lifecycle):
    assert asyncio.run(lifecycle.drain(600, 1))
    lifecycle.loaded()
    assert lifecycle.phase is Phase.REFUSING

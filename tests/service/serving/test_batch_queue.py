"""The batcher's queue: bounded, fair about deadlines, and never without an answer for what it took."""

import asyncio
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from assay.inference.engine import Engine
from assay.serving.batcher import Batcher, Waiting
from assay.serving.errors import DeadlineExceededError
from assay.serving.executor import Reply
from assay.serving.stages import Prepared
from assay.telemetry import Telemetry
from support.paths import wired
from support.server import wait_until
from support.small_packs import COLOURS, CROP, colour_jpeg, colour_pack


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return colour_pack(tmp_path_factory.mktemp("queue") / "colours.tar")


def waiting(batcher, leave=lambda: None, deadline=float("inf")):
    batcher.expect()
    pixels = np.full((CROP, CROP, 3), 9, np.uint8)
    return Waiting(Prepared(pixels, {}, 0.0, time.perf_counter()), 3, deadline, leave, Reply())


@pytest.fixture
def batcher(pack):
    made = Batcher(Engine(pack), 2, 0.0, Telemetry())
    yield made
    made.close()
    made._thread.join(60)
    assert not made._thread.is_alive()


def test_image_that_waits_for_the_model_keeps_its_part_of_the_budget(pack):
    async def main():
        with wired(pack, workers=1, batching=True, batch_window_ms=0) as made:
            gate = threading.Event()
            hold = waiting(made.batcher, leave=lambda: gate.wait(60))
            made.batcher.put(hold)
            await asyncio.to_thread(wait_until, "the batcher to take it", lambda: not made.batcher._queue)
            answers = asyncio.gather(
                *(made.path.classify(colour_jpeg(COLOURS["red"]), 3, time.perf_counter()) for _ in range(2))
            )
            price_ms = made.path._prices.model_ms
            await asyncio.to_thread(wait_until, "both to be decoded", lambda: len(made.batcher._queue) == 2)
            assert made.admission.waiting_ms == pytest.approx(2 * price_ms)
            gate.set()
            await answers
            assert made.admission.waiting_ms == 0

    asyncio.run(main())


def test_worker_waits_while_as_many_pictures_wait_as_may(batcher):
    async def main():
        gate = threading.Event()
        held = waiting(batcher, leave=lambda: gate.wait(60))
        batcher.put(held)
        await asyncio.to_thread(wait_until, "the batcher to take it", lambda: not batcher._queue)
        others = [waiting(batcher) for _ in range(5)]
        for other in others[:4]:
            batcher.put(other)
        worker = threading.Thread(target=batcher.put, args=[others[4]])
        worker.start()
        await asyncio.to_thread(wait_until, "the worker to wait", lambda: batcher._room._waiters)
        assert len(batcher._queue) == 4
        gate.set()
        await asyncio.gather(*(one.reply.future for one in (held, *others)))
        worker.join(60)

    asyncio.run(main())


def test_what_is_too_late_or_wanted_by_nobody_is_not_computed(batcher):
    async def main():
        gate = threading.Event()
        held = waiting(batcher, leave=lambda: gate.wait(60))
        batcher.put(held)
        late, gone, good = waiting(batcher, deadline=0.0), waiting(batcher), waiting(batcher)
        gone.reply.future.cancel()
        for one in (late, gone, good):
            batcher.put(one)
        gate.set()
        with pytest.raises(DeadlineExceededError):
            await late.reply.future
        await asyncio.gather(held.reply.future, good.reply.future)

    asyncio.run(main())
    assert batcher._sizes._sum.get() == 2


def test_closed_batcher_answers_what_waits_and_takes_no_more(batcher):
    async def main():
        gate = threading.Event()
        all_of_them = [waiting(batcher, leave=lambda: gate.wait(60)), *(waiting(batcher) for _ in range(3))]
        for one in all_of_them:
            batcher.put(one)
        batcher.close()
        with pytest.raises(RuntimeError):
            batcher.put(waiting(batcher))
        gate.set()
        await asyncio.gather(*(one.reply.future for one in all_of_them))

    asyncio.run(main())


def test_fault_in_one_batch_is_told_and_the_next_is_computed(batcher):
    async def main():
        broken = waiting(batcher)
        broken = replace(broken, prepared=replace(broken.prepared, pixels=np.zeros((1, 1, 3), np.uint8)))
        faulty = waiting(batcher, leave=lambda: 1 // 0)
        for one, error in ((broken, ValueError), (faulty, ZeroDivisionError)):
            batcher.put(one)
            with pytest.raises(error):
                await one.reply.future
        good = waiting(batcher)
        batcher.put(good)
        await good.reply.future

    asyncio.run(main())

"""Answers come again for the same bytes and the same model only, as many as fit."""

import asyncio
import hashlib
import threading
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.serving.cache import Cache, key_of
from assay.serving.errors import OverloadedError
from assay.telemetry import Telemetry
from assay.vision.preprocess import VERSION
from support.paths import wired
from support.small_packs import COLOURS, colour_jpeg, colour_model, colour_pack

ANSWER = ((0, "red", 0.9), (1, "green", 0.1))
SIZE = 280 + 2 * 128  # of that answer, as the module has it


def keyed(number, answer=ANSWER):
    return (number.to_bytes(32), "sha256:0", VERSION, len(answer))


def keep(cache, key, answer=ANSWER):
    with cache.lead(key) as land:
        land(answer)


def kept(cache, key):
    """What is found at once; None where the caller would have to compute it."""
    return asyncio.run(cache.find(key))


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return colour_pack(tmp_path_factory.mktemp("cache") / "colours.tar")


def test_answer_used_last_stays_and_the_oldest_goes():
    telemetry = Telemetry()
    cache = Cache(2 * SIZE, telemetry)
    keep(cache, keyed(1))
    keep(cache, keyed(2))
    assert kept(cache, keyed(1)) == ANSWER
    keep(cache, keyed(3))
    assert [kept(cache, keyed(number)) is not None for number in (1, 2, 3)] == [True, False, True]
    assert telemetry.registry.get_sample_value("assay_cache_evictions_total") == 1


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 30)), max_size=60), st.integers(0, 8000))
def test_bytes_never_exceed_what_may_be_kept(asked, limit):
    cache = Cache(limit, Telemetry())
    for number, labels in asked:
        answer = tuple((index, "a", 0.5) for index in range(labels))
        key = keyed(number, answer)
        if kept(cache, key) is None:
            keep(cache, key, answer)
        assert cache.bytes <= limit
        assert cache.bytes == sum(280 + 128 * len(entry) for entry in cache._entries.values())


@pytest.mark.parametrize("labels", [1, 3, 10])
def test_bytes_are_those_that_memory_shows(labels):
    cache, names = Cache(1 << 30, Telemetry()), [str(index) for index in range(labels)]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(11_000):
            answer = tuple((1000 + index, names[index], number / 7 + index) for index in range(labels))
            keep(cache, (hashlib.sha256(str(number).encode()).digest(), "sha256:0", VERSION, labels), answer)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cache.bytes == pytest.approx(after - before, rel=0.2)


def test_key_is_everything_that_makes_an_answer():
    async def main():
        keys = [
            await key_of(b"image", "sha256:1", 3),
            await key_of(b"other", "sha256:1", 3),
            await key_of(b"image", "sha256:2", 3),
            await key_of(b"image", "sha256:1", 4),
        ]
        assert len(set(keys)) == 4
        assert keys[0] == (hashlib.sha256(b"image").digest(), "sha256:1", VERSION, 3)

    asyncio.run(main())


def test_large_image_is_hashed_in_turns_with_others():
    async def main():
        data, turns = np.random.default_rng(0).bytes(3_000_001), 0
        hashing = asyncio.create_task(key_of(data, "sha256:1", 3))
        while not hashing.done():
            turns += 1
            await asyncio.sleep(0)
        assert hashing.result()[0] == hashlib.sha256(data).digest()
        assert turns >= 6

    asyncio.run(main())


def test_hit_is_what_was_computed_and_needs_neither_worker_nor_budget(pack):
    async def main():
        with wired(pack, workers=1, cache_bytes=10_000, queue_budget_ms=10) as made:
            image = colour_jpeg(COLOURS["green"])
            first = await made.path.classify(image, 2, time.perf_counter())
            gate = threading.Event()
            blocked = made.executor.submit(lambda: gate.wait(60))
            made.admission.admit(10)
            with pytest.raises(OverloadedError):
                await made.path.classify(colour_jpeg(COLOURS["red"]), 2, time.perf_counter())
            again = await made.path.classify(image, 2, time.perf_counter())
            assert not blocked.done()
            gate.set()
            await blocked
            assert list(again.predictions) == list(first.predictions)
            assert again.cpu_s == 0
            assert set(again.stages) == {"receive", "cache"}
            assert set(first.stages) - set(again.stages) == {"queue", "decode", "preprocess", "infer", "postprocess"}
            assert (made.count("assay_cache_hits_total"), made.count("assay_cache_misses_total")) == (1, 2)

    asyncio.run(main())


def test_swapped_model_never_gives_the_answer_of_the_old_one(pack, tmp_path):
    swapped = colour_pack(tmp_path / "swapped.tar", model=colour_model(np.roll(np.eye(4, 3, dtype=np.float32), 1, 0)))

    async def main():
        cache, image = Cache(10_000, Telemetry()), colour_jpeg(COLOURS["red"])
        with wired(pack, cache=cache) as old, wired(swapped, cache=cache) as new:
            answers = [
                await made.path.classify(image, 1, time.perf_counter()) for made in (old, new, old, new)
            ]  # both from the same cache, in turns
        assert [answer.predictions[0][1] for answer in answers] == ["red", "green", "red", "green"]
        assert [answer.cpu_s > 0 for answer in answers] == [True, True, False, False]

    asyncio.run(main())


def test_equal_images_at_once_go_through_the_model_once(pack):
    async def main():
        with wired(pack, cache_bytes=10_000, batching=True) as made:
            image = colour_jpeg(COLOURS["blue"])
            answers = await asyncio.gather(*(made.path.classify(image, 3, time.perf_counter()) for _ in range(20)))
            assert {tuple(answer.predictions) for answer in answers} == {tuple(answers[0].predictions)}
            assert made.count("assay_batch_size_sum") == 1

    asyncio.run(main())

"""Taking turns: who is called when, and what becomes of the figures."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.bench.timing import Sample, Spread, Timings, interleave, timed
from assay.errors import BenchError


def recorder():
    """Contenders that write down who was called for which round."""
    calls = []

    def contender(name):
        def call(number):
            calls.append((number, name))
            return Sample(0.002 if name == "b" else 0.001, 0.001)

        return call

    return calls, {name: contender(name) for name in "abc"}


def test_every_round_calls_everybody_once_after_the_warm_ups():
    calls, contenders = recorder()
    seen = []
    timings = interleave(contenders, 20, 3, seed=1, max_seconds=60, progress=lambda *done: seen.append(done))
    assert [number for number, _ in calls] == [n for n in range(-3, 20) for _ in "abc"]
    rounds = ["".join(name for number, name in calls if number == n) for n in range(-3, 20)]
    assert {"".join(sorted(order)) for order in rounds} == {"abc"}
    assert len(set(rounds)) > 1  # not always in the same order
    assert (timings.rounds, timings.complete) == (20, True)
    assert seen[-1] == (23, 23)


def test_the_same_seed_gives_the_same_order():
    orders = []
    for seed in (1, 1, 2):
        calls, contenders = recorder()
        interleave(contenders, 10, 0, seed=seed, max_seconds=60)
        orders.append(calls)
    assert orders[0] == orders[1] != orders[2]


def test_time_that_is_up_ends_after_whole_rounds():
    def slow(_number):
        return timed(lambda: sum(range(200_000)))

    timings = interleave({"a": slow, "b": slow}, 1_000_000, 0, seed=1, max_seconds=0.3)
    assert not timings.complete
    assert len(timings.samples["a"]) == len(timings.samples["b"]) == timings.rounds >= 2


def test_too_little_time_is_told():
    _, contenders = recorder()
    with pytest.raises(BenchError, match="--max-seconds"):
        interleave(contenders, 100, 0, seed=1, max_seconds=-1)


def test_ratio_is_that_of_calls_in_one_round():
    drifting = [0.001, 0.002, 0.004]
    samples = {name: [Sample(factor * s, 2 * s) for s in drifting] for name, factor in (("a", 1), ("b", 3))}
    timings = Timings(samples, complete=True)
    assert timings.ratio("b", "a") == pytest.approx(3)
    assert timings.ratio("b", "a", cpu=True) == pytest.approx(1)


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=200))
def test_percentiles_are_in_order_and_were_seen(seconds):
    spread = Spread.of(seconds)
    seen = [value * 1e3 for value in seconds]
    ranked = [spread.p10, spread.p50, spread.p90, spread.p95, spread.p99]
    assert ranked == sorted(ranked)
    assert set(ranked) <= set(seen)
    assert min(seen) * (1 - 1e-9) <= spread.mean <= max(seen) * (1 + 1e-9)


def test_cpu_time_of_a_call_is_its_own():
    idle = timed(lambda: time.sleep(0))
    busy = timed(lambda: sum(range(2_000_000)))
    assert 0 <= idle.cpu_s < busy.cpu_s

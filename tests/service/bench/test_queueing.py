"""The queue model against what is known exactly, and against what holds for any queue."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.bench.queueing import HIGHEST_LOAD, Queue, waits

MEAN_S = 0.015
"""Of the service times here: a photo's."""

CLOSE = 0.04
"""How near a simulated figure must come to the exact one; its seeds are fixed."""


def exponential(count=1_000_000):
    return np.random.default_rng(7).exponential(MEAN_S, count)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.85])
def test_exponential_work_waits_as_exactly_known(load):
    """M/M/1: the time in the system is exponential with rate mu - lambda."""
    queue = Queue(exponential(), 1)
    found = queue.predict(load * queue.ceiling)
    left = (1 - load) * queue.ceiling
    assert found.p50_s == pytest.approx(math.log(2) / left, rel=CLOSE)
    assert found.p99_s == pytest.approx(math.log(100) / left, rel=CLOSE)
    assert found.load == pytest.approx(load)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.85])
def test_constant_work_waits_as_exactly_known(load):
    """M/D/1: the mean wait is rho D / (2 (1 - rho)), and 1 - rho of the requests do not wait."""
    waited = Queue(np.array([MEAN_S]), 1).sojourns(load / MEAN_S) - MEAN_S
    assert waited.mean() == pytest.approx(load * MEAN_S / (2 * (1 - load)), rel=CLOSE)
    assert (waited < 1e-9).mean() == pytest.approx(1 - load, abs=0.01)


@pytest.mark.parametrize("load", [0.4, 0.7])
def test_constant_work_has_the_exact_distribution(load):
    """M/D/1 (Erlang, 1909): P(W <= x) = (1 - rho) sum over k of e^(-u) u^k / k! with u = lambda (k D - x), k D <= x."""
    waited = Queue(np.array([MEAN_S]), 1).sojourns(load / MEAN_S) - MEAN_S
    for x in (0.5 * MEAN_S, 1.5 * MEAN_S, 3.2 * MEAN_S):
        steps = [load / MEAN_S * (k * MEAN_S - x) for k in range(int(x / MEAN_S) + 1)]
        exact = (1 - load) * sum(math.exp(-u) * u**k / math.factorial(k) for k, u in enumerate(steps))
        assert (waited <= x).mean() == pytest.approx(exact, abs=0.01)


def test_mixed_work_waits_as_pollaczek_and_khinchin_say():
    """M/G/1: the mean wait is lambda E[S^2] / (2 (1 - rho)). One photo in fifty takes ten times as long."""
    services = np.array([MEAN_S] * 49 + [10 * MEAN_S])
    queue = Queue(services, 1)
    rate = 0.6 * queue.ceiling
    waited = queue.sojourns(rate).mean() - services.mean()
    assert waited == pytest.approx(rate * (services**2).mean() / (2 * (1 - 0.6)), rel=0.08)


@pytest.mark.parametrize("servers", [2, 4])
def test_several_workers_wait_as_erlang_says(servers):
    """M/M/c: P(wait > t) = C exp(-(c mu - lambda) t), C by Erlang's formula."""
    offered = 0.8 * servers
    services = exponential(200_000)
    gaps = np.random.default_rng(8).exponential(MEAN_S / offered, len(services))
    waited = waits(gaps, services, servers)[20_000:]
    top = offered**servers / math.factorial(servers) / (1 - 0.8)
    erlang = top / (sum(offered**k / math.factorial(k) for k in range(servers)) + top)
    assert (waited > 0).mean() == pytest.approx(erlang, abs=0.02)
    assert np.quantile(waited, 0.99) == pytest.approx(math.log(erlang / 0.01) * MEAN_S / (servers - offered), rel=0.08)


@given(work=st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=60))
@settings(deadline=None)
def test_one_worker_follows_lindleys_recursion_and_more_never_wait_longer(work):
    gaps, services = (np.array(column) for column in zip(*work, strict=True))
    expected = [0.0]
    for gap, service in zip(gaps[1:], services, strict=False):
        expected.append(max(0.0, expected[-1] + service - gap))
    alone = waits(gaps, services, 1)
    assert alone == pytest.approx(expected, abs=1e-6)
    before = alone
    for servers in (2, 3):
        waited = waits(gaps, services, servers)
        assert (waited >= 0).all()
        assert (waited <= before + 1e-6).all()
        before = waited


@pytest.mark.parametrize("servers", [1, 2])
def test_highest_rate_meets_the_target_and_a_higher_one_does_not(servers):
    queue = Queue(exponential(5000), servers, requests=20_000)
    target = 6 * MEAN_S
    best = queue.highest_rate(target)
    assert 0 < best < HIGHEST_LOAD * queue.ceiling
    assert queue.predict(best).p99_s <= target < queue.predict(best * 1.01).p99_s


def test_a_target_that_one_request_alone_misses_has_no_rate():
    queue = Queue(np.array([MEAN_S]), 1, requests=20_000)
    assert queue.highest_rate(0.9 * MEAN_S) == 0
    assert queue.highest_rate(-1) == 0


def test_no_rate_beyond_the_highest_load_is_recommended():
    queue = Queue(np.array([MEAN_S]), 1, requests=20_000)
    assert queue.highest_rate(3600) == pytest.approx(HIGHEST_LOAD * queue.ceiling)

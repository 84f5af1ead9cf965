"""The arrivals of the load tests are a Poisson process: shown on what k6 itself computes."""

import itertools
import math
import subprocess

import numpy as np
import pytest
from scipy import stats

from support.k6 import evaluate

# Tests of a hypothesis that is true fail at this rate, for another seed: it is fixed, so they fail never or always.
LEVEL = 0.01
BEFORE_DURING_AFTER = [(20, 100), (80, 50), (20, 100)]


def k6_arrivals(folder, *, rate, seconds, seed):
    return evaluate(
        folder, {"arrivals.js": "arrivals"}, f"return arrivals({{ rate: {rate}, seconds: {seconds}, seed: {seed} }});"
    )


def k6_phases(folder, phases, seed):
    listed = ", ".join(f"{{ rate: {rate}, seconds: {seconds} }}" for rate, seconds in phases)
    return evaluate(folder, {"arrivals.js": "arrivalsOf"}, f"return arrivalsOf([{listed}], {seed});")


def gaps(times):
    return np.diff([0.0, *times])


def test_gaps_between_arrivals_are_exponential(tmp_path):
    rate = 50.0
    times = k6_arrivals(tmp_path, rate=rate, seconds=200, seed=7)
    assert stats.kstest(gaps(times), stats.expon(scale=1 / rate).cdf).pvalue > LEVEL
    # The count is Poisson with mean rate x seconds: within four standard deviations.
    assert abs(len(times) - rate * 200) < 4 * math.sqrt(rate * 200)


def test_arrivals_in_equal_spans_scatter_as_poisson_counts_do(tmp_path):
    times = k6_arrivals(tmp_path, rate=50, seconds=200, seed=7)
    counts = np.histogram(times, bins=200, range=(0, 200))[0]
    # Dispersion: variance / mean x (n - 1) is chi-squared; a metronome has 0, bursts have more.
    dispersion = counts.var(ddof=1) / counts.mean() * (len(counts) - 1)
    assert LEVEL < stats.chi2(len(counts) - 1).cdf(dispersion) < 1 - LEVEL


def test_gaps_do_not_depend_on_the_gap_before(tmp_path):
    found = gaps(k6_arrivals(tmp_path, rate=50, seconds=200, seed=11))
    correlation = stats.spearmanr(found[:-1], found[1:])
    assert correlation.pvalue > LEVEL


def test_every_phase_has_its_own_rate_and_the_change_is_exact(tmp_path):
    times = k6_phases(tmp_path, BEFORE_DURING_AFTER, seed=3)
    begin, expected_before, expected = 0.0, 0.0, []
    for rate, seconds in BEFORE_DURING_AFTER:
        inside = [time for time in times if begin <= time < begin + seconds]
        assert abs(len(inside) - rate * seconds) < 4 * math.sqrt(rate * seconds)
        expected += [expected_before + (time - begin) * rate for time in inside]
        begin, expected_before = begin + seconds, expected_before + rate * seconds
    # By expected arrivals instead of seconds the process has rate 1 throughout, across the changes too.
    assert stats.kstest(gaps(expected), stats.expon.cdf).pvalue > LEVEL


def test_one_phase_is_the_same_as_a_plain_run(tmp_path):
    assert k6_phases(tmp_path, [(20, 10)], seed=5) == k6_arrivals(tmp_path, rate=20, seconds=10, seed=5)


def test_same_seed_gives_the_same_arrivals_and_another_seed_others(tmp_path):
    one, again, other = (k6_arrivals(tmp_path, rate=20, seconds=10, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert all(earlier < later for earlier, later in itertools.pairwise(one))


@pytest.mark.parametrize(("rate", "seconds"), [(0, 10), (-1, 10), (10, 0)])
def test_a_run_without_arrivals_is_refused(tmp_path, rate, seconds):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        k6_arrivals(tmp_path, rate=rate, seconds=seconds, seed=1)
    assert "RATE and SECONDS must be above 0" in refused.value.stderr


def test_senders_suffice_for_a_server_that_never_answers(tmp_path):
    times = k6_arrivals(tmp_path, rate=20, seconds=30, seed=1)
    most = evaluate(tmp_path, {"openloop.js": "mostWithin"}, f"return mostWithin({times}, 5);")
    by_hand = max(sum(1 for other in times if 0 <= time - other <= 5) for time in times)
    assert most == by_hand

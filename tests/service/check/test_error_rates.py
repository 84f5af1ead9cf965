"""How often the verdict is wrong, by seeded simulation; `tests/measure/verdict.py` is the long version.

A Pass that should not be may come in 5 % of the samples that lie exactly at the threshold. With 1000 samples the
share seen lies below 7.1 % then (three deviations of 0.7 %).
"""

import pytest
from scipy import stats

from support.verdict_samples import (
    DRIFTS,
    ORDERS,
    THRESHOLD,
    containments,
    cost_passes,
    drop_passes,
    passes,
)

RUNS = 1000
AT_MOST = 0.05 + 3 * (0.05 * 0.95 / RUNS) ** 0.5


@pytest.mark.parametrize("images", [200, 600, 2000])
def test_independent_images_at_the_threshold_seldom_pass(images):
    assert passes(containments(images, RUNS, [1] * images, THRESHOLD, 0)) <= AT_MOST


@pytest.mark.parametrize("correlation", [0.1, 0.3])
@pytest.mark.parametrize("sizes", [[3] * 200, [1, 2, 3] * 67], ids=["threes", "one to three"])
def test_small_groups_at_the_threshold_seldom_pass(sizes, correlation):
    assert passes(containments(len(sizes), RUNS, sizes, THRESHOLD, correlation)) <= AT_MOST


def test_four_large_groups_would_pass_falsely_about_half_the_time():
    # What "smoke set" means: the bound that takes images as independent says nothing about other photos.
    assert 0.3 < passes(containments(4, RUNS, [150] * 4, THRESHOLD, 0.2)) < 0.7


@pytest.mark.parametrize(("images", "contained", "most_misses"), [(600, 0.999, 6), (2000, 0.995, 29)])
def test_a_candidate_that_is_good_enough_usually_passes(images, contained, most_misses):
    # Exactly: it passes with so many misses at most, by scipy's bounds.
    lower = [stats.beta.ppf(0.05, images - misses, misses + 1) for misses in (most_misses, most_misses + 1)]
    assert lower[0] >= THRESHOLD > lower[1]
    expected = stats.binom.cdf(most_misses, images, 1 - contained)
    seen = passes(containments(images, RUNS, [1] * images, contained, 0))
    assert seen == pytest.approx(expected, abs=4 * (expected * (1 - expected) / RUNS) ** 0.5 + 1e-3)


def test_a_drop_at_its_limit_seldom_passes():
    # Two bounds of half the error each: seldom indeed. Equal samples are rare here, so there are few of them.
    assert drop_passes(7, 50, 200, lost=0.05, gained=0.03, limit=20) <= 0.05


COST_RUNS = 150
COST_AT_MOST = 0.05 + 3 * (0.05 * 0.95 / COST_RUNS) ** 0.5


@pytest.mark.parametrize("drift", DRIFTS)
def test_a_cost_at_its_limit_seldom_passes_whatever_drifts(drift):
    assert cost_passes(11, COST_RUNS, 1.0, drift=DRIFTS[drift], blocks=60) <= COST_AT_MOST


def test_in_another_order_a_drift_decides():
    for order in ("ABAB", "AABB"):
        assert cost_passes(12, 30, 1.0, drift=DRIFTS["sawtooth"], order=ORDERS[order]) > 0.9


def test_a_candidate_as_dear_as_its_yardstick_passes_the_usual_limit():
    assert cost_passes(13, 60, 1.0, limit=1100) >= 0.95


def test_a_candidate_slow_on_one_image_in_fifty_does_not_pass():
    assert cost_passes(14, 60, 1.0, limit=1100, slow=0.02, slower=20) <= 0.05

"""Cost: medians of interleaved timings, with an interval that holds."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assay.check.cost import CANDIDATE, MIN_BLOCKS, YARDSTICK, Block, median_rank, order, student_quantile, summarise


def blocks(ratios, base=0.01):
    return [Block((base * r, base * r), (base, base)) for r in ratios]


def test_drift_in_a_straight_line_does_not_touch_the_ratio():
    drifting = [Block((1 + 4 * i, 1 + 4 * i + 3), (1 + 4 * i + 1, 1 + 4 * i + 2)) for i in range(MIN_BLOCKS)]
    assert summarise(drifting, 0.95).ratio == pytest.approx(1.0)


def test_both_sides_are_outside_as_often_as_inside_and_take_turns():
    assert order(0) == (CANDIDATE, YARDSTICK, YARDSTICK, CANDIDATE)
    assert order(1) == (YARDSTICK, CANDIDATE, CANDIDATE, YARDSTICK)
    assert order(2) == order(0)
    assert Block.of(order(0), [1, 2, 3, 4]) == Block((1, 4), (2, 3))
    assert Block.of(order(1), [1, 2, 3, 4]) == Block((2, 3), (1, 4))


def test_figures_are_medians_and_noise_is_the_middle_half_of_the_ratios():
    cost = summarise(blocks([0.4, 0.45, 0.5, 0.55, 0.6] * 8), 0.95)
    assert (cost.median.value, cost.candidate_s, cost.yardstick_s) == pytest.approx((0.5, 0.005, 0.01))
    assert cost.noise == pytest.approx(0.2)
    assert cost.lower <= cost.ratio <= cost.upper
    assert cost.blocks == 40


def test_a_few_wild_blocks_change_nothing():
    cost = summarise(blocks([0.5] * 95 + [20.0] * 5), 0.95)
    assert (cost.median.lower, cost.median.value, cost.median.upper) == (0.5, 0.5, 0.5)
    assert (cost.noise, cost.jitter) == (0, 0)


def test_a_candidate_slow_on_a_few_images_costs_what_all_of_them_cost():
    cost = summarise(blocks([0.5] * 180 + [20.0] * 20), 0.95)
    assert cost.median.value == 0.5
    assert cost.ratio == cost.total.value == pytest.approx(2.45)
    assert 1.7 < cost.lower < 2.45 < cost.upper < 3.2
    assert cost.jitter == 0


def test_what_one_image_says_differently_twice_is_jitter():
    apart = summarise([Block((0.9, 1.1), (1.0, 1.0)), Block((1.1, 0.9), (1.0, 1.0))] * 20, 0.95)
    assert apart.noise == pytest.approx(0)
    assert apart.jitter == pytest.approx(0.2)


@pytest.mark.parametrize("freedom", [1, 19, 99, 199, 1999])
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_students_quantiles_are_scipys(freedom, confidence):
    assert student_quantile(confidence, freedom) == pytest.approx(stats.t.ppf(confidence, freedom), rel=1e-9)


@pytest.mark.parametrize(("n", "rank"), [(5, 0), (20, 5), (100, 41), (200, 87)])
def test_the_ranks_are_those_of_the_sign_test(n, rank):
    # Binomial(n, 1/2): 5 values lie all on one side with 1/32; 20: P(X <= 5) = 0.0207, P(X <= 6) = 0.0577; and so on.
    assert median_rank(n, 0.95) == rank
    assert sum(math.comb(n, i) for i in range(rank + 1)) / 2**n <= 0.05
    assert sum(math.comb(n, i) for i in range(rank + 2)) / 2**n > 0.05


def test_too_few_values_have_no_bound():
    with pytest.raises(ValueError, match="say nothing"):
        median_rank(4, 0.95)
    with pytest.raises(ValueError, match="needs 20"):
        summarise(blocks([1.0] * 19), 0.95)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_no_time_is_refused(bad):
    with pytest.raises(ValueError, match="not a positive number"):
        summarise([*blocks([1.0] * 20), Block((bad, 1.0), (1.0, 1.0))], 0.95)


def test_the_bounds_hold_as_often_as_they_say():
    rng = random.Random(3)
    missed = 0
    for _ in range(1000):
        cost = summarise(blocks([math.exp(rng.gauss(0, 0.2)) for _ in range(50)]), 0.95)
        missed += cost.upper < 1  # the true median is 1
    assert missed <= 70  # 50 expected at most; 70 lie three deviations away


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=MIN_BLOCKS, max_size=300), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_median_lies_between_its_bounds(ratios, confidence):
    cost = summarise(blocks(ratios), confidence)
    assert cost.lower <= cost.ratio <= cost.upper
    for seen in (cost.median, cost.total):
        assert seen.lower <= seen.value <= seen.upper
    assert cost.noise >= 0

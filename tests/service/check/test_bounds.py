"""Exact bounds: against closed forms, the binomial sums that define them, and published values."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from assay.check.bounds import images_to_settle, images_to_settle_drop, incomplete_beta, lower_bound, upper_bound

CONFIDENCE = st.sampled_from([0.8, 0.9, 0.95, 0.975, 0.99, 0.995])


def at_least(k, n, p):
    """P(Binomial(n, p) >= k), summed."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


@given(n=st.integers(1, 5000), confidence=CONFIDENCE)
def test_all_or_none_have_closed_forms(n, confidence):
    # Of n successes in n: the p with p**n = 1 - confidence.
    assert lower_bound(n, n, confidence) == pytest.approx((1 - confidence) ** (1 / n), rel=1e-9)
    assert upper_bound(0, n, confidence) == pytest.approx(1 - (1 - confidence) ** (1 / n), rel=1e-9)
    assert (lower_bound(0, n, confidence), upper_bound(n, n, confidence)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("successes", "trials", "confidence", "lower", "upper"),
    [
        # Clopper and Pearson's 95 % two-sided intervals (0.975 one-sided), as in common tables.
        (8, 10, 0.975, 0.4439, 0.9748),
        (5, 10, 0.975, 0.1871, 0.8129),
        (1, 10, 0.975, 0.0025, 0.4450),
        (50, 100, 0.975, 0.3983, 0.6017),
        (95, 100, 0.975, 0.8872, 0.9836),
    ],
)
def test_published_values(successes, trials, confidence, lower, upper):
    assert lower_bound(successes, trials, confidence) == pytest.approx(lower, abs=5e-5)
    assert upper_bound(successes, trials, confidence) == pytest.approx(upper, abs=5e-5)


@settings(deadline=None)
@given(data=st.data(), n=st.integers(1, 20_000), confidence=CONFIDENCE)
def test_the_bounds_are_clopper_and_pearsons_by_scipy(data, n, confidence):
    k = data.draw(st.integers(0, n))
    # The two-sided interval leaves out half of its error on each side.
    two_sided = stats.binomtest(k, n).proportion_ci(2 * confidence - 1, method="exact")
    assert lower_bound(k, n, confidence) == pytest.approx(two_sided.low, abs=1e-10)
    assert upper_bound(k, n, confidence) == pytest.approx(two_sided.high, abs=1e-10)


@settings(deadline=None)
@given(n=st.floats(1, 20_000), share=st.floats(0, 1), confidence=CONFIDENCE)
def test_fractional_counts_have_the_quantiles_of_scipys_beta(n, share, confidence):
    k = share * n
    if 1e-6 < k < n - 1e-6:
        assert lower_bound(k, n, confidence) == pytest.approx(
            special.betaincinv(k, n - k + 1, 1 - confidence), abs=1e-9
        )
        assert upper_bound(k, n, confidence) == pytest.approx(special.betaincinv(k + 1, n - k, confidence), abs=1e-9)


@settings(deadline=None)
@given(data=st.data(), n=st.integers(1, 300), confidence=CONFIDENCE)
def test_the_bounds_solve_the_binomial_sums_that_define_them(data, n, confidence):
    k = data.draw(st.integers(1, n))
    assert at_least(k, n, lower_bound(k, n, confidence)) == pytest.approx(1 - confidence, rel=1e-6)
    if k < n:
        assert 1 - at_least(k + 1, n, upper_bound(k, n, confidence)) == pytest.approx(1 - confidence, rel=1e-6)


@settings(deadline=None)
@given(n=st.floats(0.5, 1e6), share=st.floats(0, 1), confidence=CONFIDENCE)
def test_fractional_counts_keep_the_rate_between_the_bounds(n, share, confidence):
    k = share * n
    lower, upper = lower_bound(k, n, confidence), upper_bound(k, n, confidence)
    assert 0 <= lower <= k / n + 1e-12
    assert k / n - 1e-12 <= upper <= 1


@settings(deadline=None)
@given(n=st.integers(2, 2000), confidence=CONFIDENCE, data=st.data())
def test_one_more_success_never_lowers_a_bound(n, confidence, data):
    k = data.draw(st.integers(0, n - 1))
    assert lower_bound(k, n, confidence) <= lower_bound(k + 1, n, confidence)
    assert upper_bound(k, n, confidence) <= upper_bound(k + 1, n, confidence)


@given(a=st.integers(1, 40), b=st.integers(1, 40), x=st.floats(0, 1))
def test_the_incomplete_beta_is_a_binomial_tail(a, b, x):
    assert incomplete_beta(x, a, b) == pytest.approx(at_least(a, a + b - 1, x), abs=1e-10)


@pytest.mark.parametrize(
    "arguments", [(1, 0, 0.95), (-1, 5, 0.95), (6, 5, 0.95), (1, 5, 0), (1, 5, 1), (math.nan, 5, 0.9)]
)
def test_what_is_no_proportion_is_refused(arguments):
    with pytest.raises(ValueError, match="not a proportion"):
        lower_bound(*arguments)


@settings(deadline=None, max_examples=50)
@given(n=st.integers(20, 2000), threshold=st.sampled_from([0.5, 0.9, 0.98, 0.99]), data=st.data())
def test_the_number_that_settles_does_settle_and_one_less_does_not(n, threshold, data):
    k = data.draw(st.integers(0, n))
    needed = images_to_settle(k, n, threshold, 0.95)
    if needed is None:
        assert k / n == pytest.approx(threshold, abs=0.002)
        return

    def settled(images):
        rate = k / n
        if rate >= threshold:
            return lower_bound(rate * images, images, 0.95) >= threshold
        return upper_bound(rate * images, images, 0.95) < threshold

    assert settled(needed + 1)  # one spare: at the number itself rounding may decide
    assert needed == 1 or not settled(needed - 1) or not settled(max(1, needed - 2))


def test_no_number_of_images_proves_certainty_or_settles_a_tie():
    assert images_to_settle(600, 600, 1.0, 0.95) is None
    assert images_to_settle(588, 600, 0.98, 0.95) is None
    assert images_to_settle(597, 600, 0.98, 0.95) == 259


@pytest.mark.parametrize(("lost", "gained", "limit"), [(0.0, 0.0, 0.01), (0.02, 0.01, 0.03), (0.06, 0.01, 0.02)])
def test_the_number_that_settles_a_drop_does_settle_and_fewer_do_not(lost, gained, limit):
    needed = images_to_settle_drop(lost, gained, limit, 0.975)

    def settled(n):
        least = lower_bound(lost * n, n, 0.975) - upper_bound(gained * n, n, 0.975)
        most = upper_bound(lost * n, n, 0.975) - lower_bound(gained * n, n, 0.975)
        return most <= limit or least > limit

    assert settled(needed)
    assert not settled(needed - 1)


def test_no_number_of_images_settles_a_drop_at_its_limit():
    assert images_to_settle_drop(0.03, 0.01, 0.02, 0.975) is None

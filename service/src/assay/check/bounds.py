"""Exact confidence bounds of a proportion, and how many images would settle a question.

Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial" (Biometrika
26, 1934), in the beta-quantile form, which also takes the fractional counts that a design effect leaves (Korn and
Graubard, "Confidence intervals for proportions with small expected number of positive counts estimated from survey
data", Survey Methodology 24, 1998).
"""

import math
from collections.abc import Callable
from typing import Final

_TINY: Final = 1e-300
"""Stands for zero in a denominator of the continued fraction (Lentz's method)."""

_FRACTION_TERMS: Final = 10_000
"""More than the square root of the largest count here needs; the fraction converges in O(sqrt(max(a, b)))."""

_CONVERGED: Final = 1e-14
"""Relative change that ends the fraction: some roundings of a double, far below a permille."""

_BISECTIONS: Final = 60
"""Halvings of [0, 1]: to 1e-18, below the spacing of doubles near 1."""

IMAGES_CAP: Final = 1_000_000
"""Nobody collects more photos for one decision; past it the answer is "no number"."""


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), for a, b > 0 and 0 <= x <= 1.

    Continued fraction 8.17.22 of the NIST Digital Library of Mathematical Functions, by the modified Lentz method;
    the symmetry I_x(a, b) = 1 - I_(1-x)(b, a) keeps it where it converges fast.
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - incomplete_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _FRACTION_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + term / c
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1.0) < _CONVERGED:
            return math.exp(log_front) * value / a
    raise ArithmeticError(f"I_{x}({a}, {b}) did not converge")


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the x with I_x(a, b) = p, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if incomplete_beta(middle, a, b) < p else (low, middle)
    return (low + high) / 2


def lower_bound(successes: float, trials: float, confidence: float) -> float:
    """Return the one-sided lower bound of a proportion: true in at least ``confidence`` of all samples."""
    _check(successes, trials, confidence)
    return 0.0 if successes <= 0 else beta_quantile(1 - confidence, successes, trials - successes + 1)


def upper_bound(successes: float, trials: float, confidence: float) -> float:
    """Return the one-sided upper bound of a proportion: true in at least ``confidence`` of all samples."""
    _check(successes, trials, confidence)
    return 1.0 if successes >= trials else beta_quantile(confidence, successes + 1, trials - successes)


def images_to_settle(successes: float, trials: float, threshold: float, confidence: float) -> int | None:
    """Return the least number of independent images that, at the rate seen, puts a bound past ``threshold``.

    None when no affordable number would: the rate seen is too close to the threshold.
    """
    _check(successes, trials, confidence)
    rate = successes / trials
    if threshold <= 0 or threshold >= 1:
        return None

    def settles(n: int) -> bool:
        # A bound passes the threshold exactly when the beta distribution's share below it passes the bound's level.
        if rate >= threshold:
            return incomplete_beta(threshold, rate * n, n - rate * n + 1) <= 1 - confidence
        return incomplete_beta(threshold, rate * n + 1, n - rate * n) > confidence

    return _least(settles)


def images_to_settle_drop(lost: float, gained: float, limit: float, confidence: float) -> int | None:
    """Return the least number of independent images that puts a bound of ``lost - gained`` past ``limit``.

    ``lost`` and ``gained`` are the shares seen, each bounded with ``confidence``. None as in ``images_to_settle``.
    """

    def settles(n: int) -> bool:
        if lost - gained > limit:
            return lower_bound(lost * n, n, confidence) - upper_bound(gained * n, n, confidence) > limit
        return upper_bound(lost * n, n, confidence) - lower_bound(gained * n, n, confidence) <= limit

    return _least(settles)


def _least(holds: Callable[[int], bool]) -> int | None:
    """Return the least n at which a monotone condition holds, or None past the cap."""
    high = 1
    while not holds(high):
        if high >= IMAGES_CAP:
            return None
        high = min(high * 2, IMAGES_CAP)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _check(successes: float, trials: float, confidence: float) -> None:
    if not (trials > 0 and 0 <= successes <= trials and 0 < confidence < 1):
        raise ValueError(f"{successes} of {trials} at confidence {confidence} is not a proportion")

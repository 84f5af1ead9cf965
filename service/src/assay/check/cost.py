"""Cost: CPU time of one inference, candidate against yardstick, from interleaved timings."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.check.bounds import beta_quantile

MIN_BLOCKS: Final = 20
"""With fewer, the interval of the median spans nearly all blocks, whatever they say."""

CANDIDATE, YARDSTICK = 0, 1
"""The sides of a block, as ``order`` names them."""


def order(number: int) -> tuple[int, int, int, int]:
    """Return the sides of a block's four timings, in their order: ABBA, and BAAB in every other block.

    A drift in a straight line cancels within a block. A pack that runs twice in a row finds its own weights in the
    cache the second time, which is worth one percent; taking turns in the middle, both sides get it as often.
    """
    outer, inner = (CANDIDATE, YARDSTICK) if number % 2 == 0 else (YARDSTICK, CANDIDATE)
    return outer, inner, inner, outer


@dataclass(frozen=True)
class Block:
    """Four timings of one image, one pack twice between two of the other; seconds of CPU time.

    Whatever drifts in a straight line over a block (clock, temperature, a neighbour waking) hits both packs equally.
    ``candidate[i]`` was taken right before or after ``yardstick[i]``.
    """

    candidate: tuple[float, float]
    yardstick: tuple[float, float]

    @classmethod
    def of(cls, sides: Sequence[int], times: Sequence[float]) -> "Block":
        """Sort four timings by side."""
        first, second = [time for side, time in zip(sides, times, strict=True) if side == CANDIDATE]
        third, fourth = [time for side, time in zip(sides, times, strict=True) if side == YARDSTICK]
        return cls((first, second), (third, fourth))

    @property
    def ratio(self) -> float:
        """Candidate's time by yardstick's."""
        return sum(self.candidate) / sum(self.yardstick)

    @property
    def wobble(self) -> float:
        """Half the difference of the block's two pairs, by its ratio: what the same image says twice."""
        first, second = (ours / theirs for ours, theirs in zip(self.candidate, self.yardstick, strict=True))
        return (first - second) / 2 / self.ratio


@dataclass(frozen=True)
class Interval:
    """An estimate and its one-sided bounds."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Cost:
    """Medians of both packs (seconds of CPU), the cost ratio seen two ways, and how noisy the timings were.

    ``median`` is that of the blocks' ratios: no wild block moves it, nor does a candidate that is slow on a few
    inputs only. ``total`` is all CPU time of the candidate by all of the yardstick's: it sees those. A bound of the
    cost is the larger of theirs, so that the candidate has to be cheap enough both ways.

    ``noise`` is the interquartile range of the blocks' ratios by their median: what one block's ratio is worth.
    ``jitter`` is the same of what repeats on one image: noise that no difference between images explains.
    """

    candidate_s: float
    yardstick_s: float
    median: Interval
    total: Interval
    noise: float
    jitter: float
    blocks: int

    @property
    def ratio(self) -> float:
        """The cost ratio: the larger of the two."""
        return max(self.median.value, self.total.value)

    @property
    def lower(self) -> float:
        """Lower bound of the cost ratio."""
        return max(self.median.lower, self.total.lower)

    @property
    def upper(self) -> float:
        """Upper bound of the cost ratio: above it with the error of one bound at most, since both have to be missed."""
        return max(self.median.upper, self.total.upper)


def summarise(blocks: Sequence[Block], confidence: float) -> Cost:
    """Return the figures of at least ``MIN_BLOCKS`` blocks; each bound holds with ``confidence`` (one-sided).

    Raises ``ValueError`` for fewer blocks or timings that are not positive numbers.
    """
    if len(blocks) < MIN_BLOCKS:
        raise ValueError(f"{len(blocks)} blocks; a cost needs {MIN_BLOCKS}")
    if not all(0 < time < math.inf for block in blocks for time in (*block.candidate, *block.yardstick)):
        raise ValueError("a timing is not a positive number")
    ratios = sorted(block.ratio for block in blocks)
    rank = median_rank(len(ratios), confidence)
    median = Interval(statistics.median(ratios), ratios[rank], ratios[-1 - rank])
    return Cost(
        candidate_s=statistics.median(time for block in blocks for time in block.candidate),
        yardstick_s=statistics.median(time for block in blocks for time in block.yardstick),
        median=median,
        total=total_ratio(blocks, confidence),
        noise=_middle_half(ratios) / median.value,
        jitter=_middle_half([block.wobble for block in blocks]),
        blocks=len(blocks),
    )


def total_ratio(blocks: Sequence[Block], confidence: float) -> Interval:
    """Return all CPU time of the candidate by all of the yardstick's, with bounds from the blocks' spread.

    The ratio estimator of survey sampling (Cochran, "Sampling Techniques", 3rd edition, section 6.4), with Student's t.
    """
    ours, theirs = [sum(block.candidate) for block in blocks], [sum(block.yardstick) for block in blocks]
    n, ratio = len(blocks), math.fsum(ours) / math.fsum(theirs)
    spread = math.fsum((a - ratio * b) ** 2 for a, b in zip(ours, theirs, strict=True))
    error = math.sqrt(spread * n / (n - 1)) / math.fsum(theirs)
    margin = student_quantile(confidence, n - 1) * error
    return Interval(ratio, max(0.0, ratio - margin), ratio + margin)


def student_quantile(confidence: float, freedom: int) -> float:
    """Return the t with P(T <= t) = ``confidence`` (at least a half), by its relation to the beta distribution.

    Formula 26.7.1 of Abramowitz and Stegun, "Handbook of Mathematical Functions".
    """
    x = beta_quantile(2 * (1 - confidence), freedom / 2, 0.5)
    return math.sqrt(freedom * (1 - x) / x)


def median_rank(n: int, confidence: float) -> int:
    """Return how many sorted values may be left out on one side of the median's one-sided bound.

    Distribution-free: the true median lies above the k-th smallest of n values with probability
    P(Binomial(n, 1/2) >= k) (David and Nagaraja, "Order Statistics", 3rd edition, section 7.1).
    """
    allowed, below, rank = 1 - confidence, 0.0, -1
    while rank + 1 < (n + 1) // 2:
        below += math.comb(n, rank + 1) / 2**n
        if below > allowed:
            break
        rank += 1
    if rank < 0:
        raise ValueError(f"{n} values say nothing about a median at confidence {confidence}")
    return rank


def _middle_half(values: Sequence[float]) -> float:
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return third - first

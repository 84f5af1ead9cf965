"""Cost: CPU time of one inference, candidate against yardstick, from interleaved timings."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MIN_BLOCKS: Final = 20
"""With fewer, the interval of the median spans nearly all blocks, whatever they say."""


@dataclass(frozen=True)
class Block:
    """Four timings of one image, one pack twice between two of the other; seconds of CPU time.

    Whatever drifts in a straight line over a block (clock, temperature, a neighbour waking) hits both packs equally.
    """

    candidate: tuple[float, float]
    yardstick: tuple[float, float]

    @property
    def ratio(self) -> float:
        """Candidate's time by yardstick's."""
        return sum(self.candidate) / sum(self.yardstick)


@dataclass(frozen=True)
class Cost:
    """Medians of both packs (seconds of CPU), the median ratio with its interval, and the noise.

    ``noise`` is the interquartile range of the blocks' ratios by their median: what one block's ratio is worth.
    """

    candidate_s: float
    yardstick_s: float
    ratio: float
    lower: float
    upper: float
    noise: float
    blocks: int


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
    first, median, third = statistics.quantiles(ratios, n=4, method="inclusive")
    return Cost(
        candidate_s=statistics.median(time for block in blocks for time in block.candidate),
        yardstick_s=statistics.median(time for block in blocks for time in block.yardstick),
        ratio=median,
        lower=ratios[rank],
        upper=ratios[-1 - rank],
        noise=(third - first) / median,
        blocks=len(blocks),
    )


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

"""Seeded samples of what a check sees, to measure how often its verdict is wrong.

Everything is judged by the product's own functions. Outcomes count, not their order, so that equal samples are judged
once; that is what makes some ten thousand of them affordable.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from assay.check import agreement, cost
from assay.check.agreement import Outcome
from assay.check.cost import CANDIDATE, Block, Cost
from assay.check.verdict import Criteria, Verdict, judge

CONFIDENCE = 0.95
THRESHOLD = 0.98  # of containment, the default
EQUAL = cost.summarise([Block((1.0, 1.0), (1.0, 1.0))] * cost.MIN_BLOCKS, CONFIDENCE)
PERFECT = agreement.summarise([Outcome(str(number), True, True, True) for number in range(2000)], CONFIDENCE)

Groups = tuple[tuple[tuple[int, int], int], ...]
"""How many groups there are of each (images, contained images)."""


@cache
def accuracy_verdict(groups: Groups) -> Verdict:
    """The verdict on containment alone: the cost is within its limit."""
    numbered = [group for group, count in groups for _ in range(count)]
    outcomes = [
        Outcome(str(number), True, image < hits, True)
        for number, (size, hits) in enumerate(numbered)
        for image in range(size)
    ]
    return judge(Criteria(), agreement.summarise(outcomes, CONFIDENCE), EQUAL)


def containments(seed: int, runs: int, sizes: Sequence[int], rate: float, correlation: float) -> Iterator[Groups]:
    """Samples of groups of some sizes; images of one group share their rate, drawn from a beta distribution."""
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        if correlation:
            strength = (1 - correlation) / correlation
            rates = rng.beta(rate * strength, (1 - rate) * strength, len(sizes))
        else:
            rates = np.full(len(sizes), rate)
        hits = rng.binomial(sizes, rates)
        yield tuple(sorted(Counter(zip(sizes, hits.tolist(), strict=True)).items()))


def passes(samples: Iterator[Groups]) -> float:
    """Share of samples that pass."""
    verdicts = [accuracy_verdict(sample).verdict for sample in samples]
    return verdicts.count("Pass") / len(verdicts)


# --- drops of labelled images ----------------------------------------------------------------------------------------


def drop_passes(seed: int, runs: int, images: int, lost: float, gained: float, limit: int) -> float:
    """Share of samples that pass, where only the yardstick is right on ``lost`` of them, and only we on ``gained``."""
    rng = np.random.default_rng(seed)

    @cache
    def one(only_yardstick: int, only_candidate: int) -> bool:
        outcomes = [
            Outcome(
                str(number), True, True, True, number >= only_yardstick,
                not only_yardstick <= number < only_yardstick + only_candidate,
            )
            for number in range(images)
        ]  # fmt: skip
        asked = Criteria(min_top3_containment=0, max_top1_drop=limit)
        return judge(asked, agreement.summarise(outcomes, CONFIDENCE), EQUAL).verdict == "Pass"

    drawn = rng.multinomial(images, [lost, gained, 1 - lost - gained], runs)
    return sum(one(int(a), int(b)) for a, b, _ in drawn) / runs


# --- costs -----------------------------------------------------------------------------------------------------------

Order = Callable[[int], Sequence[int]]
Drift = Callable[[random.Random, int], Iterator[float]]


def calm(rng: random.Random, calls: int) -> Iterator[float]:
    """No drift."""
    yield from [1.0] * calls


def sawtooth(rng: random.Random, calls: int) -> Iterator[float]:
    """Each call of a block is 1 % slower than the one before; decoding the next image lets the core recover."""
    yield from (1 + 0.01 * (call % 4) for call in range(calls))


def wave(rng: random.Random, calls: int) -> Iterator[float]:
    """A neighbour that comes and goes: up to 15 % slower, in a period of some 70 calls."""
    phase = rng.random() * 70
    yield from (1 + 0.075 * (1 + np.sin(2 * np.pi * (call + phase) / 70.3)) for call in range(calls))


def walk(rng: random.Random, calls: int) -> Iterator[float]:
    """The clock of the core wanders by half a percent from call to call."""
    level = 0.0
    for _ in range(calls):
        level += rng.gauss(0, 0.005)
        yield float(np.exp(level))


DRIFTS: dict[str, Drift] = {"none": calm, "sawtooth": sawtooth, "wave": wave, "walk": walk}

ORDERS: dict[str, Order] = {
    "as the check does": cost.order,
    "ABBA only": lambda _: (0, 1, 1, 0),
    "ABAB": lambda _: (0, 1, 0, 1),
    "AABB": lambda _: (0, 0, 1, 1),
}

NOISE = 0.015  # of a call's logarithm; some 1 % in a block's ratio, as on a quiet machine
TAIL = 0.02  # share of calls that a neighbour hits
WARM = 0.99  # of a pack that runs right after itself


def cost_of(
    seed: int, ratio: float, drift: Drift = calm, order: Order = cost.order, blocks: int = 200, *,
    slow: float = 0.0, slower: float = 1.0, noise: float = NOISE,
) -> Cost:  # fmt: skip
    """The cost of one simulated measurement; on a share ``slow`` of images the candidate takes ``slower`` times more.

    Images differ in their cost by a tenth; a call's noise is lognormal, and one in fifty takes longer by a Pareto
    distributed part (of infinite variance).
    """
    rng = random.Random(seed)
    clock, made, last = iter(drift(rng, blocks * 4)), [], None
    for number in range(blocks):
        image = np.exp(rng.gauss(0, 0.1)) * 0.01
        extra = slower if rng.random() < slow else 1.0
        sides, times, last = order(number), [], 1 - order(number)[0]
        for side in sides:
            took = image * next(clock) * np.exp(rng.gauss(0, noise)) * (WARM if side == last else 1.0)
            if rng.random() < TAIL:
                took *= 1 + 0.1 * (rng.paretovariate(1.5) - 1)
            times.append(float(took * (ratio * extra if side == CANDIDATE else 1.0)))
            last = side
        made.append(Block.of(sides, times))
    return cost.summarise(made, CONFIDENCE)


def cost_verdict(measured: Cost, limit: int = 1000) -> Verdict:
    """The verdict on a cost alone: every image is contained."""
    return judge(Criteria(max_cost_ratio=limit), PERFECT, measured)


def cost_verdicts(seed: int, runs: int, ratio: float, limit: int = 1000, **more: object) -> Counter[str]:
    """How many simulated measurements end in each verdict."""
    return Counter(cost_verdict(cost_of(seed * 1_000_003 + run, ratio, **more), limit).verdict for run in range(runs))


def cost_passes(seed: int, runs: int, ratio: float, limit: int = 1000, **more: object) -> float:
    """Share of simulated measurements that pass."""
    return cost_verdicts(seed, runs, ratio, limit, **more)["Pass"] / runs

"""Accuracy: what each image showed, and what all of them together prove."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assay.check.bounds import lower_bound, upper_bound
from assay.inference.postprocess import top_k

GROUPS_FOR_PROOF: Final = 30
"""With fewer source photos the spread between them cannot be estimated: the set is a smoke set."""

ASSUMED_CORRELATION: Final = 0.1
"""Least intra-group correlation assumed where it is estimated: crops of one photo are never independent."""

TOP: Final = 3
"""The yardstick's winner must be among this many of the candidate's best."""


@dataclass(frozen=True)
class Outcome:
    """What one image showed. ``*_right`` is None without a label; ``finite`` is about the candidate's output.

    ``winner`` is the label that the yardstick sees first.
    """

    group: str
    agreed: bool
    contained: bool
    finite: bool
    candidate_right: bool | None = None
    yardstick_right: bool | None = None
    winner: str | None = None


def same_labels(candidate: Sequence[str], yardstick: Sequence[str]) -> bool:
    """Say whether both packs know the same label texts, each as often, in whatever order."""
    return Counter(candidate) == Counter(yardstick)


def compare(
    candidate: NDArray[np.float32],
    candidate_labels: Sequence[str],
    yardstick: NDArray[np.float32],
    yardstick_labels: Sequence[str],
    group: str,
    label: str | None,
) -> Outcome:
    """Compare both packs' logits, float32 [classes], for one image, by label text.

    Logits are ranked, not their softmax: far below the winner that underflows to zero, and ties at zero would put
    labels among the best that the model ranks last. A candidate's NaN or infinity agrees with nothing, and neither
    does one value for every class, which ranks nothing. Raises ``ValueError`` if the yardstick's logits are not finite
    or all alike: then there is nothing to compare with.
    """
    if not np.isfinite(yardstick).all():
        raise ValueError("the yardstick gives NaN or infinity: it cannot judge anything")
    if _says_nothing(yardstick):
        raise ValueError("the yardstick gives every class the same score: it cannot judge anything")
    winner = yardstick_labels[top_k(yardstick, 1)[0][0]]
    yardstick_right = None if label is None else winner == label
    finite = bool(np.isfinite(candidate).all())
    if not finite or _says_nothing(candidate):
        return Outcome(group, False, False, finite, None if label is None else False, yardstick_right, winner)
    best = [candidate_labels[index] for index, _ in top_k(candidate, TOP)]
    candidate_right = None if label is None else best[0] == label
    return Outcome(group, best[0] == winner, winner in best, True, candidate_right, yardstick_right, winner)


def _says_nothing(logits: NDArray[np.float32]) -> bool:
    return len(logits) > 1 and bool(logits.min() == logits.max())


def design_effect(outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> float:
    """Return by how much images of the same source photo count for less than independent ones.

    The larger of 1, the estimate from the spread between groups (Rao and Scott, "A simple method for the analysis of
    clustered binary data", Biometrics 48, 1992) and 1 + 0.1 (m - 1) with m images per group on average. With fewer
    than 30 groups there is no estimate and images count as independent: 1, and whoever shows the result says so.
    """
    sizes: dict[str, int] = defaultdict(int)
    hits: dict[str, int] = defaultdict(int)
    for outcome in outcomes:
        sizes[outcome.group] += 1
        hits[outcome.group] += holds(outcome)
    groups, n = len(sizes), len(outcomes)
    if groups < GROUPS_FOR_PROOF:
        return 1.0
    rate = sum(hits.values()) / n
    assumed = 1 + ASSUMED_CORRELATION * (n / groups - 1)
    if not 0 < rate < 1:
        return max(1.0, assumed)
    spread = sum((hits[group] - rate * size) ** 2 for group, size in sizes.items())
    variance = groups / (groups - 1) * spread / n**2
    return max(1.0, assumed, variance * n / (rate * (1 - rate)))


@dataclass(frozen=True)
class Share:
    """A count with its exact one-sided bounds; ``trials`` is images, ``effective`` what they count for."""

    count: int
    trials: int
    effective: float
    lower: float
    upper: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool], confidence: float) -> "Share":
        """Count the outcomes for which a property holds, and bound its true share."""
        count, trials = sum(map(holds, outcomes)), len(outcomes)
        effective = trials / design_effect(outcomes, holds)
        hits = effective * (count / trials)  # in this order rounding cannot make more hits than trials
        lower, upper = lower_bound(hits, effective, confidence), upper_bound(hits, effective, confidence)
        return cls(count, trials, effective, lower, upper)

    @property
    def rate(self) -> float:
        """The share seen."""
        return self.count / self.trials


@dataclass(frozen=True)
class Drop:
    """Top-1 accuracy lost against the yardstick, on labelled images; negative is a gain.

    ``lost`` are images that only the yardstick gets right, ``gained`` those that only the candidate does.
    """

    lost: Share
    gained: Share

    @property
    def seen(self) -> float:
        """The drop on these images."""
        return self.lost.rate - self.gained.rate

    @property
    def lower(self) -> float:
        """The drop is at least this."""
        return self.lost.lower - self.gained.upper

    @property
    def upper(self) -> float:
        """The drop is at most this."""
        return self.lost.upper - self.gained.lower


@dataclass(frozen=True)
class Accuracy:
    """All accuracy figures of a check. ``drop`` is None unless every image has a label.

    ``fixed_contained`` and ``fixed_agreed`` are the shares that the best fixed answer would reach on these images: the
    same three labels (or one) for whatever photo. A figure that a fixed answer reaches is no evidence of seeing.
    """

    images: int
    groups: int
    not_finite: int
    contained: Share
    agreed: Share
    drop: Drop | None
    fixed_contained: float = 0.0
    fixed_agreed: float = 0.0

    @property
    def smoke(self) -> bool:
        """Whether the set has too few source photos to prove anything about others."""
        return self.groups < GROUPS_FOR_PROOF


def summarise(outcomes: Sequence[Outcome], confidence: float) -> Accuracy:
    """Return the figures of a non-empty sequence of outcomes at a confidence in 0..1."""
    if not outcomes:
        raise ValueError("no outcomes: nothing was measured")
    labelled = all(outcome.yardstick_right is not None for outcome in outcomes)
    winners = Counter(outcome.winner for outcome in outcomes if outcome.winner is not None)
    common = [count for _, count in winners.most_common(TOP)] or [0]
    return Accuracy(
        images=len(outcomes),
        groups=len({outcome.group for outcome in outcomes}),
        not_finite=sum(not outcome.finite for outcome in outcomes),
        contained=Share.of(outcomes, lambda outcome: outcome.contained, confidence),
        agreed=Share.of(outcomes, lambda outcome: outcome.agreed, confidence),
        drop=_drop(outcomes, confidence) if labelled else None,
        fixed_contained=sum(common) / len(outcomes),
        fixed_agreed=common[0] / len(outcomes),
    )


def drop_confidence(confidence: float) -> float:
    """Return the confidence of each share of a drop: half of the error allowed to each (Bonferroni)."""
    return 1 - (1 - confidence) / 2


def _drop(outcomes: Sequence[Outcome], confidence: float) -> Drop:
    """Bound the accuracy lost; the bound holds whatever ties the two shares."""
    half = drop_confidence(confidence)
    lost = Share.of(outcomes, lambda o: bool(o.yardstick_right) and not o.candidate_right, half)
    gained = Share.of(outcomes, lambda o: bool(o.candidate_right) and not o.yardstick_right, half)
    return Drop(lost, gained)

"""The verdict: criteria and figures in, one word with one reason out."""

import math
from dataclasses import dataclass, field
from typing import Final, Literal

from assay.check.agreement import Accuracy, Share
from assay.check.bounds import images_to_settle
from assay.check.cost import Cost
from assay.errors import SettingsError

VerdictName = Literal["Pass", "Fail", "Inconclusive", "Error"]
Reason = Literal[
    "CheckPassed",
    "LabelsDiffer",
    "AccuracyBelowThreshold",
    "AccuracyNotProven",
    "CostAboveThreshold",
    "CheckInconclusive",
    "PackUnavailable",
    "DigestMismatch",
    "PackInvalid",
    "CpuFeatureMissing",
    "PrecisionMismatch",
    "DatasetInvalid",
    "CheckCrashed",
]

COST_RATIO_INT8: Final = 1000
"""An INT8 candidate against an FP32 yardstick must not cost more: speed is what it is for."""

COST_RATIO_OTHER: Final = 1100
"""Any other pair: a tenth more is within what an operator plans for."""


@dataclass(frozen=True)
class Criteria:
    """What a candidate has to reach; permille, all of them integers (a Kubernetes spec has no floats).

    A minimum of 0, or None for the drop, is "off"; at least one accuracy criterion must be on. Raises
    ``SettingsError`` otherwise, or when a value is out of range.
    """

    confidence_percent: int = 95
    min_top3_containment: int = 980
    min_top1_agreement: int = 0
    max_top1_drop: int | None = None
    max_cost_ratio: int = COST_RATIO_OTHER
    max_noise: int = 100

    def __post_init__(self) -> None:
        ranges = (
            ("confidence percent", self.confidence_percent, 80, 99),
            ("minimum top-3 containment", self.min_top3_containment, 0, 1000),
            ("minimum top-1 agreement", self.min_top1_agreement, 0, 1000),
            ("maximum top-1 drop", self.max_top1_drop or 0, 0, 1000),
            ("maximum cost ratio", self.max_cost_ratio, 1, 100_000),
            ("maximum noise", self.max_noise, 1, 10_000),
        )
        for name, value, low, high in ranges:
            if not low <= value <= high:
                raise SettingsError(f"{name} is {value}; it must lie in {low}..{high}")
        if not (self.min_top3_containment or self.min_top1_agreement or self.max_top1_drop is not None):
            raise SettingsError("no accuracy criterion is on: a check that asks for nothing proves nothing")

    @property
    def confidence(self) -> float:
        """As a share in 0..1."""
        return self.confidence_percent / 100


@dataclass(frozen=True)
class Verdict:
    """One word, one reason, one sentence."""

    verdict: VerdictName
    reason: Reason
    message: str


@dataclass
class _Findings:
    """Accuracy findings, gathered before the worst of them is named."""

    below: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)


def default_cost_ratio(candidate_precision: str, yardstick_precision: str) -> int:
    """Return the cost ratio (permille) asked of a pair when nobody says otherwise."""
    quantised = (candidate_precision, yardstick_precision) == ("INT8", "FP32")
    return COST_RATIO_INT8 if quantised else COST_RATIO_OTHER


def labels_differ(candidate: int, yardstick: int, example: str) -> Verdict:
    """Return the verdict on packs that do not know the same labels; ``example`` is known to one of them only."""
    message = f"the packs know different labels ({candidate} and {yardstick} of them; only one knows {example!r})"
    return Verdict("Fail", "LabelsDiffer", message)


def judge(criteria: Criteria, accuracy: Accuracy, cost: Cost) -> Verdict:
    """Return the verdict.

    Accuracy comes first: its Fail is final, since the same images would say the same again. Cost can also be
    Inconclusive, which is tried again. Only figures that reach every criterion give Pass.
    """
    found = _accuracy(criteria, accuracy)
    note = f"; smoke set, {accuracy.groups} groups: not proof" if accuracy.smoke else ""
    shown = f"top-3 containment {accuracy.contained.count}/{accuracy.images}"
    price = f"cost {_permille(cost.ratio)} permille of the yardstick's"
    if found.below:
        return Verdict("Fail", "AccuracyBelowThreshold", f"{'; '.join(found.below)}; {price}{note}")
    if found.unproven:
        return Verdict("Fail", "AccuracyNotProven", f"{'; '.join(found.unproven)}; {price}{note}")
    interval = f"{math.floor(cost.lower * 1000)} to {math.ceil(cost.upper * 1000)} permille"
    limit = criteria.max_cost_ratio
    if cost.noise * 1000 > criteria.max_noise:
        noise = f"timings vary by {math.ceil(cost.noise * 1000)} permille, more than {criteria.max_noise}"
        return Verdict("Inconclusive", "CheckInconclusive", f"{noise}: the machine is too busy to tell; {shown}{note}")
    if cost.lower * 1000 > limit:
        message = f"cost ratio {interval} is above the limit of {limit} permille; {shown}{note}"
        return Verdict("Fail", "CostAboveThreshold", message)
    if cost.upper * 1000 > limit:
        message = f"cost ratio {interval} spans the limit of {limit} permille; {shown}{note}"
        return Verdict("Inconclusive", "CheckInconclusive", message)
    lower = math.floor(accuracy.contained.lower * 1000)
    message = f"{shown} (at least {lower} permille), cost ratio {interval} within {limit} permille{note}"
    return Verdict("Pass", "CheckPassed", message)


def _accuracy(criteria: Criteria, accuracy: Accuracy) -> _Findings:
    found = _Findings()
    if accuracy.not_finite:
        # Not only a disagreement: one NaN in a thousand photos would still pass, and a client would see it.
        found.below.append(f"the candidate gives NaN or infinity for {accuracy.not_finite} of {accuracy.images} images")
    _share(found, "top-3 containment", accuracy.contained, criteria.min_top3_containment, criteria.confidence)
    _share(found, "top-1 agreement", accuracy.agreed, criteria.min_top1_agreement, criteria.confidence)
    if criteria.max_top1_drop is not None:
        _drop(found, accuracy, criteria.max_top1_drop)
    return found


def _share(found: _Findings, name: str, share: Share, threshold: int, confidence: float) -> None:
    if not threshold or share.lower * 1000 >= threshold:
        return
    seen = f"{name} {share.count}/{share.trials}"
    if share.upper * 1000 < threshold:
        upper = math.ceil(share.upper * 1000)
        found.below.append(f"{seen} is at most {upper} permille, below the {threshold} required")
        return
    lower = math.floor(share.lower * 1000)
    hits = share.count * share.effective / share.trials
    needed = images_to_settle(hits, share.effective, threshold / 1000, confidence)
    # Images of one photo count for less than one each, so more of the same kind are needed.
    images = needed and math.ceil(needed * share.trials / share.effective)
    advice = f"about {images} images would settle it" if images else "no number of images would settle it at this rate"
    found.unproven.append(f"{seen} proves only {lower} permille of the {threshold} required: {advice}")


def _drop(found: _Findings, accuracy: Accuracy, limit: int) -> None:
    drop = accuracy.drop
    if drop is None:
        raise ValueError("a limit on the top-1 drop needs labels on every image")
    seen = f"top-1 drop of {_permille(drop.seen)} permille"
    if drop.lower * 1000 > limit:
        found.below.append(f"{seen} is at least {math.floor(drop.lower * 1000)}, above the {limit} allowed")
    elif drop.upper * 1000 > limit:
        upper = math.ceil(drop.upper * 1000)
        found.unproven.append(f"{seen} may be {upper}, above the {limit} allowed: more images would settle it")


def _permille(share: float) -> int:
    return round(share * 1000)

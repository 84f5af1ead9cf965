"""The verdict: criteria and figures in, one word with one reason out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from assay.check.agreement import Accuracy, Share, drop_confidence, same_labels
from assay.check.bounds import images_to_settle, images_to_settle_drop
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

_LONG_LABEL: Final = 60
"""Characters of a label that a message quotes; the longest of ImageNet has a hundred and more synonyms."""


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


def labels_differ(candidate: Sequence[str], yardstick: Sequence[str]) -> Verdict | None:
    """Return the verdict on packs that do not know the same label texts, or None if they do.

    Texts are compared to the letter: programs that read them do the same.
    """
    if same_labels(candidate, yardstick):
        return None
    only = sorted(set(candidate) - set(yardstick)), sorted(set(yardstick) - set(candidate))
    if same_labels([*map(_folded, candidate)], [*map(_folded, yardstick)]):
        ours = (only[0] or only[1])[0]
        example = f"in case or white space only, such as {_quoted(ours)}"
    elif only[0] or only[1]:
        who, text = ("candidate", only[0][0]) if only[0] else ("yardstick", only[1][0])
        example = f"{len(candidate)} and {len(yardstick)} of them; only the {who} knows {_quoted(text)}"
    else:
        example = f"{len(candidate)} and {len(yardstick)} of them; some stand more often in one"
    message = f"the packs' labels differ ({example}): give the candidate the yardstick's label texts, to the letter"
    return Verdict("Fail", "LabelsDiffer", message)


def judge(criteria: Criteria, accuracy: Accuracy, cost: Cost) -> Verdict:
    """Return the verdict.

    Accuracy comes first: its Fail is final, since the same images would say the same again. Cost can also be
    Inconclusive, which is tried again. Only figures that reach every criterion give Pass.
    """
    found = _accuracy(criteria, accuracy)
    note = f"; smoke set, {accuracy.groups} groups: not proof" if accuracy.smoke else ""
    if found.below or found.unproven:
        reason: Reason = "AccuracyBelowThreshold" if found.below else "AccuracyNotProven"
        price = f"cost {_permille(cost.ratio)} permille of the yardstick's"
        return Verdict("Fail", reason, f"{'; '.join(found.below or found.unproven)}; {price}{note}")
    shown = f"top-3 containment {accuracy.contained.count}/{accuracy.images}"
    word, told = _cost(criteria, cost)
    if word == "Fail":
        return Verdict("Fail", "CostAboveThreshold", f"{told}; {shown}{note}")
    if word == "Inconclusive":
        return Verdict("Inconclusive", "CheckInconclusive", f"{told}; {shown}{note}")
    lower = math.floor(accuracy.contained.lower * 1000)
    return Verdict("Pass", "CheckPassed", f"{shown} (at least {lower} permille), {told}{note}")


def _cost(criteria: Criteria, cost: Cost) -> tuple[VerdictName, str]:
    """Return what the cost alone says.

    Noise means that nothing is decided, with one exception: where the same image says the same again (little jitter),
    it is the images that differ, and a candidate above the limit on all of them together is above it.
    """
    limit, noise = criteria.max_cost_ratio, math.ceil(cost.noise * 1000)
    noisy = cost.noise * 1000 > criteria.max_noise
    seen = f"cost ratio {math.floor(cost.lower * 1000)} to {math.ceil(cost.upper * 1000)} permille"
    if cost.lower * 1000 > limit and not (noisy and cost.jitter * 1000 > criteria.max_noise):
        if cost.median.upper * 1000 <= limit:
            usual = math.ceil(cost.median.upper * 1000)
            seen += f" over all images (at most {usual} on half of them: it is slow on some)"
        return "Fail", f"{seen} is above the limit of {limit} permille: a cheaper candidate or a higher limit is needed"
    if noisy:
        told = f"the cost ratio varies by {noise} permille from image to image, more than {criteria.max_noise}"
        why = "the machine is too busy to tell, or the candidate too uneven; check again when it is quieter"
        return "Inconclusive", f"{told}: {why}"
    if cost.upper * 1000 > limit:
        return "Inconclusive", f"{seen} spans the limit of {limit} permille: check again, or raise the limit"
    return "Pass", f"{seen} within {limit} permille"


def _accuracy(criteria: Criteria, accuracy: Accuracy) -> _Findings:
    found = _Findings()
    if accuracy.not_finite:
        # Not only a disagreement: one NaN in a thousand photos would still pass, and a client would see it.
        found.below.append(f"the candidate gives NaN or infinity for {accuracy.not_finite} of {accuracy.images} images")
    _share(found, "top-3 containment", accuracy.contained, criteria.min_top3_containment, criteria.confidence)
    _share(found, "top-1 agreement", accuracy.agreed, criteria.min_top1_agreement, criteria.confidence)
    if criteria.max_top1_drop is not None:
        _drop(found, accuracy, criteria.max_top1_drop, criteria.confidence)
    elif not found.below and not found.unproven:
        _fixed(found, accuracy, criteria)
    return found


def _fixed(found: _Findings, accuracy: Accuracy, criteria: Criteria) -> None:
    """Refuse figures that a model would reach which gives the same answer for every photo."""
    contained, agreed = accuracy.fixed_contained * 1000, accuracy.fixed_agreed * 1000
    by_three = not criteria.min_top3_containment or contained >= criteria.min_top3_containment
    by_one = not criteria.min_top1_agreement or agreed >= criteria.min_top1_agreement
    if by_three and by_one:
        answer, reached = ("three labels", contained) if criteria.min_top3_containment else ("one label", agreed)
        found.unproven.append(
            f"a fixed answer of {answer} would reach {math.floor(reached)} permille on these images, so reaching the "
            f"{criteria.min_top3_containment or criteria.min_top1_agreement} required proves nothing: "
            "use photos of more classes, or ask for top-1 agreement as well"
        )


def _share(found: _Findings, name: str, share: Share, threshold: int, confidence: float) -> None:
    if not threshold or share.lower * 1000 >= threshold:
        return
    seen = f"{name} {share.count}/{share.trials}"
    if share.upper * 1000 < threshold:
        upper = math.ceil(share.upper * 1000)
        told = f"{seen} is at most {upper} permille, below the {threshold} required"
        found.below.append(f"{told}: more images would not help")
        return
    lower = math.floor(share.lower * 1000)
    hits = share.count * share.effective / share.trials
    needed = images_to_settle(hits, share.effective, threshold / 1000, confidence)
    # Images of one photo count for less than one each, so more of the same kind are needed.
    advice = _advice(needed and math.ceil(needed * share.trials / share.effective))
    found.unproven.append(f"{seen} proves only {lower} permille of the {threshold} required: {advice}")


def _drop(found: _Findings, accuracy: Accuracy, limit: int, confidence: float) -> None:
    drop = accuracy.drop
    if drop is None:
        raise ValueError("a limit on the top-1 drop needs labels on every image")
    seen = f"top-1 drop of {_permille(drop.seen)} permille"
    if drop.lower * 1000 > limit:
        lower = math.floor(drop.lower * 1000)
        found.below.append(f"{seen} is at least {lower}, above the {limit} allowed: more images would not help")
    elif drop.upper * 1000 > limit:
        half = drop_confidence(confidence)
        needed = images_to_settle_drop(drop.lost.rate, drop.gained.rate, limit / 1000, half)
        least = min(drop.lost.effective, drop.gained.effective)
        advice = _advice(needed and math.ceil(needed * accuracy.images / least))
        found.unproven.append(f"{seen} may be {math.ceil(drop.upper * 1000)}, above the {limit} allowed: {advice}")


def _advice(images: int | None) -> str:
    return f"about {images} images would settle it" if images else "no number of images would settle it at this rate"


def _folded(label: str) -> str:
    return " ".join(label.casefold().split())


def _quoted(label: str) -> str:
    return repr(label if len(label) <= _LONG_LABEL else f"{label[:_LONG_LABEL]}…")


def _permille(share: float) -> int:
    return round(share * 1000)

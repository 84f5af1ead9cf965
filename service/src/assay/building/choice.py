"""Which of the recipes tried is kept, and why. Pure: figures in, a choice and a sentence out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.building.recipes import Recipe
from assay.check.agreement import Accuracy
from assay.check.cost import Cost
from assay.packs.archive import Pack

ALIKE: Final = 1.05
"""Costs within a twentieth are alike: it is what a busy machine does to a ratio, and not worth a wrong label."""


@dataclass(frozen=True)
class Goal:
    """What a recipe must reach against the FP32 pack, as shares of the images judged."""

    agreement: float = 0.9
    containment: float = 0.98


@dataclass(frozen=True)
class Trial:
    """One recipe tried. ``accuracy`` and ``cost`` are None where this CPU cannot run the result."""

    recipe: Recipe
    pack: Pack
    accuracy: Accuracy | None
    cost: Cost | None

    def reaches(self, goal: Goal) -> bool:
        """Say whether it is right enough."""
        found = self.accuracy
        return (
            found is not None
            and found.not_finite == 0
            and found.agreed.rate >= goal.agreement
            and found.contained.rate >= goal.containment
        )

    @property
    def gains(self) -> bool:
        """Whether it is certainly cheaper than FP32."""
        return self.cost is not None and self.cost.upper < 1

    @property
    def agreed(self) -> tuple[int, int]:
        """What it agrees on, the more important first."""
        return (self.accuracy.contained.count, self.accuracy.agreed.count) if self.accuracy else (0, 0)


@dataclass(frozen=True)
class Ladder:
    """Everything that was tried, which of it was kept and why, and what to know about the photos used."""

    trials: tuple[Trial, ...]
    chosen: Trial
    reached: bool
    reason: str
    notes: tuple[str, ...] = ()

    @property
    def wins(self) -> bool:
        """Whether the pack kept is right and cheaper than FP32; if not, FP32 is better here."""
        return self.reached and self.chosen.gains


def choose(trials: Sequence[Trial], goal: Goal, notes: tuple[str, ...] = ()) -> Ladder:
    """Keep the cheapest of those that reach the goal; where costs are alike, the one that agrees most."""
    tried = tuple(trials)
    runnable = [trial for trial in tried if trial.cost and trial.accuracy]
    if not runnable:
        needs = ", ".join(tried[0].pack.manifest.requires_cpu)
        return Ladder(tried, tried[0], False, f"nothing was judged: this CPU lacks {needs}", notes)
    right = [trial for trial in runnable if trial.reaches(goal)]
    if not right:
        nearest = max(runnable, key=lambda trial: trial.agreed)
        reason = f"FP32 is better here: no recipe reaches the goal; {nearest.recipe.name} comes nearest"
        return Ladder(tried, nearest, False, reason, notes)
    cheapest = min(right, key=_ratio)
    alike = [trial for trial in right if _ratio(trial) <= _ratio(cheapest) * ALIKE]
    chosen = max(alike, key=lambda trial: (trial.agreed, -_ratio(trial)))
    return Ladder(tried, chosen, True, _reason(chosen, cheapest, right), notes)


def _reason(chosen: Trial, cheapest: Trial, right: Sequence[Trial]) -> str:
    of = f"of {len(right)} that reach the goal" if len(right) > 1 else "(the only one that reaches the goal)"
    if not chosen.gains:
        high = chosen.cost.upper if chosen.cost else 0
        return (
            f"FP32 is better here: {chosen.recipe.name} is the best {of}, and not certainly cheaper than FP32 "
            f"(cost ratio {_ratio(chosen):.3f}, at most {high:.3f})"
        )
    if chosen is cheapest:
        return f"{chosen.recipe.name} is the cheapest {of}"
    return f"{chosen.recipe.name} agrees more than {cheapest.recipe.name}, the cheapest {of}, and costs alike"


def _ratio(trial: Trial) -> float:
    return trial.cost.ratio if trial.cost else float("inf")

"""The recipes by which a model may be quantised. Pure data: the command line shows it without what builds packs."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

CALIBRATION_IMAGES: Final = 128
"""Ranges of a ReLU6 network settle after some dozens of images; each costs 30 ms."""

PERCENTILE: Final = 99.99
"""Share of values, in percent, that a range by histogram keeps: one in ten thousand is taken for an outlier."""

DYNAMIC: Final = "dynamic"
"""Name of the recipe for comparison: integer weights, activations quantised anew on every call; slow on CPUs."""

FEW: Final = 3
MORE: Final = 8
"""Sensitive layers left in FP32, each with what reads it: at eight that is a third of a MobileNet's."""


class Kept(Enum):
    """What a recipe leaves in FP32."""

    NOTHING = "nothing"
    GATES = "squeeze-and-excite branches"
    CURVED = "those, and layers before a curved activation"
    SENSITIVE = "the {most} most sensitive layers and what reads them"


@dataclass(frozen=True)
class Recipe:
    """How to quantise; ``most`` is the number of sensitive layers that stay in FP32."""

    name: str
    reduce_range: bool = False
    percentile: bool = False
    kept: Kept = Kept.NOTHING
    most: int = 0

    @property
    def full_range(self) -> bool:
        """Whether weights use all 8 bits, which saturates on x86 without VNNI: wrong there, not just slow."""
        return not self.reduce_range and self.name != DYNAMIC

    @property
    def what(self) -> str:
        """The recipe in words."""
        if self.name == DYNAMIC:
            return "activations quantised at run time"
        weights = "U8S7" if self.reduce_range else "U8S8"
        calibration = f"{PERCENTILE} %" if self.percentile else "MinMax"
        kept = self.kept.value.format(most=self.most)
        return f"{weights} per channel, {calibration}" + ("" if self.kept is Kept.NOTHING else f", in FP32: {kept}")


def _both(suffix: str = "", kept: Kept = Kept.NOTHING, most: int = 0, *, percentile: bool = False) -> list[Recipe]:
    """Return a recipe at full and at reduced range."""
    return [
        Recipe(f"static{'-reduce-range' if reduced else ''}{suffix}", reduced, percentile, kept, most)
        for reduced in (False, True)
    ]


RECIPES: Final = {
    recipe.name: recipe
    for recipe in (
        *_both(),
        *_both("-gates-float", Kept.GATES),
        *_both("-curved-float", Kept.CURVED),
        *_both("-percentile", percentile=True),
        *_both(f"-{FEW}-float", Kept.SENSITIVE, FEW),
        *_both(f"-{MORE}-float", Kept.SENSITIVE, MORE),
        Recipe(DYNAMIC),
    )
}
"""By the name on the command line."""

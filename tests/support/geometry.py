"""How a model wants its input, without a pack around it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wanted:
    """Satisfies `assay.vision.preprocess.Geometry`."""

    resize_short: int = 256
    crop: int = 224
    interpolation: str = "bicubic"

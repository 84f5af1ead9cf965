"""Which part of a picture a model sees, in pixels: the arithmetic of the reference preprocessing.

Reference: torchvision's ``Resize(resize_short)`` and ``CenterCrop(crop)``, with their integer rounding.
"""

from typing import Protocol

Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels of the source picture; fractions allowed."""


class Geometry(Protocol):
    """How a model wants its input; a pack's ``preprocess`` is one."""

    @property
    def resize_short(self) -> int:
        """Pixels of the shorter side after resizing; at least ``crop``."""
        ...

    @property
    def crop(self) -> int:
        """Pixels of each side of the centre crop."""
        ...

    @property
    def interpolation(self) -> str:
        """``bilinear`` or ``bicubic``."""
        ...


def resized(width: int, height: int, resize_short: int) -> tuple[int, int]:
    """Size after resizing the shorter side to ``resize_short``; the longer one is rounded down."""
    if width <= height:
        return resize_short, int(resize_short * height / width)
    return int(resize_short * width / height), resize_short


def crop_box(size: tuple[int, int], geometry: Geometry) -> Box:
    """The part of a picture of ``size`` (width, height) that resizing and centre cropping keep."""
    width, height = size
    new_width, new_height = resized(width, height, geometry.resize_short)
    left, top = round((new_width - geometry.crop) / 2), round((new_height - geometry.crop) / 2)
    across, down = width / new_width, height / new_height
    return left * across, top * down, (left + geometry.crop) * across, (top + geometry.crop) * down

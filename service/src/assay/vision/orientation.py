"""EXIF orientation: which part of a stored picture a part of the upright one is, and how to turn it (EXIF 2.32, 4.6.4).

Only the crop is turned, once it has the model's size: turning the whole picture would hold it in memory twice.
"""

from PIL import Image

from assay.vision.geometry import Box

SIDEWAYS = 5
"""From this orientation on, width and height change places."""

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What brings each orientation upright."""

_MIRRORED_ACROSS = frozenset({2, 3, 6, 7})
"""Orientations in which the upright picture's left is the stored one's right, or its bottom."""
_MIRRORED_DOWN = frozenset({3, 4, 7, 8})
"""Orientations in which the upright picture's top is the stored one's bottom, or its right."""


def upright(picture: Image.Image, orientation: int) -> Image.Image:
    """A stored picture, turned."""
    turn = _TURNS.get(orientation)
    return picture if turn is None else picture.transpose(turn)


def swapped(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Width and height after turning, or before it: both directions are the same."""
    width, height = size
    return (height, width) if orientation >= SIDEWAYS else (width, height)


def stored_box(box: Box, upright_size: tuple[int, int], orientation: int) -> Box:
    """The part of the stored picture that ``box`` is of the upright one."""
    left, top, right, bottom = box
    width, height = upright_size
    if orientation in _MIRRORED_ACROSS:
        left, right = width - right, width - left
    if orientation in _MIRRORED_DOWN:
        top, bottom = height - bottom, height - top
    return (top, left, bottom, right) if orientation >= SIDEWAYS else (left, top, right, bottom)

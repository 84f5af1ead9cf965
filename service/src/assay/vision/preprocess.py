"""From a picture to the model's input: one resize of the exact crop box, the same pixels as resizing, then cropping."""

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from assay.vision.colour import is_linear, rgb
from assay.vision.decode import decode
from assay.vision.geometry import Box, Geometry, crop_box
from assay.vision.header import MAX_PIXELS, read_header
from assay.vision.orientation import stored_box, swapped, upright

__all__ = ["Geometry", "load", "preprocess"]

VERSION = 1
"""Goes up when the pixels given to a model change; part of what makes a cached answer valid."""

_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
_REACH = {"bilinear": 1, "bicubic": 2}
"""Pixels of the result that a filter looks to each side (Pillow's ``Resample.c``)."""

_BAND_PIXELS = 1 << 19
"""Pixels converted to RGB at a time: 2 MB in Pillow, where a 12-megapixel picture with alpha would take 96 MB more."""


def _surroundings(box: Box, size: tuple[int, int], crop: int, reach: int) -> tuple[int, int, int, int]:
    """Whole pixels that resizing ``box`` looks at."""
    across, down = (math.ceil(reach * max(1.0, extent / crop)) + 1 for extent in (box[2] - box[0], box[3] - box[1]))
    left, top = max(0, math.floor(box[0]) - across), max(0, math.floor(box[1]) - down)
    return left, top, min(size[0], math.ceil(box[2]) + across), min(size[1], math.ceil(box[3]) + down)


def _resized(picture: Image.Image, box: Box, geometry: Geometry) -> Image.Image:
    """``box`` of a picture of any type, as RGB ``[crop, crop]``. Needs little memory beside the picture itself."""
    crop, resample = geometry.crop, _FILTERS[geometry.interpolation]
    if is_linear(picture):
        return rgb(picture.resize((crop, crop), resample, box))
    left, top, right, bottom = _surroundings(box, picture.size, crop, _REACH[geometry.interpolation])
    inner = box[0] - left, box[1] - top, box[2] - left, box[3] - top
    width, height = right - left, bottom - top
    if width * height <= _BAND_PIXELS:
        return rgb(picture.crop((left, top, right, bottom))).resize((crop, crop), resample, inner)
    # Pillow resizes in two passes and rounds between them; the first one, across, needs no row beside its own.
    narrow = Image.new("RGB", (crop, height))
    rows = max(1, _BAND_PIXELS // width)
    for start in range(0, height, rows):
        end = min(start + rows, height)
        band = rgb(picture.crop((left, top + start, right, top + end)))
        narrow.paste(band.resize((crop, end - start), resample, (inner[0], 0, inner[2], end - start)), (0, start))
    return narrow.resize((crop, crop), resample, (0, inner[1], crop, inner[3]))


def preprocess(
    picture: Image.Image, geometry: Geometry, full_size: tuple[int, int] | None = None, orientation: int = 1
) -> NDArray[np.uint8]:
    """Centre crop of a picture of any type, upright, on white: ``uint8 [crop, crop, 3]``.

    ``full_size`` is the upright width and height before a reduced decode, so that the crop is that of the whole
    picture; by default, the picture's own. ``orientation`` (EXIF) is what the picture still has to be turned by.
    Pillow's filters antialias and look beyond the box, so the result differs from resizing the whole picture and
    cropping by rounding only.
    """
    full_size = full_size or swapped(picture.size, orientation)
    box = stored_box(crop_box(full_size, geometry), full_size, orientation)
    width, height = swapped(full_size, orientation)
    if (width, height) != picture.size:
        scale = round(max(width / picture.width, height / picture.height))
        # A reduced decode rounds its size up: its last column may be part of a pixel, and the box must stay inside.
        left, top, right, bottom = (edge / scale for edge in box)
        box = left, top, min(right, picture.width), min(bottom, picture.height)
    return np.asarray(upright(_resized(picture, box, geometry), orientation))


def load(data: bytes, geometry: Geometry, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Model input of an encoded image, ``uint8 [crop, crop, 3]``: header, decode and preprocess in one call.

    Raises the errors of `assay.vision.errors`.
    """
    header = read_header(data, max_pixels)
    return preprocess(decode(data, header, geometry), geometry, header.upright_size, header.decoded_orientation)

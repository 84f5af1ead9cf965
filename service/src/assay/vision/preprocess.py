"""From a picture to the model's input: one resize of the exact crop box, the same pixels as resizing, then cropping."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from assay.vision.decode import decode
from assay.vision.geometry import Geometry, crop_box
from assay.vision.header import MAX_PIXELS, read_header

__all__ = ["Geometry", "load", "preprocess"]

VERSION = 1
"""Goes up when the pixels given to a model change; part of what makes a cached answer valid."""

_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def preprocess(image: Image.Image, geometry: Geometry, full_size: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    """Centre crop of an RGB picture: ``uint8 [crop, crop, 3]``.

    ``full_size`` is the upright width and height before a reduced decode, so that the crop is that of the whole
    picture; by default, the picture's own. Pillow's filters antialias and look beyond the box, so the result
    differs from resizing the whole picture and cropping by rounding only.
    """
    width, height = full_size or image.size
    box = crop_box((width, height), geometry)
    if (width, height) != image.size:
        scale = round(max(width / image.width, height / image.height))
        # A reduced decode rounds its size up: its last column may be part of a pixel, and the box must stay inside.
        left, top, right, bottom = (edge / scale for edge in box)
        box = left, top, min(right, image.width), min(bottom, image.height)
    crop = image.resize((geometry.crop, geometry.crop), _FILTERS[geometry.interpolation], box)
    return np.asarray(crop)


def load(data: bytes, geometry: Geometry, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Model input of an encoded image, ``uint8 [crop, crop, 3]``: header, decode and preprocess in one call.

    Raises the errors of `assay.vision.errors`.
    """
    header = read_header(data, max_pixels)
    return preprocess(decode(data, header, geometry), geometry, header.upright_size)

"""Any pixel type as RGB; what is transparent becomes white."""

import numpy as np
from PIL import Image

from assay.vision.errors import UnsupportedMediaType

_ALPHA_MODES = frozenset({"RGBA", "LA", "PA", "RGBa", "La"})
_DEEP_MODES = frozenset({"I;16", "I;16L", "I;16B", "I;16N"})
_PLAIN_MODES = frozenset({"1", "L", "P", "CMYK", "YCbCr", "RGBX"})
_LINEAR_MODES = frozenset({"RGB", "L"})


def is_linear(picture: Image.Image) -> bool:
    """Whether pixels may be mixed as they are stored: resizing before or after `rgb` gives the same."""
    return picture.mode in _LINEAR_MODES and "transparency" not in picture.info


def check(picture: Image.Image) -> None:
    """Raise `UnsupportedMediaType` for a pixel type without a defined white; its pixels need not be there yet."""
    if picture.mode != "RGB" and picture.mode not in _ALPHA_MODES | _DEEP_MODES | _PLAIN_MODES:
        raise UnsupportedMediaType(f"Pixels of type {picture.mode} have no defined white; send 8- or 16-bit pixels.")


def rgb(picture: Image.Image) -> Image.Image:
    """A picture of any type that `check` lets pass, as RGB on white."""
    if picture.mode in _DEEP_MODES:
        # Pillow's own conversion clips 16 bits to 255; the high byte is what it keeps of 16-bit colour.
        return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8)).convert("RGB")
    if picture.mode in _ALPHA_MODES or "transparency" in picture.info:
        layer = picture if picture.mode == "RGBA" else picture.convert("RGBA")
        white = Image.new("RGB", layer.size, (255, 255, 255))
        white.paste(layer, mask=layer)
        return white
    return picture if picture.mode == "RGB" else picture.convert("RGB")

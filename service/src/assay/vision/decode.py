"""From encoded bytes to RGB pixels, upright, on white, no larger than needed."""

from io import BytesIO

import numpy as np
from PIL import Image

from assay.vision.errors import ImageBroken, UnsupportedMediaType
from assay.vision.geometry import Geometry
from assay.vision.header import ImageHeader

DRAFT_MARGIN = 2
"""A JPEG is decoded at 1/2, 1/4 or 1/8 only while its short side stays this many times the resize target. The scaled
decoder averages whole blocks; the resize behind it then still reduces by two, which is what keeps the labels."""

_DRAFT_SCALES = (8, 4, 2)  # what libjpeg's scaled inverse DCT offers, besides 1
_ALPHA_MODES = frozenset({"RGBA", "LA", "PA", "RGBa", "La"})
_DEEP_MODES = frozenset({"I;16", "I;16L", "I;16B", "I;16N"})
_PLAIN_MODES = frozenset({"1", "L", "P", "CMYK", "YCbCr", "RGBX"})
_TURNED_BY_PILLOW = "TIFF"  # the one format whose reader turns the picture itself, and tells its upright size
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What brings each EXIF orientation upright (EXIF 2.32, section 4.6.4)."""


def draft_scale(header: ImageHeader, geometry: Geometry) -> int:
    """Divisor, 1, 2, 4 or 8, at which a file of this header is decoded: more than 1 for large JPEG files only."""
    if header.format != "JPEG":
        return 1
    short = min(header.width, header.height)
    return next((scale for scale in _DRAFT_SCALES if short >= scale * DRAFT_MARGIN * geometry.resize_short), 1)


def _rgb(image: Image.Image) -> Image.Image:
    """Any pixel type as RGB; what is transparent becomes white."""
    if image.mode in _DEEP_MODES:
        # Pillow's own conversion clips 16 bits to 255; the high byte is what it keeps of 16-bit colour.
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in _ALPHA_MODES or "transparency" in image.info:
        layer = image if image.mode == "RGBA" else image.convert("RGBA")
        white = Image.new("RGB", layer.size, (255, 255, 255))
        white.paste(layer, mask=layer)  # three pictures in memory at most; compositing as RGBA would take five
        return white
    if image.mode == "RGB":
        return image
    if image.mode in _PLAIN_MODES:
        return image.convert("RGB")
    raise UnsupportedMediaType(f"Pixels of type {image.mode} have no defined white; send 8- or 16-bit pixels.")


def _opened(data: bytes, header: ImageHeader, geometry: Geometry) -> Image.Image:
    image = Image.open(BytesIO(data), formats=(header.format,))  # opens lazily: decodes nothing
    if image.size != (header.upright_size if header.format == _TURNED_BY_PILLOW else (header.width, header.height)):
        raise ImageBroken(
            f"The {header.format} file is {header.width} x {header.height} pixels by its header, "
            f"{image.width} x {image.height} by its picture."
        )
    scale = draft_scale(header, geometry)
    if scale > 1:
        image.draft("RGB", (header.width // scale, header.height // scale))
    return image


def decode(data: bytes, header: ImageHeader, geometry: Geometry) -> Image.Image:
    """Picture of an encoded image: mode RGB, upright, the first frame, alpha composited on white.

    A large JPEG comes at 1/`draft_scale` of its size, rounded up. Raises `ImageBroken` for a file that cannot be
    decoded to its end, `UnsupportedMediaType` for a pixel type without a defined range.
    """
    try:
        image = _opened(data, header, geometry)
        image.load()
        picture = _rgb(image)
        turn = None if header.format == _TURNED_BY_PILLOW else _TURNS.get(header.orientation)
        return picture if turn is None else picture.transpose(turn)
    except (ImageBroken, UnsupportedMediaType, MemoryError):
        raise
    except (
        Exception
    ) as error:  # Pillow's readers raise a dozen types on broken files, IndexError and TypeError among them
        raise ImageBroken(f"The {header.format} file is broken or cut off: it cannot be decoded to its end.") from error

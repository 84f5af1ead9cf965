"""From encoded bytes to pixels, as they are stored, no larger than needed; and what that takes of memory."""

import logging
import warnings
from io import BytesIO

from PIL import Image

from assay.vision import colour
from assay.vision.errors import ImageBroken, UnsupportedMediaType
from assay.vision.formats import jpeg, png
from assay.vision.geometry import Geometry
from assay.vision.header import ImageHeader

DRAFT_MARGIN = 2
"""A JPEG is decoded at 1/2, 1/4 or 1/8 only while its short side stays this many times the resize target. The scaled
decoder averages whole blocks; the resize behind it then still reduces by two, which is what keeps the labels."""

_DRAFT_SCALES = (8, 4, 2)  # what libjpeg's scaled inverse DCT offers, besides 1

_DECODERS = {"JPEG": "jpeg", "PNG": "zip", "WEBP": "raw", "GIF": "gif", "BMP": "raw", "TIFF": "raw"}
"""Pillow's decoder for each format; another one is not used, whatever a file asks for. Pillow has some written in
Python (run-length BMP), a few MB of which would keep the interpreter for seconds, and libtiff, which writes lines of
its own to stderr and sizes buffers by what the file says."""

_PIXELS_ONLY = {"JPEG": jpeg.pixels_only, "PNG": png.pixels_only}
"""What takes metadata out of a file. Pillow parses some of it while opening (EXIF, for the resolution), in Python, and
decompresses some (text); nothing of it changes pixels."""

# What Pillow says about a file is no news for whoever runs this: its sender gets a problem, or it was good enough.
warnings.filterwarnings("ignore", module=r"PIL\.")
logging.getLogger("PIL").setLevel(logging.CRITICAL)


def draft_scale(header: ImageHeader, geometry: Geometry) -> int:
    """Divisor, 1, 2, 4 or 8, at which a file of this header is decoded: more than 1 for large JPEG files only."""
    if header.format != "JPEG":
        return 1
    short = min(header.width, header.height)
    return next((scale for scale in _DRAFT_SCALES if short >= scale * DRAFT_MARGIN * geometry.resize_short), 1)


def picture_bytes(header: ImageHeader, geometry: Geometry) -> int:
    """Bytes of memory that decoding takes, at its peak: told from the header, before anything is decoded."""
    scale = draft_scale(header, geometry)
    return int(header.pixels * (header.picture_bytes / scale**2 + header.decoder_bytes))


def _opened(data: bytes, header: ImageHeader, geometry: Geometry) -> Image.Image:
    if header.format in _PIXELS_ONLY:
        data = _PIXELS_ONLY[header.format](data)
    image = Image.open(BytesIO(data), formats=(header.format,))  # opens lazily: decodes nothing
    if any(tile[0] != _DECODERS[header.format] for tile in image.tile):
        raise UnsupportedMediaType(
            f"This {header.format} file is compressed in a way that is not taken; save the picture as JPEG or PNG."
        )
    if image.size != header.decoded_size:
        raise ImageBroken(
            f"The {header.format} file is {header.width} x {header.height} pixels by its header, "
            f"{image.width} x {image.height} by its picture."
        )
    colour.check(image)
    scale = draft_scale(header, geometry)
    if scale > 1:
        image.draft("RGB", (header.width // scale, header.height // scale))
    return image


def decode(data: bytes, header: ImageHeader, geometry: Geometry) -> Image.Image:
    """Picture of an encoded image, the first frame: of any type that `colour.rgb` takes, not yet turned.

    A large JPEG comes at 1/`draft_scale` of its size, rounded up. Raises `ImageBroken` for a file that cannot be
    decoded to its end, `UnsupportedMediaType` for a pixel type without a defined range or an unusual compression.
    """
    try:
        image = _opened(data, header, geometry)
        image.load()
    except (ImageBroken, UnsupportedMediaType, MemoryError):
        raise
    except (
        Exception
    ) as error:  # Pillow's readers raise a dozen types on broken files, IndexError and TypeError among them
        raise ImageBroken(f"The {header.format} file is broken or cut off: it cannot be decoded to its end.") from error
    return image

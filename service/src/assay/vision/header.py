"""What an image is, from its first bytes: format, size, scan type, orientation. Nothing is decoded.

The format is told from the bytes alone; a ``Content-Type`` is somebody's claim.
"""

from collections.abc import Callable
from dataclasses import dataclass

from assay.vision.errors import ImageBroken, TooManyPixels, UnsupportedMediaType
from assay.vision.formats import WIDEST_PIXEL, Dimensions, bmp, gif, jpeg, png, tiff, webp
from assay.vision.orientation import swapped

MAX_PIXELS = 16_000_000
"""Default limit. A 12-megapixel phone photo passes. What a picture takes of memory is limited apart from this."""

MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
}
"""The formats that are taken, by Pillow's name for them."""

_TURNED_BY_PILLOW = "TIFF"  # the one format whose reader turns the picture itself, and tells its upright size


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """An image's header. ``width`` and ``height`` as stored; ``orientation`` is EXIF's, 1 to 8, 1 for upright.

    ``picture_bytes`` and ``decoder_bytes``: see `formats.Dimensions`.
    """

    format: str
    width: int
    height: int
    progressive: bool
    orientation: int
    picture_bytes: float = WIDEST_PIXEL
    decoder_bytes: float = 0.0

    @property
    def pixels(self) -> int:
        """Pixels in the picture."""
        return self.width * self.height

    @property
    def upright_size(self) -> tuple[int, int]:
        """Width and height as the photographer meant them."""
        return swapped((self.width, self.height), self.orientation)

    @property
    def decoded_orientation(self) -> int:
        """What the decoded picture still has to be turned by."""
        return 1 if self.format == _TURNED_BY_PILLOW else self.orientation

    @property
    def decoded_size(self) -> tuple[int, int]:
        """Width and height of the decoded picture, unless it is decoded at a scale."""
        return self.upright_size if self.format == _TURNED_BY_PILLOW else (self.width, self.height)


def _reader(data: bytes) -> tuple[str, Callable[[bytes], Dimensions]]:
    if data.startswith(jpeg.SIGNATURE):
        return "JPEG", jpeg.read
    if data.startswith(png.SIGNATURE):
        return "PNG", png.read
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP", webp.read
    if data.startswith(gif.SIGNATURES):
        return "GIF", gif.read
    if data.startswith(tiff.SIGNATURES):
        return "TIFF", tiff.read
    if data.startswith(bmp.SIGNATURE):
        return "BMP", bmp.read
    seen = "no bytes" if not data else "bytes of another kind"
    raise UnsupportedMediaType(f"Expected an image in one of {', '.join(MEDIA_TYPES)}; got {seen}.")


def sniff(data: bytes) -> str:
    """The format of an encoded image, by Pillow's name, from its first bytes. Raises `UnsupportedMediaType`."""
    return _reader(data)[0]


def read_header(data: bytes, max_pixels: int = MAX_PIXELS) -> ImageHeader:
    """Header of an encoded image.

    Raises `UnsupportedMediaType` for bytes that are no image taken here, `ImageBroken` for a header that ends early or
    makes no sense, `TooManyPixels` above ``max_pixels``.
    """
    name, read = _reader(data)
    found = read(data)
    width, height = found.width, found.height
    if width <= 0 or height <= 0:
        raise ImageBroken(f"The {name} file says that it is {width} x {height} pixels.")
    if width * height > max_pixels:
        raise TooManyPixels(
            f"The image has {width} x {height} = {width * height} pixels; {max_pixels} are allowed: scale it down."
        )
    return ImageHeader(name, *found)

"""PNG headers (W3C PNG, third edition, sections 5 and 11)."""

from assay.vision.errors import ImageBroken
from assay.vision.formats import MAX_STEPS, Dimensions, part
from assay.vision.formats.tiff import UPRIGHT, exif_orientation

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FIRST_CHUNK = len(SIGNATURE)
_CHUNK_OVERHEAD = 12  # length, type, checksum
_HEADER_BYTES = 13


def read(data: bytes) -> Dimensions:
    """Size, interlacing, and the orientation of an ``eXIf`` chunk where one stands before the pixels."""
    if part(data, _FIRST_CHUNK + 4, 4) != b"IHDR":
        raise ImageBroken("The PNG file does not begin with its header chunk.")
    header = part(data, _FIRST_CHUNK + 8, _HEADER_BYTES)
    position = _FIRST_CHUNK + _CHUNK_OVERHEAD + _HEADER_BYTES
    orientation = UPRIGHT
    for _ in range(MAX_STEPS):
        length = int.from_bytes(part(data, position, 4))
        kind = part(data, position + 4, 4)
        if kind == b"IDAT":
            width, height = int.from_bytes(header[:4]), int.from_bytes(header[4:8])
            return Dimensions(width, height, progressive=header[12] == 1, orientation=orientation)
        if kind == b"eXIf":
            orientation = exif_orientation(data[position + 8 : position + 8 + length])
        position += _CHUNK_OVERHEAD + length
    raise ImageBroken("The PNG file holds no pixels among its first chunks.")

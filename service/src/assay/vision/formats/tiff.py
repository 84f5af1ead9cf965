"""TIFF headers, and EXIF blocks, which are TIFF files inside other formats (TIFF 6.0, section 2)."""

import struct

from assay.vision.errors import ImageBroken, UnsupportedMediaType
from assay.vision.formats import Dimensions, part

SIGNATURES = (b"II*\x00", b"MM\x00*")
_ENTRY_BYTES = 12
_MAX_ENTRIES = 512  # tags of one directory; TIFF 6.0 and EXIF together define fewer than 300
_SHORT, _LONG = 3, 4  # field types
_WIDTH, _HEIGHT, _COMPRESSION, _ORIENTATION = 256, 257, 259, 274  # tags
_UNCOMPRESSED = 1
_COMPRESSIONS = frozenset({_UNCOMPRESSED, 5, 7, 8, 32773, 32946})
"""None, LZW, JPEG, Deflate, PackBits, Deflate by its older number. Not the fax codings (2 to 4): they are for papers,
and libtiff writes a line to stderr for every row that is wrong."""

UPRIGHT = 1
"""EXIF orientation of a picture that needs no turning; values go from 1 to 8 (EXIF 2.32, section 4.6.4)."""


def tags(data: bytes) -> dict[int, int]:
    """Tag to value of the first directory: only its single integers, which is all that is needed here."""
    order = "<" if data[:2] == b"II" else ">"
    (offset,) = struct.unpack(order + "I", part(data, 4, 4))
    (count,) = struct.unpack(order + "H", part(data, offset, 2))
    found: dict[int, int] = {}
    for index in range(min(count, _MAX_ENTRIES)):
        entry = part(data, offset + 2 + index * _ENTRY_BYTES, _ENTRY_BYTES)
        tag, kind, values = struct.unpack(order + "HHI", entry[:8])
        if values == 1 and kind in (_SHORT, _LONG):
            (found[tag],) = (
                struct.unpack(order + "H", entry[8:10]) if kind == _SHORT else struct.unpack(order + "I", entry[8:])
            )
    return found


def _orientation(found: dict[int, int]) -> int:
    value = found.get(_ORIENTATION, UPRIGHT)
    return value if 1 <= value <= 8 else UPRIGHT


def exif_orientation(block: bytes) -> int:
    """Orientation (1 to 8) of an EXIF block, with or without the prefix that JPEG puts before it.

    A broken block is common in good photos: it means upright, as every viewer has it, never an error.
    """
    block = block.removeprefix(b"Exif\x00\x00")
    if block[:4] not in SIGNATURES:
        return UPRIGHT
    try:
        return _orientation(tags(block))
    except ImageBroken:
        return UPRIGHT


def read(data: bytes) -> Dimensions:
    """Size and orientation of the first picture."""
    found = tags(data)
    if _WIDTH not in found or _HEIGHT not in found:
        raise ImageBroken("The TIFF file does not say its width and height.")
    if (compression := found.get(_COMPRESSION, _UNCOMPRESSED)) not in _COMPRESSIONS:
        raise UnsupportedMediaType(f"TIFF compression {compression} is not taken; save the picture as JPEG or PNG.")
    return Dimensions(found[_WIDTH], found[_HEIGHT], progressive=False, orientation=_orientation(found))

"""TIFF headers, and EXIF blocks, which are TIFF files inside other formats (TIFF 6.0, section 2)."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from assay.vision.errors import ImageBroken, UnsupportedMediaType
from assay.vision.formats import MAX_STEPS, WIDEST_PIXEL, Dimensions, part

SIGNATURES = (b"II*\x00", b"MM\x00*")
_ENTRY_BYTES = 12
_MAX_ENTRIES = 512  # tags of one directory; TIFF 6.0 and EXIF together define fewer than 300
_SHORT, _LONG = 3, 4  # field types
_FIELD_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
_TEXTS = frozenset({1, 2, 6, 7})  # field types whose values stay bytes
_WIDTH, _HEIGHT, _COMPRESSION, _ORIENTATION, _TILE_WIDTH = 256, 257, 259, 274, 322  # tags
_UNCOMPRESSED = 1
"""The one compression that is taken: all others are libtiff's work, which writes to stderr for every wrong row, and
sizes buffers by what the file says. PNG does the same without."""

UPRIGHT = 1
"""EXIF orientation of a picture that needs no turning; values go from 1 to 8 (EXIF 2.32, section 4.6.4)."""


class _Entry(NamedTuple):
    """A tag of a directory; ``value`` where it is a single integer."""

    tag: int
    kind: int
    values: int
    value: int | None


def _entries(data: bytes) -> Iterator[_Entry]:
    """Tags of the first directory, up to as many as may be."""
    order = "<" if data[:2] == b"II" else ">"
    (offset,) = struct.unpack(order + "I", part(data, 4, 4))
    (count,) = struct.unpack(order + "H", part(data, offset, 2))
    if count > _MAX_ENTRIES:
        raise ImageBroken(f"The TIFF directory has {count} tags; {_MAX_ENTRIES} are more than the format defines.")
    for index in range(count):
        entry = part(data, offset + 2 + index * _ENTRY_BYTES, _ENTRY_BYTES)
        tag, kind, values = struct.unpack(order + "HHI", entry[:8])
        value: int | None = None
        if values == 1 and kind in (_SHORT, _LONG):
            (value,) = (
                struct.unpack(order + "H", entry[8:10]) if kind == _SHORT else struct.unpack(order + "I", entry[8:])
            )
        yield _Entry(tag, kind, values, value)


def _integers(entries: Iterator[_Entry] | list[_Entry]) -> dict[int, int]:
    return {entry.tag: entry.value for entry in entries if entry.value is not None}


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
        return _orientation(_integers(_entries(block)))
    except ImageBroken:
        return UPRIGHT


def _check_values(entries: list[_Entry], available: int) -> None:
    """Refuse a directory whose values are more than the file can hold: each is copied, and they may overlap."""
    if sum(_FIELD_BYTES.get(entry.kind, 0) * entry.values for entry in entries) > available:
        raise ImageBroken("The TIFF file says that it has more tag values than it has bytes.")
    for entry in entries:
        if entry.kind not in _TEXTS and entry.values > MAX_STEPS:  # strips, above all: each is a step of the decoder
            raise ImageBroken(
                f"Tag {entry.tag} of the TIFF file has {entry.values} values, more than {MAX_STEPS}: "
                "save it with larger strips."
            )


def read(data: bytes) -> Dimensions:
    """Size and orientation of the first picture."""
    entries = list(_entries(data))
    _check_values(entries, len(data))
    found = _integers(entries)
    if _WIDTH not in found or _HEIGHT not in found:
        raise ImageBroken("The TIFF file does not say its width and height.")
    if (compression := found.get(_COMPRESSION, _UNCOMPRESSED)) != _UNCOMPRESSED:
        raise UnsupportedMediaType(f"TIFF compression {compression} is not taken; save the picture as PNG or JPEG.")
    if _TILE_WIDTH in found:
        raise UnsupportedMediaType("TIFF files made of tiles are not taken; save the picture as PNG or JPEG.")
    orientation = _orientation(found)
    # The reader turns the picture as a whole, and so holds it twice.
    picture_bytes = WIDEST_PIXEL if orientation == UPRIGHT else 2 * WIDEST_PIXEL
    return Dimensions(
        found[_WIDTH], found[_HEIGHT], progressive=False, orientation=orientation, picture_bytes=picture_bytes
    )

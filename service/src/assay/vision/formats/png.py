"""PNG headers (W3C PNG, third edition, sections 5 and 11)."""

from collections.abc import Iterator

from assay.vision.errors import ImageBroken
from assay.vision.formats import MAX_STEPS, WIDEST_PIXEL, Dimensions, part
from assay.vision.formats.tiff import UPRIGHT, exif_orientation

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FIRST_CHUNK = len(SIGNATURE)
_CHUNK_OVERHEAD = 12  # length, type, checksum
_HEADER_BYTES = 13
_GRAY, _PALETTE = 0, 3  # colour types
_FOR_PIXELS = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT"})


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Type, start and end of each chunk; the last may end beyond the file."""
    position = _FIRST_CHUNK
    for _ in range(MAX_STEPS):
        length = int.from_bytes(part(data, position, 4))
        kind = part(data, position + 4, 4)
        end = position + _CHUNK_OVERHEAD + length
        yield kind, position, end
        if kind == b"IEND":
            return
        position = end
    raise ImageBroken(f"The PNG file has more than {MAX_STEPS} chunks; save it anew with larger ones.")


def read(data: bytes) -> Dimensions:
    """Size, interlacing, and the orientation of an ``eXIf`` chunk where one stands before the pixels."""
    if part(data, _FIRST_CHUNK + 4, 4) != b"IHDR":
        raise ImageBroken("The PNG file does not begin with its header chunk.")
    header = part(data, _FIRST_CHUNK + 8, _HEADER_BYTES)
    width, height, depth, colour = int.from_bytes(header[:4]), int.from_bytes(header[4:8]), header[8], header[9]
    orientation = UPRIGHT
    has_palette = False
    for kind, start, end in _chunks(data):
        if kind == b"IDAT":
            break
        if kind == b"eXIf":
            orientation = exif_orientation(data[start + 8 : end - 4])
        has_palette = has_palette or kind == b"PLTE"
    else:
        raise ImageBroken("The PNG file holds no pixels.")
    if colour == _PALETTE and not has_palette:
        raise ImageBroken("The PNG file has no palette, which its pixels are numbers of.")
    narrow = colour in (_GRAY, _PALETTE)
    return Dimensions(
        width, height, header[12] == 1, orientation, picture_bytes=max(depth, 8) / 8 if narrow else WIDEST_PIXEL
    )


def pixels_only(data: bytes) -> bytes:
    """The file without metadata and without the frames of an animation, whose still picture is left.

    Raises `ImageBroken` for a file that ends before its last chunk.
    """
    kept = [SIGNATURE]
    whole = True
    for kind, start, end in _chunks(data):
        if kind in _FOR_PIXELS:
            kept.append(data[start:end])
        elif kind == b"IEND":
            kept.append(data[start:])
        else:
            whole = False
    return data if whole else b"".join(kept)

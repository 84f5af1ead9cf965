"""Headers of the image formats that are taken: one module each, reading bytes only, never decoding.

Each ``read(data)`` returns a `Dimensions`, or raises `ImageBroken`. Work is bounded whatever the bytes are (they come
from strangers and are read on the event loop): no module walks more than `MAX_STEPS` parts of a file.
"""

from typing import NamedTuple

from assay.vision.errors import ImageBroken

MAX_STEPS = 4096
"""Parts of a file walked before giving up. A camera's JPEG has about 20 segments before its scan, 255 more with the
largest colour profile the format allows; 4096 steps take about 1 ms."""


class Dimensions(NamedTuple):
    """What a format's header says. ``progressive``: stored in several passes over the whole picture."""

    width: int
    height: int
    progressive: bool
    orientation: int


def part(data: bytes, start: int, length: int) -> bytes:
    """``data[start:start + length]``, or `ImageBroken` where the file ends before that."""
    piece = data[start : start + length]
    if len(piece) != length:
        message = f"The image ends inside its header, after {len(data)} bytes: send the whole file."
        raise ImageBroken(message)
    return piece

"""Headers of the image formats that are taken: one module each, reading bytes only, never decoding.

Each ``read(data)`` returns a `Dimensions`, or raises `ImageBroken`. Work is bounded whatever the bytes are (they come
from strangers and are read on the event loop): no module walks more than `MAX_STEPS` parts of a file.
"""

from typing import NamedTuple

from assay.vision.errors import ImageBroken

MAX_STEPS = 4096
"""Parts of a file walked before giving up. A camera's JPEG has about 20 segments before its scan, 255 more with the
largest colour profile the format allows; 4096 steps take about 1 ms."""


WIDEST_PIXEL = 4.0
"""Bytes that Pillow takes for a pixel, at most: RGB has a fourth byte, too. Gray and palette take 1, 16-bit gray 2."""


class Dimensions(NamedTuple):
    """What a format's header says. ``progressive``: stored in several passes over the whole picture.

    ``picture_bytes``: bytes a pixel of the decoded picture; ``decoder_bytes``: bytes a stored pixel that the decoder
    holds beside it for as long as it works. Without what depends on the width alone.
    """

    width: int
    height: int
    progressive: bool
    orientation: int
    picture_bytes: float = WIDEST_PIXEL
    decoder_bytes: float = 0.0


def part(data: bytes, start: int, length: int) -> bytes:
    """``data[start:start + length]``, or `ImageBroken` where the file ends before that."""
    piece = data[start : start + length]
    if len(piece) != length:
        message = f"The image ends inside its header, after {len(data)} bytes: send the whole file."
        raise ImageBroken(message)
    return piece

"""GIF headers (GIF89a, sections 18 and 20 to 26)."""

from assay.vision.errors import ImageBroken
from assay.vision.formats import MAX_STEPS, Dimensions, part
from assay.vision.formats.tiff import UPRIGHT

SIGNATURES = (b"GIF87a", b"GIF89a")
_SCREEN_END = 13
_HAS_PALETTE = 0x80
_EXTENSION, _PICTURE = 0x21, 0x2C
_PICTURE_BYTES = 2.0  # a palette index, and one more where a frame says what to do with it afterwards


def _check_blocks(data: bytes, position: int) -> None:
    """Walk to the first picture. Pillow does so block by block in Python, and 8 MB can hold four million blocks."""
    within = False
    for _ in range(MAX_STEPS):
        byte = part(data, position, 1)[0]
        position += 1
        if within:
            position += byte
            within = byte > 0
        elif byte == _PICTURE:
            return
        elif byte == _EXTENSION:
            position += 1
            within = True
        else:
            break
    raise ImageBroken("The GIF file holds no picture among its first blocks.")


def read(data: bytes) -> Dimensions:
    """Size of the logical screen, which every frame must lie within. GIF knows no orientation."""
    screen = part(data, 6, 7)
    width, height = int.from_bytes(screen[:2], "little"), int.from_bytes(screen[2:4], "little")
    palette = 3 << (screen[4] & 7) + 1 if screen[4] & _HAS_PALETTE else 0
    _check_blocks(data, _SCREEN_END + palette)
    return Dimensions(width, height, progressive=False, orientation=UPRIGHT, picture_bytes=_PICTURE_BYTES)

"""GIF headers (GIF89a, section 18)."""

from assay.vision.formats import Dimensions, part
from assay.vision.formats.tiff import UPRIGHT

SIGNATURES = (b"GIF87a", b"GIF89a")


def read(data: bytes) -> Dimensions:
    """Size of the logical screen, which every frame must lie within. GIF knows no orientation."""
    screen = part(data, 6, 4)
    width, height = int.from_bytes(screen[:2], "little"), int.from_bytes(screen[2:], "little")
    return Dimensions(width, height, progressive=False, orientation=UPRIGHT)

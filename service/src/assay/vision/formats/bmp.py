"""BMP headers (Microsoft's BITMAPCOREHEADER and BITMAPINFOHEADER)."""

from assay.vision.errors import ImageBroken
from assay.vision.formats import Dimensions, part
from assay.vision.formats.tiff import UPRIGHT

SIGNATURE = b"BM"
_FILE_HEADER = 14
_CORE_HEADER, _INFO_HEADER = 12, 40  # sizes; every later header begins as the second does
_LARGEST_HEADER = 124  # BITMAPV5HEADER


def read(data: bytes) -> Dimensions:
    """Size; a negative height only means that the rows are stored from the top."""
    size = int.from_bytes(part(data, _FILE_HEADER, 4), "little")
    if size == _CORE_HEADER:
        body = part(data, _FILE_HEADER + 4, 4)
        width, height = int.from_bytes(body[:2], "little"), int.from_bytes(body[2:], "little")
    elif _INFO_HEADER <= size <= _LARGEST_HEADER:
        body = part(data, _FILE_HEADER + 4, 8)
        width = int.from_bytes(body[:4], "little", signed=True)
        height = abs(int.from_bytes(body[4:], "little", signed=True))
    else:
        raise ImageBroken(f"The BMP file has a header of {size} bytes, which no version of the format has.")
    return Dimensions(width, height, progressive=False, orientation=UPRIGHT)

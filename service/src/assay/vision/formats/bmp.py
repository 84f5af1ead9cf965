"""BMP headers (Microsoft's BITMAPCOREHEADER and BITMAPINFOHEADER)."""

from assay.vision.errors import ImageBroken
from assay.vision.formats import WIDEST_PIXEL, Dimensions, part
from assay.vision.formats.tiff import UPRIGHT

SIGNATURE = b"BM"
_FILE_HEADER = 14
_CORE_HEADER, _INFO_HEADER = 12, 40  # sizes; every later header begins as the second does
_LARGEST_HEADER = 124  # BITMAPV5HEADER
_MOST_BITS_OF_A_PALETTE = 8


def read(data: bytes) -> Dimensions:
    """Size; a negative height only means that the rows are stored from the top."""
    size = int.from_bytes(part(data, _FILE_HEADER, 4), "little")
    if size == _CORE_HEADER:
        body = part(data, _FILE_HEADER + 4, 8)
        width, height = int.from_bytes(body[:2], "little"), int.from_bytes(body[2:4], "little")
        bits = int.from_bytes(body[6:8], "little")
    elif _INFO_HEADER <= size <= _LARGEST_HEADER:
        body = part(data, _FILE_HEADER + 4, 12)
        width = int.from_bytes(body[:4], "little", signed=True)
        height = abs(int.from_bytes(body[4:8], "little", signed=True))
        bits = int.from_bytes(body[10:12], "little")
    else:
        raise ImageBroken(f"The BMP file has a header of {size} bytes, which no version of the format has.")
    picture_bytes = 1.0 if bits <= _MOST_BITS_OF_A_PALETTE else WIDEST_PIXEL
    return Dimensions(width, height, progressive=False, orientation=UPRIGHT, picture_bytes=picture_bytes)

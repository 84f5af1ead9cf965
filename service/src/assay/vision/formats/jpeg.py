"""JPEG headers (ITU-T T.81, annex B)."""

from assay.vision.errors import ImageBroken
from assay.vision.formats import MAX_STEPS, Dimensions, part
from assay.vision.formats.tiff import UPRIGHT, exif_orientation

SIGNATURE = b"\xff\xd8\xff"
_START_OF_SCAN, _END_OF_IMAGE, _APP1 = 0xDA, 0xD9, 0xE1
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # SOF0 to SOF15, without DHT, JPG and DAC
_PROGRESSIVE_FRAMES = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length: TEM, RST0 to RST7, SOI


def read(data: bytes) -> Dimensions:
    """Size, scan type and EXIF orientation, from the segments before the first scan."""
    position = 2
    size: tuple[int, int] | None = None
    progressive = False
    orientation = UPRIGHT
    for _ in range(MAX_STEPS):
        prefix, marker = part(data, position, 2)
        if prefix != 0xFF:
            raise ImageBroken(f"The JPEG file has no marker at byte {position}, where one must be.")
        if marker == 0xFF:  # fill bytes may precede any marker
            position += 1
            continue
        if marker in _BARE:
            position += 2
            continue
        if marker in (_START_OF_SCAN, _END_OF_IMAGE):
            if size is None:
                break
            return Dimensions(*size, progressive=progressive, orientation=orientation)
        length = int.from_bytes(part(data, position + 2, 2))
        if marker in _FRAMES:
            frame = part(data, position + 5, 4)
            size = int.from_bytes(frame[2:]), int.from_bytes(frame[:2])
            progressive = marker in _PROGRESSIVE_FRAMES
        elif marker == _APP1 and orientation == UPRIGHT and data[position + 4 : position + 10] == b"Exif\x00\x00":
            orientation = exif_orientation(data[position + 4 : position + 2 + length])
        position += 2 + max(length, 2)
    raise ImageBroken("The JPEG file holds no picture before its first scan.")

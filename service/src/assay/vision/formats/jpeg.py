"""JPEG headers (ITU-T T.81, annex B)."""

from collections.abc import Iterator
from typing import NamedTuple

from assay.vision.errors import ImageBroken
from assay.vision.formats import MAX_STEPS, WIDEST_PIXEL, Dimensions, part
from assay.vision.formats.tiff import UPRIGHT, exif_orientation

SIGNATURE = b"\xff\xd8\xff"
_START_OF_SCAN, _END_OF_IMAGE, _APP0, _APP1, _APP14, _APP15, _COMMENT = 0xDA, 0xD9, 0xE0, 0xE1, 0xEE, 0xEF, 0xFE
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # SOF0 to SOF15, without DHT, JPG and DAC
_PROGRESSIVE_FRAMES = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length: TEM, RST0 to RST7, SOI
_MAX_COMPONENTS = 4  # CMYK; more are no picture
_COEFFICIENT_BYTES = 2  # libjpeg's JCOEF

MAX_SCANS = 64
"""Scans of a picture that is stored in several. Encoders write 6 to 14; each one goes over the whole picture again, and
8 MB could hold thousands of empty ones, minutes of work (the libjpeg-turbo project's report on its fuzzing)."""


class _Segment(NamedTuple):
    """A marker segment, from its marker up to ``end``; its contents begin four bytes after ``start``."""

    marker: int
    start: int
    end: int


def _segments(data: bytes) -> Iterator[_Segment]:
    """The segments before the first scan, and last that which begins the scan (or ends the image)."""
    position = 2
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
        if marker == _END_OF_IMAGE:
            yield _Segment(marker, position, position + 2)
            return
        length = int.from_bytes(part(data, position + 2, 2))
        segment = _Segment(marker, position, position + 2 + max(length, 2))
        yield segment
        if marker == _START_OF_SCAN:
            return
        position = segment.end
    raise ImageBroken("The JPEG file holds no picture before its first scan.")


def _frame(data: bytes, segment: _Segment) -> tuple[int, int, int, float]:
    """Width, height, components, and samples a pixel (1 for gray, 3 for colour without subsampling)."""
    body = part(data, segment.start + 5, 5)
    components = body[4]
    factors = [part(data, segment.start + 11 + 3 * n, 1)[0] for n in range(min(components, _MAX_COMPONENTS))]
    areas = [(factor >> 4) * (factor & 15) for factor in factors]
    largest = max((factor >> 4 for factor in factors), default=1) * max((factor & 15 for factor in factors), default=1)
    samples = sum(areas) / largest if largest else _MAX_COMPONENTS
    return int.from_bytes(body[2:4]), int.from_bytes(body[:2]), components, samples


def read(data: bytes) -> Dimensions:
    """Size, scan type and EXIF orientation, from the segments before the first scan."""
    frame: tuple[int, int, int, float] | None = None
    several_scans = False
    orientation = UPRIGHT
    for marker, start, end in _segments(data):
        if marker in _FRAMES:
            frame = _frame(data, _Segment(marker, start, end))
            several_scans = marker in _PROGRESSIVE_FRAMES
        elif marker == _APP1 and orientation == UPRIGHT and data[start + 4 : start + 10] == b"Exif\x00\x00":
            orientation = exif_orientation(data[start + 4 : end])
        elif marker == _START_OF_SCAN and frame is not None:
            # A baseline file, too, may store its components one after the other.
            several_scans = several_scans or part(data, start + 4, 1)[0] < frame[2]
            if several_scans and (scans := data.count(b"\xff\xda", start)) > MAX_SCANS:
                raise ImageBroken(f"The JPEG file has {scans} scans; no encoder writes more than {MAX_SCANS}.")
    if frame is None:
        raise ImageBroken("The JPEG file holds no picture before its first scan.")
    width, height, components, samples = frame
    return Dimensions(
        width,
        height,
        several_scans,
        orientation,
        picture_bytes=1.0 if components == 1 else WIDEST_PIXEL,
        decoder_bytes=samples * _COEFFICIENT_BYTES if several_scans else 0.0,
    )


def pixels_only(data: bytes) -> bytes:
    """The file without metadata: application segments are left out but for those that say what the colours are."""
    kept = [data[:2]]
    whole = True
    for marker, start, end in _segments(data):
        if marker in (_START_OF_SCAN, _END_OF_IMAGE):
            kept.append(data[start:])
        elif not (_APP0 < marker <= _APP15 or marker == _COMMENT) or marker == _APP14:
            kept.append(data[start:end])
        else:
            whole = False
    return data if whole else b"".join(kept)

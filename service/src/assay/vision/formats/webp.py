"""WebP headers (RFC 9649, section 2)."""

from assay.vision.errors import ImageBroken
from assay.vision.formats import MAX_STEPS, Dimensions, part
from assay.vision.formats.tiff import UPRIGHT, exif_orientation

_FIRST_CHUNK = 12
_CHUNK_HEAD = 8
_HAS_EXIF = 0x08  # flag of the extended header
_VP8_START = b"\x9d\x01\x2a"  # RFC 6386, section 9.1: start code of a key frame
_VP8L_SIGNATURE = 0x2F

_DECODER_BYTES = 13.0
"""Two canvases of libwebp's animation decoder, which Pillow uses for every file, and a copy on the way to the picture,
of four bytes each; 12.1 to 13.0 were measured on 12 megapixels, lossless files the dearest."""


def _exif(data: bytes) -> int:
    """Orientation of the ``EXIF`` chunk; by the format's rule it stands after the pixels."""
    position = _FIRST_CHUNK
    for _ in range(MAX_STEPS):
        head = data[position : position + _CHUNK_HEAD]
        if len(head) < _CHUNK_HEAD:
            break
        length = int.from_bytes(head[4:], "little")
        if head[:4] == b"EXIF":
            return exif_orientation(data[position + _CHUNK_HEAD : position + _CHUNK_HEAD + length])
        position += _CHUNK_HEAD + length + length % 2
    return UPRIGHT


def read(data: bytes) -> Dimensions:
    """Canvas size and orientation; all three kinds: lossy, lossless, extended (animated too)."""
    kind = part(data, _FIRST_CHUNK, 4)
    start = _FIRST_CHUNK + _CHUNK_HEAD
    if kind == b"VP8X":
        body = part(data, start, 10)
        width, height = int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
        orientation = _exif(data) if body[0] & _HAS_EXIF else UPRIGHT
        return Dimensions(width, height, False, orientation, decoder_bytes=_DECODER_BYTES)
    if kind == b"VP8L":
        body = part(data, start, 5)
        if body[0] == _VP8L_SIGNATURE:
            bits = int.from_bytes(body[1:], "little")
            return Dimensions(
                (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, False, UPRIGHT, decoder_bytes=_DECODER_BYTES
            )
    if kind == b"VP8 ":
        body = part(data, start, 10)
        if body[3:6] == _VP8_START:
            width, height = int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
            return Dimensions(width, height, False, UPRIGHT, decoder_bytes=_DECODER_BYTES)
    raise ImageBroken("The WebP file does not begin with a picture.")

"""The corpus: every file with the answer that is expected. ``python -m support.corpus.table`` writes the answers anew.

The answers lie in ``answers.tsv`` beside this module, so that a change of any of them is a line in a diff.
"""

import sys
from functools import cache
from pathlib import Path

from PIL import Image

from assay.vision.decode import decode, picture_bytes
from assay.vision.errors import ImageError, TooManyPixels
from assay.vision.header import read_header
from assay.vision.preprocess import preprocess
from support.corpus.formats import formats
from support.corpus.hostile import bombs, lies, loops
from support.corpus.seeds import seeds
from support.geometry import Wanted
from support.images import encoded, exif, jpeg

ANSWERS = Path(__file__).with_name("answers.tsv")

PICTURE_BYTES = 48 << 20
"""Memory for pictures that the answers are for: the default."""

_CUTS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999)
"""Where files are cut off, as shares of them."""
_CUT = ("jpeg", "jpeg-progressive", "jpeg-cmyk", "png", "png-interlaced", "webp", "webp-lossless", "webp-animated",
        "gif", "bmp", "tiff")  # fmt: skip
_FLIPS = (20, 100, 700, 1500)
"""Bytes of which a bit is flipped."""
_SIZES = ((1, 1), (2, 1), (1, 2), (65500, 1), (1, 65500), (65500, 200), (3, 4000))


def _cut_off() -> dict[str, bytes]:
    whole = {name: seeds()[name] for name in _CUT}
    return {
        f"cut-{name}-{share}": data[: max(1, int(len(data) * share))] for name, data in whole.items() for share in _CUTS
    }


def _flipped() -> dict[str, bytes]:
    found = {}
    for name in ("jpeg", "jpeg-progressive", "png", "webp", "gif", "bmp", "tiff"):
        for position in _FLIPS:
            data = bytearray(seeds()[name])
            data[position] ^= 0x10
            found[f"flip-{name}-{position}"] = bytes(data)
    return found


def _sizes() -> dict[str, bytes]:
    return {
        f"size-{kind.lower()}-{width}x{height}": encoded(Image.new("RGB", (width, height), "gray"), kind)
        for kind in ("JPEG", "PNG")
        for width, height in _SIZES
    }


def _exifs() -> dict[str, bytes]:
    blocks = {
        "empty": b"Exif\0\0",
        "no-directory": b"Exif\0\0II*\0\xff\xff\xff\xff",
        "too-many-tags": b"Exif\0\0II*\0\x08\0\0\0\xff\xff",
        "junk": b"Exif\0\0junk",
        "orientation-9": exif(9),
        "orientation-0": exif(0),
        **{f"orientation-{value}": exif(value) for value in range(1, 9)},
    }
    return {f"exif-{name}": jpeg(size=(120, 80), exif=block) for name, block in blocks.items()}


@cache
def corpus() -> dict[str, bytes]:
    """Name to file."""
    whole = {f"valid-{name}": data for name, data in seeds().items()}
    return whole | formats() | bombs() | loops() | lies() | _cut_off() | _flipped() | _sizes() | _exifs()


def answers() -> dict[str, tuple[int, str]]:
    """Name to status and code; no code where labels are the answer."""
    lines = (line.split("\t") for line in ANSWERS.read_text().splitlines())
    return {name: (int(status), code) for name, status, code in lines}


def answer(data: bytes) -> tuple[int, str]:
    """Status and code by the functions the service calls, without a service."""
    wanted = Wanted()
    try:
        header = read_header(data)
        if picture_bytes(header, wanted) > PICTURE_BYTES:
            return TooManyPixels.status, TooManyPixels.code
        preprocess(decode(data, header, wanted), wanted, header.upright_size, header.decoded_orientation)
    except ImageError as error:
        return error.status, error.code
    return 200, ""


if __name__ == "__main__":
    found = {name: answer(data) for name, data in corpus().items()}
    ANSWERS.write_text("".join(f"{name}\t{status}\t{code}\n" for name, (status, code) in found.items()))
    sys.stdout.write(f"{len(found)} files\n")

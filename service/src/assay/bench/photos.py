"""Photos of a size and format that somebody might send, made from photos at hand."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from assay.errors import BenchError
from assay.packs.dataset import Dataset

_Item = TypeVar("_Item")

NOISE: Final = 4.0
"""Standard deviation, of 255, of what a phone's sensor leaves at medium light; an enlarged photo has no detail of its
own, and decoders are quick where there is none."""

_TILE: Final = 512
"""Side of the noise that is repeated, in pixels; 64 blocks of JPEG, so that no block of a neighbourhood is alike."""

QUALITY: Final = 90
"""JPEG and WebP quality, in the upper half of what phones and cameras write."""


@dataclass(frozen=True)
class Encoding:
    """A kind of file: its name in tables, and what Pillow is told."""

    name: str
    format: str
    options: tuple[tuple[str, Any], ...] = ()


ENCODINGS: Final = {
    "jpeg": (
        Encoding("JPEG, baseline", "JPEG", (("quality", QUALITY),)),
        Encoding("JPEG, progressive", "JPEG", (("quality", QUALITY), ("progressive", True))),
    ),
    # Levels that are quick to write; what they cost to read hardly depends on them.
    "png": (Encoding("PNG", "PNG", (("compress_level", 1),)),),
    "webp": (Encoding("WebP", "WEBP", (("quality", QUALITY), ("method", 0))),),
}
"""By the name on the command line."""


def noise(seed: int) -> NDArray[np.int16]:
    """A tile of noise, int16 [512, 512, 3]."""
    return np.random.default_rng(seed).normal(0, NOISE, (_TILE, _TILE, 3)).round().astype(np.int16)


def at_size(photo: Image.Image, megapixels: float, tile: NDArray[np.int16]) -> Image.Image:
    """A photo (RGB) at so many megapixels, its aspect kept, with noise on top."""
    scale = (megapixels * 1e6 / (photo.width * photo.height)) ** 0.5
    width, height = max(1, round(photo.width * scale)), max(1, round(photo.height * scale))
    pixels = np.asarray(photo.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    repeats = -(-height // tile.shape[0]), -(-width // tile.shape[1]), 1
    pixels += np.tile(tile, repeats)[:height, :width]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def encoded(photo: Image.Image, encoding: Encoding) -> bytes:
    """A photo as a file in memory."""
    file = io.BytesIO()
    photo.save(file, encoding.format, **dict(encoding.options))
    return file.getvalue()


def from_folder(folder: Path, wanted: int) -> list[Image.Image]:
    """At most ``wanted`` of a folder's photos, spread evenly by name, upright RGB.

    Raises ``BenchError`` for a folder without images, and for a file that does not decode.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in Image.registered_extensions())
    if not files:
        raise BenchError(f"there is no image in {folder}: name a folder of photos")
    return [_opened(path, str(path)) for path in _spread(files, wanted)]


def from_dataset(dataset: Dataset, wanted: int) -> list[Image.Image]:
    """The first view of each of at most ``wanted`` source photos of a dataset, upright RGB."""
    firsts = list({entry.group: entry for entry in reversed(dataset.manifest.images)}.values())[::-1]
    return [_opened(io.BytesIO(image.data), image.entry.file) for image in dataset.read(_spread(firsts, wanted))]


def made(
    photos: Sequence[Image.Image],
    sizes: Sequence[float],
    encodings: Sequence[Encoding],
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> dict[tuple[float, str], list[bytes]]:
    """Every photo as a file of each size (megapixels) and encoding, by size and the encoding's name."""
    tile = noise(seed)
    files: dict[tuple[float, str], list[bytes]] = {(size, kind.name): [] for size in sizes for kind in encodings}
    for done, (size, photo) in enumerate((size, photo) for size in sizes for photo in photos):
        picture = at_size(photo, size, tile)
        for kind in encodings:
            files[size, kind.name].append(encoded(picture, kind))
        if progress:
            progress(done + 1, len(sizes) * len(photos))
    return files


def _spread(items: Sequence[_Item], wanted: int) -> list[_Item]:
    count = min(wanted, len(items))
    return [items[index * len(items) // count] for index in range(count)]


def _opened(file: Path | io.BytesIO, name: str) -> Image.Image:
    try:
        with Image.open(file) as image:
            return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BenchError(f"{name} does not decode: {error}; take it out of the folder") from error

"""The photos that benchmarks send: different augmented views from a dataset, at a size of one's choice."""

import io
from collections.abc import Callable
from typing import Final

from PIL import Image

from assay.bench.photos import ENCODINGS, at_size, encoded, noise
from assay.errors import DatasetError
from assay.packs.dataset import Dataset

Begin = Callable[[str], Callable[[int, int], None]]
"""Begins a step of a benchmark by its name; returns what is called with done and total."""

_SEED: Final = 1
"""Of the noise that stands in for the detail an enlarged photo lacks."""


def uploads(dataset: Dataset, count: int, megapixels: float | None = None) -> list[bytes]:
    """So many different images of a dataset, spread over it, as they are or as JPEGs of so many megapixels.

    ``builtin:photos`` holds 600: random parts of four photos, mirrored and encoded anew, 0.2 to 1.1 megapixels. Raises
    ``DatasetError`` when it holds fewer.
    """
    there = dataset.manifest.images
    if len(there) < count:
        raise DatasetError(
            f"{dataset.manifest.name} holds {len(there)} images; {count} different ones were asked for: ask for fewer"
        )
    images = [image.data for image in dataset.read([there[number * len(there) // count] for number in range(count)])]
    return images if megapixels is None else [resized(image, megapixels) for image in images]


def resized(image: bytes, megapixels: float) -> bytes:
    """An image as a baseline JPEG of so many megapixels, with a sensor's noise."""
    with Image.open(io.BytesIO(image)) as opened:
        photo = opened.convert("RGB")
    baseline, _progressive = ENCODINGS["jpeg"]
    return encoded(at_size(photo, megapixels, noise(_SEED)), baseline)

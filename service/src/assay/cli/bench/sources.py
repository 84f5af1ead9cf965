"""Where a bench gets datasets from."""

from assay.building import photos
from assay.cli.progress import Begin
from assay.packs.builtin import PHOTOS
from assay.packs.dataset import MAX_DATASET_BYTES, Dataset, read_dataset
from assay.packs.fetch import fetch
from assay.settings import load_settings


def dataset(uri: str | None, begin: Begin) -> Dataset:
    """Read a dataset, by default ``builtin:photos``; a built-in one that did not ship is built into the cache."""
    uri, cache = uri or PHOTOS, load_settings().cache_dir
    found = photos.find(uri, cache, begin)
    return read_dataset(found or fetch(uri, None, cache_dir=cache, max_bytes=MAX_DATASET_BYTES))

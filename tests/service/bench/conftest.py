"""A pack that takes no time and photos of its own, for benches whose figures nobody looks at."""

import pytest

from assay.packs.dataset import read_dataset
from support.small_packs import colour_dataset, colour_pack


@pytest.fixture(scope="session")
def colours(tmp_path_factory):
    """Folder with ``pack.tar`` and ``photos.tar``: colours, and 40 plain squares."""
    folder = tmp_path_factory.mktemp("colours")
    colour_pack(folder / "pack.tar")
    colour_dataset(folder / "photos.tar")
    return folder


@pytest.fixture(scope="session")
def squares(colours):
    return [image.data for image in read_dataset(colours / "photos.tar")][:8]

"""What every test may ask for."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """A folder with labelled photos and a model that are not part of the project; mark such tests `shared_data`."""
    folder = Path(os.environ.get("SHARED_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / "photos" / "labels.csv").exists():
        pytest.skip(f"there are no labelled photos in {folder}: set SHARED_DATA")
    return folder

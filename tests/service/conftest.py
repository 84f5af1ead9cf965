"""What the service's tests share: a folder with the base pack, and servers that run it."""

import pytest

from assay.building import photos
from assay.building.ladder import spread
from assay.building.models import build
from assay.building.quantize import Quantiser
from assay.building.recipes import CALIBRATION_IMAGES, RECIPES
from assay.measurement.compare import decoded
from assay.packs.archive import Pack, read_pack
from assay.packs.dataset import read_dataset
from support.server import running

BASE = "efficientnet-lite0-fp32"


@pytest.fixture(scope="session")
def builtin_dir(tmp_path_factory):
    """A folder of built-ins with the base pack in it, made from the published weights."""
    folder = tmp_path_factory.mktemp("builtin")
    build("efficientnet-lite0", folder / f"{BASE}.tar")
    return folder


@pytest.fixture(scope="session")
def base_pack(builtin_dir) -> Pack:
    return read_pack(builtin_dir / f"{BASE}.tar")


@pytest.fixture(scope="session")
def photo_sets(builtin_dir):
    """The folder of built-ins again, with the photos to judge and to calibrate on in it (a dozen seconds)."""
    for name in photos.SETS:
        photos.build(name, builtin_dir / f"{name}.tar")
    return builtin_dir


@pytest.fixture(scope="session")
def quantised(base_pack, photo_sets):
    """The base model quantised by both integer recipes, calibrated as ``assay model quantize`` does by default."""
    calibration = read_dataset(photo_sets / "photos-calibration.tar")
    images = list(decoded(calibration.read(spread(calibration.manifest.images, CALIBRATION_IMAGES)), base_pack))
    quantiser = Quantiser(base_pack.model, images)
    return {name: quantiser.quantise(RECIPES[name]) for name in ("static", "static-reduce-range")}


@pytest.fixture(scope="session")
def server(builtin_dir):
    """A server for everybody: no test may overload it or end it."""
    with running(builtin_dir, cpu_limit_millicores=2000, variant="shared") as started:
        yield started.wait_ready()
        assert started.other_lines == []  # nothing but JSON was logged
        assert [event for event in started.events if event["level"] == "error"] == []

"""The built-in photos: small, varied, repeatable, and the two sets share nothing."""

import io

import pytest
from PIL import Image

from assay.building import photos
from assay.building.distributions import distribution_file
from assay.errors import BuildError
from assay.packs.dataset import read_dataset
from assay.vision.header import read_header


@pytest.fixture(scope="module")
def built(photo_sets):
    return read_dataset(photo_sets / "photos.tar")


def test_the_judging_set_has_150_views_of_each_of_4_photos(built):
    groups = [entry.group for entry in built.manifest.images]
    assert {groups.count(group) for group in groups} == {150}
    assert built.groups == 4
    for credit in ("Stefan van der Walt", "Rachel Michetti", "SpaceX", "CC BY 2.0"):
        assert credit in built.manifest.description


def test_views_are_jpegs_of_a_fifth_to_one_megapixel_some_progressive(built):
    headers = [read_header(image.data) for image in built]
    sizes = [header.width * header.height / 1e6 for header in headers]
    assert 0.19 < min(sizes) < 0.25
    assert 1.0 < max(sizes) < 1.11
    assert 60 < sum(header.progressive for header in headers) < 180
    assert built.path.stat().st_size < 60e6  # it ships in the image


def test_all_views_differ(built):
    assert len({image.data for image in built}) == 600


def test_a_view_is_repeatable_and_depends_on_its_own_seed_only():
    import random

    photo = photos.JUDGING[0]
    path = distribution_file(photo.distribution, f"{photo.folder}/{photo.file}", photo.sha256)
    with Image.open(path) as opened:
        source = opened.convert("RGB")
    first, again, other = (photos.view(source, random.Random(seed)) for seed in ("a", "a", "b"))
    assert first == again != other
    with Image.open(io.BytesIO(first)) as view:
        assert view.mode == "RGB"


def test_no_photo_both_calibrates_and_judges_and_a_stereo_pair_is_one_group():
    judging, calibrating = ({photo.group for photo in photos.SETS[name].sources} for name in photos.SETS)
    assert judging.isdisjoint(calibrating)
    assert len(calibrating) == 3
    assert len(photos.CALIBRATION) == 4


@pytest.fixture
def few(monkeypatch):
    """The calibration set with two views of each photo."""
    monkeypatch.setitem(photos.SETS, "photos-calibration", photos.PhotoSet(photos.CALIBRATION, 2))


@pytest.mark.usefixtures("few")
def test_a_set_is_repeatable_and_tells_its_progress(tmp_path):
    seen = []
    first = photos.build("photos-calibration", tmp_path / "a.tar", lambda *done: seen.append(done))
    assert photos.build("photos-calibration", tmp_path / "b.tar") == first
    assert seen == [(n, 8) for n in range(1, 9)]


def test_an_unknown_set_is_told(tmp_path):
    with pytest.raises(BuildError, match="known: photos"):
        photos.build("holidays", tmp_path / "x.tar")


@pytest.mark.usefixtures("few")
def test_a_built_in_that_did_not_ship_is_built_once(tmp_path, monkeypatch, built):
    monkeypatch.setenv("ASSAY_BUILTIN_DIR", str(tmp_path / "none"))
    begun = []

    def begin(step):
        begun.append(step)

    first = photos.find("builtin:photos-calibration", tmp_path, begin)
    assert len(read_dataset(first).manifest.images) == 8
    assert photos.find("builtin:photos-calibration", tmp_path, begin) == first
    assert begun == ["building photos-calibration"]
    assert photos.find("my-photos.tar", tmp_path, begin) is None
    monkeypatch.setenv("ASSAY_BUILTIN_DIR", str(built.path.parent))
    assert photos.find("builtin:photos", tmp_path, begin) == built.path

"""The images of a load test, and what is expected of each."""

import hashlib
import io
import json
import subprocess

import pytest
from PIL import Image


@pytest.fixture(scope="module")
def described(real_set):
    return json.loads(real_set.read_text())


def of_kind(described, kind):
    return [image for image in described["images"] if image["kind"] == kind]


def megapixels(folder, image):
    with Image.open(io.BytesIO((folder / image["file"]).read_bytes())) as picture:
        return picture.width * picture.height / 1e6


def test_ordinary_photos_are_of_the_sizes_that_are_uploaded(described, real_set):
    sizes = [megapixels(real_set.parent, image) for image in of_kind(described, "ordinary")]
    assert len(sizes) >= 18  # of 20; an undecided one may be left out
    assert min(sizes) >= 0.19
    assert max(sizes) <= 1.11


def test_phone_photos_have_12_megapixels_and_weigh_as_much_as_a_phones(described, real_set):
    images = of_kind(described, "large")
    assert [megapixels(real_set.parent, image) for image in images] == [12.0] * 4
    sizes = [(real_set.parent / image["file"]).stat().st_size / 1e6 for image in images]
    assert all(2 < size < 7 for size in sizes), sizes  # what is sent to a service that takes 8 MiB
    progressive = [b"\xff\xc2" in (real_set.parent / image["file"]).read_bytes()[:1000] for image in images]
    assert progressive == [False, False, False, True]


def test_harmful_files_are_expected_to_be_refused_each_for_its_reason(described):
    assert {image["file"]: image["status"] for image in of_kind(described, "hostile")} == {
        "bomb.png": 413,
        "vast.jpg": 413,
        "headless.jpg": 422,
        "cut.jpg": 422,
        "text.jpg": 415,
        "script.svg": 415,
        "archive.zip": 415,
        "noise.bin": 415,
        "empty-picture.gif": 422,
    }


def test_labels_are_those_of_the_pack_by_its_digest(described, built):
    digest = "sha256:" + hashlib.sha256((built / "efficientnet-lite0-fp32.tar").read_bytes()).hexdigest()
    assert [pack["digest"] for pack in described["packs"]] == [digest]
    labels = {image["file"].partition("-")[0]: image["labels"][digest] for image in of_kind(described, "ordinary")}
    assert labels["coffee"] in ("espresso", "cup")
    assert labels["flower"] == "daisy"


def test_same_versions_make_the_same_bytes(generate, real_set, tmp_path):
    generate(tmp_path, "--count", "20")
    names = sorted(path.name for path in real_set.parent.iterdir())
    assert names == sorted(path.name for path in tmp_path.iterdir())
    for name in names:
        assert (tmp_path / name).read_bytes() == (real_set.parent / name).read_bytes(), name


def test_pack_that_cannot_be_read_is_told(generate, tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        generate(tmp_path, "--model", "file:///nowhere.tar")
    assert not (tmp_path / "set.json").exists()

"""What ships in the image is judged while it is built, and what is not right does not ship."""

import pytest

from assay.building.builtins import INT8, BuiltIn, _quantised
from assay.building.quantize import RECIPES
from assay.errors import BuildError
from assay.packs.archive import read_pack
from assay.packs.dataset import ImageEntry, write_dataset
from support.small_packs import COLOURS, colour_dataset, colour_jpeg, colour_pack

NAME = "colours-int8"


@pytest.fixture
def made(tmp_path):
    """A base pack, photos to judge on and photos to calibrate on."""
    base = BuiltIn("colours-fp32", tmp_path / "base.tar", colour_pack(tmp_path / "base.tar").digest)
    calibrating = BuiltIn("calibrating", tmp_path / "c.tar", colour_dataset(tmp_path / "c.tar", 8, groups=8))

    def judging(images):
        colours = list(COLOURS.values())
        entries = [
            ImageEntry(file=f"i/{n:03d}.jpg", group=f"j-{n}", label=None, class_index=None) for n in range(images)
        ]
        bodies = [colour_jpeg(colours[n % 4]) for n in range(images)]
        return BuiltIn("judging", tmp_path / "j.tar", write_dataset(tmp_path / "j.tar", "j", "", entries, bodies))

    return base, judging, calibrating


def quantise(tmp_path, made, images=160, recipe="static-reduce-range"):
    base, judging, calibrating = made
    return _quantised(NAME, recipe, tmp_path / "out", base, judging(images), calibrating, lambda _step: None)


def test_a_right_pack_is_kept_with_its_check(tmp_path, made):
    built = quantise(tmp_path, made)
    assert built.check.verdict == "Pass"
    assert built.check.top3_contained == 160
    pack = read_pack(built.path, built.digest)
    assert (pack.manifest.name, pack.manifest.precision) == (NAME, "INT8")


def test_a_pack_that_is_not_proven_right_is_not_kept(tmp_path, made):
    with pytest.raises(BuildError, match="is not right and is not kept: Fail, AccuracyNotProven"):
        quantise(tmp_path, made, images=20)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_pack_for_other_cpus_is_kept_unjudged(tmp_path, made, monkeypatch):
    monkeypatch.setattr("assay.building.ladder._requires", lambda _recipe: ("quantum-dots",))
    built = quantise(tmp_path, made, recipe="static")
    assert built.check is None
    assert read_pack(built.path).manifest.requires_cpu == ("quantum-dots",)
    assert read_pack(built.path).manifest.quantization.agreement is None


def test_one_of_the_int8_packs_runs_on_every_cpu():
    assert {name for name, recipe in INT8.items() if not RECIPES[recipe].full_range} == {"efficientnet-lite0-int8"}
    assert {name for name, recipe in INT8.items() if RECIPES[recipe].full_range} == {"efficientnet-lite0-int8-vnni"}

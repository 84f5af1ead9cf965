"""What ships in the image is judged while it is built, and what is not right does not ship."""

import pytest

from assay.building import builtins
from assay.building.builtins import MODEL, BuiltIn, _NotGoodError, _quantised, int8_packs
from assay.building.recipes import RECIPES
from assay.building.weights_file import WeightsFile
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
    with pytest.raises(_NotGoodError, match="Fail, AccuracyNotProven"):
        quantise(tmp_path, made, images=20)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_pack_for_other_cpus_is_kept_unjudged(tmp_path, made, monkeypatch):
    monkeypatch.setattr("assay.building.ladder._requires", lambda _recipe: ("quantum-dots",))
    built = quantise(tmp_path, made, recipe="static")
    assert built.check is None
    assert read_pack(built.path).manifest.requires_cpu == ("quantum-dots",)
    assert read_pack(built.path).manifest.quantization.agreement is None


def test_a_recipe_that_fails_on_a_model_leaves_its_pack_out(tmp_path, made):
    _, *others = made
    unreadable = colour_pack(tmp_path / "bad.tar", model=b"no model")
    with pytest.raises(_NotGoodError, match="cannot be read"):
        quantise(tmp_path, (BuiltIn("bad-fp32", tmp_path / "bad.tar", unreadable.digest), *others))


@pytest.fixture
def building(monkeypatch, made):
    """Build everything from the colour pack and its photos, twenty to judge on: too few for any proof."""
    base, judging, calibrating = made
    few = {"photos": judging(20), "photos-calibration": calibrating}

    def copy(source):
        def build(*arguments):
            out = arguments[1]
            out.parent.mkdir(exist_ok=True)
            out.write_bytes(source(arguments[0]).path.read_bytes())
            return source(arguments[0]).digest

        return build

    monkeypatch.setattr(builtins.models, "build", copy(lambda _name: base))
    monkeypatch.setattr(builtins.photos, "build", copy(lambda name: few[name]))
    return builtins.build_all


def test_what_is_not_right_of_the_default_base_fails_the_build(tmp_path, building):
    with pytest.raises(BuildError, match=f"{MODEL}-int8 is not right and is not kept: Fail, AccuracyNotProven"):
        building(tmp_path / "out")


def test_what_is_not_right_of_another_base_is_left_out_and_told(tmp_path, building):
    made = building(tmp_path / "out", base="mobilenet-v2")
    assert [item.name for item in made] == ["mobilenet-v2-fp32", "photos", *int8_packs("mobilenet-v2")]
    assert made[2].left_out.startswith("Fail, AccuracyNotProven: ")
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if "int8" not in path.name) == [
        "mobilenet-v2-fp32.tar",
        "photos.tar",
    ]
    assert not made[2].path.exists()


def test_other_weights_of_the_default_base_count_as_another_base(tmp_path, building):
    weights = WeightsFile(tmp_path / "w.pth", "w.pth", "0" * 64)
    assert building(tmp_path / "out", weights=weights)[2].left_out


def test_one_of_the_int8_packs_runs_on_every_cpu():
    full = {name: RECIPES[recipe].full_range for name, recipe in int8_packs("base").items()}
    assert full == {"base-int8": False, "base-int8-vnni": True}

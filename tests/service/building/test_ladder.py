"""The ladder: every recipe is tried and measured, the fastest right one is kept, and the pack says how it was made."""

import numpy as np
import pytest

from assay.building.choice import Goal
from assay.building.ladder import RUNGS, quantise
from assay.building.recipes import CALIBRATION_IMAGES, RECIPES
from assay.errors import BuildError, DatasetError
from assay.packs.archive import read_pack, write_pack
from assay.packs.dataset import ImageEntry, read_dataset, write_dataset
from assay.platform.cpu import cpu_features
from support import own_models
from support.networks import excited
from support.small_packs import COLOURS, colour_dataset, colour_jpeg, colour_model, colour_pack

needs_vnni = pytest.mark.skipif("vnni" not in cpu_features(), reason="this CPU has no VNNI: 8-bit weights saturate")


@pytest.fixture(scope="module")
def calibration(photo_sets):
    return read_dataset(photo_sets / "photos-calibration.tar")


@pytest.fixture(scope="module")
def judging(photo_sets):
    return read_dataset(photo_sets / "photos.tar")


@pytest.fixture
def small(tmp_path):
    """A dataset to calibrate on and one to judge on, of eight squares each."""
    colour_dataset(tmp_path / "a.tar", 8, groups=8)
    colours = list(COLOURS.values())
    entries = [
        ImageEntry(file=f"images/{i:02d}.jpg", group=f"other-{i}", label=None, class_index=None) for i in range(8)
    ]
    write_dataset(tmp_path / "b.tar", "judging", "", entries, [colour_jpeg(colours[i % 4]) for i in range(8)])
    return read_dataset(tmp_path / "a.tar"), read_dataset(tmp_path / "b.tar")


def test_int8_costs_less_than_fp32_and_agrees_on_the_built_in_photos(base_pack, calibration, judging, tmp_path):
    found = quantise(base_pack, calibration, judging, quick=True)
    kept = found.chosen
    assert found.wins
    assert found.notes == ()
    assert {trial.recipe.name for trial in found.trials} <= {"static", "static-reduce-range"}
    if "vnni" in cpu_features():
        assert kept.cost.ratio <= 0.65  # measured: 0.47 to 0.50
    made = kept.pack.manifest.quantization
    assert kept.pack.manifest.precision == "INT8"
    assert made.source_digest == base_pack.digest
    assert made.calibration_digest == calibration.digest
    assert made.calibration_images == CALIBRATION_IMAGES
    assert made.calibration_method == "MinMax"
    assert made.float_layers == ()
    assert made.cpu_features
    assert set(made.calibration_groups) == {entry.group for entry in calibration.manifest.images}
    assert made.agreement.dataset_digest == judging.digest
    assert made.agreement.top1_agreed == kept.accuracy.agreed.count
    digest = write_pack(tmp_path / "int8.tar", kept.pack.manifest, kept.pack.model, kept.pack.labels)
    assert read_pack(tmp_path / "int8.tar", digest).manifest == kept.pack.manifest
    assert (tmp_path / "int8.tar").stat().st_size < 6_000_000  # FP32: 18.6 MB


def test_the_whole_ladder_is_tried_on_a_network_with_gates(tmp_path, small):
    source = colour_pack(tmp_path / "s.tar", model=excited())
    told = []
    found = quantise(source, *small, progress=lambda step: told.append(step))
    sound = [name for rung in RUNGS for name in rung if "vnni" in cpu_features() or "reduce-range" in name]
    # Of its five layers three cannot be left out with what reads them.
    expected = [name for name in sound if not name.endswith(("-3-float", "-8-float"))]
    assert [trial.recipe.name for trial in found.trials] == expected
    assert [step.split(":")[0] for step in told if step.endswith("judging")] == expected
    made = {trial.recipe.name: trial.pack.manifest.quantization for trial in found.trials}
    assert made["static-reduce-range-gates-float"].float_layers == ("conv-6", "conv-8")
    assert made["static-reduce-range-percentile"].calibration_method == "Percentile 99.99"
    assert found.notes == (f"calibrated on 8 images: colours has no more, and {CALIBRATION_IMAGES} were asked for",)


def test_a_full_range_pack_asks_for_the_cpu_it_is_right_on(tmp_path, small):
    source = colour_pack(tmp_path / "s.tar")
    names = ("static", "static-reduce-range", "dynamic")
    tried = {name: quantise(source, *small, recipe=name).trials[0] for name in names}
    wanted = ("asimd",) if "asimd" in cpu_features() else ("vnni",)
    assert tried["static"].pack.manifest.requires_cpu == wanted
    assert tried["static-reduce-range"].pack.manifest.requires_cpu == ()
    assert tried["dynamic"].pack.manifest.requires_cpu == ()
    assert tried["dynamic"].pack.manifest.quantization.calibration_groups == ()
    assert tried["dynamic"].pack.manifest.quantization.calibration_method is None


def test_without_vnni_only_reduced_ranges_are_tried(tmp_path, small, monkeypatch):
    had = cpu_features()
    monkeypatch.setattr("assay.building.ladder.cpu_features", lambda: had - {"vnni", "asimd"})
    found = quantise(colour_pack(tmp_path / "s.tar"), *small)
    assert found.trials
    assert not any(trial.recipe.full_range for trial in found.trials)


def test_a_goal_nobody_reaches_keeps_the_nearest_and_says_so(tmp_path, small):
    # A model that saturates at once: all its classes look alike in 8 bits.
    weight = np.array([[1, 0, 0], [1 + 1e-6, 0, 0], [0, 1e-6, 0], [0, 0, 1e-6]], np.float32)
    source = colour_pack(tmp_path / "s.tar", model=colour_model(weight))
    found = quantise(source, *small, goal=Goal(1.01, 1.01))
    assert not found.reached
    assert not found.wins
    assert "no recipe reaches the goal" in found.reason
    assert len(found.trials) >= 2
    assert found.chosen in found.trials


def test_what_cannot_be_quantised_is_told_before_the_long_work(tmp_path, small, monkeypatch):
    monkeypatch.setattr("assay.building.ladder._decoded", lambda *_: pytest.fail("the long work has begun"))
    source = colour_pack(tmp_path / "s.tar")
    calibration, _ = small
    with pytest.raises(BuildError, match="known: auto, static"):
        quantise(source, *small, recipe="magic")
    with pytest.raises(DatasetError, match="calibrated a pack"):
        quantise(source, calibration, calibration, recipe="static-reduce-range")
    int8 = colour_pack(tmp_path / "i.tar", precision="INT8")
    with pytest.raises(BuildError, match="is INT8 already"):
        quantise(int8, *small)
    with pytest.raises(BuildError, match="leaves nothing out"):
        quantise(source, *small, recipe="static-gates-float")
    broken = colour_pack(tmp_path / "b.tar", model=b"no model")
    with pytest.raises(BuildError, match="cannot be read"):
        quantise(broken, *small)


def test_images_whose_photos_calibrate_are_left_out_of_judging_and_counted(tmp_path):
    colour_dataset(tmp_path / "a.tar", 16, groups=16)
    dataset = read_dataset(tmp_path / "a.tar")
    found = quantise(colour_pack(tmp_path / "s.tar"), dataset, dataset, "static-reduce-range", calibration_images=4)
    assert found.chosen.pack.manifest.quantization.agreement.images == 12
    assert found.notes == (
        "the same dataset calibrates and judges: 4 images whose photos calibrate were left out of judging",
    )


@pytest.fixture(scope="module")
def shared_photos(shared_data, tmp_path_factory):
    from assay.building.folder import pack_folder

    path = tmp_path_factory.mktemp("shared") / "photos.tar"
    pack_folder(shared_data / "photos", shared_data / "photos" / "labels.csv", "shared", path)
    return read_dataset(path)


@pytest.mark.shared_data
@needs_vnni
def test_with_vnni_the_ladder_reaches_95_percent_on_real_photos_at_less_than_two_thirds(
    base_pack, calibration, shared_photos
):
    found = quantise(base_pack, calibration, shared_photos, goal=Goal(0.95, 0.99), quick=True)
    assert found.wins
    assert found.chosen.accuracy.images == 200
    assert found.chosen.accuracy.agreed.count >= 190
    assert found.chosen.accuracy.contained.count >= 198
    assert found.chosen.cost.ratio <= 0.65


@pytest.mark.shared_data
def test_at_reduced_range_93_percent_agree_on_real_photos_at_less_than_four_fifths(
    base_pack, calibration, shared_photos
):
    found = quantise(base_pack, calibration, shared_photos, "static-reduce-range", Goal(0.93, 0.985))
    assert found.wins
    assert found.chosen.recipe is RECIPES["static-reduce-range"]
    assert found.chosen.accuracy.agreed.count >= 186
    assert found.chosen.accuracy.contained.count >= 197
    assert found.chosen.cost.ratio <= 0.8


@pytest.mark.parametrize("opset", [11, 13, 17, 21])
def test_anyones_model_is_quantised_once_it_is_a_pack(tmp_path, small, opset):
    pack, _ = own_models.packed(tmp_path, own_models.plain(opset=opset))
    found = quantise(pack, *small, "static-reduce-range", Goal(0.9, 0.9))
    assert found.chosen.accuracy.agreed.count == found.chosen.accuracy.images == 8
    assert found.chosen.pack.manifest.precision == "INT8"

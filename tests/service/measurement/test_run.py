"""Whole checks over small packs and photos whose answers are known."""

import numpy as np
import pytest

from assay.check.verdict import Criteria
from assay.measurement.compare import MIN_BLOCKS, measure, select
from assay.measurement.run import CheckRequest, Reference, run_check
from assay.packs.dataset import ImageEntry, read_dataset, write_dataset
from support.small_packs import LABELS, SOME_DIGEST, colour_dataset, colour_model, colour_pack, quantization

NOISY = 10_000
"""Most noise a check may allow: tests run on busy machines, and accuracy is what most of them are about."""

ANY_COST = 100_000


@pytest.fixture
def yardstick(tmp_path):
    return colour_pack(tmp_path / "yardstick.tar", name="yardstick")


@pytest.fixture
def photos(tmp_path):
    colour_dataset(tmp_path / "photos.tar", 200, groups=200)
    return tmp_path / "photos.tar"


def check(tmp_path, photos, *, criteria=None, cost=ANY_COST, **changed):
    request = {
        "candidate": Reference(str(tmp_path / "candidate.tar"), changed.pop("digest", None), changed.pop("want", None)),
        "yardstick": Reference(str(tmp_path / "yardstick.tar")),
        "dataset": Reference(str(photos)),
        "cache_dir": tmp_path / "cache",
        "criteria": criteria or Criteria(max_noise=NOISY),
        "max_cost_ratio": cost,
        "cost_blocks": 30,
    }
    return run_check(CheckRequest(**(request | changed)))


def told(result):
    return result.verdict, result.reason


def test_a_copy_of_the_yardstick_passes_with_full_marks(tmp_path, yardstick, photos):
    pack = colour_pack(tmp_path / "candidate.tar")
    result = check(tmp_path, photos, job_uid="uid", inputs_hash="hash")
    assert told(result) == ("Pass", "CheckPassed"), result.message
    assert (result.top3_contained, result.top1_agreed) == (200, 200)
    assert result.containment_lower_permille == 985  # 0.05 ** (1 / 200)
    assert (result.candidate.digest, result.yardstick.digest) == (pack.digest, yardstick.digest)
    assert (result.job_uid, result.inputs_hash) == ("uid", "hash")
    assert (result.dataset.images, result.dataset.groups, result.dataset.left_out) == (200, 200, 0)
    assert result.dataset.labelled
    assert result.candidate.cost_micros > 0
    assert result.started_at <= result.completed_at


def test_labels_in_another_order_are_compared_by_text(tmp_path, yardstick, photos):
    weight = np.array([[0, 0, 0], [-1, -1, 2], [-1, 2, -1], [2, -1, -1]], np.float32) / 64
    model = colour_model(weight)
    # Grey is the first class here, so its bias moves with it.
    from onnx import load_from_string, numpy_helper

    loaded = load_from_string(model)
    for tensor in loaded.graph.initializer:
        if tensor.name == "bias":
            tensor.CopyFrom(numpy_helper.from_array(np.array([0.5, 0, 0, 0], np.float32), "bias"))
    colour_pack(tmp_path / "candidate.tar", labels=tuple(reversed(LABELS)), model=loaded.SerializeToString())
    assert told(check(tmp_path, photos)) == ("Pass", "CheckPassed")


def test_permuted_labels_fail_on_accuracy(tmp_path, yardstick, photos):
    colour_pack(tmp_path / "candidate.tar", labels=(*LABELS[1:], LABELS[0]))
    asked = Criteria(min_top3_containment=0, min_top1_agreement=900, max_noise=NOISY)
    result = check(tmp_path, photos, criteria=asked)
    assert told(result) == ("Fail", "AccuracyBelowThreshold")
    assert result.top1_agreed == 0


def test_other_labels_differ_and_nothing_is_measured(tmp_path, yardstick, photos):
    colour_pack(tmp_path / "candidate.tar", labels=("red", "green", "blue", "gray"))
    result = check(tmp_path, photos)
    assert told(result) == ("Fail", "LabelsDiffer")
    assert "'gray'" in result.message
    assert result.cost_ratio_permille is None


def test_weights_that_say_something_else_fail(tmp_path, yardstick, photos):
    scrambled = np.array([[-2, 1, 1], [1, -2, 1], [1, 1, -2], [0, 0, 0]], np.float32)
    colour_pack(tmp_path / "candidate.tar", model=colour_model(scrambled))
    result = check(tmp_path, photos)
    assert told(result) == ("Fail", "AccuracyBelowThreshold")
    assert result.top1_agreed < 100


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_candidate_that_gives_nan_fails_and_a_yardstick_that_does_is_an_error(tmp_path, yardstick, photos, bad):
    weight = np.full((4, 3), bad, np.float32)
    colour_pack(tmp_path / "candidate.tar", model=colour_model(weight))
    result = check(tmp_path, photos)
    assert told(result) == ("Fail", "AccuracyBelowThreshold")
    assert "NaN or infinity for 200 of 200" in result.message
    swapped = check(
        tmp_path, photos, candidate=Reference(str(tmp_path / "yardstick.tar")),
        yardstick=Reference(str(tmp_path / "candidate.tar")),
    )  # fmt: skip
    assert told(swapped) == ("Error", "PackInvalid")


def test_a_candidate_that_works_much_harder_fails_on_cost(tmp_path, yardstick, photos):
    colour_pack(tmp_path / "candidate.tar", model=colour_model(work=60))
    result = check(tmp_path, photos, cost=None)
    assert told(result) == ("Fail", "CostAboveThreshold")
    assert result.cost_ratio_permille > 2000
    assert result.top3_contained == 200


def test_images_that_calibrated_a_pack_are_left_out_and_counted(tmp_path, yardstick):
    colour_dataset(tmp_path / "photos.tar", 240, groups=12)
    made = quantization(("group-0", "group-1", "elsewhere"))
    colour_pack(tmp_path / "candidate.tar", precision="INT8", quantization=made)
    result = check(tmp_path, tmp_path / "photos.tar")
    assert (result.dataset.images, result.dataset.groups, result.dataset.left_out) == (200, 10, 40)
    assert "smoke set, 10 groups: not proof" in result.message


def test_a_pack_is_not_judged_by_what_it_was_made_from(tmp_path, yardstick):
    colour_dataset(tmp_path / "photos.tar", 8, groups=2)
    made = quantization(("group-0", "group-1"))
    colour_pack(tmp_path / "candidate.tar", precision="INT8", quantization=made)
    result = check(tmp_path, tmp_path / "photos.tar")
    assert told(result) == ("Error", "DatasetInvalid")
    assert "all 8 images" in result.message


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"digest": SOME_DIGEST}, "DigestMismatch"),
        ({"candidate": Reference("none.tar")}, "PackUnavailable"),
        ({"candidate": Reference("builtin:none")}, "PackUnavailable"),
        ({"candidate": Reference("http://127.0.0.1:9/p.tar")}, "PackInvalid"),
        ({"want": "INT8"}, "PrecisionMismatch"),
        ({"dataset": Reference("none.tar")}, "PackUnavailable"),
    ],
)
def test_what_cannot_be_measured_is_an_error_with_its_reason(tmp_path, yardstick, photos, changed, reason):
    colour_pack(tmp_path / "candidate.tar")
    result = check(tmp_path, photos, **changed)
    assert told(result) == ("Error", reason)
    assert result.top3_contained is None
    assert result.message


def test_a_broken_pack_or_dataset_is_an_error(tmp_path, yardstick, photos):
    (tmp_path / "candidate.tar").write_bytes(b"hello")
    assert told(check(tmp_path, photos)) == ("Error", "PackInvalid")
    colour_pack(tmp_path / "candidate.tar")
    assert told(check(tmp_path, tmp_path / "yardstick.tar")) == ("Error", "DatasetInvalid")


def test_a_cpu_without_the_feature_is_an_error_not_a_failure(tmp_path, yardstick, photos):
    colour_pack(tmp_path / "candidate.tar", requires_cpu=("quantum-dots",))
    assert told(check(tmp_path, photos)) == ("Error", "CpuFeatureMissing")


def dataset_of(path, bodies, **more):
    entries = [ImageEntry(file=f"images/{i:03d}.jpg", group=str(i), label=None, **more) for i in range(len(bodies))]
    write_dataset(path, "some", "", entries, bodies)
    return path


def test_an_image_that_does_not_decode_is_an_error(tmp_path, yardstick):
    colour_pack(tmp_path / "candidate.tar")
    result = check(tmp_path, dataset_of(tmp_path / "d.tar", [b"no image"], class_index=None))
    assert told(result) == ("Error", "DatasetInvalid")
    assert "images/000.jpg" in result.message


def test_labels_by_index_are_the_yardsticks_and_out_of_range_is_an_error(tmp_path, yardstick):
    from support.small_packs import COLOURS, colour_jpeg

    colour_pack(tmp_path / "candidate.tar")
    bodies = [colour_jpeg(COLOURS["blue"])] * 100
    asked = Criteria(min_top3_containment=0, max_top1_drop=100, max_noise=NOISY)
    result = check(tmp_path, dataset_of(tmp_path / "d.tar", bodies, class_index=2), criteria=asked)
    assert told(result) == ("Pass", "CheckPassed")
    assert result.top1_drop_upper_permille == 37  # 1 - 0.025 ** (1 / 100), rounded up
    wrong = check(tmp_path, dataset_of(tmp_path / "e.tar", bodies, class_index=4), criteria=asked)
    assert told(wrong) == ("Error", "DatasetInvalid")


def test_a_limit_on_the_drop_needs_labels(tmp_path, yardstick):
    colour_pack(tmp_path / "candidate.tar")
    colour_dataset(tmp_path / "photos.tar", 8, labelled=False)
    result = check(tmp_path, tmp_path / "photos.tar", criteria=Criteria(max_top1_drop=10))
    assert told(result) == ("Error", "DatasetInvalid")


def test_a_label_that_no_pack_knows_is_an_error(tmp_path, yardstick):
    # Neither pack would ever be right, so nothing could ever be lost.
    from support.small_packs import COLOURS, colour_jpeg

    colour_pack(tmp_path / "candidate.tar")
    entry = ImageEntry(file="images/0.jpg", group="0", label="Red")
    write_dataset(tmp_path / "d.tar", "some", "", [entry], [colour_jpeg(COLOURS["red"])])
    result = check(tmp_path, tmp_path / "d.tar", criteria=Criteria(max_top1_drop=100, max_noise=NOISY))
    assert told(result) == ("Error", "DatasetInvalid")
    assert "'Red'" in result.message


def test_photos_of_three_classes_do_not_prove_containment(tmp_path, yardstick):
    from support.small_packs import COLOURS, colour_jpeg

    colour_pack(tmp_path / "candidate.tar")
    bodies = [colour_jpeg(COLOURS[name]) for name in ("red", "green", "blue") * 70]
    dataset_of(tmp_path / "d.tar", bodies)
    result = check(tmp_path, tmp_path / "d.tar")
    assert told(result) == ("Fail", "AccuracyNotProven")
    assert result.top3_contained == 210
    asked = Criteria(min_top1_agreement=900, max_noise=NOISY)
    assert told(check(tmp_path, tmp_path / "d.tar", criteria=asked)) == ("Pass", "CheckPassed")


def test_a_large_dataset_is_thinned_evenly_over_its_groups(tmp_path, yardstick):
    colour_dataset(tmp_path / "photos.tar", 100, groups=10)
    entries = read_dataset(tmp_path / "photos.tar").manifest.images
    chosen = select(read_dataset(tmp_path / "photos.tar"), (yardstick,), 33).entries
    assert len(chosen) == 33
    assert list(chosen) == sorted(chosen, key=lambda entry: entry.file)
    assert {entry.group for entry in chosen} == {entry.group for entry in entries}


def test_a_large_dataset_whose_groups_take_turns_keeps_them_all(tmp_path, yardstick):
    # Every tenth image of the manifest is of one and the same group.
    colour_dataset(tmp_path / "photos.tar", 100, groups=10)
    dataset = read_dataset(tmp_path / "photos.tar")
    chosen = select(dataset, (yardstick,), 10).entries
    assert len({entry.group for entry in chosen}) == 10
    assert [entry.file for entry in chosen] == sorted(entry.file for entry in chosen)


def test_a_small_dataset_is_timed_until_there_are_blocks_enough(tmp_path, yardstick):
    colour_dataset(tmp_path / "photos.tar", 3)
    dataset, seen = read_dataset(tmp_path / "photos.tar"), []
    chosen = select(dataset, (yardstick,), 10)
    measured = measure(yardstick, yardstick, dataset, chosen, lambda *done: seen.append(done))
    assert len(measured.outcomes) == 3
    assert len(measured.blocks) == MIN_BLOCKS
    assert seen == [(1, 3), (2, 3), (3, 3)]

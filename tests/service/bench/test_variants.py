"""``assay bench variants``: real models in real sessions; structure and invariants, never timings."""

import json
import os
import subprocess
import sys

import jsonschema
import numpy as np
import pytest
from PIL import Image

from assay.bench.models import of_architecture, of_pack
from assay.bench.variants import COLUMNS, FP32, PyTorch, Variant, measure
from assay.errors import BenchError
from support.small_packs import COLOURS, colour_dataset, colour_model, colour_pack


def squares():
    """What the colour model is given: a plain square of each colour."""
    return [np.full((1, 32, 32, 3), colour, np.uint8) for colour in COLOURS.values()]


def environment(folder):
    """What a command is run with."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    return kept | {"ASSAY_CACHE_DIR": str(folder / "cache")}


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """The colour model, and one that takes red for green and green for red."""
    folder = tmp_path_factory.mktemp("packs")
    swapped = np.array([[-1, 2, -1], [2, -1, -1], [-1, -1, 2], [0, 0, 0]], np.float32) / 64
    return colour_pack(folder / "a.tar"), colour_pack(folder / "b.tar", model=colour_model(swapped, work=2))


def test_every_variant_has_a_row_for_each_number_of_threads(packs):
    source, other = packs
    report = measure(source, [Variant("other", other)], squares(), threads=(1, 2), trained=True, calls=3, warmups=1)
    named = [(row["variant"], row["threads"]) for row in report.rows]
    assert named == [(FP32, 1), (FP32, 2), ("other", 1), ("other", 2)]
    assert report.columns == COLUMNS
    for row in report.rows:
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        assert row["cpu_ms"] > 0
        assert row["variant"] != FP32 or row["of_fp32"] == 1
    assert [row["size_mb"] for row in report.rows[::2]] == [len(source.model) / 1e6, len(other.model) / 1e6]


def test_agreement_is_the_share_of_images_with_the_same_label(packs):
    source, other = packs
    report = measure(source, [Variant("other", other)], squares(), threads=(1,), trained=True, calls=2, warmups=0)
    assert [row["agreement_percent"] for row in report.rows] == [None, 50]  # blue and grey of four colours


def test_labels_of_random_weights_are_not_compared(packs):
    report = measure(packs[0], [], squares(), threads=(1,), trained=False, calls=2, warmups=0)
    assert report.rows[0]["agreement_percent"] is None
    assert any("Random weights" in note for note in report.notes)


def test_a_missing_pytorch_is_a_note_and_no_row(packs):
    pytorch = PyTorch(sys.executable, "mobilenet-v2")
    report = measure(packs[0], [], squares(), threads=(1,), trained=True, pytorch=pytorch, calls=2, warmups=0)
    assert [row["variant"] for row in report.rows] == [FP32]
    assert any("No module named 'torch'" in note and "--torch-python" in note for note in report.notes)


def test_without_images_nothing_is_measured(packs):
    with pytest.raises(BenchError, match="--judge"):
        measure(packs[0], [], [], threads=(1,), trained=True)


def test_an_int8_pack_is_no_source(tmp_path):
    pack = colour_pack(tmp_path / "int8.tar", precision="INT8", name="colours-int8")
    with pytest.raises(BenchError, match="name the FP32 pack"):
        of_pack(pack)


def test_an_architecture_without_weights_gets_random_ones_that_are_known():
    source = of_architecture("mobilenet-v2", seed=3)
    assert not source.trained
    assert not of_pack(source.pack).trained
    assert source.tensors["classifier.1.weight"].shape == (1000, 1280)
    assert source.pack.digest == of_architecture("mobilenet-v2", seed=3).pack.digest


def test_the_command_prints_writes_and_draws_one_report(tmp_path, root):
    colour_pack(tmp_path / "fp32.tar", model=colour_model(work=5))
    colour_dataset(tmp_path / "calibrate.tar", 12, groups=12)
    colour_dataset(tmp_path / "judge.tar", 40)
    ended = subprocess.run(
        [
            sys.executable, "-m", "assay", "bench", "variants", "fp32.tar", "--calibration", "calibrate.tar",
            "--judge", "judge.tar", "--recipe", "static-reduce-range", "--threads", "1", "--calls", "3",
            "--warmups", "0", "--json", "--out-json", "out.json", "--picture", "out.png",
        ],
        env=environment(tmp_path), capture_output=True, text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    jsonschema.validate(document, json.loads((root / "docs" / "contracts" / "bench-report.schema.json").read_text()))
    assert document == json.loads((tmp_path / "out.json").read_text())
    assert document["command"].startswith("assay bench variants fp32.tar --calibration")
    assert [row["variant"] for row in document["rows"]] == [FP32, "ONNX dynamic INT8", "ONNX static INT8"]
    assert all(0 <= row["agreement_percent"] <= 100 for row in document["rows"][1:])
    assert any("static-reduce-range" in note for note in document["notes"])
    with Image.open(tmp_path / "out.png") as image:
        image.load()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["resnet-50"], "neither an architecture"),
        (["fp32.tar", "--picture", "out.gif"], ".png or .svg"),
        (["fp32.tar", "--picture", "missing/out.png"], "there is no folder"),
        (["fp32.tar", "--recipe", "magic"], "no recipe called 'magic'"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(tmp_path, options, said):
    colour_pack(tmp_path / "fp32.tar")
    colour_dataset(tmp_path / "photos.tar", 8)
    ended = subprocess.run(
        [
            sys.executable, "-m", "assay", "bench", "variants", *options, "--judge", "photos.tar", "--calibration",
            "photos.tar", "--calls", "2", "--warmups", "0", "--no-torch",
        ],
        env=environment(tmp_path), capture_output=True, text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1].startswith("assay: error: ")
    assert said in ended.stderr.replace("\n", " ")

"""``assay model pack`` and ``assay dataset pack``, as a user types them."""

import json

import pytest
from click.testing import CliRunner

from assay.cli import main
from assay.packs.archive import read_pack
from support.own_models import ending, node, plain, write
from support.small_packs import COLOURS, colour_jpeg


@pytest.fixture
def assay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *argv: CliRunner().invoke(main, argv)


PACK = ("model", "pack", "--onnx", "own.onnx", "--labels", "labels.txt", "--out", "Own.tar")
UNITS = ("--mean", "0", "--std", "255,255,255", "--resize", "32")


def test_pack_says_what_it_did_and_what_it_sees(assay, tmp_path):
    write(tmp_path, ending(node("Softmax", ["scores"], "out")))
    (tmp_path / "photo.jpg").write_bytes(colour_jpeg(COLOURS["blue"]))
    done = assay(*PACK, *UNITS, "--photo", "photo.jpg", "--licence", "MIT")
    assert done.exit_code == 0, done.stderr
    pack = read_pack(tmp_path / "Own.tar")
    assert done.stdout.split() == ["Own.tar", pack.digest, str((tmp_path / "Own.tar").stat().st_size)]
    assert pack.manifest.name == "own"
    assert pack.manifest.source.licence == "MIT"
    assert "the softmax at the end is removed" in done.stderr
    seen = done.stderr.split("what it sees in photo.jpg:")[1].split()
    assert (seen[1], float(seen[0]) > 0.9) == ("blue", True)


def test_json_holds_the_same(assay, tmp_path):
    write(tmp_path, plain())
    told = json.loads(assay(*PACK, *UNITS, "--json").stdout)
    assert told["digest"] == read_pack(tmp_path / "Own.tar").digest
    assert told["notes"] == []
    assert len(told["photo"]) == 3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "needs --mean and --std"),
        (("--mean", "1,2", "--std", "1"), "one number, or three"),
        (("--mean", "a", "--std", "1"), "one number, or three"),
        ((*UNITS, "--layout", "NHWC"), "which is NCHW"),
        ((*UNITS, "--crop", "64", "--resize", "64"), "pass --crop 32"),
        ((*UNITS, "--photo", "labels.txt"), "is not an image"),
        ((*UNITS, "--output", "nothing"), "no tensor 'nothing'"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(assay, tmp_path, options, told):
    write(tmp_path, plain())
    failed = assay(*PACK, *options)
    assert failed.exit_code == 2
    assert told in " ".join(failed.stderr.split())
    assert not (tmp_path / "Own.tar").exists()


def test_dataset_is_packed_with_labels_in_range(assay, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "red.jpg").write_bytes(colour_jpeg(COLOURS["red"]))
    (tmp_path / "labels.csv").write_text("file,class_index\nred.jpg,4\n")
    argv = ("dataset", "pack", "photos", "--labels", "labels.csv", "--out", "photos.tar")
    failed = assay(*argv, "--classes", "4")
    assert failed.exit_code == 2
    assert "line 2: class_index 4 is out of range" in failed.stderr
    done = assay(*argv)
    assert done.exit_code == 0
    assert "decoding the images" in done.stderr

"""Weights in files beside the model: taken into the pack, and from nowhere else."""

import numpy as np
import onnx
import pytest

from assay.building.foreign.file import read_source
from assay.errors import BuildError
from support.own_models import WEIGHT, answers_rightly, packed, plain


def outside(location, offset=None, length=None):
    """The plain model with the weight of its last layer in a file of that name."""
    made = plain()
    (tensor,) = [tensor for tensor in made.graph.initializer if tensor.name == "weight"]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
    return made


def test_weights_beside_the_model_are_inside_the_pack(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "own.bin").write_bytes(bytes(64) + WEIGHT.tobytes())
    pack, said = packed(tmp_path, outside("data/own.bin", 64, WEIGHT.nbytes))
    assert said.notes == ("weights of data/own.bin are inside the pack",)
    assert answers_rightly(pack)
    assert WEIGHT.tobytes() in pack.model


def test_weights_to_the_end_of_a_file_need_no_length(tmp_path):
    (tmp_path / "own.bin").write_bytes(WEIGHT.tobytes())
    assert answers_rightly(packed(tmp_path, outside("own.bin"))[0])


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("../secret.bin", "outside its own folder"),
        ("data/../../secret.bin", "outside its own folder"),
        ("data/../own.bin", "outside its own folder"),  # within, but no exporter writes that
        ("..\\secret.bin", "outside its own folder"),
        ("{absolute}", "outside its own folder"),
        ("link.bin", "outside its own folder"),
        ("folder", "is not there"),
        ("", "is not there"),
        ("gone.bin", "gone.bin', which is not there: copy it beside the model"),
        ("a\0b", "cannot be named"),
        ("x" * 5000, "cannot be named|is not there"),
    ],
)
def test_no_other_file_is_opened(tmp_path, location, told):
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    secret = tmp_path / "secret.bin"
    secret.write_bytes(WEIGHT.tobytes())
    (home / "own.bin").write_bytes(WEIGHT.tobytes())
    (home / "link.bin").symlink_to(secret)
    with pytest.raises(BuildError, match=told):
        packed(home, outside(location.format(absolute=secret)))
    assert not (home / "own.tar").exists()


@pytest.mark.parametrize(
    ("offset", "length", "told"),
    [
        (0, 999, "expects weights at 0 to 999 of own.bin, which has 48 bytes"),
        (-8, 48, "expects weights"),
        (100, None, "expects weights"),
        ("many", 48, "tells no place"),
        (0, 8, "does not load|not valid ONNX"),
    ],
)
def test_place_that_is_not_in_the_file_is_told(tmp_path, offset, length, told):
    (tmp_path / "own.bin").write_bytes(WEIGHT.tobytes())
    with pytest.raises(BuildError, match=told):
        packed(tmp_path, outside("own.bin", offset, length))


def test_weights_outside_count_for_the_size_of_the_pack(tmp_path):
    (tmp_path / "own.bin").write_bytes(np.zeros(300).tobytes())
    path = tmp_path / "own.onnx"
    path.write_bytes(outside("own.bin").SerializeToString())
    with pytest.raises(BuildError, match="export a smaller model"):
        read_source(path, path.stat().st_size + 100)

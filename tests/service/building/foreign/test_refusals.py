"""What cannot be packed is refused in one sentence that says what to do, and nothing is written."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from assay.building.foreign.file import read_source
from assay.building.foreign.labels import fit_labels, read_labels
from assay.errors import BuildError
from support.own_models import CLASSES, body, constant, ending, model, node, packed, plain, value
from support.small_packs import CROP, LABELS

FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32


def refused(tmp_path, made, told, **order):
    with pytest.raises(BuildError, match=told) as raised:
        packed(tmp_path, made, **order)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "own.tar").exists()


def taking(*shape, kind=FLOAT):
    return plain(source=("chw", kind, shape))


@pytest.mark.parametrize(
    ("made", "order", "told"),
    [
        (taking("N", 3, CROP, CROP), {"layout": "NHWC"}, r"\[\?, 3, 32, 32\], which is NCHW: pass --layout NCHW"),
        (taking("N", CROP, CROP, 3), {"layout": "NCHW"}, "which is NHWC: pass --layout NHWC"),
        (taking("N", "c", "h", "w"), {}, "does not tell the layout: pass --layout"),
        (taking("N", 1, CROP, CROP), {}, "three channels"),
        (taking("N", 4, CROP, CROP), {"layout": "NCHW"}, "three channels"),
        (taking("N", 3, 64, 64), {"crop": CROP}, "crops of 64, not 32: pass --crop 64 --resize 73"),
        (taking("N", 3, 32, 24), {}, "crops are square"),
        (taking(3, CROP, CROP), {}, "four axes"),
        (taking("N", 3, CROP, CROP, kind=INT32), {}, "chw int32 .*float32, float16 or uint8"),
        (plain(more_inputs=[value("keep", FLOAT, [1])]), {}, None),
        (plain(), {"mean": None}, "needs --mean and --std in 0..255"),
        (plain(), {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}, "--mean 123.675,116.28,103.53 --std"),
        (plain(), {"mean": (0.5,) * 3, "std": (0.5,) * 3}, "pass --mean 127.5 --std 127.5"),
        (plain(), {"std": (0.0,) * 3}, "std above 0"),
        (plain(), {"mean": (float("nan"),) * 3}, "finite"),
        (plain(), {"name": "My Model"}, "--name 'My Model': use lower-case"),
        (plain(), {"resize": 20}, "crop 32 is larger than resize_short 20"),
        (taking("N", CROP, CROP, 3, kind=TensorProto.UINT8), {}, "leave out --mean and --std"),
    ],
)  # fmt: skip
def test_interface_that_does_not_fit_is_told_with_the_option_that_would(tmp_path, made, order, told):
    if told is None:  # an input that nothing reads is no input
        packed(tmp_path, made, **order)
    else:
        refused(tmp_path, made, told, **order)


def test_second_input_that_is_read_is_named(tmp_path):
    made = ending(node("Mul", ["scores", "keep"], "out"), more_inputs=[value("keep", FLOAT, [1])])
    refused(tmp_path, made, r"takes 2 inputs \(chw float32 \[\?, 3, 32, 32\], keep float32 \[1\]\); it must take one")


def test_model_without_inputs_is_refused(tmp_path):
    nodes, tensors = body()
    made = model(nodes, [*tensors, constant("chw", np.zeros((1, 3, 4, 4)), np.float32)])
    refused(tmp_path, made, r"takes 0 inputs \(none\)")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (plain(opset=99), "uses opset 99, newer than .*opset_version="),
        (plain(ir=99), "version 99 of the ONNX format, newer than"),
        (ending(helper.make_node("Magic", ["scores"], ["out"], domain="my.ops"), domains=["my.ops"]), "my.ops.Magic"),
        (ending(node("Magic", ["scores"], "out")), "opset 17 has no operator Magic"),
        (
            ending(
                helper.make_node("ReorderOutput", ["scores"], ["out"], domain="com.microsoft.nchwc"),
                domains=["com.microsoft.nchwc"],
            ),
            "optimiser for one kind of CPU",
        ),
        (
            ending(helper.make_node("Magic", ["scores"], ["out"], domain="com.microsoft"), domains=["com.microsoft"]),
            "does not load: .*Magic",
        ),
        (ending(node("Add", ["scores", "nowhere"], "out")), "not valid ONNX: .*nowhere"),
        (ending(node("Log", ["minus"], "nan"), node("Add", ["scores", "nan"], "out"),
                tensors=[constant("minus", [-1], np.float32)]), "NaN or infinite scores for a black picture"),
        (ending(node("Mul", ["scores", "nought"], "out"), tensors=[constant("nought", 0, np.float32)]), "same scores"),
        (plain(source=("chw", FLOAT, ("N", 3, "h", "w"))), None),
    ],
)  # fmt: skip
def test_graph_that_cannot_run_here_is_told_why(tmp_path, made, told):
    if told is None:  # any size is taken where the model takes any
        packed(tmp_path, made, crop=CROP)
    else:
        refused(tmp_path, made, told)


def test_wrong_crop_of_a_model_that_does_not_tell_its_size_is_suspected(tmp_path):
    nodes, tensors = body()
    weight = constant("dense", np.ones((CLASSES, 3 * CROP * CROP)), np.float32)
    flat = [node("Flatten", ["conv"], "flat"), node("Gemm", ["flat", "dense"], "scores", transB=1)]
    made = model([nodes[0], *flat], [tensors[0], weight], source=("chw", FLOAT, ("N", 3, None, None)))
    refused(tmp_path, made, "was it made for pictures of 48 x 48", crop=48, resize=48)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04" + bytes(40), "torch.onnx.export"),
        (b"\x80\x02}q\x00.", "pickle"),
        (b"\x89HDF\r\n\x1a\n" + bytes(40), "tf2onnx"),
        (b"\x1c\0\0\0TFL3" + bytes(40), "TensorFlow Lite"),
        (b"\x1c\0\0\0ORTM" + bytes(40), r"\.ort"),
        (b"\x1f\x8b\x08" + bytes(40), "gzip"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"this is text, and no model at all\n" * 9, "not an ONNX file but text"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "not an ONNX file but text"),
        (plain().SerializeToString()[:-9], "damaged, cut off"),
        (bytes(100), "damaged, cut off"),
        (onnx.ModelProto(ir_version=8).SerializeToString(), "holds no ONNX graph"),
    ],
)  # fmt: skip
def test_file_that_is_no_onnx_is_called_what_it_is(tmp_path, data, told):
    refused(tmp_path, data, told)


def test_damage_anywhere_is_an_error_of_ours_or_a_model_that_runs(tmp_path):
    data = plain().SerializeToString()
    random = np.random.default_rng(3)
    told = []
    for place in range(0, len(data), 7):
        broken = bytearray(data)
        broken[place] ^= int(random.integers(1, 256))
        try:
            packed(tmp_path, bytes(broken))
            told.append("")
        except BuildError as error:
            told.append(str(error))
    assert "" in told
    assert any(told)
    assert "\n" not in "".join(told)


def test_file_too_large_for_a_pack_is_not_read(tmp_path):
    huge = tmp_path / "huge.onnx"
    with huge.open("wb") as stream:
        stream.truncate(3 << 30)  # sparse
    with pytest.raises(BuildError, match="3221225472 bytes; a pack may have 536870912"):
        read_source(huge)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ("red\ngreen\nblue\n", "4 classes, .* has 3 labels: if the model counts a background class"),
        (
            "background\nred\ngreen\nblue\ngrey\n",
            "first line, 'background', is a class that the model lacks",
        ),
        ("name\nred\ngreen\nblue\ngrey\n", "is its first line, 'name', a heading"),
        ("red\n", "has 1 labels: give the list"),
        ("", "no labels"),
        ("\n\n  \n", "no labels"),
        ("red\n\nblue\ngrey\n", "line 2 of .* is blank, but class 1 needs a name"),
        ("red\ngre\ten\nblue\ngrey\n", "line 2 of .* cannot be shown"),
        ('["red", "green", "blue", "grey"]', "is JSON"),
    ],
)
def test_labels_that_do_not_fit_are_told_by_line(tmp_path, labels, told):
    refused(tmp_path, plain(), told, labels=labels)


@pytest.mark.parametrize(
    "data",
    [
        "\ufeffred\r\ngreen\r\nblue\r\ngrey\r\n\r\n".encode(),
        b"\nred\n\ngreen\nblue\n\ngrey",
        b"red\rgreen\rblue\rgrey\r",
        b"  red \ngreen\t\nblue\ngrey\n",
    ],
)
def test_labels_are_taken_as_editors_leave_them(tmp_path, data):
    path = tmp_path / "edited.txt"
    path.write_bytes(data)
    assert fit_labels(read_labels(path), CLASSES, path) == LABELS


def test_labels_may_repeat(tmp_path):
    pack, _ = packed(tmp_path, plain(), labels="crane\ncrane\nblue\ngrey\n")
    assert pack.labels == ("crane", "crane", "blue", "grey")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("red\ngrün\nblue\n".encode("latin-1"), "line 2 of .* is not UTF-8"),
        ("red\n".encode("utf-16"), "UTF-16: save it as UTF-8"),
        (b"x" * (5 << 20), "more than 4194304 bytes"),
    ],
)
def test_labels_of_another_encoding_or_size_are_refused(tmp_path, data, told):
    path = tmp_path / "labels.txt"
    path.write_bytes(data)
    with pytest.raises(BuildError, match=told):
        read_labels(path)

"""Every form a stranger's model may have that is taken: afterwards it names colours, with the right probabilities."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from assay.building.foreign.pack import Order, pack_onnx
from assay.building.graph import INPUT_NAME, OUTPUT_NAME
from assay.inference.engine import Engine
from assay.packs.archive import read_pack
from support.own_models import (
    BIAS,
    CLASSES,
    WEIGHT,
    answers_rightly,
    body,
    constant,
    ending,
    model,
    node,
    packed,
    plain,
    pooled_to,
    value,
    write,
)
from support.small_packs import CROP, LABELS

HALF = ("chw", TensorProto.FLOAT16, ("N", 3, CROP, CROP))
NHWC = ("N", CROP, CROP, 3)


def nhwc(kind=TensorProto.FLOAT, shape=NHWC, source="pixels", **more):
    nodes, tensors = body()
    first = [node("Transpose", [source], "chw", perm=[0, 3, 1, 2])]
    return model([*first, *nodes], tensors, source=(source, kind, shape), **more)


def of_uint8(layout):
    nodes, tensors = body()
    shape = NHWC if layout == "NHWC" else ("N", 3, CROP, CROP)
    turn = [node("Transpose", ["bytes"], "turned", perm=[0, 3, 1, 2])] if layout == "NHWC" else []
    first = [
        *turn,
        node("Cast", ["turned" if turn else "bytes"], "float", to=TensorProto.FLOAT),
        node("Mul", ["float", "per"], "chw"),
    ]
    return model(
        [*first, *nodes],
        [*tensors, constant("per", 1 / 255, np.float32)],
        source=("bytes", TensorProto.UINT8, shape),
    )


def half():
    nodes, tensors = body(np.float16)
    return model(nodes, tensors, source=HALF, output=("scores", TensorProto.FLOAT16, ("N", CLASSES)))


def weights_as_inputs():
    nodes, tensors = body()
    return model(nodes, tensors, more_inputs=[value(t.name, t.data_type, t.dims) for t in tensors], ir=3)


def colliding():
    """Input and output called as the pack calls its own, the wrong way round, and a tensor in between as ours."""
    made = plain()
    for old, new in (("chw", OUTPUT_NAME), ("conv", "nchw"), ("pooled", "pixels"), ("scores", INPUT_NAME)):
        for each in made.graph.node:
            each.input[:] = [new if name == old else name for name in each.input]
            each.output[:] = [new if name == old else name for name in each.output]
    made.graph.input[0].name, made.graph.output[0].name = OUTPUT_NAME, INPUT_NAME
    return made


def with_branch():
    """An If whose bodies read the input, a weight and a tensor of the graph around them, all called like ours."""
    nodes, tensors = body()
    bodies = [
        helper.make_graph([node("Add", ["pooled", "logits"], "y")], name, [], [value("y", TensorProto.FLOAT, None)])
        for name in ("then", "else")
    ]
    choose = node("If", ["yes"], "again", then_branch=bodies[0], else_branch=bodies[1])
    rest = [node("Flatten", ["again"], "flat", axis=1), nodes[3]]
    zero = constant("logits", np.zeros((1, 3, 1, 1)), np.float32)
    return model([*nodes[:2], choose, *rest], [*tensors, zero, constant("yes", True, np.bool_)])


def with_function():
    inner = helper.make_function(
        "own", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], "b")], [helper.make_opsetid("", 17)]
    )
    halved = [
        helper.make_node("Twice", ["scores"], ["twice"], domain="own"),
        node("Mul", ["twice", "half"], "out"),
    ]
    return ending(*halved, tensors=[constant("half", 0.5, np.float32)], domains=["own"], functions=[inner])


def with_constant_nodes():
    made = plain()
    tensors = list(made.graph.initializer)
    del made.graph.initializer[:]
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in tensors]
    rest = list(made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend([*nodes, *rest])
    return made


def dense_by_convolution(tail=(), shape=("N", CLASSES, 1, 1), output="out", **more):
    """[N, classes, 1, 1]."""
    last = "out" if not tail else "map"
    weights = [constant("w4", WEIGHT.reshape(CLASSES, 3, 1, 1), np.float32), constant("b4", BIAS, np.float32)]
    conv = node("Conv", ["pooled", "w4", "b4"], last)
    return pooled_to(conv, *tail, tensors=weights, output=(output, TensorProto.FLOAT, shape), **more)


FORMS = {
    "float NCHW": plain(),
    "float NHWC": nhwc(),
    "uint8 NHWC": of_uint8("NHWC"),
    "uint8 NCHW": of_uint8("NCHW"),
    "float16": half(),
    "height and width free": plain(source=("chw", TensorProto.FLOAT, ("N", 3, "h", "w"))),
    "every axis without a name": nhwc(shape=(None, None, None, 3)),
    "weights listed as inputs": weights_as_inputs(),
    "names that collide with the pack's": colliding(),
    "a branch that captures names": with_branch(),
    "a function of its own": with_function(),
    "weights in Constant nodes": with_constant_nodes(),
    "[N, classes, 1, 1]": dense_by_convolution(),
    "[N, 1, 1, classes]": dense_by_convolution(
        (node("Transpose", ["map"], "out", perm=[0, 2, 3, 1]),), ("N", 1, 1, CLASSES)
    ),
    "float64 scores": ending(
        node("Cast", ["scores"], "out", to=TensorProto.DOUBLE),
    ),
    "opset 21": plain(opset=21, ir=10),
    "the newest opset": plain(opset=onnx.defs.onnx_opset_version(), ir=onnx.IR_VERSION),
}
FORMS["float64 scores"].graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE


@pytest.mark.parametrize("form", FORMS)
def test_form_is_taken_and_answers_rightly(tmp_path, form):
    raw = {"mean": None, "std": None} if form.startswith("uint8") else {}
    crop = CROP if "free" in form or "every axis" in form else None
    pack, said = packed(tmp_path, FORMS[form], crop=crop, **raw)
    assert answers_rightly(pack, 2e-3 if form == "float16" else 1e-4)
    assert [note for note in said.notes if "opset" not in note] == []
    assert pack.manifest.precision == "FP32"


@pytest.mark.parametrize("opset", [7, 9, 11, 12])
def test_old_opset_is_raised_when_that_changes_nothing(tmp_path, opset):
    pack, said = packed(tmp_path, plain(opset=opset, ir=4))
    assert answers_rightly(pack)
    assert any(f"moved from opset {opset} to 17" in note for note in said.notes)
    assert onnx.load_from_string(pack.model).opset_import[0].version == 17


def test_each_channel_has_its_mean_and_std(tmp_path):
    mean, std = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
    pack, _ = packed(tmp_path, plain(), mean=mean, std=std)
    pixels = np.random.default_rng(1).integers(0, 256, (2, CROP, CROP, 3), np.uint8)
    right = ((pixels - np.array(mean)) / np.array(std)).mean(axis=(1, 2)) @ WEIGHT.T + BIAS
    assert np.allclose(Engine(pack).infer(pixels), right, atol=1e-4)
    assert pack.manifest.preprocess.normalisation.mean == mean
    assert pack.manifest.preprocess.normalisation.scale == std


def test_whole_mean_becomes_a_zero_point_so_that_integers_read_the_photos_own_bytes(tmp_path):
    pack, _ = packed(tmp_path, plain(), mean=(127.0,) * 3, std=(128.0,) * 3)
    kinds = [each.op_type for each in onnx.load_from_string(pack.model).graph.node]
    assert kinds[:3] == ["Transpose", "DequantizeLinear", "Conv"]
    pixels = np.full((1, CROP, CROP, 3), 200, np.uint8)
    right = np.full(3, 73 / 128) @ WEIGHT.T + BIAS
    assert np.allclose(Engine(pack).infer(pixels)[0], right, atol=1e-5)


def test_manifest_says_what_it_was_made_of_and_the_same_order_gives_the_same_bytes(tmp_path):
    import hashlib

    pack, said = packed(tmp_path, plain(), licence="MIT", interpolation="bicubic", resize=40)
    made = pack.manifest
    assert made.source.name == "own.onnx"
    assert made.source.sha256 == hashlib.sha256((tmp_path / "own.onnx").read_bytes()).hexdigest()
    assert (made.source.licence, made.architecture, made.name) == ("MIT", "own-net", "own")
    assert (made.preprocess.resize_short, made.preprocess.crop, made.preprocess.interpolation) == (40, CROP, "bicubic")
    assert pack.labels == LABELS
    _, repeated = packed(tmp_path, plain(), licence="MIT", interpolation="bicubic", resize=40)
    assert repeated.digest == said.digest
    assert packed(tmp_path, plain(), architecture="net-1")[0].manifest.architecture == "net-1"


def test_resize_and_crop_have_the_usual_proportion_where_they_are_not_given(tmp_path):
    order = Order(**write(tmp_path, plain()), name="own", mean=(0.0,) * 3, std=(255.0,) * 3)
    pack_onnx(order, tmp_path / "own.tar")
    shape = read_pack(tmp_path / "own.tar").manifest.preprocess
    assert (shape.resize_short, shape.crop) == (37, CROP)  # 256 for 224


def test_model_that_is_integer_already_is_called_so(tmp_path):
    scale = [constant("s", 1 / 128, np.float32), constant("z", 128, np.uint8)]
    turned = [node("QuantizeLinear", ["scores", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "out")]
    pack, _ = packed(tmp_path, ending(*turned, tensors=[constant("s", 1 / 8, np.float32), scale[1]]))
    assert pack.manifest.precision == "INT8"

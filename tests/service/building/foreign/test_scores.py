"""Softmaxes and outputs: the service takes a softmax of its own, and its scores must be the model's."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from assay.errors import BuildError
from support.own_models import (
    BIAS,
    CLASSES,
    WEIGHT,
    answers_rightly,
    constant,
    ending,
    node,
    packed,
    pooled_to,
    value,
)

REMOVED = "the softmax at the end is removed"
LOGARITHM = "their logarithm is taken"

_CONVOLVED = [constant("w4", WEIGHT.reshape(CLASSES, 3, 1, 1), np.float32), constant("b4", BIAS, np.float32)]
_CONV = node("Conv", ["pooled", "w4", "b4"], "map")


def on_map(*tail, shape=("N", CLASSES, 1, 1), **more):
    return pooled_to(_CONV, *tail, tensors=_CONVOLVED, output=("out", TensorProto.FLOAT, shape), **more)


@pytest.mark.parametrize(
    "made",
    [
        ending(node("Softmax", ["scores"], "out")),
        ending(node("Softmax", ["scores"], "out", axis=1)),
        ending(node("Softmax", ["scores"], "out"), opset=11),
        ending(node("Softmax", ["scores"], "p", axis=-1), node("Identity", ["p"], "out")),
        on_map(node("Softmax", ["map"], "out", axis=1)),
        on_map(node("Softmax", ["map"], "out"), opset=11),  # over all axes from 1 on
        on_map(node("Softmax", ["map"], "p", axis=1), node("Flatten", ["p"], "out"), shape=("N", CLASSES)),
    ],
)
def test_softmax_at_the_end_is_removed(tmp_path, made):
    pack, said = packed(tmp_path, made)
    assert any(REMOVED in note for note in said.notes)
    assert "Softmax" not in {each.op_type for each in onnx.load_from_string(pack.model).graph.node}
    assert answers_rightly(pack)


def test_softmax_spelled_out_is_seen_in_the_numbers_and_its_logarithm_taken(tmp_path):
    spelled = [
        node("Exp", ["scores"], "e"),
        node("ReduceSum", ["e", "last"], "sum", keepdims=1),
        node("Div", ["e", "sum"], "out"),
    ]
    pack, said = packed(tmp_path, ending(*spelled, tensors=[constant("last", [1])]))
    assert any(LOGARITHM in note for note in said.notes)
    assert answers_rightly(pack)


def test_probability_of_nought_stays_finite_and_nought(tmp_path):
    sure = [
        node("Mul", ["scores", "much"], "sharp"),
        node("Softmax", ["sharp"], "p"),
        node("Mul", ["p", "one"], "out"),  # a softmax that is not the end, as far as can be read
    ]
    numbers = [constant("much", 300, np.float32), constant("one", 1, np.float32)]
    pack, said = packed(tmp_path, ending(*sure, tensors=numbers))
    from support.own_models import scores

    assert any(LOGARITHM in note for note in said.notes)
    found = scores(pack)
    assert np.isfinite(found["red"]).all()
    assert found["red"] == pytest.approx([1, 0, 0, 0], abs=1e-6)


def test_logarithm_of_a_softmax_stays(tmp_path):
    pack, said = packed(tmp_path, ending(node("LogSoftmax", ["scores"], "out")))
    assert said.notes == ()
    assert answers_rightly(pack)


def two(**more):
    return ending(node("Softmax", ["scores"], "out"), more_outputs=[value("flat", TensorProto.FLOAT, ("N", 3))], **more)


def test_two_outputs_are_named_and_one_must_be_chosen(tmp_path):
    with pytest.raises(BuildError, match=r"returns 2 tensors \(out float32 \[\?, 4\], flat float32 \[\?, 3\]\)"):
        packed(tmp_path, two())
    pack, _ = packed(tmp_path, two(), output="out")
    assert answers_rightly(pack)


def test_scores_may_be_a_tensor_inside_the_graph(tmp_path):
    pack, said = packed(tmp_path, two(), output="scores")
    assert said.notes == ()
    assert answers_rightly(pack)
    with pytest.raises(BuildError, match="no tensor 'logits': it returns out, flat"):
        packed(tmp_path, two(), output="logits")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (ending(node("Sigmoid", ["scores"], "out")), "ends in a sigmoid.*--output scores"),
        (on_map(node("Softmax", ["map"], "out")), r"along axis 3 of \[1, 4, 1, 1\].*--output map"),
        (ending(node("Softmax", ["scores"], "out", axis=0)), r"along axis 0 of \[1, 4\]"),
        (pooled_to(node("Identity", ["conv"], "out")), r"out is \[1, 3, 32, 32\], not one score per class"),
        (pooled_to(node("Squeeze", ["pooled"], "out")), r"out is \[3\]; scores have an axis for the batch"),
    ],
)
def test_what_is_no_choice_of_one_class_is_refused(tmp_path, made, told):
    made.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(BuildError, match=told):
        packed(tmp_path, made)


def test_class_numbers_are_no_scores(tmp_path):
    made = ending(node("ArgMax", ["scores"], "out", axis=1))
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(BuildError, match="out is int64, not scores"):
        packed(tmp_path, made)

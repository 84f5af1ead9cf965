"""Models made for one batch size, said or unsaid: freed where running them shows that it is safe, else refused."""

import numpy as np
import pytest
from onnx import TensorProto

from assay.building.foreign.batch import mended
from assay.building.foreign.interface import examine
from assay.errors import BuildError
from support.own_models import CLASSES, answers_rightly, constant, ending, node, packed, plain, pooled_to
from support.small_packs import CROP

_GEMM = node("Gemm", ["flat", "weight", "bias"], "out", transB=1)


def fixed(batch=1):
    return {
        "source": ("chw", TensorProto.FLOAT, (batch, 3, CROP, CROP)),
        "output": ("out", TensorProto.FLOAT, (batch, CLASSES)),
    }


def reshaped(shape, batch=1, **more):
    return pooled_to(
        node("Reshape", ["pooled", "shape"], "flat"), _GEMM, tensors=[constant("shape", shape)], **fixed(batch), **more
    )


def test_batch_of_one_without_traces_is_freed(tmp_path):
    pack, said = packed(tmp_path, pooled_to(node("Flatten", ["pooled"], "flat"), _GEMM, **fixed()))
    assert said.notes == ("made for a batch of 1, now takes any number of images",)
    assert answers_rightly(pack)


@pytest.mark.parametrize(("shape", "batch"), [([1, -1], 1), ([1, 3], 1), ([8, 3], 8), ([8, -1], 8)])
def test_reshape_with_the_batch_built_in_keeps_the_axis_instead(tmp_path, shape, batch):
    pack, said = packed(tmp_path, reshaped(shape, batch))
    assert said.notes == (
        f"made for a batch of {batch}, now takes any number of images",
        "reshapes that had the batch built in: 1, mended",
    )
    assert answers_rightly(pack)


def test_free_batch_that_is_a_false_promise_is_mended_as_well(tmp_path):
    made = reshaped([1, -1])
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    pack, said = packed(tmp_path, made)
    assert said.notes == ("reshapes that had the batch built in: 1, mended",)
    assert answers_rightly(pack)


def test_reshape_of_a_weight_is_left_alone(tmp_path):
    made = pooled_to(
        node("Reshape", ["pooled", "to_batch"], "flat"),
        node("Reshape", ["shift", "to_row"], "row"),
        node("Add", ["flat", "row"], "moved"),
        node("Gemm", ["moved", "weight", "bias"], "out", transB=1),
        tensors=[constant("to_batch", [1, 3]), constant("to_row", [1, 3]), constant("shift", [0, 0, 0], np.float32)],
        **fixed(),
    )
    _, count = mended(made, examine(made, None, None))
    assert count == 1
    pack, _ = packed(tmp_path, made)
    assert answers_rightly(pack)


def test_two_reshapes_that_share_a_constant_are_told_apart(tmp_path):
    made = pooled_to(
        node("Reshape", ["pooled", "shape"], "flat3"),
        node("Reshape", ["shift", "shape"], "row"),
        node("Add", ["flat3", "row"], "flat"),
        _GEMM,
        tensors=[constant("shape", [1, 3]), constant("shift", [0, 0, 0], np.float32)],
        **fixed(),
    )
    assert answers_rightly(packed(tmp_path, made)[0])


@pytest.mark.parametrize(
    "made",
    [
        # A class token of transformers, stored for one image.
        pooled_to(
            node("Flatten", ["pooled"], "three"),
            node("Concat", ["three", "token"], "four", axis=1),
            node("Slice", ["four", "from", "to", "axis"], "flat"),
            _GEMM,
            tensors=[
                constant("token", [[7]], np.float32), constant("from", [0]), constant("to", [3]), constant("axis", [1]),
            ],
            **fixed(),
        ),
        # The batch axis squeezed away and put back.
        pooled_to(
            node("Reshape", ["pooled", "three"], "one"),
            node("Reshape", ["one", "row"], "flat"),
            _GEMM,
            tensors=[constant("three", [3]), constant("row", [1, 3])],
            **fixed(),
        ),
    ],
)  # fmt: skip
def test_batch_that_cannot_be_freed_is_refused_with_the_way_to_export(tmp_path, made):
    with pytest.raises(BuildError, match=r"exported for a batch of 1, and cannot be freed.*dynamic_axes"):
        packed(tmp_path, made)


def test_model_whose_scores_depend_on_the_neighbours_is_refused(tmp_path):
    mixing = ending(
        node("ReduceMean", ["scores"], "mean", axes=[0], keepdims=1), node("Sub", ["scores", "mean"], "out")
    )
    # Alone, an image differs from nothing: to be caught as such it must say something.
    mixing.graph.node.append(node("Add", ["out", "scores"], "both"))
    mixing.graph.output[0].name = "both"
    with pytest.raises(BuildError, match="depend on the other images of its batch"):
        packed(tmp_path, mixing)


def test_freed_model_computes_what_it_computed_before(tmp_path):
    right = packed(tmp_path, plain())[1].logits
    assert np.allclose(packed(tmp_path, reshaped([1, -1]))[1].logits, right, atol=1e-5)

"""What exporters write becomes one kind of graph that answers as before; what cannot be quantised is refused."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from assay.building.preparation import layers, prepare
from assay.errors import BuildError
from support.networks import CLASSES, dense, kernels, network, plain
from support.small_packs import CROP

IMAGES = np.random.default_rng(0).integers(0, 256, (3, CROP, CROP, 3), dtype=np.uint8)


def answers(model: bytes) -> np.ndarray:
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"images": IMAGES})[0]


@pytest.mark.parametrize("opset", [11, 13, 17, 21])
def test_batch_norms_are_folded_whatever_the_opset_and_the_answers_stay(opset):
    model = plain(opset)
    prepared = prepare(model)
    assert "BatchNormalization" not in {node.op_type for node in prepared.graph.node}
    assert prepared.opset_import[0].version >= 13
    assert {value.name for value in prepared.graph.value_info} >= {"r1", "r2", "pooled"}
    np.testing.assert_allclose(answers(prepared.SerializeToString()), answers(model), rtol=1e-4, atol=1e-5)


def test_a_batch_norm_that_others_read_before_stays():
    norm = {name: np.ones(8, np.float32) for name in ("gamma", "beta", "mean", "var")}
    model = network(
        """c = Conv(x, w)
        n = BatchNormalization(c, gamma, beta, mean, var)
        sum = Add(c, n)
        pooled = GlobalAveragePool(sum)
        flat = Flatten(pooled)
        logits = Gemm<transB=1>(flat, d)""",
        w=kernels(1, 8, 3, 1), d=dense(2, CLASSES, 8), **norm,
    )  # fmt: skip
    prepared = prepare(model)
    assert "BatchNormalization" in {node.op_type for node in prepared.graph.node}
    np.testing.assert_allclose(answers(prepared.SerializeToString()), answers(model), rtol=1e-5)


def test_every_node_has_a_name_of_its_own_and_layers_come_in_order():
    prepared = prepare(plain())
    names = [node.name for node in prepared.graph.node]
    assert all(names)
    assert len(set(names)) == len(names)
    assert [node.op_type for node in layers(prepared.graph)] == ["Conv", "Conv", "Gemm"]


def test_constant_nodes_and_initialisers_among_the_inputs_become_plain_initialisers():
    model = onnx.load_from_string(plain())
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "w2")
    node = helper.make_node("Constant", [], ["w2"], value=weight)
    model.graph.initializer.remove(weight)
    model.graph.node.insert(0, node)
    model.graph.input.append(helper.make_tensor_value_info("w1", TensorProto.FLOAT, [16, 3, 3, 3]))
    prepared = prepare(model.SerializeToString())
    assert [value.name for value in prepared.graph.input] == ["images"]
    assert "Constant" not in {node.op_type for node in prepared.graph.node}
    assert len(layers(prepared.graph)) == 3


def half() -> bytes:
    model = onnx.load_from_string(plain())
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    return model.SerializeToString()


def elsewhere() -> bytes:
    model = onnx.load_from_string(plain())
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    return model.SerializeToString()


def integer_weights() -> bytes:
    return network(
        """w = DequantizeLinear(stored, scale)
        c = Conv(x, w)
        pooled = GlobalAveragePool(c)
        logits = Flatten(pooled)""",
        stored=np.ones((CLASSES, 3, 1, 1), np.int8), scale=np.float32(0.1),
    )  # fmt: skip


def integer_activations() -> bytes:
    return network(
        """q = QuantizeLinear(x, scale, zero)
        d = DequantizeLinear(q, scale, zero)
        c = Conv(d, w)
        pooled = GlobalAveragePool(c)
        logits = Flatten(pooled)""",
        w=kernels(1, CLASSES, 3, 1), scale=np.float32(0.01), zero=np.uint8(0),
    )  # fmt: skip


def no_layers() -> bytes:
    return network(
        """pooled = GlobalAveragePool(x)
        flat = Flatten(pooled)
        logits = Concat<axis=1>(flat, one)""",
        one=np.ones((1, 1), np.float32),
    )


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (half, "half precision .*: export it in float32"),
        (elsewhere, "weights in other files: save it as one ONNX file"),
        (integer_weights, "quantised already .*DequantizeLinear.*: quantise the FP32 model it was made from"),
        (integer_activations, "quantised already .*QuantizeLinear"),
        (no_layers, "no Conv, Gemm or MatMul with constant weights"),
        (lambda: b"no model", "cannot be read"),
        (lambda: plain()[:200], "cannot be read"),
    ],
)
def test_what_cannot_be_quantised_is_refused_in_one_sentence(model, told):
    with pytest.raises(BuildError, match=told) as caught:
        prepare(model())
    assert "\n" not in str(caught.value)

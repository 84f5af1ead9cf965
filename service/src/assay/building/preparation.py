"""From any FP32 classifier in ONNX to a graph the quantiser understands; what it cannot take is refused in a sentence.

Exporters differ: weights may be ``Constant`` nodes, batch norms may stand apart, nodes may have no names, and operator
sets before 13 have no per-channel ``DequantizeLinear``. After this they look alike, and answer as before.
"""

from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper, version_converter

from assay.building.graph import OPSET
from assay.building.weights import fold_batch_norm
from assay.errors import BuildError

_PER_CHANNEL_OPSET: Final = 13
"""The first operator set whose ``DequantizeLinear`` takes a scale per channel."""

LAYERS: Final = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operations with weights: where the time goes, and what integers make faster."""

_INTEGER_OPERATIONS: Final = frozenset({"QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"})
_HALF: Final = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})

_SHAPES_INFERRED: Final = ("onnx.infer", "onnxruntime.quant")
"""Metadata by which ONNX Runtime's quantiser knows that it need not infer shapes itself (through files in /tmp)."""


def prepare(model: bytes) -> onnx.ModelProto:
    """Return the model with named nodes, constants as initialisers, folded batch norms and inferred shapes.

    Raises ``BuildError`` for a model that cannot be read, is quantised already, is in half precision, keeps its weights
    in other files, or has no layer with constant weights.
    """
    try:
        loaded = onnx.load_from_string(model)
        _refuse(loaded)
        opset = next((entry.version for entry in loaded.opset_import if entry.domain in ("", "ai.onnx")), 0)
        if opset < _PER_CHANNEL_OPSET:
            loaded = version_converter.convert_version(loaded, OPSET)
        graph = loaded.graph
        _take_constants(graph)
        _fold_batch_norms(graph)
        _name_nodes(graph)
        loaded = onnx.shape_inference.infer_shapes(loaded)
    except BuildError:
        raise
    except Exception as error:  # protobuf and onnx raise unrelated classes
        raise BuildError(f"the model cannot be read or prepared: {' '.join(str(error).split())[:300]}") from error
    if not layers(loaded.graph):
        raise BuildError(
            "the model has no Conv, Gemm or MatMul with constant weights: there is nothing that integers make faster"
        )
    entry = loaded.metadata_props.add()
    entry.key, entry.value = _SHAPES_INFERRED
    return loaded


def layers(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes with constant weights, in the order they run."""
    constants = {tensor.name for tensor in graph.initializer}
    return [node for node in graph.node if node.op_type in LAYERS and constants.intersection(node.input[:2])]


def constants_of(graph: onnx.GraphProto) -> dict[str, NDArray[Any]]:
    """Return every initialiser's value by its name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}


def _refuse(model: onnx.ModelProto) -> None:
    """Raise for what cannot become a right INT8 model, before any work is done."""
    graph = model.graph
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in graph.initializer):
        raise BuildError("the model keeps its weights in other files: save it as one ONNX file and pack it again")
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        weights_in_integers = node.op_type == "DequantizeLinear" and node.input[0] in constants
        if weights_in_integers or node.op_type in _INTEGER_OPERATIONS or node.op_type.startswith(("QLinear", "QGemm")):
            raise BuildError(
                f"the model is quantised already (it has a {node.op_type}): quantise the FP32 model it was made from"
            )
    halves = [tensor.name for tensor in graph.initializer if tensor.data_type in _HALF]
    halves += [value.name for value in (*graph.input, *graph.output) if value.type.tensor_type.elem_type in _HALF]
    if halves:
        raise BuildError(
            f"the model is in half precision ({halves[0]}), which CPUs compute in float32 after a conversion at every "
            "step: export it in float32"
        )


def _take_constants(graph: onnx.GraphProto) -> None:
    """Turn ``Constant`` nodes into initialisers, and take initialisers off the graph's inputs."""
    for node in [node for node in graph.node if node.op_type == "Constant" and node.attribute[0].name == "value"]:
        tensor = graph.initializer.add()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
        graph.node.remove(node)
    constants = {tensor.name for tensor in graph.initializer}
    for value in [value for value in graph.input if value.name in constants]:
        graph.input.remove(value)


def _fold_batch_norms(graph: onnx.GraphProto) -> None:
    """Fold each batch norm into the convolution before it; alone it would be a float step between two integer ones."""
    constants = constants_of(graph)
    producers = {output: node for node in graph.node for output in node.output}
    readers: dict[str, int] = {}
    for name in [name for node in graph.node for name in node.input] + [value.name for value in graph.output]:
        readers[name] = readers.get(name, 0) + 1
    for node in [node for node in graph.node if node.op_type == "BatchNormalization"]:
        conv = producers.get(node.input[0])
        if conv is None or conv.op_type != "Conv" or readers[conv.output[0]] != 1:
            continue
        if not {conv.input[1], *conv.input[2:], *node.input[1:5]} <= set(constants):
            continue
        gamma, beta, mean, variance = (constants[name] for name in node.input[1:5])
        bias = constants[conv.input[2]] if len(conv.input) > 2 else np.zeros_like(mean)
        epsilon = next((each.f for each in node.attribute if each.name == "epsilon"), 1e-5)  # ONNX's default
        # (W x + bias) goes in: a bias is a mean that is smaller by as much.
        folded = fold_batch_norm(constants[conv.input[1]], gamma, beta, mean - bias, variance, epsilon)
        names = [f"{node.output[0]}.{part}" for part in ("weight", "bias")]
        graph.initializer.extend(
            numpy_helper.from_array(value.astype(np.float32), name) for name, value in zip(names, folded, strict=True)
        )
        del conv.input[1:]
        conv.input.extend(names)
        conv.output[0] = node.output[0]
        graph.node.remove(node)


def _name_nodes(graph: onnx.GraphProto) -> None:
    """Give every node a name of its own: layers are left in float by name, and reported by it."""
    taken: set[str] = set()
    for index, node in enumerate(graph.node):
        if not node.name or node.name in taken:
            node.name = f"{node.op_type.lower()}-{index}"
        taken.add(node.name)

"""What a graph is made of, as far as quantisation cares: gates, and layers that feed operations without integers."""

from collections.abc import Iterable
from typing import Final

import onnx

from assay.building.preparation import layers

INTEGER_OPERATIONS: Final = (
    "Conv", "Clip", "Relu", "Add", "GlobalAveragePool", "Flatten", "Gemm", "MatMul", "MaxPool", "Concat",
)  # fmt: skip
"""What has an integer kernel on x86 and Arm and is worth it; all else (HardSwish, Sigmoid, Mul) stays FP32."""

_POOLS: Final = frozenset({"GlobalAveragePool", "ReduceMean"})
_RESHAPES: Final = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose"})
_CLIPS: Final = frozenset({"Clip", "Relu"})
_CURVES: Final = frozenset({"HardSwish", "HardSigmoid", "Sigmoid", "Mul", "Tanh", "Erf", "Gelu", "Swish", "Mish"})
"""Activations that are no straight line, and the product that ends most of them."""


def gates(graph: onnx.GraphProto) -> set[str]:
    """Return the nodes of every squeeze-and-excite branch: from the pool of a plane to the product with that plane.

    Such branches are a few thousand products on one pixel: quantising them gains nothing and scales whole channels
    wrongly. A pool whose way ends at the output is the classifier's and no gate. Source: Hu et al.,
    "Squeeze-and-Excitation Networks", 2018.
    """
    readers = _readers(graph.node)
    found: set[str] = set()
    for pool in graph.node:
        if pool.op_type not in _POOLS:
            continue
        branch, ended, pending = {pool.name}, False, list(readers.get(pool.output[0], []))
        while pending:
            node = pending.pop()
            if node.op_type == "Mul" and pool.input[0] in node.input:
                ended = True  # what comes after the product belongs to the network again
            elif node.name not in branch:
                branch.add(node.name)
                pending.extend(reader for output in node.output for reader in readers.get(output, []))
        if ended:
            found |= branch
    return found


def curved(graph: onnx.GraphProto) -> set[str]:
    """Return the layers whose result goes into a curved activation (HardSwish, Sigmoid, …), which integers cannot do.

    In integers each of them ends in a conversion to float and the next layer begins with one back.
    """
    readers = _readers(graph.node)
    found = set()
    for layer in layers(graph):
        following = _past_reshapes(readers.get(layer.output[0], []), readers)
        # x * clip(x + 3, 0, 6) / 6 written out: one of the readers of x is the product.
        if any(node.op_type in _CURVES for node in following):
            found.add(layer.name)
    return found


def place(graph: onnx.GraphProto, layer: onnx.NodeProto) -> set[str]:
    """Return what must be in FP32 for a layer to be so: itself, and what reads its result (through Clip and Relu).

    A layer alone between a ``DequantizeLinear`` and a ``QuantizeLinear`` does not stay in FP32: ONNX Runtime takes it
    for one whose weights were forgotten, and quantises them at load, with one scale for all channels.
    """
    readers = _readers(graph.node)
    found, pending = {layer.name}, list(readers.get(layer.output[0], []))
    while pending:
        node = pending.pop()
        found.add(node.name)
        if node.op_type in _CLIPS:
            pending.extend(readers.get(node.output[0], []))
    return found


def _past_reshapes(nodes: Iterable[onnx.NodeProto], readers: dict[str, list[onnx.NodeProto]]) -> list[onnx.NodeProto]:
    """Return the nodes, with those that only move values replaced by what reads their results."""
    found = []
    for node in nodes:
        if node.op_type in _RESHAPES:
            found.extend(_past_reshapes(readers.get(node.output[0], []), readers))
        else:
            found.append(node)
    return found


def _readers(nodes: Iterable[onnx.NodeProto]) -> dict[str, list[onnx.NodeProto]]:
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    return readers

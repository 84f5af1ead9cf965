"""Walks and edits ONNX graphs, bodies of ``If`` and ``Loop`` included: what the other modules share."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

Shape = tuple[int | None, ...]
"""One number per axis; None where it is free or unknown."""


def bodies(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph, then every graph inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from bodies(body)


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield every constant: initializers, sparse ones, and those in attributes."""
    for body in bodies(graph):
        yield from body.initializer
        for sparse in body.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        for node in body.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                if attribute.HasField("sparse_tensor"):
                    yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
                yield from attribute.tensors


def reads(node: onnx.NodeProto) -> set[str]:
    """Return the names that a node reads, and those that graphs inside it may take from around it."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            names.update(*(reads(inner) for inner in body.node), (value.name for value in body.output))
    return names


def rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Give a tensor another name, wherever it is made or read."""
    for body in bodies(graph):
        for value in (*body.input, *body.output, *body.value_info, *body.initializer):
            if value.name == old:
                value.name = new
        for sparse in body.sparse_initializer:
            if sparse.values.name == old:
                sparse.values.name = new
        for node in body.node:
            for names in (node.input, node.output):
                for index, name in enumerate(names):
                    if name == old:
                        names[index] = new


def names(graph: onnx.GraphProto) -> set[str]:
    """Return the name of every tensor."""
    return {
        name
        for body in bodies(graph)
        for name in (
            *(value.name for value in (*body.input, *body.initializer)),
            *(sparse.values.name for sparse in body.sparse_initializer),
            *(name for node in body.node for name in (*node.input, *node.output)),
        )
    }


def prune(graph: onnx.GraphProto) -> None:
    """Remove nodes that no output depends on, then constants and inputs that nobody reads."""
    read = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):  # in topological order, as ONNX demands
        if read.intersection(node.output):
            kept.append(node)
            read |= reads(node)
    if len(kept) < len(graph.node):
        kept.reverse()
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
        del graph.node[:]
        graph.node.extend(nodes)
    for field in (graph.initializer, graph.input):
        for value in [value for value in field if value.name not in read]:
            field.remove(value)
    for sparse in [sparse for sparse in graph.sparse_initializer if sparse.values.name not in read]:
        graph.sparse_initializer.remove(sparse)


def constants(graph: onnx.GraphProto) -> dict[str, NDArray[Any]]:
    """Return the small constants by name: shapes and axes, not weights (at most 64 numbers)."""
    return {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in graph.initializer
        if np.prod(tensor.dims, dtype=np.int64) <= 64
    }


def producers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """Return by tensor name the node that makes it."""
    return {name: node for node in graph.node for name in node.output if name}


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """Return a node's integer attribute."""
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def shape_of(value: onnx.ValueInfoProto) -> Shape | None:
    """Return what a graph says about a tensor's shape; None if it says nothing."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    return tuple(dim.dim_value or None for dim in value.type.tensor_type.shape.dim)


def told(shape: Shape | None) -> str:
    """Write a shape for people."""
    return "of unknown shape" if shape is None else f"[{', '.join(str(size or '?') for size in shape)}]"


def element_type(value: onnx.ValueInfoProto) -> str:
    """Return a tensor's type for people: ``float32``, ``uint8``; ``a sequence`` for what is no tensor."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return f"a {(kind or 'value without a type').removesuffix('_type')}"
    name: str = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)
    return {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())


def inferred(model: onnx.ModelProto, source: str, shape: Shape) -> dict[str, onnx.ValueInfoProto]:
    """Return what shape inference says of every tensor when the input ``source`` has a shape; {} if it fails.

    What the graph itself claims of shapes between input and output is put aside: it was written for another batch.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for value in copy.graph.input:
        if value.name == source:
            set_shape(value, shape)
    for value in copy.graph.output:
        value.ClearField("type")
    try:
        copy = onnx.shape_inference.infer_shapes(copy, data_prop=True)
    except Exception:  # inference is a help, not a judge: ONNX Runtime decides whether the model runs
        return {}
    return {value.name: value for value in (*copy.graph.value_info, *copy.graph.output, *copy.graph.input)}


def set_shape(value: onnx.ValueInfoProto, shape: Shape) -> None:
    """Set a tensor's shape; the first axis is called N where it is free."""
    value.type.tensor_type.ClearField("shape")
    dims = value.type.tensor_type.shape
    for axis, size in enumerate(shape):
        dim = dims.dim.add()
        if size is not None:
            dim.dim_value = size
        elif axis == 0:
            dim.dim_param = "N"
    dims.SetInParent()

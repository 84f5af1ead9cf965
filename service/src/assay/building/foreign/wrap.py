"""Writes the graph of a pack around a model: uint8 NHWC photos in, float32 logits [N, classes] out, N free."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from assay.building.foreign.interface import Interface
from assay.building.foreign.surgery import element_type, inferred, names, producers, prune, rename, set_shape, shape_of
from assay.building.foreign.tidy import opset
from assay.building.graph import INPUT_NAME, IR_VERSION, OUTPUT_NAME

_ZERO_POINTS = range(10, 22)
"""Opsets whose DequantizeLinear ONNX Runtime has had for long; its kernels for the newest opsets come one by one."""

_LEAST = np.finfo(np.float32).tiny
"""The logarithm of a probability that is nought would be infinite; this one's is -87, whose softmax is nought again."""


@dataclass(frozen=True)
class Pixels:
    """How a model wants its pixels, (x - mean) / std per channel (R, G, B) in 0..255."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    @property
    def is_dequantisation(self) -> bool:
        """Whether one whole zero point and one scale say it all: an integer graph then takes the photo's own bytes."""
        whole = self.mean[0].is_integer() and 0 <= self.mean[0] <= 255
        return whole and len(set(self.mean)) == len(set(self.std)) == 1


def wrap(model: onnx.ModelProto, interface: Interface, pixels: Pixels, *, logarithm: bool = False) -> bytes:
    """Return the pack's model. ``logarithm`` makes logits of probabilities. The given model is not changed."""
    wrapped = onnx.ModelProto()
    wrapped.CopyFrom(model)
    graph = wrapped.graph
    output = graph.output[0].name
    known = inferred(model, interface.source, interface.shape(interface.batch or 1)).get(output, graph.output[0])
    source, output = _make_room(graph, interface.source, output)
    head = _Writer(graph)
    taken = _head(head, interface, pixels, opset(model))
    tail = _Writer(graph)
    given = _tail(tail, output, known, logarithm=logarithm)
    if given == output and output not in producers(graph):
        given = tail.add("Identity", [output], "scores")
    _put_around(graph, head.nodes, tail.nodes)
    rename(graph, source, taken)
    rename(graph, given, OUTPUT_NAME)
    classes = (shape_of(known) or (None, None))[1]
    del graph.input[:], graph.output[:]
    graph.input.append(helper.make_tensor_value_info(INPUT_NAME, TensorProto.UINT8, None))
    set_shape(graph.input[0], (None, interface.crop, interface.crop, 3))
    graph.output.append(helper.make_tensor_value_info(OUTPUT_NAME, TensorProto.FLOAT, None))
    set_shape(graph.output[0], (None, classes))
    prune(graph)
    wrapped.ir_version = max(wrapped.ir_version, IR_VERSION)
    wrapped.producer_name, wrapped.producer_version = "assay", ""
    return bytes(wrapped.SerializeToString(deterministic=True))


class _Writer:
    """Collects nodes under names that the graph does not use yet, and puts their constants into it."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._graph, self._taken = graph, names(graph)

    def add(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:  # noqa: ANN401 - onnx's attributes
        """Add a node and return the name of its output."""
        output = self._unused(name)
        node = helper.make_node(kind, inputs, [output], output, **attributes)
        self.nodes.append(node)
        return output

    def constant(self, value: NDArray[Any] | np.generic, name: str) -> str:
        """Add a constant and return its name."""
        name = self._unused(name)
        self._graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _unused(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def _make_room(graph: onnx.GraphProto, source: str, output: str) -> tuple[str, str]:
    """Rename tensors that are called as the pack's input and output are; return the source's and the output's names."""
    taken = names(graph)
    for name in (INPUT_NAME, OUTPUT_NAME):
        if name in taken:
            new = f"own_{name}"
            while new in taken:
                new += "_"
            rename(graph, name, new)
            taken.add(new)
            source, output = (new if each == name else each for each in (source, output))
    return source, output


def _head(writer: _Writer, interface: Interface, pixels: Pixels, version: int) -> str:
    """Write what makes the model's input of photos; return its name."""
    found = INPUT_NAME
    if interface.layout == "NCHW":
        found = writer.add("Transpose", [found], "nchw", perm=[0, 3, 1, 2])  # while a pixel is one byte
    if interface.kind == TensorProto.UINT8:
        return found
    if pixels.is_dequantisation and version in _ZERO_POINTS:
        scale = writer.constant(np.float32(1 / pixels.std[0]), "pixel_scale")
        mean = writer.constant(np.uint8(pixels.mean[0]), "pixel_mean")
        found = writer.add("DequantizeLinear", [found, scale, mean], "pixels")
    else:
        shape = (3, 1, 1) if interface.layout == "NCHW" else (3,)
        found = writer.add("Cast", [found], "pixels_float", to=TensorProto.FLOAT)
        mean = writer.constant(np.array(pixels.mean, np.float32).reshape(shape), "pixel_mean")
        found = writer.add("Sub", [found, mean], "pixels_centred")
        std = writer.constant(np.array(pixels.std, np.float32).reshape(shape), "pixel_std")
        found = writer.add("Div", [found, std], "pixels")
    if interface.kind == TensorProto.FLOAT16:
        found = writer.add("Cast", [found], "pixels_half", to=TensorProto.FLOAT16)
    return found


def _tail(writer: _Writer, output: str, known: onnx.ValueInfoProto, *, logarithm: bool) -> str:
    """Write what makes float32 [N, classes] of the model's output, of which ``known`` is known; return its name."""
    found, shape = output, shape_of(known)
    if shape is None or len(shape) != 2:
        found = writer.add("Flatten", [found], "flat_scores", axis=1)
    if element_type(known) != "float32":
        found = writer.add("Cast", [found], "float_scores", to=TensorProto.FLOAT)
    if logarithm:
        least = writer.constant(np.array([_LEAST], np.float32), "least_probability")
        found = writer.add("Log", [writer.add("Max", [found, least], "probabilities")], "log_probabilities")
    return found


def _put_around(graph: onnx.GraphProto, head: list[onnx.NodeProto], tail: list[onnx.NodeProto]) -> None:
    copied: Callable[[bytes], onnx.NodeProto] = onnx.NodeProto.FromString
    body = [copied(node.SerializeToString()) for node in graph.node]
    del graph.node[:]
    graph.node.extend([*head, *body, *tail])

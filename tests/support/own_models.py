"""Small ONNX classifiers as strangers export them: the colour model of `small_packs`, in every odd form."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from assay.building.foreign.pack import Order, Packed, pack_onnx
from assay.inference.engine import Engine
from assay.inference.postprocess import softmax
from assay.packs.archive import Pack, read_pack
from assay.vision.preprocess import load
from support.small_packs import COLOURS, CROP, LABELS, colour_jpeg

CLASSES = len(LABELS)

# Mean colours in 0..1; each against the other two, grey where none stands out.
WEIGHT = np.array([[8, -4, -4], [-4, 8, -4], [-4, -4, 8], [0, 0, 0]], np.float32)
BIAS = np.array([0, 0, 0, 0.5], np.float32)

Node = onnx.NodeProto


def node(kind: str, inputs: Sequence[str], output: str, **attributes: object) -> Node:
    return helper.make_node(kind, list(inputs), [output], **attributes)


def constant(name: str, value: object, kind: type = np.int64) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value, kind), name)


def value(name: str, kind: int, shape: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def body(kind: type = np.float32) -> tuple[list[Node], list[onnx.TensorProto]]:
    """From ``chw`` [N, 3, H, W] to ``scores`` [N, classes]."""
    nodes = [
        node("Conv", ["chw", "kernel"], "conv"),
        node("GlobalAveragePool", ["conv"], "pooled"),
        node("Flatten", ["pooled"], "flat", axis=1),
        node("Gemm", ["flat", "weight", "bias"], "scores", transB=1),
    ]
    kernel = np.eye(3).reshape(3, 3, 1, 1)
    return nodes, [constant("kernel", kernel, kind), constant("weight", WEIGHT, kind), constant("bias", BIAS, kind)]


def model(
    nodes: Sequence[Node],
    tensors: Sequence[onnx.TensorProto] = (),
    *,
    source: tuple[str, int, Sequence[int | str | None] | None] = ("chw", TensorProto.FLOAT, ("N", 3, CROP, CROP)),
    output: tuple[str, int, Sequence[int | str | None] | None] = ("scores", TensorProto.FLOAT, ("N", CLASSES)),
    more_inputs: Sequence[onnx.ValueInfoProto] = (),
    more_outputs: Sequence[onnx.ValueInfoProto] = (),
    opset: int = 17,
    ir: int = 8,
    domains: Sequence[str] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes), "own-net", [value(*source), *more_inputs], [value(*output), *more_outputs], list(tensors)
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir, functions=list(functions))


def plain(**more: object) -> onnx.ModelProto:
    """Float NCHW, any batch, logits: what fits best."""
    nodes, tensors = body()
    return model(nodes, tensors, **more)


def ending(*tail: Node, tensors: Sequence[onnx.TensorProto] = (), output: str = "out", **more: object):
    """The plain model with more nodes after ``scores``; the last makes ``out``."""
    nodes, weights = body()
    shape = more.pop("shape", ("N", CLASSES))
    return model([*nodes, *tail], [*weights, *tensors], output=(output, TensorProto.FLOAT, shape), **more)


def pooled_to(*tail: Node, tensors: Sequence[onnx.TensorProto] = (), **more: object):
    """The plain model with nodes of one's own from ``pooled`` [N, 3, 1, 1] to ``out``."""
    nodes, weights = body()
    more = {"output": ("out", TensorProto.FLOAT, ("N", CLASSES)), **more}
    return model([*nodes[:2], *tail], [*weights, *tensors], **more)


def write(folder: Path, made: onnx.ModelProto | bytes, labels: str | None = None) -> dict[str, Path]:
    """Write a model and its labels; return the paths as an order takes them."""
    paths = {"onnx": folder / "own.onnx", "labels": folder / "labels.txt"}
    paths["onnx"].write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    paths["labels"].write_text("".join(f"{label}\n" for label in LABELS) if labels is None else labels)
    return paths


def packed(
    folder: Path, made: onnx.ModelProto | bytes, labels: str | None = None, **order: object
) -> tuple[Pack, Packed]:
    """Pack a model for 32 x 32 pictures in 0..1; return the pack as it is read again, and what was said."""
    given = {"name": "own", "mean": (0.0,) * 3, "std": (255.0,) * 3, "resize": CROP, **write(folder, made, labels)}
    out = folder / "own.tar"
    said = pack_onnx(Order(**(given | order)), out)
    return read_pack(out, said.digest), said


def scores(pack: Pack) -> dict[str, np.ndarray]:
    """Probabilities of plain squares of every colour, all in one batch."""
    images = np.stack([load(colour_jpeg(colour), pack.manifest.preprocess) for colour in COLOURS.values()])
    return dict(zip(COLOURS, map(softmax, Engine(pack).infer(images)), strict=True))


def expected() -> dict[str, np.ndarray]:
    """The same, computed without ONNX."""
    given = {}
    for name, colour in COLOURS.items():
        pixels = load(colour_jpeg(colour), _Geometry()).reshape(-1, 3) / 255
        given[name] = softmax((WEIGHT @ pixels.mean(axis=0) + BIAS).astype(np.float32))
    return given


class _Geometry:
    resize_short = crop = CROP
    interpolation = "bilinear"


def answers_rightly(pack: Pack, tolerance: float = 1e-4) -> bool:
    """Whether every colour is named, with the probabilities computed by hand."""
    found, right = scores(pack), expected()
    return all(
        LABELS[int(found[name].argmax())] == name and np.allclose(found[name], right[name], atol=tolerance)
        for name in COLOURS
    )

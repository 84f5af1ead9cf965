"""Real models, spoilt in one way each: what a check has to catch. Every function takes and gives an ONNX model."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE = 224  # of the model's input, and of the matrices that make it slow


def per_tensor(model: bytes, images: Sequence[np.ndarray]) -> bytes:
    """Quantised with one scale for all of a layer's weights: depthwise layers do not survive it."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = iter(images)

        def get_next(self):
            image = next(self.left, None)
            return None if image is None else {"images": image}

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        before.write_bytes(model)
        quantize_static(
            str(before), str(after), Reader(), quant_format=QuantFormat.QDQ, per_channel=False,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        return after.read_bytes()


def off_by_one(model: bytes) -> bytes:
    """Every logit at the place of the class before it, as with labels that count from one."""
    loaded = onnx.load_from_string(model)
    classes = loaded.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    inner = _inner(loaded)
    _constant(loaded, "spoilt_rolled", np.roll(np.arange(classes), -1))
    loaded.graph.node.append(
        helper.make_node("Gather", [inner, "spoilt_rolled"], [loaded.graph.output[0].name], axis=1)
    )
    return loaded.SerializeToString()


def with_background(model: bytes) -> bytes:
    """One class more, before all others: the 1001 classes of TensorFlow's ImageNet models."""
    loaded = onnx.load_from_string(model)
    output = loaded.graph.output[0]
    inner = _inner(loaded)
    _constant(loaded, "spoilt_pads", np.array([0, 1, 0, 0]))
    _constant(loaded, "spoilt_lowest", np.float32(-100))
    loaded.graph.node.append(helper.make_node("Pad", [inner, "spoilt_pads", "spoilt_lowest"], [output.name]))
    output.type.tensor_type.shape.dim[1].dim_value += 1
    return loaded.SerializeToString()


def slow(model: bytes, work: int, above: float | None = None) -> bytes:
    """The same answers for more work, about a millisecond each; on images brighter on average than ``above`` only."""
    loaded = onnx.load_from_string(model)
    inner = _inner(loaded)
    _constant(loaded, "spoilt_nothing", np.float32(0))
    _constant(loaded, "spoilt_matrix", np.eye(SIDE, dtype=np.float32))
    _constant(loaded, "spoilt_rows", np.array([-1, SIDE]))
    done = "spoilt_effort" if above is None else "spoilt_done"  # names inside a branch are not those outside
    labour = [
        helper.make_node("Reshape", ["spoilt_pixels", "spoilt_rows"], ["spoilt_0"]),
        *[helper.make_node("MatMul", [f"spoilt_{i}", "spoilt_matrix"], [f"spoilt_{i + 1}"]) for i in range(work)],
        helper.make_node("ReduceMean", [f"spoilt_{work}"], ["spoilt_mean"], keepdims=0),
        helper.make_node("Mul", ["spoilt_mean", "spoilt_nothing"], [done]),
    ]
    loaded.graph.node.append(helper.make_node("Cast", ["images"], ["spoilt_pixels"], to=TensorProto.FLOAT))
    if above is None:
        loaded.graph.node.extend(labour)
    else:
        scalar = [helper.make_tensor_value_info(done, TensorProto.FLOAT, [])]
        idle = [helper.make_node("Identity", ["spoilt_nothing"], [done])]
        branches = {
            "then_branch": helper.make_graph(labour, "busy", [], scalar),
            "else_branch": helper.make_graph(idle, "idle", [], scalar),
        }
        loaded.graph.node.extend(
            [*_bright(loaded, above), helper.make_node("If", ["spoilt_bright"], ["spoilt_effort"], **branches)]
        )
    loaded.graph.node.append(helper.make_node("Add", [inner, "spoilt_effort"], [loaded.graph.output[0].name]))
    return loaded.SerializeToString()


def nan_where_bright(model: bytes, above: float) -> bytes:
    """NaN for images brighter on average than ``above``."""
    loaded = onnx.load_from_string(model)
    inner = _inner(loaded)
    _constant(loaded, "spoilt_nothing", np.float32(0))
    _constant(loaded, "spoilt_nan", np.float32(np.nan))
    loaded.graph.node.append(helper.make_node("Cast", ["images"], ["spoilt_pixels"], to=TensorProto.FLOAT))
    loaded.graph.node.extend(
        [
            *_bright(loaded, above),
            helper.make_node("Where", ["spoilt_bright", "spoilt_nan", "spoilt_nothing"], ["spoilt_effort"]),
            helper.make_node("Add", [inner, "spoilt_effort"], [loaded.graph.output[0].name]),
        ]
    )
    return loaded.SerializeToString()


def fixed(model: bytes, scores: np.ndarray) -> bytes:
    """The same logits whatever the photo."""
    loaded = onnx.load_from_string(model)
    inner = _inner(loaded)
    _constant(loaded, "spoilt_nothing", np.float32(0))
    _constant(loaded, "spoilt_scores", np.asarray(scores, np.float32))
    loaded.graph.node.extend(
        [
            helper.make_node("Mul", [inner, "spoilt_nothing"], ["spoilt_silenced"]),
            helper.make_node("Add", ["spoilt_silenced", "spoilt_scores"], [loaded.graph.output[0].name]),
        ]
    )
    return loaded.SerializeToString()


def _bright(loaded: onnx.ModelProto, above: float) -> list[onnx.NodeProto]:
    """Whether the mean of ``spoilt_pixels`` is above a level, as ``spoilt_bright``."""
    _constant(loaded, "spoilt_level", np.float32(above))
    mean = helper.make_node("ReduceMean", ["spoilt_pixels"], ["spoilt_brightness"], keepdims=0)
    return [mean, helper.make_node("Greater", ["spoilt_brightness", "spoilt_level"], ["spoilt_bright"])]


def _inner(loaded: onnx.ModelProto) -> str:
    """Give the model's logits another name, so that something can be done to them before they leave."""
    output = loaded.graph.output[0].name
    for node in loaded.graph.node:
        node.output[:] = ["spoilt_honest" if name == output else name for name in node.output]
    return "spoilt_honest"


def _constant(loaded: onnx.ModelProto, name: str, value: np.ndarray) -> None:
    loaded.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))

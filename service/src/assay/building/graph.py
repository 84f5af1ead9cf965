"""Writes ONNX graphs node by node: the few operations that mobile classifiers are made of.

Batch normalisation is folded into the convolution before it, weights are constants (ONNX Runtime's blocked layout
needs that), and names are numbered in order, so the same weights give the same bytes.
"""

from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from assay.errors import BuildError

Array = NDArray[Any]

OPSET: Final = 17
"""Old enough for every ONNX Runtime since 1.12; has all that is used here, per-channel DequantizeLinear included."""

IR_VERSION: Final = 8
"""The file format that belongs to opset 17."""

INPUT_NAME: Final = "images"
"""uint8 [N, crop, crop, 3]; the same name stands in the Open Inference Protocol."""

OUTPUT_NAME: Final = "logits"
"""float32 [N, classes]."""


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return TensorFlow's 'same' padding before and after one axis: the odd pixel goes after.

    Source: the TensorFlow documentation of ``tf.nn.convolution``, "SAME padding".
    """
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def fold_batch_norm(
    weight: Array, gamma: Array, beta: Array, mean: Array, variance: Array, epsilon: float
) -> tuple[Array, Array]:
    """Return weight and bias of a convolution that does the batch normalisation after it as well (in float64)."""
    scale = gamma.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
    folded = weight.astype(np.float64) * scale.reshape(-1, *[1] * (weight.ndim - 1))
    return folded.astype(np.float32), (beta - mean * scale).astype(np.float32)


class GraphWriter:
    """Collects nodes and constants; tensors are named by the node that makes them, and their shapes are tracked."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}

    def images(self, crop: int, mean: float, scale: float) -> str:
        """Take uint8 NHWC images; return float NCHW ``(x - mean) / scale``.

        ``DequantizeLinear`` with zero point ``mean`` is exactly that, in one pass over the pixels, and is the form
        in which a quantised graph takes its input without any rounding.
        """
        if mean != int(mean) or not 0 <= mean <= 255:
            raise BuildError(f"mean {mean} is not a uint8 zero point")
        self._crop = crop
        self._shapes[INPUT_NAME] = (3, crop, crop)
        chw = self._node("Transpose", [INPUT_NAME], "nchw", (3, crop, crop), perm=[0, 3, 1, 2])
        parameters = [
            self._constant("pixel_scale", np.float32(1.0 / scale)),
            self._constant("pixel_mean", np.uint8(mean)),
        ]
        return self._node("DequantizeLinear", [chw, *parameters], "pixels", (3, crop, crop))

    def convolution(
        self, source: str, name: str, weight: Array, bias: Array, *, stride: int, groups: int = 1, relu6: bool
    ) -> str:
        """Convolve with 'same' padding; ``weight`` is [out, in / groups, kernel, kernel]."""
        channels, height, width = self._shapes[source]
        outputs, inputs, kernel, _ = weight.shape
        if inputs * groups != channels:
            raise BuildError(f"{name} wants {inputs * groups} channels, {source} has {channels}")
        (top, bottom), (left, right) = (same_padding(size, kernel, stride) for size in (height, width))
        shape = (outputs, -(-height // stride), -(-width // stride))
        result = self._node(
            "Conv",
            [source, self._constant(f"{name}.weight", weight), self._constant(f"{name}.bias", bias)],
            name,
            shape,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[top, left, bottom, right],
            group=groups,
        )
        return self.relu6(result) if relu6 else result

    def relu6(self, source: str) -> str:
        """Clip to 0..6."""
        limits = [self._constant("relu6.min", np.float32(0)), self._constant("relu6.max", np.float32(6))]
        return self._node("Clip", [source, *limits], f"{source}.relu6", self._shapes[source])

    def add(self, left: str, right: str, name: str) -> str:
        """Add two tensors of one shape (a residual connection)."""
        return self._node("Add", [left, right], name, self._shapes[left])

    def classifier(self, source: str, weight: Array, bias: Array) -> None:
        """Average over the plane, then one dense layer to the logits; ``weight`` is [classes, channels]."""
        channels = self._shapes[source][0]
        pooled = self._node("GlobalAveragePool", [source], "pooled", (channels, 1, 1))
        flat = self._node("Flatten", [pooled], "features", (channels,), axis=1)
        parameters = [self._constant("classifier.weight", weight), self._constant("classifier.bias", bias)]
        self._nodes.append(helper.make_node("Gemm", [flat, *parameters], [OUTPUT_NAME], "classifier", transB=1))
        self._shapes[OUTPUT_NAME] = (weight.shape[0],)

    def model(self, name: str) -> bytes:
        """Return the finished, checked model."""
        graph = helper.make_graph(
            self._nodes,
            name,
            [helper.make_tensor_value_info(INPUT_NAME, TensorProto.UINT8, ["N", self._crop, self._crop, 3])],
            [helper.make_tensor_value_info(OUTPUT_NAME, TensorProto.FLOAT, ["N", *self._shapes[OUTPUT_NAME]])],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="assay",
        )
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString(deterministic=True))

    def _constant(self, name: str, value: Array | np.generic) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def _node(
        self,
        kind: str,
        inputs: list[str],
        output: str,
        shape: tuple[int, ...],
        **attributes: int | list[int],
    ) -> str:
        if output in self._shapes:
            raise BuildError(f"two nodes are called {output}")
        node = helper.make_node(kind, inputs, [output], output)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in sorted(attributes.items()))
        self._nodes.append(node)
        self._shapes[output] = shape
        return output

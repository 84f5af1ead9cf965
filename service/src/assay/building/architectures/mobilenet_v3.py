"""MobileNetV3-Large as torchvision has it: inverted residuals, some with squeeze-and-excite, ReLU and HardSwish.

Block table: Howard et al., "Searching for MobileNetV3" (arXiv:1905.02244), table 1. Names of the weights, padding and
widths of the squeezed layers: the state dict of ``torchvision.models.mobilenet_v3_large``.
"""

from typing import Final, NamedTuple

from assay.building.architectures.mobilenet_v2 import CROP, MEAN, SCALE
from assay.building.layers import Activation, Array, Layers, T
from assay.building.weights import Weights

EPSILON: Final = 1e-3
"""Of every batch normalisation, as the model was trained."""

STEM: Final = 16
HEAD: Final = 960
HIDDEN: Final = 1280
"""Widths of the first and the last convolution, and of the layer before the logits."""


class Block(NamedTuple):
    """One inverted residual: ``squeezed`` is the width of its squeeze-and-excite branch, 0 where it has none."""

    kernel: int
    expanded: int
    channels: int
    squeezed: int
    activation: Activation
    stride: int


BLOCKS: Final = (
    Block(3, 16, 16, 0, "relu", 1),
    Block(3, 64, 24, 0, "relu", 2),
    Block(3, 72, 24, 0, "relu", 1),
    Block(5, 72, 40, 24, "relu", 2),
    Block(5, 120, 40, 32, "relu", 1),
    Block(5, 120, 40, 32, "relu", 1),
    Block(3, 240, 80, 0, "hard_swish", 2),
    Block(3, 200, 80, 0, "hard_swish", 1),
    Block(3, 184, 80, 0, "hard_swish", 1),
    Block(3, 184, 80, 0, "hard_swish", 1),
    Block(3, 480, 112, 120, "hard_swish", 1),
    Block(3, 672, 112, 168, "hard_swish", 1),
    Block(5, 672, 160, 168, "hard_swish", 2),
    Block(5, 960, 160, 240, "hard_swish", 1),
    Block(5, 960, 160, 240, "hard_swish", 1),
)


def mobilenet_v3_large(graph: Layers[T], weights: Weights) -> None:
    """Put the model's layers into a graph, from uint8 [N, 224, 224, 3] to float32 logits [N, classes].

    Raises ``BuildError`` when a tensor is missing or has another shape.
    """
    x = graph.stem(CROP, (MEAN, SCALE), *_folded(weights, "features.0", (STEM, 3, 3, 3)), "hard_swish")
    channels = STEM
    for index, block in enumerate(BLOCKS, 1):
        x = _block(graph, weights, x, index, channels, block)
        channels = block.channels
    head = _folded(weights, f"features.{len(BLOCKS) + 1}", (HEAD, channels, 1, 1))
    x = graph.features(graph.convolution(x, "head", *head, activation="hard_swish"))
    x = graph.dense(x, "hidden", *weights.layer("classifier.0", (HIDDEN, HEAD)), activation="hard_swish")
    graph.logits(x, *weights.layer("classifier.3", (weights.classes("classifier.3.bias"), HIDDEN)))


def _block(graph: Layers[T], weights: Weights, source: T, index: int, channels: int, block: Block) -> T:
    """Expand, filter each channel, weigh the channels, project; add the input back where shapes allow."""
    parts = iter(f"features.{index}.block.{part}" for part in range(4))
    name, inner, x = f"block{index}", block.expanded, source
    if inner != channels:
        expand = _folded(weights, next(parts), (inner, channels, 1, 1))
        x = graph.convolution(x, f"{name}.expand", *expand, activation=block.activation)
    depthwise = _folded(weights, next(parts), (inner, 1, block.kernel, block.kernel))
    x = graph.convolution(
        x, f"{name}.depthwise", *depthwise, stride=block.stride, groups=inner, activation=block.activation
    )
    if block.squeezed:
        branch = next(parts)
        squeeze = weights.layer(f"{branch}.fc1", (block.squeezed, inner, 1, 1))
        excite = weights.layer(f"{branch}.fc2", (inner, block.squeezed, 1, 1))
        x = graph.squeeze_excite(x, f"{name}.weighed", squeeze, excite)
    x = graph.convolution(x, f"{name}.project", *_folded(weights, next(parts), (block.channels, inner, 1, 1)))
    if block.stride == 1 and channels == block.channels:
        return graph.add(x, source, f"{name}.sum")
    return x


def _folded(weights: Weights, name: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    return weights.folded(f"{name}.0", f"{name}.1", shape, EPSILON)

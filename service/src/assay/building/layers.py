"""The layers that mobile classifiers are made of, as architectures ask for them.

``graph.GraphWriter`` writes them down as ONNX, ``eager.Eager`` computes them at once. ``T`` is what stands for a
tensor: its name there, the array here.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeVar

from numpy.typing import NDArray

Array = NDArray[Any]

T = TypeVar("T")

Activation = Literal["relu", "relu6", "hard_swish"]
"""What may follow a convolution. HardSwish is x times ReLU6(x + 3) / 6 (arXiv:1905.02244, section 5.2)."""

PerChannel = tuple[Sequence[float], Sequence[float]]
"""Mean and scale of R, G and B, in 0..255."""


class Layers(Protocol[T]):
    """Something that layers can be added to, one after the other."""

    def stem(self, crop: int, normalisation: PerChannel, weight: Array, bias: Array, activation: Activation) -> T:
        """Take uint8 NHWC images, normalise them to ``(x - mean) / scale`` per channel, convolve with stride 2."""

    def convolution(
        self,
        source: T,
        name: str,
        weight: Array,
        bias: Array,
        *,
        stride: int = 1,
        groups: int = 1,
        activation: Activation | None = None,
    ) -> T:
        """Convolve to ``size / stride``, rounded up; ``weight`` is [out, in / groups, kernel, kernel]."""

    def squeeze_excite(self, source: T, name: str, squeeze: tuple[Array, Array], excite: tuple[Array, Array]) -> T:
        """Weigh each channel by a number in 0..1 computed from all channels' averages; weights are 1 x 1 kernels."""

    def add(self, left: T, right: T, name: str) -> T:
        """Add two tensors of one shape (a residual connection)."""

    def features(self, source: T) -> T:
        """Average over the plane: [N, channels]."""

    def dense(self, source: T, name: str, weight: Array, bias: Array, activation: Activation | None = None) -> T:
        """Apply a dense layer to features; ``weight`` is [outputs, inputs]."""

    def logits(self, source: T, weight: Array, bias: Array) -> None:
        """End in a dense layer with one output per class; ``weight`` is [classes, inputs]."""

"""Computes layers at once, in NumPy: slow, and plain enough to check the graphs against."""

import numpy as np
from numpy.typing import NDArray

from assay.building.layers import Activation, Array, Layers, PerChannel
from assay.building.padding import Padding

Tensor = NDArray[np.float32]
"""[N, channels, height, width], or [N, channels] once they are features."""


class Eager(Layers[Tensor]):
    """Layers of a model and what they make of ``images``, uint8 [N, side, side, 3] (of any side)."""

    def __init__(self, padding: Padding, images: NDArray[np.uint8]) -> None:
        self._padding = padding
        self._images = images
        self.result: Tensor | None = None

    def stem(self, crop: int, normalisation: PerChannel, weight: Array, bias: Array, activation: Activation) -> Tensor:
        """Normalise the images, and convolve them with stride 2."""
        del crop
        mean, scale = (np.asarray(part, np.float32) for part in normalisation)
        pixels = ((self._images - mean) / scale).transpose(0, 3, 1, 2)
        return self.convolution(pixels, "stem", weight, bias, stride=2, activation=activation)

    def convolution(
        self,
        source: Tensor,
        name: str,
        weight: Array,
        bias: Array,
        *,
        stride: int = 1,
        groups: int = 1,
        activation: Activation | None = None,
    ) -> Tensor:
        """Convolve: one product for each place of the kernel. Either all channels mix (one group), or none do."""
        del name
        kernel, count = weight.shape[2], source.shape[0]
        height, width = source.shape[2:]
        sides = [self._padding(size, kernel, stride) for size in (height, width)]
        padded = np.pad(source, ((0, 0), (0, 0), *sides))
        rows, columns = -(-height // stride), -(-width // stride)
        total = np.zeros((count, len(weight), rows, columns), np.float32) + bias.reshape(-1, 1, 1)
        for y in range(kernel):
            for x in range(kernel):
                window = padded[:, :, y : y + rows * stride : stride, x : x + columns * stride : stride]
                window = window[:, :, :rows, :columns]
                if groups == 1:
                    flat = window.reshape(count, -1, rows * columns)
                    total += (weight[:, :, y, x] @ flat).reshape(total.shape)
                else:
                    total += window * weight[:, 0, y, x].reshape(-1, 1, 1)
        return _activate(self.normalise(total), activation)

    def normalise(self, convolved: Tensor) -> Tensor:
        """Return what a convolution gave; a subclass may have a word in it before the activation."""
        return convolved

    def squeeze_excite(
        self, source: Tensor, name: str, squeeze: tuple[Array, Array], excite: tuple[Array, Array]
    ) -> Tensor:
        """Weigh each channel."""
        del name
        (inner, inner_bias), (outer, outer_bias) = squeeze, excite
        average = source.mean((2, 3))
        hidden = np.maximum(average @ inner[:, :, 0, 0].T + inner_bias, 0)
        gate = np.clip((hidden @ outer[:, :, 0, 0].T + outer_bias + 3) / 6, 0, 1)
        weighed: Tensor = source * gate[:, :, None, None]
        return weighed

    def add(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """Add."""
        del name
        return left + right

    def features(self, source: Tensor) -> Tensor:
        """Average over the plane."""
        features: Tensor = source.mean((2, 3))
        return features

    def dense(
        self, source: Tensor, name: str, weight: Array, bias: Array, activation: Activation | None = None
    ) -> Tensor:
        """Apply a dense layer."""
        del name
        return _activate(source @ weight.T + bias, activation)

    def logits(self, source: Tensor, weight: Array, bias: Array) -> None:
        """Keep the logits as ``result``."""
        self.result = self.dense(source, "classifier", weight, bias)


def _activate(x: Tensor, kind: Activation | None) -> Tensor:
    match kind:
        case None:
            return x
        case "relu":
            return np.maximum(x, 0)
        case "relu6":
            return np.clip(x, 0, 6)
        case "hard_swish":
            return (x * (np.clip(x + 3, 0, 6) / 6)).astype(np.float32)

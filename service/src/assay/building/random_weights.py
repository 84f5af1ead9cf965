"""Seeded random weights of whatever shapes an architecture asks for: for tests and benchmarks.

Such a model costs and weighs what a trained one does, and behaves like one inside: every convolution's output is
normalised by statistics measured on random pictures, so activations neither vanish nor explode on their way through
fifty layers, and different pictures get different labels. Which labels, means nothing.
"""

import hashlib
import zlib
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assay.building.eager import Eager, Tensor
from assay.building.layers import Array, Layers
from assay.building.padding import Padding
from assay.building.weights import Weights

PICTURES: Final = 8
SIDE: Final = 128
"""What statistics are measured on: the deepest layers see 4 x 4 places of each picture, 128 in all."""

_PATCHES: Final = (2, 7, 14, 56)
"""Sides, in patches, of the pictures' random mosaics: from large shapes to fine grain, as photos have."""

_LEAST: Final = 1e-6
"""A channel that never changes (all its inputs are cut off by ReLU) keeps a variance above nothing."""


class RandomWeights(Weights):
    """Hands out random tensors; ``tensors`` are all of them, by name, and each depends on the seed and its name only.

    Weights are scaled to their fan-in (He et al., arXiv:1502.01852). Batch normalisation begins with mean 0 and
    variance 1, and `settle` replaces both.
    """

    def __init__(self, seed: int, model: str) -> None:
        super().__init__(model)
        self._seed = seed
        self._unsettled: tuple[str, float] | None = None
        self.tensors: dict[str, NDArray[np.float32]] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return the tensor of that name and shape; the same one each time."""
        if name not in self.tensors:
            rng = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
            kind = name.rpartition(".")[2]
            if kind in ("running_mean", "running_var"):
                value = np.full(shape, float(kind == "running_var"))
            elif len(shape) > 1:
                value = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
            else:
                # Factors around 1 and shifts around 0, wide enough to matter when they are folded.
                value = rng.uniform(0.5, 1.5, shape) if kind == "weight" else rng.normal(0, 0.2, shape)
            self.tensors[name] = value.astype(np.float32)
        return self.tensors[name]

    def folded(self, conv: str, norm: str, shape: tuple[int, ...], epsilon: float) -> tuple[Array, Array]:
        """Return a convolution with its normalisation, whose statistics may be settled next."""
        self._unsettled = norm, epsilon
        return super().folded(conv, norm, shape, epsilon)

    def settle(self, convolved: Tensor) -> Tensor:
        """Make what the convolution last asked for gave out its normalisation's statistics; return it normalised."""
        if self._unsettled is None:
            return convolved
        (norm, epsilon), self._unsettled = self._unsettled, None
        gamma, beta = (self.tensors[f"{norm}.{part}"].reshape(-1, 1, 1) for part in ("weight", "bias"))
        plain = (convolved - beta) * np.float32(np.sqrt(1 + epsilon)) / gamma
        mean = plain.mean((0, 2, 3), dtype=np.float64)
        variance = np.maximum(plain.var((0, 2, 3), dtype=np.float64), _LEAST)
        self.tensors[f"{norm}.running_mean"] = mean.astype(np.float32)
        self.tensors[f"{norm}.running_var"] = variance.astype(np.float32)
        spread = np.sqrt(variance + epsilon).reshape(-1, 1, 1)
        settled: Tensor = ((plain - mean.reshape(-1, 1, 1)) / spread * gamma + beta).astype(np.float32)
        return settled

    @property
    def sha256(self) -> str:
        """The sha256 of all tensors, in the order of their names."""
        found = hashlib.sha256()
        for name, value in sorted(self.tensors.items()):
            found.update(name.encode() + value.tobytes())
        return found.hexdigest()


class _Settling(Eager):
    """Computes layers, and settles each normalisation when its convolution is computed."""

    def __init__(self, padding: Padding, images: NDArray[np.uint8], weights: RandomWeights) -> None:
        super().__init__(padding, images)
        self._weights = weights

    def normalise(self, convolved: Tensor) -> Tensor:
        """Settle the weights on it."""
        return self._weights.settle(convolved)


def random_weights(
    seed: int, model: str, layers: Callable[[Layers[Tensor], Weights], None], padding: Padding
) -> RandomWeights:
    """Return random weights for an architecture's layers, settled on random pictures."""
    weights = RandomWeights(seed, model)
    layers(_Settling(padding, random_pictures(seed, PICTURES, SIDE), weights), weights)
    return weights


def random_pictures(seed: int, count: int, side: int) -> NDArray[np.uint8]:
    """Return pictures, uint8 [count, side, side, 3]: mosaics of random colours laid over each other."""
    rng = np.random.default_rng(seed)
    total = np.zeros((count, side, side, 3))
    for patches in _PATCHES:
        places = np.arange(side) * patches // side
        colours = rng.normal(0, 1, (count, patches, patches, 3))
        total += colours[:, places][:, :, places] * rng.uniform(0, 60, (count, 1, 1, 1))
    return np.clip(total + rng.uniform(60, 190, (count, 1, 1, 3)), 0, 255).astype(np.uint8)

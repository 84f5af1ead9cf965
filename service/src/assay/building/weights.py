"""What architectures take their weights from: a state dict read from a file, or ``random_weights``."""

from abc import ABC, abstractmethod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assay.building.layers import Array
from assay.errors import BuildError

Float = NDArray[np.float32]

CLASSES: Final = 1000
"""Of ImageNet-1k, whose labels a pack built here gets."""


def fold_batch_norm(
    weight: Array, gamma: Array, beta: Array, mean: Array, variance: Array, epsilon: float
) -> tuple[Array, Array]:
    """Return weight and bias of a convolution that does the batch normalisation after it as well (in float64)."""
    scale = gamma.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
    folded = weight.astype(np.float64) * scale.reshape(-1, *[1] * (weight.ndim - 1))
    return folded.astype(np.float32), (beta - mean * scale).astype(np.float32)


class Weights(ABC):
    """Hands out tensors by name. ``model`` is the name that messages use."""

    def __init__(self, model: str) -> None:
        self._model = model

    @abstractmethod
    def take(self, name: str, shape: tuple[int, ...]) -> Float:
        """Return one tensor. Raises ``BuildError`` when there is none, or one of another shape or not finite."""

    def classes(self, bias: str) -> int:
        """Return how many classes the model has: one per number of its last bias. Raises ``BuildError`` as above."""
        del bias
        return CLASSES

    def finish(self) -> None:  # noqa: B027 - random weights have nothing left over
        """Raise ``BuildError`` when tensors were never asked for: the file is of another model."""

    def layer(self, name: str, shape: tuple[int, ...]) -> tuple[Float, Float]:
        """Return weight and bias of a layer without normalisation."""
        return self.take(f"{name}.weight", shape), self.take(f"{name}.bias", shape[:1])

    def folded(self, conv: str, norm: str, shape: tuple[int, ...], epsilon: float) -> tuple[Array, Array]:
        """Return weight and bias of a convolution and the batch normalisation after it, as one convolution."""
        weight = self.take(f"{conv}.weight", shape)
        gamma, beta, mean, variance = (
            self.take(f"{norm}.{name}", shape[:1]) for name in ("weight", "bias", "running_mean", "running_var")
        )
        return fold_batch_norm(weight, gamma, beta, mean, variance, epsilon)


class StateDict(Weights):
    """The tensors of a checkpoint; each is handed out once."""

    def __init__(self, tensors: dict[str, Array], model: str) -> None:
        super().__init__(model)
        # A counter of training steps has no part in inference.
        self._left = {name: value for name, value in tensors.items() if not name.endswith("num_batches_tracked")}

    def take(self, name: str, shape: tuple[int, ...]) -> Float:
        """Return one tensor, as ``Weights.take``; it is then no longer left over."""
        if name not in self._left:
            raise BuildError(f"the checkpoint lacks {name}: it is not {self._model}")
        value = self._left.pop(name)
        if value.shape != shape or not np.isfinite(value).all():
            raise BuildError(f"{name} is {value.shape}, or not finite; {self._model} has {shape}")
        return value.astype(np.float32)

    def classes(self, bias: str) -> int:
        """Return how many classes the model has. Raises ``BuildError`` unless they can be ImageNet's."""
        found = self._left.get(bias)
        if found is None:
            raise BuildError(f"the checkpoint lacks {bias}: it is not {self._model}")
        if found.shape != (CLASSES,):
            raise BuildError(
                f"{bias} is {found.shape}; the labels here are ImageNet's {CLASSES}: export a model with classes of "
                "your own to ONNX, and give it its labels with `assay model pack`"
            )
        return CLASSES

    def finish(self) -> None:
        """Raise ``BuildError`` when tensors are left over."""
        if self._left:
            raise BuildError(f"the checkpoint has more than {self._model}: {sorted(self._left)[:3]}")

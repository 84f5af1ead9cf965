"""What architectures take their weights from: a state dict read from a file, or seeded random numbers."""

import hashlib
import zlib
from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from assay.building.graph import fold_batch_norm
from assay.errors import BuildError

Array = NDArray[Any]
Float = NDArray[np.float32]

CLASSES: Final = 1000
"""Of ImageNet-1k, whose labels a pack built here gets."""


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


class RandomWeights(Weights):
    """Seeded random numbers of whatever shape is asked for: real cost and size, labels that mean nothing.

    Weights are scaled to their fan-in (He et al., arXiv:1502.01852), so that activations neither vanish nor explode
    on their way through the layers, and batch normalisation has statistics that matter when it is folded. A tensor
    depends on the seed and its name only, not on the order of asking. ``tensors`` is what was handed out.
    """

    def __init__(self, seed: int, model: str) -> None:
        super().__init__(model)
        self._seed = seed
        self.tensors: dict[str, Float] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> Float:
        """Return the tensor of that name and shape."""
        rng = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
        kind = name.rpartition(".")[2]
        if kind == "running_var" or (kind == "weight" and len(shape) == 1):
            value = rng.uniform(0.5, 1.5, shape)
        elif len(shape) == 1:
            value = rng.normal(0, 0.1, shape)
        else:
            value = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        self.tensors[name] = value.astype(np.float32)
        return self.tensors[name]

    @property
    def sha256(self) -> str:
        """The sha256 of all tensors handed out, in the order of their names."""
        found = hashlib.sha256()
        for name, value in sorted(self.tensors.items()):
            found.update(name.encode() + value.tobytes())
        return found.hexdigest()

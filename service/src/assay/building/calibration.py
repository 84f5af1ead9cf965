"""Ranges of activations, from calibration images: the FP32 model runs as written, and every tensor is looked at.

Nothing is written to disk. Two methods: the least and the greatest value seen, and the same without the outermost
fraction of values (a histogram between the two, so it needs a second look at some of the images).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto

from assay.building.recipes import PERCENTILE
from assay.building.structure import INTEGER_OPERATIONS
from assay.errors import BuildError
from assay.inference.engine import session_options
from assay.platform.cpu import cpu_limit_millicores

Progress = Callable[[int, int], None]
Ranges = dict[str, tuple[np.float32, np.float32]]
"""Least and greatest value of each tensor."""

PERCENTILE_IMAGES: Final = 32
"""Images that histograms are made of: 7 million values each for MobileNet-class models, 50 ms to count."""

_BINS: Final = 4096
"""Bins of a histogram: a range then ends within a sixteenth of one of its 256 steps."""


@dataclass(frozen=True)
class Observer:
    """Runs a model on one image at a time and returns tensors inside it."""

    session: ort.InferenceSession
    tensors: tuple[str, ...]

    @classmethod
    def of(cls, model: onnx.ModelProto, tensors: Iterable[str], *, production: bool = False) -> "Observer":
        """Make a model's tensors its outputs; ``production`` runs it as the service does, with one thread.

        Without it every thread of the CPU limit computes, and no two operations become one: all tensors can be seen.
        Raises ``BuildError`` when ONNX Runtime refuses the model.
        """
        watched = onnx.ModelProto()
        watched.CopyFrom(model)
        there = {value.name for value in watched.graph.output}
        wanted = tuple(tensors)
        watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in there)
        options: Any = session_options(1 if production else max(1, cpu_limit_millicores() // 1000))
        if not production:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = ort.InferenceSession(watched.SerializeToString(), options, ["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime raises a dozen unrelated classes
            raise BuildError(f"the model does not run: {' '.join(str(error).split())[:300]}") from error
        return cls(session, wanted)

    def see(self, image: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
        """Return the tensors' values for an image, uint8 [1, crop, crop, 3].

        Raises ``BuildError`` if the model fails on it.
        """
        try:
            values: list[NDArray[np.float32]] = self.session.run(
                list(self.tensors), {self.session.get_inputs()[0].name: image}
            )
        except Exception as error:  # as above
            raise BuildError(f"the model fails on an image: {' '.join(str(error).split())[:300]}") from error
        return values


def activations(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the float tensors that integer operations read or write, in the order they are made."""
    graph = model.graph
    values = (*graph.value_info, *graph.input, *graph.output)
    constants = {tensor.name for tensor in graph.initializer}
    known = {value.name for value in values if value.type.tensor_type.elem_type == TensorProto.FLOAT} - constants
    found: dict[str, None] = {}  # as an ordered set
    for node in graph.node:
        if node.op_type in INTEGER_OPERATIONS:
            found.update(dict.fromkeys(name for name in (*node.input, *node.output) if name in known))
    return tuple(found)


def extremes(observer: Observer, images: Sequence[NDArray[np.uint8]], progress: Progress | None = None) -> Ranges:
    """Return the least and the greatest value of each tensor over all images."""
    least = np.full(len(observer.tensors), np.inf, np.float32)
    greatest = -least
    for number, image in enumerate(images):
        values = observer.see(image)
        least = np.minimum(least, [value.min() for value in values])
        greatest = np.maximum(greatest, [value.max() for value in values])
        if progress:
            progress(number + 1, len(images))
    for name, low, high in zip(observer.tensors, least, greatest, strict=True):
        if not (np.isfinite(low) and np.isfinite(high)):
            raise BuildError(f"the FP32 model gives NaN or infinity in {name}: it cannot be calibrated")
    return dict(zip(observer.tensors, zip(least, greatest, strict=True), strict=True))


def percentiles(
    observer: Observer, images: Sequence[NDArray[np.uint8]], within: Ranges, progress: Progress | None = None
) -> Ranges:
    """Return the ranges that hold ``PERCENTILE`` percent of each tensor's values, the rest cut in equal parts.

    ``within`` are the extremes over at least these images.
    """
    counts = np.zeros((len(observer.tensors), _BINS), np.int64)
    limits = [within[name] for name in observer.tensors]
    for number, image in enumerate(images):
        for row, value, (low, high) in zip(counts, observer.see(image), limits, strict=True):
            if high > low:
                bins = ((value.ravel() - low) * np.float32((_BINS - 1) / (high - low))).astype(np.int32)
                row += np.bincount(bins, minlength=_BINS)[:_BINS]
        if progress:
            progress(number + 1, len(images))
    kept = {}
    for name, row, (low, high) in zip(observer.tensors, counts, limits, strict=True):
        if not row.any():
            kept[name] = (low, high)
            continue
        share = np.cumsum(row) / row.sum()
        cut = (1 - PERCENTILE / 100) / 2
        width = (high - low) / (_BINS - 1)
        first, last = int(np.searchsorted(share, cut, side="right")), int(np.searchsorted(share, 1 - cut))
        kept[name] = (np.float32(low + first * width), np.float32(min(high, low + (last + 1) * width)))
    return kept

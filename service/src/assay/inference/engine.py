"""One ONNX Runtime session with the options of production; the service and the check build it here alike."""

from typing import Any, Final

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from assay.errors import CpuFeatureMissingError, PackError
from assay.packs.archive import Pack
from assay.platform.cpu import cpu_features, cpu_model

_QUIET: Final = 3
"""ONNX Runtime's log level ERROR: its warnings concern hardware discovery and are no use to an operator."""

_SILENT: Final = 4
"""ONNX Runtime's log level FATAL. What fails is raised all the same."""


class Engine:
    """Runs a pack's model on this CPU.

    One thread by default: the service scales by workers, each with its own call into a shared session, so a pool
    inside the session would only compete with them. Safe to call from several threads at once. ``quiet`` keeps ONNX
    Runtime's own account of a failure off stderr, for callers that expect failures and tell them themselves.

    Raises ``CpuFeatureMissingError`` when the pack needs what this CPU lacks (an unknown name counts as missing), and
    ``PackError`` when the model does not load or does not have the input and output a pack promises.
    """

    def __init__(self, pack: Pack, threads: int = 1, *, quiet: bool = False) -> None:
        manifest = pack.manifest
        if missing := sorted(set(manifest.requires_cpu) - cpu_features()):
            raise CpuFeatureMissingError(
                f"{manifest.name} needs {', '.join(missing)}, which this CPU ({cpu_model()}) lacks: "
                "serve the portable pack, or choose nodes that have it"
            )
        options = session_options(threads)
        if quiet:
            options.log_severity_level = _SILENT
        try:
            self._session = ort.InferenceSession(pack.model, options, ["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime raises a dozen unrelated classes for a bad model
            raise PackError(f"the model of {manifest.name} does not load: {_brief(error)}") from error
        self.crop: Final = manifest.preprocess.crop
        self.classes: Final = len(pack.labels)
        self._name = manifest.name
        self._input, self._output = self._signature()

    def infer(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return logits, float32 [N, classes], for images, uint8 [N, crop, crop, 3] (RGB).

        Raises ``ValueError`` for an input of another shape or type, and ``PackError`` when the model fails on it or
        returns another number of classes than it has labels.
        """
        expected = (self.crop, self.crop, 3)
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != expected or not len(images):
            raise ValueError(
                f"images are {images.dtype} {images.shape}; the model takes uint8 [N, {self.crop}, {self.crop}, 3]"
            )
        try:
            logits: NDArray[np.float32] = self._session.run([self._output], {self._input: images})[0]
        except Exception as error:  # as above
            raise PackError(f"the model of {self._name} fails: {_brief(error)}") from error
        if logits.shape != (len(images), self.classes):
            raise PackError(
                f"the model of {self._name} returns {logits.shape} for {len(images)} images and {self.classes} labels"
            )
        return logits

    def _signature(self) -> tuple[str, str]:
        """Return the names of the input and the output, which must be what a pack promises."""
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        found = f"{[(i.type, i.shape) for i in inputs]} to {[(o.type, o.shape) for o in outputs]}"
        promised = f"tensor(uint8) [N, {self.crop}, {self.crop}, 3] to tensor(float) [N, {self.classes}]"
        taken, given = inputs[0], outputs[0]
        if (
            len(inputs) != 1
            or len(outputs) != 1
            or (taken.type, given.type) != ("tensor(uint8)", "tensor(float)")
            or taken.shape[1:] != [self.crop, self.crop, 3]
            or isinstance(taken.shape[0], int)
            or len(given.shape) != 2
            or (isinstance(given.shape[1], int) and given.shape[1] != self.classes)
        ):
            raise PackError(f"the model of {self._name} maps {found}; its pack promises {promised}")
        return taken.name, given.name


def session_options(threads: int = 1) -> ort.SessionOptions:
    """Return the options of production.

    ``threads`` computes inside one call; no second call runs beside it (sequential), idle threads sleep instead of
    spinning through the quota, and every graph optimisation is on (the blocked NCHWc layout is worth a factor of two).
    """
    options: Any = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _QUIET
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return options


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:300]

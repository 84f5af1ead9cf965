"""From an FP32 pack to an INT8 one: one recipe at a time. ``ladder`` chooses among them.

Static recipes write QDQ graphs (``QuantizeLinear`` and ``DequantizeLinear`` around float operations), which ONNX
Runtime turns into integer kernels at load: uint8 activations, int8 weights, one scale per output channel. Without VNNI
x86 adds pairs of products in 16 bits and saturates; ``reduce_range`` keeps weights to 7 bits, so it cannot.
"""

import io
import logging
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from assay.building.graph import INPUT_NAME
from assay.errors import BuildError

DYNAMIC: Final = "dynamic"
"""Name of the recipe for comparison: integer weights, activations quantised anew on every call; slow on CPUs."""


@dataclass(frozen=True)
class Recipe:
    """How to quantise. ``float_edges`` leaves the first convolution and the classifier in FP32."""

    name: str
    what: str
    reduce_range: bool = False
    percentile: bool = False
    float_edges: bool = False

    @property
    def full_range(self) -> bool:
        """Whether weights use all 8 bits, which saturates on x86 without VNNI: wrong there, not just slow."""
        return not self.reduce_range and self.name != DYNAMIC


RECIPES: Final = {
    recipe.name: recipe
    for recipe in (
        Recipe("static", "U8S8 per channel, MinMax"),
        Recipe("static-percentile", "U8S8 per channel, 99.999th percentile", percentile=True),
        Recipe("static-edges-float", "U8S8 per channel, MinMax, first and last layer FP32", float_edges=True),
        Recipe("static-reduce-range", "U8S7 per channel, MinMax", reduce_range=True),
        Recipe(
            "static-reduce-range-edges-float", "same, first and last layer FP32", reduce_range=True, float_edges=True
        ),
        Recipe(DYNAMIC, "activations quantised at run time"),
    )
}
"""By the name on the command line."""

_STATIC_OPERATIONS: Final = (
    "Conv", "Clip", "Relu", "Add", "GlobalAveragePool", "Flatten", "Gemm", "MatMul", "MaxPool", "Concat",
)  # fmt: skip
"""What has an integer kernel on x86 and Arm and is worth it; all else (squeeze-and-excite, HardSwish) stays FP32."""

_PREPARED: Final = "onnx.quant.pre_process"
"""Metadata that tells ONNX Runtime's quantiser: shapes are inferred and batch norms folded, as they are here."""

PERCENTILE: Final = 99.999
"""Ranges cut at this percentile ignore single outliers; a lower one clips what ReLU6 would not."""

PERCENTILE_IMAGES: Final = 24
"""Histograms keep every activation of every image: 28 MB each for MobileNet-class models at 224 pixels."""


class _Reader(CalibrationDataReader):  # type: ignore[misc] # its base has no types
    """Hands out images one by one, as the quantiser asks for them."""

    def __init__(self, images: Iterable[NDArray[np.uint8]]) -> None:
        self._images = iter(images)

    def get_next(self) -> dict[str, NDArray[np.uint8]] | None:
        image = next(self._images, None)
        return None if image is None else {INPUT_NAME: image}


class Quantiser:
    """Quantises one FP32 model by several recipes; activation ranges are measured once per calibration method.

    ``images`` are uint8 [1, crop, crop, 3], from the production preprocessing. Use as a context manager: it keeps the
    model in a temporary folder. Raises ``BuildError`` when the model cannot be read or quantised.
    """

    def __init__(self, model: bytes, images: Sequence[NDArray[np.uint8]]) -> None:
        self._images = images
        try:
            self._model = onnx.load_from_string(model)
            self._model = onnx.shape_inference.infer_shapes(self._model)
        except Exception as error:  # protobuf and onnx raise unrelated classes
            raise BuildError(f"the model cannot be read: {error}") from error
        entry = self._model.metadata_props.add()
        entry.key, entry.value = _PREPARED, "assay"
        self._folder = tempfile.TemporaryDirectory(prefix="assay-quantise-")
        self._path = Path(self._folder.name) / "fp32.onnx"
        onnx.save(self._model, self._path)

    def __enter__(self) -> "Quantiser":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def quantise(self, recipe: Recipe) -> bytes:
        """Return the INT8 model; the same model, images, recipe and versions give the same bytes."""
        out = Path(self._folder.name) / f"{recipe.name}.onnx"
        try:
            with _quiet():
                if recipe.name == DYNAMIC:
                    # Unsigned weights: ONNX Runtime's ConvInteger has no signed kernel on the CPU.
                    quantize_dynamic(self._path, out, weight_type=QuantType.QUInt8)
                else:
                    self._static(recipe, out)
            model = onnx.load(out)
        except Exception as error:  # the quantiser raises whatever its parts raise
            raise BuildError(f"recipe {recipe.name} fails on this model: {type(error).__name__}: {error}") from error
        drop_requantisation(model)
        del model.metadata_props[:]
        model.producer_name, model.producer_version = "assay", ""
        return bytes(model.SerializeToString(deterministic=True))

    def _static(self, recipe: Recipe, out: Path) -> None:
        method = CalibrationMethod.Percentile if recipe.percentile else CalibrationMethod.MinMax
        chosen = self._images
        if recipe.percentile:
            chosen = [chosen[i * len(chosen) // PERCENTILE_IMAGES] for i in range(min(PERCENTILE_IMAGES, len(chosen)))]
        quantize_static(
            self._path,
            out,
            _Reader(chosen),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=list(_STATIC_OPERATIONS),
            per_channel=True,
            reduce_range=recipe.reduce_range,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=self._edges() if recipe.float_edges else [],
            calibrate_method=method,
            calibration_cache_path=Path(self._folder.name) / f"{method.name}.json",
            extra_options={"CalibPercentile": PERCENTILE} | self._exact_input(),
        )

    def _edges(self) -> list[str]:
        """Return the names of the first and the last layer: by tradition the ones that suffer most."""
        layers = [node.name for node in self._model.graph.node if node.op_type in ("Conv", "Gemm", "MatMul")]
        return [layers[0], layers[-1]] if layers else []

    def _exact_input(self) -> dict[str, Any]:
        """Give the pixels the scale and zero point of their normalisation, so that quantising them loses nothing."""
        constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in self._model.graph.initializer}
        for node in self._model.graph.node:
            if node.op_type == "DequantizeLinear" and set(node.input[1:]) <= set(constants):
                scale, zero_point = (constants[name] for name in node.input[1:3])
                override = {"quant_type": QuantType.QUInt8, "scale": scale, "zero_point": zero_point}
                return {"TensorQuantOverrides": {node.output[0]: [override]}}
        return {}


def drop_requantisation(model: onnx.ModelProto) -> None:
    """Remove each ``QuantizeLinear`` that exactly undoes the ``DequantizeLinear`` before it: same scale and zero point.

    What the quantiser writes at the input is pixels -> float -> the same pixels; without it the first convolution
    reads the photo's own bytes.
    """
    graph = model.graph
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    producers = {output: node for node in graph.node for output in node.output}
    for node in list(graph.node):
        source = producers.get(node.input[0]) if node.op_type == "QuantizeLinear" else None
        if source is None or source.op_type != "DequantizeLinear":
            continue
        pairs = zip(source.input[1:], node.input[1:], strict=True)
        if all(a in constants and b in constants and np.array_equal(constants[a], constants[b]) for a, b in pairs):
            for user in graph.node:
                for index, name in enumerate(user.input):
                    if name == node.output[0]:
                        user.input[index] = source.input[0]
            graph.node.remove(node)
    _drop_unused(graph)


def _drop_unused(graph: onnx.GraphProto) -> None:
    """Remove nodes whose outputs nobody reads, then constants nobody reads."""
    outputs = {value.name for value in graph.output}
    while True:
        read = {name for node in graph.node for name in node.input} | outputs
        unused = [node for node in graph.node if not read.intersection(node.output)]
        if not unused:
            break
        for node in unused:
            graph.node.remove(node)
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in read]:
        graph.initializer.remove(tensor)
    del graph.value_info[:]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the quantiser prints, and its advice about options it was not given, off our output."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        root.setLevel(level)

"""From an FP32 model to an INT8 one: one recipe at a time, in memory. ``ladder`` chooses among them.

Static recipes write QDQ graphs (``QuantizeLinear`` and ``DequantizeLinear`` around float operations), which ONNX
Runtime turns into integer kernels at load: uint8 activations, int8 weights, one scale per output channel. Without VNNI
x86 adds pairs of products in 16 bits and saturates; ``reduce_range`` keeps weights to 7 bits, so it cannot.
"""

import io
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType
from onnxruntime.quantization.calibrate import TensorData
from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.quant_utils import QuantizationMode

from assay.building import sensitivity
from assay.building.calibration import (
    PERCENTILE_IMAGES,
    Observer,
    Progress,
    Ranges,
    activations,
    extremes,
    percentiles,
)
from assay.building.preparation import constants_of, layers, prepare
from assay.building.recipes import DYNAMIC, RECIPES, Kept, Recipe
from assay.building.structure import INTEGER_OPERATIONS, curved, gates, place
from assay.errors import BuildError

Begin = Callable[[str], Progress | None]
"""Begins a step by its name; returns what is called with done and total."""


class Quantiser:
    """Quantises one FP32 model by several recipes; what they share is measured once, when the first of them asks.

    ``images`` are uint8 [1, crop, crop, 3], from the production preprocessing; they may be added until something is
    quantised. Raises ``BuildError`` when the model cannot be read or quantised.
    """

    def __init__(self, model: bytes, images: Iterable[NDArray[np.uint8]] = (), begin: Begin | None = None) -> None:
        self.images = list(images)
        self._begin: Begin = begin or (lambda _step: None)
        self._model = prepare(model)
        self._constants = constants_of(self._model.graph)
        self._gates = gates(self._model.graph)
        self._curved = curved(self._model.graph)
        self._layers = [node.name for node in layers(self._model.graph)]
        self._places = {node.name: place(self._model.graph, node) for node in layers(self._model.graph)}

    def applies(self, recipe: Recipe) -> bool:
        """Say whether a recipe differs from all others on this model, and leaves something to quantise."""
        if recipe.kept is Kept.GATES:
            return bool(self._gates)
        if recipe.kept is Kept.CURVED:
            return bool(self._curved - self._gates) and bool(set(self._layers) - self._curved - self._gates)
        return recipe.kept is Kept.NOTHING or 2 * recipe.most <= len(self._layers)  # each takes its readers along

    def float_layers(self, recipe: Recipe) -> tuple[str, ...]:
        """Return the layers that a recipe leaves in FP32, most sensitive first where that was measured."""
        excluded = self._excluded(recipe)
        order = self._sensitive(recipe.reduce_range) if recipe.kept is Kept.SENSITIVE else self._layers
        return tuple(name for name in order if name in excluded)

    def quantise(self, recipe: Recipe) -> bytes:
        """Return the INT8 model; the same model, images, recipe and versions give the same bytes."""
        if recipe.name != DYNAMIC and not self.images:
            raise BuildError("there is no image to calibrate on")
        model = self._dynamic() if recipe.name == DYNAMIC else self._static(recipe, self._excluded(recipe))
        drop_requantisation(model)
        del model.metadata_props[:]
        model.producer_name, model.producer_version = "assay", ""
        return bytes(model.SerializeToString(deterministic=True))

    @cached_property
    def _observer(self) -> Observer:
        return Observer.of(self._model, activations(self._model))

    @cached_property
    def _extremes(self) -> Ranges:
        return extremes(self._observer, self.images, self._begin("measuring ranges of activations"))

    @cached_property
    def _percentiles(self) -> Ranges:
        count = min(PERCENTILE_IMAGES, len(self.images))
        some = [self.images[index * len(self.images) // count] for index in range(count)]
        return percentiles(self._observer, some, self._extremes, self._begin("counting outliers of activations"))

    @cached_property
    def _sensitive(self) -> Callable[[bool], tuple[str, ...]]:
        """Return what ranks layers at full or at reduced range; each is measured once."""
        found: dict[bool, tuple[str, ...]] = {}

        def ranked(reduce_range: bool) -> tuple[str, ...]:
            if reduce_range not in found:
                quantised = self._static(Recipe("", reduce_range=reduce_range), set())
                progress = self._begin("measuring which layers suffer most")
                found[reduce_range] = sensitivity.rank(self._model, quantised, self._places, self.images, progress)
            return found[reduce_range]

        return ranked

    def _excluded(self, recipe: Recipe) -> set[str]:
        """Return the nodes that a recipe leaves alone."""
        if recipe.kept is Kept.NOTHING:
            return set()
        if recipe.kept is Kept.SENSITIVE:
            return set().union(*(self._places[name] for name in self._sensitive(recipe.reduce_range)[: recipe.most]))
        return self._gates | (self._curved if recipe.kept is Kept.CURVED else set())

    def _static(self, recipe: Recipe, excluded: set[str]) -> onnx.ModelProto:
        ranges = self._percentiles if recipe.percentile else self._extremes

        def quantised() -> onnx.ModelProto:
            quantiser = QDQQuantizer(
                _copy(self._model),
                per_channel=True,
                reduce_range=recipe.reduce_range,
                weight_qType=QuantType.QInt8,
                activation_qType=QuantType.QUInt8,
                tensors_range={name: _tensor_data(*limits) for name, limits in ranges.items()},
                nodes_to_quantize=[],
                nodes_to_exclude=sorted(excluded),
                op_types_to_quantize=list(INTEGER_OPERATIONS),
                extra_options=self._exact_input(),
            )
            quantiser.quantize_model()
            quantiser.model.topological_sort()
            made: onnx.ModelProto = quantiser.model.model
            return made

        return _translated(recipe, quantised)

    def _dynamic(self) -> onnx.ModelProto:
        def quantised() -> onnx.ModelProto:
            quantiser = ONNXQuantizer(
                _copy(self._model),
                per_channel=False,
                reduce_range=False,
                mode=QuantizationMode.IntegerOps,
                static=False,
                weight_qType=QuantType.QUInt8,  # ONNX Runtime's ConvInteger has no signed kernel on the CPU
                activation_qType=QuantType.QUInt8,
                tensors_range=None,
                nodes_to_quantize=[],
                nodes_to_exclude=[],
                op_types_to_quantize=["Conv", "Gemm", "MatMul"],
                extra_options={"MatMulConstBOnly": True},
            )
            quantiser.quantize_model()
            quantiser.model.topological_sort()
            made: onnx.ModelProto = quantiser.model.model
            return made

        return _translated(RECIPES[DYNAMIC], quantised)

    def _exact_input(self) -> dict[str, Any]:
        """Give the pixels the scale and zero point of their normalisation, so that quantising them loses nothing."""
        for node in self._model.graph.node:
            if (
                node.op_type == "DequantizeLinear"
                and len(node.input) == 3
                and set(node.input[1:]) <= set(self._constants)
            ):
                scale, zero_point = (self._constants[name] for name in node.input[1:])
                if scale.ndim == 0 and zero_point.dtype == np.uint8:
                    override = {"quant_type": QuantType.QUInt8, "scale": scale, "zero_point": zero_point}
                    return {"TensorQuantOverrides": {node.output[0]: [override]}}
        return {}


def drop_requantisation(model: onnx.ModelProto) -> None:
    """Remove each ``QuantizeLinear`` that exactly undoes the ``DequantizeLinear`` before it: same scale and zero point.

    What the quantiser writes at the input is pixels -> float -> the same pixels; without it the first convolution
    reads the photo's own bytes.
    """
    graph = model.graph
    constants = constants_of(graph)
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


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy: the quantiser changes what it is given."""
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied


def _tensor_data(least: np.float32, greatest: np.float32) -> TensorData:
    return TensorData(lowest=np.array(least), highest=np.array(greatest))


def _translated(recipe: Recipe, quantise: Callable[[], onnx.ModelProto]) -> onnx.ModelProto:
    try:
        with _quiet():
            return quantise()
    except Exception as error:  # the quantiser raises whatever its parts raise
        raise BuildError(f"recipe {recipe.name} fails on this model: {type(error).__name__}: {error}") from error


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

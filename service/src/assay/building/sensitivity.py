"""Which layers suffer most: each in turn goes back to FP32, and the logits tell what that is worth.

Measured on calibration images, never on those that judge: a recipe chosen by the photos it is judged on would look
better than it is.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray

from assay.building.calibration import Observer, Progress

IMAGES: Final = 8
"""Calibration images that layers are ranked on: an error of a thousand logits each is an average of 8000 values."""

_AT_ONCE: Final = 2
"""Sessions are made and run outside Python's lock: a second one hides half of the time."""


def rank(
    model: onnx.ModelProto,
    quantised: onnx.ModelProto,
    places: Mapping[str, set[str]],
    images: Sequence[NDArray[np.uint8]],
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Return the layers of a model, by how much smaller the logits' error becomes when one alone computes in FP32.

    ``quantised`` is the same model with all of them in integers, ``places`` the nodes that have to be in FP32 for each
    layer to be so (``structure.place``). The error is the mean squared difference from the FP32 model's logits, after
    each image's mean is taken off (softmax does not see it).
    """
    count = min(IMAGES, len(images))
    some = [images[index * len(images) // count] for index in range(count)]
    wanted = _logits(model, some)

    def error(place: set[str]) -> float:
        return float(np.mean((_logits(freed(quantised, model, place), some) - wanted) ** 2))

    errors = []
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        for number, found in enumerate(pool.map(error, places.values())):
            errors.append(found)
            if progress:
                progress(number + 1, len(places))
    order = sorted(range(len(errors)), key=lambda index: (errors[index], index))
    layers = list(places)
    return tuple(layers[index] for index in order)


def freed(quantised: onnx.ModelProto, model: onnx.ModelProto, names: set[str]) -> onnx.ModelProto:
    """Return the quantised model with some nodes as they were in the FP32 model, and nothing rounded between them.

    The same as quantising without them, a hundred times faster.
    """
    found = onnx.ModelProto()
    found.CopyFrom(quantised)
    graph = found.graph
    kept = {node.name for node in graph.node}
    before: list[onnx.NodeProto] = []
    made: set[str] = set()
    for node in model.graph.node:
        # Clip and Relu have become the end of the range of what they read: with it they come back.
        if node.name in names or (node.name not in kept and made.intersection(node.input)):
            before.append(node)
            made.update(node.output)
    # A result of the graph that they make is not rounded any more either.
    ends = made.intersection(value.name for value in graph.output)
    ends.update(node.input[0] for node in graph.node if ends.intersection(node.output))
    for node in [node for node in graph.node if node.name in names or ends.intersection(node.output)]:
        graph.node.remove(node)
    rounded = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "QuantizeLinear"}
    pairs = [node for node in graph.node if node.op_type == "DequantizeLinear" and node.input[0] in rounded]
    dequantised = {rounded[node.input[0]]: node.output[0] for node in pairs}
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    given = {name for node in before for name in node.input if name in constants}
    for name in sorted(given):
        tensor = graph.initializer.add()
        tensor.CopyFrom(constants[name])
        tensor.name = f"{name}.float"  # what is dequantised may have the old name
    for node in before:
        restored = graph.node.add()
        restored.CopyFrom(node)
        for index, name in enumerate(node.input):
            if name in given:
                restored.input[index] = f"{name}.float"
            elif name not in made:
                restored.input[index] = dequantised.get(name, name)
    return found


def _logits(model: onnx.ModelProto, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """Return the logits of each image, float64 [images, classes], less their mean."""
    observer = Observer.of(model, [model.graph.output[0].name], production=True)
    logits = np.concatenate([observer.see(image)[0] for image in images]).astype(np.float64)
    centred: NDArray[np.float64] = logits - logits.mean(axis=1, keepdims=True)
    return centred

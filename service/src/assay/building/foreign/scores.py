"""Makes logits of what a model returns: the service takes the softmax, and a second one would flatten its scores.

A ``Softmax`` at the end is removed: what it is given are the logits, exactly. Where probabilities come out of something
else (spelled out in operators, quantised, inside a loop), their logarithm is taken: the softmax of log p is p.
"""

from typing import Final

import numpy as np
import onnx
from numpy.typing import NDArray

from assay.building.foreign.interface import Interface
from assay.building.foreign.surgery import attribute, inferred, producers, prune, rename, shape_of, told
from assay.building.foreign.tidy import opset
from assay.errors import BuildError

_PASSING: Final = frozenset({"Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Dropout", "Transpose"})
"""What may stand between the softmax and the output without changing a score."""

_PER_AXIS: Final = 13
"""From this opset on, Softmax works along one axis; before, over all from the axis on."""

_SUM_TOLERANCE: Final = 0.01
"""Probabilities of 1000 classes in float16 or uint8 add up to one within this."""


def without_softmax(model: onnx.ModelProto, interface: Interface) -> bool:
    """Remove a softmax over the classes that ends the model (which is changed); say whether there was one.

    Raises ``BuildError`` for a softmax over anything else, and for a sigmoid: independent yes-or-no answers, which the
    service's softmax would turn into others.
    """
    graph = model.graph
    made = producers(graph)
    node = made.get(graph.output[0].name)
    while node is not None and node.op_type in _PASSING:
        node = made.get(node.input[0])
    if node is None:
        return False
    if node.op_type in ("Sigmoid", "HardSigmoid"):
        raise BuildError(
            "the model ends in a sigmoid, an answer of its own for each class; Assay serves classifiers that choose "
            f"one class: if it is one, name the tensor before the sigmoid with --output {node.input[0]}"
        )
    if node.op_type != "Softmax":
        return False
    shapes = inferred(model, interface.source, interface.shape(interface.batch or 1))
    shape = shape_of(shapes[node.input[0]]) if node.input[0] in shapes else None
    if shape is None or None in shape[1:]:
        return False  # seen in the numbers, later
    old = opset(model) < _PER_AXIS
    axis = attribute(node, "axis", 1 if old else -1) % len(shape)
    over = range(axis, len(shape)) if old else (axis,)
    classes = [index for index, size in enumerate(shape) if index and size != 1]
    if not set(classes) <= set(over) or 0 in over:
        raise BuildError(
            f"the model's softmax is taken along axis {axis} of {told(shape)}, which is not that of the classes: "
            f"export the model without it, or pass --output {node.input[0]}"
        )
    logits, gone = node.input[0], node.output[0]
    graph.node.remove(node)
    rename(graph, gone, logits)
    prune(graph)
    return True


def are_probabilities(scores: NDArray[np.float32]) -> bool:
    """Say whether rows [images, classes] are all probabilities: none negative, and one in total."""
    return bool((scores >= 0).all() and (np.abs(scores.sum(axis=1) - 1) <= _SUM_TOLERANCE).all())

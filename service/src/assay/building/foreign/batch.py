"""Lets a model that was exported for a fixed number of images take any number.

Exporters fold the batch into the constants of ``Reshape``: ``[1, -1]`` where ``[0, -1]`` was meant (0 keeps the axis).
Whether that was all is not proved here but by running: see `proof`.
"""

import numpy as np
import onnx
from onnx import numpy_helper

from assay.building.foreign.interface import Interface
from assay.building.foreign.surgery import attribute, constants, inferred, reads, shape_of


def mended(model: onnx.ModelProto, interface: Interface) -> tuple[onnx.ModelProto, int]:
    """Return a copy whose reshapes keep the batch axis, and how many of them did not.

    Changed are those that depend on the image, whose constant shape begins with the batch, and whose input begins with
    it too (or is of unknown shape).
    """
    batch = interface.batch or 1
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    known, numbers = inferred(model, interface.source, interface.shape(batch)), constants(graph)
    depends, changed = {interface.source}, 0
    for node in graph.node:
        if not depends & reads(node):
            continue
        depends.update(node.output)
        if node.op_type != "Reshape" or len(node.input) < 2 or attribute(node, "allowzero", 0):
            continue
        taken, target = node.input[0], numbers.get(node.input[1])
        before = shape_of(known[taken]) if taken in known else None
        if target is None or target.ndim != 1 or not len(target) or target[0] != batch or taken not in depends:
            continue
        if before is not None and (not before or before[0] != batch):
            continue
        tensor = numpy_helper.from_array(np.concatenate([[0], target[1:]]).astype(np.int64), f"{node.name}.any_batch")
        graph.initializer.append(tensor)
        node.input[1] = tensor.name
        changed += 1
    return copy, changed

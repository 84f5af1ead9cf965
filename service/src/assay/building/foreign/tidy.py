"""Makes one plain graph of a model: functions inlined, weights constant, nodes named, operators known."""

from typing import Final

import numpy as np
import onnx
import onnx.inliner
from onnx import helper, numpy_helper

from assay.building.foreign.surgery import bodies
from assay.errors import BuildError

OLDEST_OPSET: Final = 7
"""The oldest that ONNX Runtime says it supports (its docs/Versioning.md)."""

_STANDARD: Final = frozenset({"", "ai.onnx"})
_KNOWN: Final = _STANDARD | {"ai.onnx.ml", "com.microsoft"}
"""Domains whose operators plain ONNX Runtime has: the standards', and its own."""

_ONE_MACHINE: Final = "com.microsoft.nchwc"
"""Operators that only ONNX Runtime's optimiser writes, for the CPU it runs on."""

_INTEGER: Final = frozenset({"QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"})
"""Standard operators that only quantised models have; the names of others begin with QLinear and the like."""

_CONSTANTS: Final = ("value", "value_float", "value_floats", "value_int", "value_ints")
"""Attributes of a Constant node that are numbers."""


def tidied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the same model in plain form; the given one is not changed.

    Raises ``BuildError`` for a model of a newer ONNX than is installed, operators that ONNX Runtime lacks, and graphs
    that are not valid.
    """
    _check_versions(model)
    try:
        plain = onnx.inliner.inline_local_functions(model) if model.functions else model
    except Exception as error:  # the inliner is C++, and raises whatever its parts raise
        raise BuildError(f"the model's functions cannot be inlined: {brief(error)}; export it without them") from error
    if plain is model:
        plain = onnx.ModelProto()
        plain.CopyFrom(model)
    _check_operators(plain)
    graph = plain.graph
    _constants_out_of_nodes(graph)
    constant = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    for value in [value for value in graph.input if value.name in constant]:
        graph.input.remove(value)  # older exporters list weights as inputs, which would keep them from being constant
    _name_nodes(graph)
    del graph.value_info[:]
    plain.ClearField("training_info")
    plain.ClearField("metadata_props")
    # From version 4 of the format on, constants need not be inputs.
    plain.ir_version = max(plain.ir_version, helper.find_min_ir_version_for(plain.opset_import, ignore_unknown=True), 4)
    _check_graph(plain)
    return plain


def opset(model: onnx.ModelProto) -> int:
    """Return the version of the standard operators that a model uses; 0 if it names none."""
    return max((entry.version for entry in model.opset_import if entry.domain in _STANDARD), default=0)


def converted(model: onnx.ModelProto, target: int) -> onnx.ModelProto | None:
    """Return the model with another opset, or None where the converter does not know one of its operators."""
    try:
        return onnx.version_converter.convert_version(model, target)
    except Exception:  # the converter is C++, and raises whatever its parts raise
        return None


def is_quantised(model: onnx.ModelProto) -> bool:
    """Say whether a model computes in integers already."""
    kinds = {node.op_type for body in bodies(model.graph) for node in body.node}
    return bool(kinds & _INTEGER) or any(kind.startswith(("QLinear", "QGemm", "QAttention")) for kind in kinds)


def brief(error: Exception) -> str:
    """Return the first words of a library's message on one line."""
    return " ".join(str(error).split())[:300]


def _check_versions(model: onnx.ModelProto) -> None:
    if model.ir_version > onnx.IR_VERSION:
        raise BuildError(
            f"the model is in version {model.ir_version} of the ONNX format, newer than {onnx.IR_VERSION}, the newest "
            f"that onnx {onnx.__version__} reads: export it with an older onnx package"
        )
    found, newest = opset(model), onnx.defs.onnx_opset_version()
    if not found:
        raise BuildError("the model does not say which opset of the standard operators it uses: export it again")
    if found > newest:
        raise BuildError(
            f"the model uses opset {found}, newer than {newest}, the newest that is known here: export it with "
            f"opset_version={newest} or lower (17 is safe), or lower it with onnx.version_converter"
        )


def _check_operators(model: onnx.ModelProto) -> None:
    version = opset(model)
    used = {(node.domain, node.op_type) for body in bodies(model.graph) for node in body.node}
    if any(domain == _ONE_MACHINE for domain, _ in used):
        raise BuildError(
            "the model was saved by ONNX Runtime's optimiser for one kind of CPU: give the ONNX file that it was "
            "made from"
        )
    if own := sorted(f"{domain}.{kind}" for domain, kind in used if domain not in _KNOWN):
        raise BuildError(
            f"the model needs operators that plain ONNX Runtime does not have ({_some(own)}): export it with standard "
            "operators only"
        )
    if unknown := sorted(kind for domain, kind in used if domain in _STANDARD and not onnx.defs.has(kind, version, "")):
        raise BuildError(
            f"opset {version} has no operator {_some(unknown)}: the model was written for another opset, or with "
            "operators of its own; export it again"
        )


def _check_graph(model: onnx.ModelProto) -> None:
    """Have ONNX's checker look at it. It insists on a shape for inputs and outputs, which ONNX Runtime does not."""
    values = (*model.graph.input, *model.graph.output)
    bare = [v.type.tensor_type for v in values if v.type.HasField("tensor_type")]
    bare = [tensor for tensor in bare if not tensor.HasField("shape")]
    for tensor in bare:
        tensor.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # ValidationError, and others from below it
        raise BuildError(f"the model is not valid ONNX: {brief(error)}; export it again") from error
    finally:
        for tensor in bare:
            tensor.ClearField("shape")


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _constants_out_of_nodes(graph: onnx.GraphProto) -> None:
    """Make initializers of the Constant nodes: the form in which quantisers look for weights."""
    for node in [node for node in graph.node if node.op_type == "Constant" and node.domain in _STANDARD]:
        number = next((a for a in node.attribute if a.name in _CONSTANTS), None)
        if number is None:
            continue  # text, or sparse: ONNX Runtime takes them as they are
        if number.name == "value":
            tensor = onnx.TensorProto()
            tensor.CopyFrom(number.t)
            tensor.name = node.output[0]
        else:
            kind = "float32" if "float" in number.name else "int64"
            tensor = numpy_helper.from_array(np.asarray(helper.get_attribute_value(number), kind), node.output[0])
        graph.initializer.append(tensor)
        graph.node.remove(node)


def _name_nodes(graph: onnx.GraphProto) -> None:
    """Give every node a name of its own: quantisers choose layers by name."""
    taken: set[str] = set()
    for number, node in enumerate(graph.node):
        if not node.name or node.name in taken:
            node.name = f"{node.op_type}_{number}"
            while node.name in taken:
                node.name += "_"
        taken.add(node.name)

"""Finds the image input and the scores of a model, and says in a sentence where they do not fit."""

from dataclasses import dataclass
from typing import Final, Literal

import onnx
from onnx import TensorProto

from assay.building.foreign.surgery import Shape, element_type, inferred, producers, prune, shape_of, told
from assay.errors import BuildError

Layout = Literal["NCHW", "NHWC"]

_TAKEN: Final = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8)
_GIVEN: Final = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.DOUBLE,
    TensorProto.BFLOAT16,
    TensorProto.UNDEFINED,
)

_USUAL_CROP: Final = 224
_USUAL_RESIZE: Final = 256
"""As ImageNet models are evaluated by; other crops keep the proportion."""


@dataclass(frozen=True)
class Interface:
    """What a model takes. ``batch`` is the number of images it insists on; None if it takes any."""

    source: str
    kind: int
    layout: Layout
    batch: int | None
    crop: int

    def shape(self, batch: int | None) -> Shape:
        """Return the input's shape for a batch."""
        plane = (self.crop, self.crop)
        return (batch, 3, *plane) if self.layout == "NCHW" else (batch, *plane, 3)


def usual_resize(crop: int) -> int:
    """Return the short side to resize to before a crop of this size is taken."""
    return round(crop * _USUAL_RESIZE / _USUAL_CROP)


def choose_output(model: onnx.ModelProto, wanted: str | None) -> None:
    """Reduce a model to what its scores depend on: ``wanted`` (any tensor of the graph), by default its one output.

    Raises ``BuildError`` when there are several to choose from, or none of that name.
    """
    graph = model.graph
    outputs = {value.name: value for value in graph.output}
    if wanted is None:
        if len(outputs) != 1:
            listed = ", ".join(f"{name} {element_type(v)} {told(shape_of(v))}" for name, v in outputs.items())
            raise BuildError(f"the model returns {len(outputs)} tensors ({listed}): name the scores with --output NAME")
        (wanted,) = outputs
    if wanted not in outputs and wanted not in producers(graph):
        raise BuildError(f"the model has no tensor {wanted!r}: it returns {', '.join(outputs)}")
    value = onnx.ValueInfoProto()
    value.CopyFrom(outputs.get(wanted) or onnx.helper.make_tensor_value_info(wanted, TensorProto.UNDEFINED, None))
    del graph.output[:]
    graph.output.append(value)
    prune(graph)


def examine(model: onnx.ModelProto, layout: Layout | None, crop: int | None) -> Interface:
    """Find the one image input and what shape it has.

    ``layout`` and ``crop`` are what the user says; None leaves it to the model, which must then tell. Raises
    ``BuildError`` for anything but one batch of square RGB pictures of that size in float32, float16 or uint8.
    """
    inputs = list(model.graph.input)
    if len(inputs) != 1:
        listed = ", ".join(f"{v.name} {element_type(v)} {told(shape_of(v))}" for v in inputs) or "none"
        raise BuildError(
            f"the model takes {len(inputs)} inputs ({listed}); it must take one, the image: export it with the "
            "others fixed"
        )
    value = inputs[0]
    shape, kind = shape_of(value), value.type.tensor_type.elem_type
    name = f"{value.name} {element_type(value)} {told(shape)}"
    if kind not in _TAKEN:
        raise BuildError(f"the model takes {name}: export it with an input of float32, float16 or uint8")
    if shape is None:
        shape = (None,) * 4
    if len(shape) != 4:
        raise BuildError(
            f"the model takes {name}; an image input has four axes, [N, 3, height, width] or [N, height, width, 3]: "
            "export it with those"
        )
    found = _layout(shape, layout, name)
    height, width = (shape[2], shape[3]) if found == "NCHW" else (shape[1], shape[2])
    side = height or width
    if side and (width or side) != side:
        raise BuildError(f"the model takes {name}; Assay's crops are square: export it for a square input")
    if side and crop and side != crop:
        raise BuildError(
            f"the model takes {name}, crops of {side}, not {crop}: pass --crop {side} --resize {usual_resize(side)}"
        )
    return Interface(value.name, kind, found, shape[0], side or crop or _USUAL_CROP)


def class_count(model: onnx.ModelProto, interface: Interface) -> int | None:
    """Return how many classes the output has, or None where only running the model can tell.

    Raises ``BuildError`` for an output that is no batch of score vectors.
    """
    (output,) = model.graph.output
    known = inferred(model, interface.source, interface.shape(interface.batch or 1)).get(output.name, output)
    if not known.type.WhichOneof("value"):
        known = output
    kind = known.type.tensor_type.elem_type
    if known.type.WhichOneof("value") not in (None, "tensor_type") or kind not in _GIVEN:
        raise BuildError(
            f"the model's output {output.name} is {element_type(known)}, not scores: export it with its logits as "
            "output, or name them with --output"
        )
    shape = shape_of(known)
    if shape is None:
        return None
    if len(shape) < 2:
        raise BuildError(
            f"the model's output {output.name} is {told(shape)}; scores have an axis for the batch and one for the "
            "classes, [N, classes]: export it without squeezing the batch away"
        )
    if None in shape[1:]:
        return None
    sizes = [size for size in shape[1:] if size is not None and size != 1]
    if len(sizes) != 1:
        raise BuildError(
            f"the model's output {output.name} is {told(shape)}, not one score per class, [N, classes]: is it a "
            "classifier? If so, name its scores with --output"
        )
    return sizes[0]


def _layout(shape: Shape, wanted: Layout | None, name: str) -> Layout:
    first, last = shape[1], shape[3]
    channels: dict[Layout, int | None] = {"NCHW": first, "NHWC": last}
    possible = [each for each, size in channels.items() if size in (3, None)]
    certain = [each for each, size in channels.items() if size == 3]
    if not possible:
        raise BuildError(f"the model takes {name}; pictures have three channels, RGB: export it for those")
    if wanted and wanted not in possible:
        raise BuildError(f"the model takes {name}, which is {possible[0]}: pass --layout {possible[0]}")
    if wanted:
        return wanted
    if len(certain) == 1:
        return certain[0]
    if len(possible) == 1:
        return possible[0]
    raise BuildError(f"the model takes {name}, which does not tell the layout: pass --layout NCHW or --layout NHWC")

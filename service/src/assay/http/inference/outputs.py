"""From answers to the body of an inference response."""

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.http.inference.messages import InferenceRequest, RequestedOutput
from assay.serving.errors import InferenceInvalidError
from assay.serving.request import Answer

_DATATYPES = {"scores": "FP32", "labels": "BYTES", "indices": "INT32"}
_POSITIONS = {"indices": 0, "labels": 1, "scores": 2}  # within a prediction
DATATYPES = tuple(_DATATYPES.items())
"""Names and types of the outputs, in the order in which they come when none is named."""


def wanted(request: InferenceRequest) -> list[tuple[str, bool]]:
    """Outputs to give, and whether each comes as binary data.

    Raises `InferenceInvalidError` for extensions of the protocol that are not there, and for an output named twice.
    """
    default = request.parameters.binary_data_output
    if not request.outputs:
        return [(name, default) for name in _DATATYPES]
    names = [output.name for output in request.outputs]
    if len(set(names)) != len(names):
        raise InferenceInvalidError("An output is asked for twice.")
    return [(output.name, _binary(output, default)) for output in request.outputs]


def _binary(output: RequestedOutput, default: bool) -> bool:
    parameters = output.parameters
    if parameters.shared_memory_region is not None:
        raise InferenceInvalidError(f"{output.name} is asked for in shared memory, which is not supported.")
    if parameters.classification:
        raise InferenceInvalidError(
            "The classification extension is not supported: the outputs are ranked already, see the parameter top_k."
        )
    return default if parameters.binary_data is None else parameters.binary_data


def response_body(
    head: dict[str, Any], outputs: Sequence[tuple[str, bool]], answers: Sequence[Answer]
) -> tuple[bytes, int | None]:
    """The body, and the length of its JSON part where binary data follow it. ``head``: the message without outputs."""
    shape = [len(answers), len(answers[0].predictions)]
    found = [prediction for answer in answers for prediction in answer.predictions]
    described: list[dict[str, Any]] = []
    tail: list[bytes] = []
    for name, binary in outputs:
        values: list[Any] = [prediction[_POSITIONS[name]] for prediction in found]
        tensor: dict[str, Any] = {"name": name, "datatype": _DATATYPES[name], "shape": shape}
        if binary:
            tail.append(_packed(name, values))
            tensor["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            tensor["data"] = values
        described.append(tensor)
    message = json.dumps({**head, "outputs": described}).encode()
    if not tail:
        return message, None
    return b"".join([message, *tail]), len(message)


def _packed(name: str, values: list[Any]) -> bytes:
    if name == "scores":
        return np.array(values, "<f4").tobytes()
    if name == "indices":
        return np.array(values, "<i4").tobytes()
    texts = [text.encode() for text in values]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)

"""From the body of an inference request to its images."""

import base64
import binascii
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from pydantic_core import from_json

from assay.http.inference.messages import InferenceRequest, InputTensor
from assay.serving.errors import InferenceInvalidError, TooManyImagesError
from assay.serving.request import Picture

MAX_IMAGES = 32
"""Images of one request. At 20 CPU-ms each they take 0.6 s one after the other: within the default deadline."""

MAX_JSON_VALUES = 300_000
"""Values in the JSON part. Two images of 224 x 224, or one of 300 x 300; parsing them holds the event loop for about
15 ms, and binary tensors are there for everybody else."""

MAX_JSON_MEMBERS = 1000
"""Members and objects in the JSON part; a message has some twenty. A quarter of a million parameters took a third of a
second to check."""

_HEADER_LENGTH = re.compile(r"[0-9]{1,10}")


def parse(body: bytes, header_length: str | None) -> tuple[InferenceRequest, bytes]:
    """The message of a body, and the binary data behind it. ``header_length``: ``Inference-Header-Content-Length``.

    Raises `InferenceInvalidError` for what the protocol does not allow, `TooManyImagesError` beyond `MAX_JSON_VALUES`.
    """
    length = len(body)
    if header_length is not None:
        if not _HEADER_LENGTH.fullmatch(header_length) or int(header_length) > len(body):
            raise InferenceInvalidError(
                f"Inference-Header-Content-Length is no number of bytes within the body, which has {len(body)}."
            )
        length = int(header_length)
    message = body if length == len(body) else body[:length]
    # Each value but the first follows a comma or an opening bracket: what is too much is told without parsing it.
    if message.count(b",") + message.count(b"[") > MAX_JSON_VALUES:
        raise TooManyImagesError(
            f"The JSON part has more than {MAX_JSON_VALUES} values: send tensors as binary data, or fewer images."
        )
    if message.count(b":") + message.count(b"{") > MAX_JSON_MEMBERS:
        raise InferenceInvalidError(f"The JSON part has more than {MAX_JSON_MEMBERS} members and objects.")
    try:
        request = InferenceRequest.model_validate(from_json(message, allow_inf_nan=False))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the request"
        raise InferenceInvalidError(f"{where}: {first['msg']}.") from error
    except ValueError as error:
        raise InferenceInvalidError(f"The JSON part, the first {length} bytes, is no JSON: {error}.") from error
    return request, body[length:]


def pictures(request: InferenceRequest, binary: bytes, crop: int) -> Sequence[Picture]:
    """The images of a request for a model that takes ``crop`` x ``crop`` pixels.

    Raises `InferenceInvalidError` where shape, type and bytes contradict each other, and `TooManyImagesError`.
    """
    tensor = request.inputs[0]
    expected = "UINT8" if tensor.name == "images" else "BYTES"
    if tensor.datatype != expected:
        raise InferenceInvalidError(f"{tensor.name} is {tensor.datatype}; it must be {expected}.")
    shape = tuple(tensor.shape)
    if (expected == "UINT8" and (len(shape) != 4 or shape[1:] != (crop, crop, 3))) or (
        # [N, 1] is what some clients make of N texts
        expected == "BYTES" and len(shape) != 1 and (len(shape) != 2 or shape[1] != 1)
    ):
        wanted = f"[N, {crop}, {crop}, 3]" if expected == "UINT8" else "[N]"
        raise InferenceInvalidError(f"{tensor.name} has the shape {list(shape)}; it must be {wanted}.")
    if not shape[0]:
        raise InferenceInvalidError(f"{tensor.name} holds no image.")
    if shape[0] > MAX_IMAGES:
        raise TooManyImagesError(f"{tensor.name} holds {shape[0]} images; {MAX_IMAGES} are taken at once.")
    if tensor.parameters.shared_memory_region is not None:
        raise InferenceInvalidError(f"{tensor.name} is in shared memory, which is not supported.")
    size = tensor.parameters.binary_data_size
    if (size is None) == (tensor.data is None):
        raise InferenceInvalidError(f"{tensor.name} needs either data or the parameter binary_data_size.")
    if len(binary) != (size or 0):
        raise InferenceInvalidError(
            f"{len(binary)} bytes follow the JSON part; its binary_data_size says {size or 0}. "
            "Inference-Header-Content-Length tells where the JSON part ends."
        )
    if expected == "UINT8":
        return list(_pixels(tensor, binary, shape))
    return _binary_files(binary, shape[0]) if tensor.data is None else _text_files(tensor.data, shape[0])


def _pixels(tensor: InputTensor, binary: bytes, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    data = binary if tensor.data is None else _numbers(tensor.data, shape)
    count = int(np.prod(shape))
    if len(data) != count:
        raise InferenceInvalidError(f"images has {len(data)} values; its shape {list(shape)} has {count}.")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _numbers(values: list[Any], shape: tuple[int, ...]) -> bytes:
    """Whole numbers from 0 to 255 as bytes; ``values`` are flat, or nested as ``shape``.

    Not by way of `np.array`, which turns a list with one long text in it into texts of that length.
    """
    if values and isinstance(values[0], list):
        for size in shape[1:]:
            if not all(isinstance(row, list) and len(row) == size for row in values):
                raise InferenceInvalidError(f"images is nested unlike its shape {list(shape)}.")
            values = list(chain.from_iterable(values))
    try:
        return bytes(values)
    except (TypeError, ValueError) as error:
        raise InferenceInvalidError("images holds something else than whole numbers from 0 to 255.") from error


def _binary_files(binary: bytes, count: int) -> list[bytes]:
    """Elements of a BYTES tensor: each has its length in front, four bytes, little endian."""
    files: list[bytes] = []
    at = 0
    while at < len(binary) and len(files) < count:
        begins = at + 4
        at = begins + int.from_bytes(binary[at:begins], "little")
        files.append(binary[begins:at])
    if at != len(binary) or len(files) != count:
        raise InferenceInvalidError(
            f"The binary data of encoded do not divide into {count} elements, each with its length in front."
        )
    return files


def _text_files(texts: list[Any], count: int) -> list[bytes]:
    """Elements of a BYTES tensor in JSON, which cannot hold bytes: base64 (RFC 4648, section 4)."""
    if texts and all(isinstance(row, list) for row in texts):  # shape [N, 1]
        texts = list(chain.from_iterable(texts))
    if len(texts) != count:
        raise InferenceInvalidError(f"encoded has {len(texts)} elements; its shape says {count}.")
    try:
        return [base64.b64decode(text, validate=True) for text in texts]
    except (TypeError, ValueError, binascii.Error) as error:
        raise InferenceInvalidError("encoded holds something else than base64 texts of the files' bytes.") from error

"""Reads an ONNX file that anyone may have written: sizes first, then bytes; nothing outside its folder is opened."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import onnx
from google.protobuf.message import DecodeError

from assay.building.foreign.surgery import tensors
from assay.errors import BuildError
from assay.packs.archive import MAX_PACK_BYTES

_OTHERS: Final = (
    (0, b"version https://git-lfs", "a Git LFS pointer, not the file itself: run `git lfs pull`"),
    (0, b"PK\x03\x04", "a zip file, such as a PyTorch checkpoint: export it with torch.onnx.export"),
    (0, b"\x80\x02", "a pickle, such as a PyTorch checkpoint: export it with torch.onnx.export"),
    (0, b"\x89HDF", "HDF5, such as a Keras model: export it with tf2onnx"),
    (0, b"\x1f\x8b", "compressed with gzip: unpack it first"),
    (4, b"TFL3", "a TensorFlow Lite model: convert it with tf2onnx"),
    (4, b"ORTM", "in ONNX Runtime's own format (.ort): give the ONNX file that it was made from"),
)
"""Offset, first bytes, and what files with these are that people take for ONNX."""

_TEXT_SAMPLE: Final = 1024
"""Bytes looked at: a protobuf has control characters in its first dozen."""


@dataclass(frozen=True)
class Source:
    """A model whose weights are all inside, the sha256 of the ONNX file, and the names of the files beside it."""

    model: onnx.ModelProto
    sha256: str
    external: tuple[str, ...]


def read_source(path: Path, max_bytes: int = MAX_PACK_BYTES) -> Source:
    """Read an ONNX file and what it keeps outside itself.

    ``max_bytes`` bounds both together: what is larger would not fit into a pack. Raises ``BuildError`` for a file that
    is not there, too large, or not ONNX, and for weights outside the file's own folder.
    """
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise _too_large(path, size, max_bytes)
        data = path.read_bytes()
    except OSError as error:
        raise BuildError(f"cannot read {path}: {error.strerror or error}") from error
    model = _parsed(path, data)
    external = _inline(path, model, max_bytes - size)
    return Source(model, hashlib.sha256(data).hexdigest(), external)


def _parsed(path: Path, data: bytes) -> onnx.ModelProto:
    if not data:
        raise BuildError(f"{path} is empty: export the model again")
    for offset, magic, what in _OTHERS:
        if data[offset:].startswith(magic):
            raise BuildError(f"{path} is {what}")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        what = "text" if _is_text(data[:_TEXT_SAMPLE]) else "damaged, cut off, or of another format"
        raise BuildError(f"{path} is not an ONNX file but {what}: export or copy it again") from error
    if not model.graph.node or not model.opset_import:
        # Many a text is a valid protobuf of unknown fields.
        raise BuildError(f"{path} holds no ONNX graph: is it the file that the export wrote?")
    return model


def _is_text(data: bytes) -> bool:
    text = data.decode("utf-8", errors="replace")
    return all(character.isprintable() or character in "\r\n\t" for character in text.rstrip("\ufffd"))


def _inline(path: Path, model: onnx.ModelProto, left: int) -> tuple[str, ...]:
    """Move weights that are kept in other files into the model; return those files' names."""
    outside = [tensor for tensor in tensors(model.graph) if tensor.data_location == onnx.TensorProto.EXTERNAL]
    sizes: dict[str, Path] = {}
    for tensor in outside:
        told: dict[str, str] = {entry.key: entry.value for entry in tensor.external_data}
        location = told.get("location", "")
        file = sizes.setdefault(location, _beside(path, location))
        try:
            offset = int(told.get("offset", 0))
            length = int(told.get("length", file.stat().st_size - offset))
        except ValueError as error:
            raise BuildError(
                f"{path} tells no place in {location}, where weights should be: export it again"
            ) from error
        if offset < 0 or length < 0 or offset + length > file.stat().st_size:
            raise BuildError(
                f"{path} expects weights at {offset} to {offset + length} of {location}, which has "
                f"{file.stat().st_size} bytes: copy both files anew from one export"
            )
        left -= length
        if left < 0:
            raise BuildError(
                f"the weights of {path} in {location} make it larger than the {MAX_PACK_BYTES} bytes of a pack: "
                "export a smaller model"
            )
        with file.open("rb") as stream:
            stream.seek(offset)
            tensor.raw_data = stream.read(length)
        tensor.ClearField("external_data")
        tensor.data_location = onnx.TensorProto.DEFAULT
    return tuple(sizes)


def _beside(path: Path, location: str) -> Path:
    """Return the file that a model names as the home of weights, which must be in the model's folder or below."""
    folder = path.resolve().parent
    parts: Sequence[str] = PurePosixPath(location.replace("\\", "/")).parts
    try:
        file = (folder / location).resolve()
        inside = file.is_relative_to(folder) and ".." not in parts and not PurePosixPath(location).is_absolute()
        found = inside and bool(location) and file.is_file()
    except (OSError, ValueError) as error:  # a null byte, a name too long
        raise BuildError(f"{path} keeps weights in a file that cannot be named: {location[:80]!r}") from error
    if not inside:
        raise BuildError(
            f"{path} wants weights from {location[:200]!r}, outside its own folder, which is refused: export it again, "
            "with its weights beside it"
        )
    if not found:
        raise BuildError(
            f"{path} keeps its weights in {location[:200]!r}, which is not there: copy it beside the model"
        )
    return file


def _too_large(path: Path, size: int, max_bytes: int) -> BuildError:
    return BuildError(f"{path} has {size} bytes; a pack may have {max_bytes}: export a smaller model")

"""A pack: one tar with a manifest, a model and its labels. Read whole into memory, verified before it is parsed."""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assay.errors import PackError, PackUnavailableError
from assay.packs.manifest import Manifest, parse_manifest, render_manifest
from assay.packs.tar import index_tar, read_member, verify_digest, write_tar

MANIFEST: Final = "pack.json"
MODEL: Final = "model.onnx"
LABELS: Final = "labels.txt"

MAX_PACK_BYTES: Final = 512 << 20
"""A quarter of the 2 GiB a pod has by default: the file and the session made from it must both fit."""

_LIMITS: Final = {MANIFEST: 16 << 20, MODEL: MAX_PACK_BYTES, LABELS: 4 << 20}
"""Bytes per member. A manifest may list 100,000 calibration groups of 64 digits (7 MB); labels are short texts."""


@dataclass(frozen=True)
class Pack:
    """A verified pack.

    ``model`` is an ONNX file (uint8 [N, crop, crop, 3] in, float32 [N, classes] out), ``labels`` has one text per
    class in class order (texts may repeat), ``digest`` is that of the whole file.
    """

    manifest: Manifest
    model: bytes
    labels: tuple[str, ...]
    digest: str


def read_pack(path: Path, expected_digest: str | None = None) -> Pack:
    """Read and verify a pack.

    Raises ``DigestMismatchError`` before anything is parsed, ``PackError`` when a member is missing, unknown, doubled,
    a link or too large, or the manifest or labels are not valid, ``PackUnavailableError`` when the file cannot be read.
    """
    try:
        size = path.stat().st_size
        if size > MAX_PACK_BYTES:
            raise PackError(f"{path} has {size} bytes; a pack may have {MAX_PACK_BYTES}")
        data = path.read_bytes()
    except OSError as error:
        raise PackUnavailableError(f"cannot read the pack {path}: {error.strerror or error}") from error
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    verify_digest(digest, expected_digest, f"the pack {path}")
    try:
        return _parse(data, digest)
    except PackError as error:
        raise PackError(f"the pack {path} is refused: {error}") from error


def write_pack(path: Path, manifest: Manifest, model: bytes, labels: tuple[str, ...]) -> str:
    """Write a pack and return its digest; the same contents give the same bytes."""
    _check_labels(labels)
    members = {
        LABELS: "".join(f"{label}\n" for label in labels).encode(),
        MODEL: model,
        MANIFEST: render_manifest(manifest),
    }
    return write_tar(path, sorted(members.items()))


def _parse(data: bytes, digest: str) -> Pack:
    stream = io.BytesIO(data)
    members = index_tar(stream, max_members=len(_LIMITS))
    if unknown := sorted(set(members) - set(_LIMITS)):
        raise PackError(f"unknown member {unknown[0]!r}")
    if missing := sorted(set(_LIMITS) - set(members)):
        raise PackError(f"{missing[0]!r} is missing")
    read = {name: read_member(stream, member, _LIMITS[name]) for name, member in members.items()}
    try:
        text = read[LABELS].decode()
    except UnicodeDecodeError as error:
        raise PackError(f"labels.txt is not UTF-8: {error}") from error
    if not text.endswith("\n"):
        raise PackError("labels.txt does not end with a line feed: it may be cut off")
    labels = tuple(text[:-1].split("\n"))
    _check_labels(labels)
    return Pack(parse_manifest(read[MANIFEST]), read[MODEL], labels, digest)


def _check_labels(labels: tuple[str, ...]) -> None:
    if len(labels) < 2:
        raise PackError(f"{len(labels)} labels: a classifier has at least two classes")
    for index, label in enumerate(labels):
        if not label.strip() or not label.isprintable():
            raise PackError(f"label {index} is empty or not printable: {label!r}")

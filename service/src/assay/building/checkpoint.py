"""Reads PyTorch checkpoints without PyTorch, and without running what they say.

Two layouts exist, both as written by ``torch.save``: the legacy one (three header pickles, the state dict, the list of
storage keys, then each storage: its length as a little-endian int64 and its bytes) and the zip one (``data.pkl`` beside
``data/<key>``). The pickles are read by ``tensor_pickle``, which admits tensors only. A file can make this reader use
at most twice its own size of memory, plus ``MAX_CHECKPOINT_BYTES``.
"""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from assay.building.tensor_pickle import StateDict, Storage, TensorView, load_pickle
from assay.errors import BuildError

Array = NDArray[Any]

LEGACY_MAGIC: Final = 0x1950A86A20F9469CFC6C
"""First object of a legacy checkpoint (``torch.serialization.MAGIC_NUMBER``)."""

LEGACY_PROTOCOL: Final = 1001
"""Second object of a legacy checkpoint (``torch.serialization.PROTOCOL_VERSION``)."""

MAX_CHECKPOINT_BYTES: Final = 1 << 30
"""Of the file, and of all its tensors. Far above any classifier meant for a CPU (MobileNet-class models have 10 to
25 MB), far below this machine."""

MAX_MEMBERS: Final = 1 << 16
"""Files in a zip: one per tensor and a few more. Python's reader makes an object of each before anybody can look."""

_DIRECTORY_ENTRY: Final = b"PK\x01\x02"
"""Begins each entry of a zip's central directory (PKWARE's APPNOTE.TXT, 4.3.12)."""


def read_checkpoint(path: Path) -> dict[str, Array]:
    """Return the tensors of a state dict by name, each in its own dtype and shape.

    Raises ``BuildError`` when the file is not a checkpoint of tensors, is damaged, or asks for anything else.
    """
    try:
        size = path.stat().st_size
        if size > MAX_CHECKPOINT_BYTES:
            raise BuildError(f"{path} has {size} bytes; a checkpoint may have {MAX_CHECKPOINT_BYTES}")
        data = path.read_bytes()
    except OSError as error:
        raise BuildError(f"cannot read the checkpoint {path}: {error.strerror or error}") from error
    read = _read_zip if data.startswith(b"PK\x03\x04") else _read_legacy
    try:
        views, bytes_of = read(data)
        _check_total(views)
        return {name: _materialise(view, bytes_of) for name, view in views.items()}
    except BuildError as error:
        raise BuildError(f"{path} is refused: {error}") from error
    except Exception as error:  # damage can make any of the libraries here raise anything
        told = " ".join(str(error).split())[:200]
        raise BuildError(f"{path} is not a checkpoint of tensors: {type(error).__name__}: {told}") from error


def _read_legacy(data: bytes) -> tuple[dict[str, TensorView], Callable[[Storage], bytes]]:
    stream = io.BytesIO(data)
    magic = load_pickle(stream)
    if type(magic) is not int or magic != LEGACY_MAGIC:
        raise BuildError("it is neither a zip nor a legacy checkpoint (wrong magic number)")
    protocol, system = load_pickle(stream), load_pickle(stream)
    if type(protocol) is not int or protocol != LEGACY_PROTOCOL:
        raise BuildError(f"it is not of protocol {LEGACY_PROTOCOL}, the only one there is")
    if not isinstance(system, StateDict) or system.get("little_endian") is not True:
        raise BuildError("its numbers are not little-endian")
    views = _checked(load_pickle(stream))
    keys = load_pickle(stream)
    storages = _storages(views)
    if not isinstance(keys, list) or not all(type(key) is str for key in keys) or set(keys) != set(storages):
        raise BuildError("the storages listed are not the storages used")
    found: dict[str, bytes] = {}
    for key in keys:
        storage = storages[key]
        length = int.from_bytes(stream.read(8), "little")
        if length != storage.length:
            raise BuildError(f"storage {key!r} holds {length} numbers, its tensor says {storage.length}")
        found[key] = stream.read(length * storage.dtype.itemsize)
    return views, lambda storage: found[storage.key]


def _read_zip(data: bytes) -> tuple[dict[str, TensorView], Callable[[Storage], bytes]]:
    if (entries := data.count(_DIRECTORY_ENTRY)) > MAX_MEMBERS:
        raise BuildError(f"the zip has about {entries} members; {MAX_MEMBERS} are allowed")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        pickles = [name for name in names if name.endswith("/data.pkl")]
        if len(pickles) != 1 or len(names) != len(set(names)):
            raise BuildError("the zip does not hold exactly one data.pkl")
        members = {entry.filename: entry for entry in archive.infolist()}
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in members.values()):
            raise BuildError("the zip is compressed; checkpoints are stored as they are")
        # Stored members take no more room than the file, unless several claim the same bytes.
        if (claimed := sum(entry.file_size for entry in members.values())) > len(data):
            raise BuildError(f"the members of the zip claim {claimed} bytes, the file has {len(data)}")
        root = pickles[0].removesuffix("data.pkl")
        if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
            raise BuildError("its numbers are not little-endian")
        views = _checked(load_pickle(io.BytesIO(archive.read(pickles[0]))))
        found: dict[str, bytes] = {}
        for key, storage in _storages(views).items():
            member, size = f"{root}data/{key}", storage.length * storage.dtype.itemsize
            if member not in members or members[member].file_size != size:
                has = f"{members[member].file_size} bytes" if member in members else "no file"
                raise BuildError(f"storage {key[:100]!r} has {has}, its tensor says {size} bytes")
            found[key] = archive.read(member)
    return views, lambda storage: found[storage.key]


def _checked(state: object) -> dict[str, TensorView]:
    if not isinstance(state, StateDict) or not state:
        raise BuildError(f"it holds a {type(state).__name__}, not a dictionary of tensors")
    for name, value in state.items():
        if not isinstance(value, TensorView):
            raise BuildError(f"entry {name[:100]!r} is a {type(value).__name__}, not a tensor")
    return state


def _storages(views: dict[str, TensorView]) -> dict[str, Storage]:
    """Return the storages by key, which tensors may share: then they must agree about it."""
    found: dict[str, Storage] = {}
    for view in views.values():
        if found.setdefault(view.storage.key, view.storage) != view.storage:
            raise BuildError(f"two tensors differ about storage {view.storage.key[:100]!r}")
    return found


def _check_total(views: dict[str, TensorView]) -> None:
    """Refuse tensors that together are larger than a checkpoint: windows onto one storage, again and again."""
    total = sum(_elements(view) * view.storage.dtype.itemsize for view in views.values())
    if total > MAX_CHECKPOINT_BYTES:
        raise BuildError(f"its tensors have {total} bytes; {MAX_CHECKPOINT_BYTES} are allowed")


def _elements(view: TensorView) -> int:
    return int(np.prod(view.shape, dtype=object))


def _materialise(view: TensorView, bytes_of: Callable[[Storage], bytes]) -> Array:
    """Turn a view into an array of its own (PyTorch counts strides in elements, NumPy in bytes)."""
    flat = np.frombuffer(bytes_of(view.storage), view.storage.dtype)
    if len(view.shape) != len(view.strides):
        raise BuildError(f"a tensor of shape {view.shape} has strides {view.strides}")
    reach = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
    if 0 in view.shape or len(flat) != view.storage.length or reach >= len(flat):
        raise BuildError(f"a tensor of shape {view.shape} reaches past its storage of {len(flat)} numbers")
    if _elements(view) > len(flat):
        raise BuildError(f"a tensor of shape {view.shape} is larger than its storage of {len(flat)} numbers")
    strides = tuple(stride * flat.itemsize for stride in view.strides)
    return np.lib.stride_tricks.as_strided(flat[view.offset :], view.shape, strides, writeable=False).copy()

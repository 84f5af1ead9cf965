"""Reads PyTorch checkpoints without PyTorch, and without running what they say.

A ``.pth`` file is a pickle, and a pickle is a program. The unpickler here admits exactly what a state dict is made
of: ordered dictionaries, storages and strided tensors over them. Everything else is refused before it is called.
Two layouts exist: the legacy one (three header pickles, the state dict, the list of storage keys, then each storage:
its length as a little-endian int64 and its bytes) and the zip one (``data.pkl`` beside ``data/<key>``), both as
written by ``torch.save``.
"""

import io
import pickle
import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from assay.errors import BuildError

Array = NDArray[Any]

LEGACY_MAGIC: Final = 0x1950A86A20F9469CFC6C
"""First object of a legacy checkpoint (``torch.serialization.MAGIC_NUMBER``)."""

LEGACY_PROTOCOL: Final = 1001
"""Second object of a legacy checkpoint (``torch.serialization.PROTOCOL_VERSION``)."""

MAX_CHECKPOINT_BYTES: Final = 1 << 30
"""Far above any classifier meant for a CPU (MobileNet-class models have 10 to 25 MB), far below this machine."""

MAX_MEMO: Final = 1 << 20
"""Objects a pickle may refer back to; a state dict of 1000 tensors has about 10,000."""

_STORAGES: Final[dict[str, np.dtype[Any]]] = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
}


@dataclass(frozen=True)
class _StorageType:
    """Stands for a class such as ``torch.FloatStorage``; only its element type matters."""

    dtype: np.dtype[Any]


@dataclass(frozen=True)
class _Storage:
    """A flat run of numbers that tensors are views of."""

    key: str
    dtype: np.dtype[Any]
    length: int


@dataclass(frozen=True)
class _TensorView:
    """A tensor as the pickle describes it: a window with strides onto a storage that is read later."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _StateDict(dict[Any, Any]):
    """What ``collections.OrderedDict`` becomes; the metadata PyTorch attaches to it is dropped."""

    def __setstate__(self, state: object) -> None:
        return


class _RebuildTensor:
    """What ``torch._utils._rebuild_tensor_v2`` becomes: checks its arguments and computes nothing."""

    __slots__ = ()

    def __call__(self, storage: object, offset: object, shape: object, strides: object, *_: object) -> _TensorView:
        if not isinstance(storage, _Storage) or not _is_size(offset):
            raise pickle.UnpicklingError("a tensor without a storage or an offset")
        if not _is_sizes(shape) or not _is_sizes(strides):
            raise pickle.UnpicklingError("a tensor whose shape or strides are not sizes")
        return _TensorView(storage, offset, shape, strides)  # type: ignore[arg-type]

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("an attempt to change the reader")


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_CHECKPOINT_BYTES


def _is_sizes(value: object) -> bool:
    return type(value) is tuple and len(value) <= 8 and all(_is_size(item) for item in value)


class _TensorsOnly(pickle.Unpickler):
    """Admits what a state dict is made of, and names what it refuses."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - pickle's own signature
        if (module, name) == ("collections", "OrderedDict"):
            return _StateDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _RebuildTensor()
        if module == "torch" and name in _STORAGES:
            return _StorageType(_STORAGES[name])
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no part of a tensor")

    def persistent_load(self, pid: object) -> _Storage:
        # The sixth part of old files says that the storage is a window onto another one; saved modules have none.
        match pid:
            case ("storage", _StorageType(dtype), str(key), str(), int(length), *view) if _is_size(length):
                if any(part is not None for part in view):
                    raise pickle.UnpicklingError(f"storage {key!r} is a view of another one")
            case _:
                raise pickle.UnpicklingError("a reference that is not a storage")
        return _Storage(key, dtype, length)


def _load(stream: io.BytesIO) -> Any:  # noqa: ANN401 - a pickle holds anything; callers look
    """Load one pickle, after a look at its instructions: a memo index of billions would fill the memory."""
    start = stream.tell()
    for operation, argument, _ in pickletools.genops(stream):
        if operation.name.endswith("PUT") and isinstance(argument, int) and argument > MAX_MEMO:
            raise pickle.UnpicklingError(f"it remembers {argument} objects; {MAX_MEMO} are allowed")
    stream.seek(start)
    return _TensorsOnly(stream).load()


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
        return {name: _materialise(view, bytes_of) for name, view in views.items()}
    except BuildError as error:
        raise BuildError(f"{path} is refused: {error}") from error
    except Exception as error:  # an untrusted pickle can make its interpreter raise anything at all
        raise BuildError(f"{path} is not a checkpoint of tensors: {type(error).__name__}: {error}") from error


def _read_legacy(data: bytes) -> tuple[dict[str, _TensorView], Callable[[_Storage], bytes]]:
    stream = io.BytesIO(data)
    magic = _load(stream)
    if magic != LEGACY_MAGIC:
        raise BuildError("it is neither a zip nor a legacy checkpoint (wrong magic number)")
    protocol, system = _load(stream), _load(stream)
    if protocol != LEGACY_PROTOCOL or not isinstance(system, dict) or system.get("little_endian") is not True:
        raise BuildError(f"protocol {protocol!r} with {system!r} is not one this reader knows")
    views = _checked(_load(stream))
    keys = _load(stream)
    storages = {view.storage.key: view.storage for view in views.values()}
    if not isinstance(keys, list) or set(keys) != set(storages):
        raise BuildError("the storages listed are not the storages used")
    found: dict[str, bytes] = {}
    for key in keys:
        storage = storages[key]
        length = int.from_bytes(stream.read(8), "little")
        if length != storage.length:
            raise BuildError(f"storage {key!r} holds {length} numbers, its tensor says {storage.length}")
        found[key] = stream.read(length * storage.dtype.itemsize)
    return views, lambda storage: found[storage.key]


def _read_zip(data: bytes) -> tuple[dict[str, _TensorView], Callable[[_Storage], bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        pickles = [name for name in names if name.endswith("/data.pkl")]
        if len(pickles) != 1 or len(names) != len(set(names)):
            raise BuildError("the zip does not hold exactly one data.pkl")
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise BuildError("the zip is compressed; checkpoints are stored as they are")
        root = pickles[0].removesuffix("data.pkl")
        if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
            raise BuildError("its numbers are not little-endian")
        views = _checked(_load(io.BytesIO(archive.read(pickles[0]))))
        found = {view.storage.key: archive.read(f"{root}data/{view.storage.key}") for view in views.values()}
    return views, lambda storage: found[storage.key]


def _checked(state: object) -> dict[str, _TensorView]:
    if not isinstance(state, dict) or not state:
        raise BuildError(f"it holds a {type(state).__name__}, not a dictionary of tensors")
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, _TensorView):
            raise BuildError(f"entry {name!r} is a {type(value).__name__}, not a tensor")
    return state


def _materialise(view: _TensorView, bytes_of: Callable[[_Storage], bytes]) -> Array:
    """Turn a view into an array of its own (PyTorch counts strides in elements, NumPy in bytes)."""
    flat = np.frombuffer(bytes_of(view.storage), view.storage.dtype)
    if len(view.shape) != len(view.strides):
        raise BuildError(f"a tensor of shape {view.shape} has strides {view.strides}")
    reach = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
    if 0 in view.shape or len(flat) != view.storage.length or reach >= len(flat):
        raise BuildError(f"a tensor of shape {view.shape} reaches past its storage of {len(flat)} numbers")
    if int(np.prod(view.shape, dtype=object)) > len(flat):
        raise BuildError(f"a tensor of shape {view.shape} is larger than its storage of {len(flat)} numbers")
    strides = tuple(stride * flat.itemsize for stride in view.strides)
    return np.lib.stride_tricks.as_strided(flat[view.offset :], view.shape, strides, writeable=False).copy()

"""Writes PyTorch checkpoints without PyTorch, in both layouts, well-formed or not."""

import collections
import io
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_STORAGES = {"float32": "FloatStorage", "int64": "LongStorage", "float16": "HalfStorage"}


class Call:
    """Pickles as a call of any function by name: what an attacker writes."""

    def __init__(self, module: str, name: str, *args: Any) -> None:
        self.call = module, name, args


class _Global:
    """Pickles as a bare reference to a name."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Storage:
    def __init__(self, key: str, array: np.ndarray) -> None:
        self.key, self.array = key, array


class _Pickler(pickle._Pickler):  # the Python one: it can be taught to write names that cannot be imported
    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _Storage):
            kind = _Global("torch", _STORAGES[obj.array.dtype.name])
            return ("storage", kind, obj.key, "cpu", obj.array.size)
        return None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, _Global):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            return
        if isinstance(obj, Call):
            module, name, args = obj.call
            self.save(_Global(module, name))
            self.save(args)
            self.write(pickle.REDUCE)
            return
        super().save(obj, save_persistent_id)


def _dumps(obj: Any) -> bytes:
    out = io.BytesIO()
    _Pickler(out, 2).dump(obj)
    return out.getvalue()


def _state(tensors: Mapping[str, Any]) -> tuple[Any, list[_Storage]]:
    """A state dict as PyTorch pickles it; values that are no arrays are left as they are."""
    storages, state = [], collections.OrderedDict()
    for number, (name, value) in enumerate(tensors.items()):
        if isinstance(value, np.ndarray):
            base = value  # a view keeps its storage
            while base.base is not None:
                base = base.base
            storage = _Storage(str(1000 + number), np.ascontiguousarray(base).reshape(-1))
            strides = tuple(s // value.itemsize for s in value.strides)
            empty = Call("collections", "OrderedDict")
            value = Call("torch._utils", "_rebuild_tensor_v2", storage, 0, value.shape, strides, False, empty)
            storages.append(storage)
        state[name] = value
    return state, storages


def legacy_around(pickled: bytes, storages: Sequence[_Storage] = (), keys: bytes | None = None) -> bytes:
    """A file of the legacy layout around a pickle of any kind; ``keys`` is the pickle of the storages' list."""
    out = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2)
    out += pickle.dumps({"protocol_version": 1001, "little_endian": True, "type_sizes": {}}, 2)
    out += pickled + (keys or pickle.dumps([storage.key for storage in storages], 2))
    for storage in storages:
        out += storage.array.size.to_bytes(8, "little") + storage.array.tobytes()
    return out


def zip_around(pickled: bytes, storages: Sequence[_Storage] = (), compression: int = zipfile.ZIP_STORED) -> bytes:
    """A file of the zip layout around a pickle of any kind."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("model/data.pkl", pickled)
        archive.writestr("model/byteorder", "little")
        for storage in storages:
            archive.writestr(f"model/data/{storage.key}", storage.array.tobytes())
        archive.writestr("model/version", "3\n")
    return out.getvalue()


def legacy(path: Path, tensors: Mapping[str, Any]) -> Path:
    """Write the layout of PyTorch before 1.6."""
    state, storages = _state(tensors)
    path.write_bytes(legacy_around(_dumps(state), storages))
    return path


def zipped(path: Path, tensors: Mapping[str, Any]) -> Path:
    """Write the layout of PyTorch since 1.6."""
    state, storages = _state(tensors)
    path.write_bytes(zip_around(_dumps(state), storages))
    return path

"""Reads the one kind of pickle that a state dict is, instruction by instruction; Python's unpickler never runs.

A pickle is a program for a stack machine. This one knows the instructions that ``torch.save`` writes for dictionaries
of tensors, calls nothing but the two functions it puts in PyTorch's place, and never hashes, compares or prints what
a file made (nested and shared containers can make any of these take for ever). Everything else is refused by name.
Instructions are those of Python's ``pickletools``.
"""

import io
import pickletools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from assay.errors import BuildError

MAX_INSTRUCTIONS: Final = 1 << 20
"""A state dict of 1000 tensors takes about 40,000; each instruction makes at most one small object."""

MAX_MEMO: Final = MAX_INSTRUCTIONS
"""A pickle cannot remember more objects than it has instructions; a larger index is made to fill a table."""

MAX_ELEMENTS: Final = 1 << 30
"""Largest size, stride or offset: 4 GiB of FP32, more than a checkpoint may have."""

_TENSOR_ARGUMENTS: Final = 4
"""Storage, offset, shape and strides; what follows (gradients, hooks) is of no interest."""

_MAX_DIMENSIONS: Final = 8
"""A convolution's weight has 4."""

_STORAGES: Final[dict[str, np.dtype[Any]]] = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
}

_CONSTANTS: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS: Final = frozenset({"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"})
_TEXTS: Final = frozenset({"BINUNICODE", "SHORT_BINUNICODE"})
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NAMED: Final = frozenset({"GLOBAL", "INST"})


@dataclass(frozen=True)
class Storage:
    """A flat run of numbers that tensors are views of."""

    key: str
    dtype: np.dtype[Any]
    length: int


@dataclass(frozen=True)
class TensorView:
    """A tensor as the pickle describes it: a window with strides, in elements, onto a storage that is read later."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class _StorageType:
    """Stands for a class such as ``torch.FloatStorage``; only its element type matters."""

    dtype: np.dtype[Any]


class _OrderedDict:
    """Stands for ``collections.OrderedDict``, called without arguments."""


class _RebuildTensor:
    """Stands for ``torch._utils._rebuild_tensor_v2``."""


class StateDict(dict[str, Any]):
    """What the pickle makes of an ordered dictionary; the metadata PyTorch attaches to one is dropped."""


class _Mark:
    """Where a run of values begins on the stack."""


def load_pickle(stream: io.BytesIO) -> Any:  # noqa: ANN401 - a header is a number, a list or a dictionary: callers look
    """Return what one pickle holds; the stream is left after it.

    Raises ``BuildError`` for anything a state dict does not need, ``ValueError`` (``IndexError`` and the like too) for
    a pickle that is damaged.
    """
    machine = _Machine()
    for count, (instruction, argument, _) in enumerate(pickletools.genops(stream)):
        if count >= MAX_INSTRUCTIONS:
            raise BuildError(f"its pickle has more than {MAX_INSTRUCTIONS} instructions")
        if instruction.name == "STOP":
            return machine.stack.pop()
        machine.step(instruction.name, argument)
    raise ValueError("the pickle does not end")


class _Machine:
    """The stack, and what the pickle remembers by number."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:  # noqa: ANN401 - numbers, texts, or nothing
        """Carry out one instruction."""
        if name in ("PROTO", "FRAME"):
            return
        if name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _NUMBERS or name in _TEXTS:
            self.stack.append(argument)
        elif name in _NAMED:
            # The one place where a pickle names code. INST would call it at once: its name is told, then it is refused.
            self.stack.append(_stand_in(*argument.split(" ", 1)))
            if name == "INST":
                raise BuildError("its pickle uses INST, which no state dict needs")
        elif name == "STACK_GLOBAL":
            function, module = self.stack.pop(), self.stack.pop()
            self.stack.append(_stand_in(_text(module), _text(function)))
        elif name == "BINPERSID":
            self.stack.append(_storage(self.stack.pop()))
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self._remember(len(self._memo) if argument is None else argument)
        elif name in ("BINGET", "LONG_BINGET"):
            self.stack.append(self._memo[argument])
        else:
            self._build(name)

    def _build(self, name: str) -> None:
        """Carry out one of the instructions that make containers, or call."""
        match name:
            case "MARK":
                self.stack.append(_Mark())
            case "EMPTY_TUPLE":
                self.stack.append(())
            case "EMPTY_LIST":
                self.stack.append([])
            case "EMPTY_DICT":
                self.stack.append(StateDict())
            case "TUPLE":
                self.stack.append(tuple(self._marked()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                items = [self.stack.pop() for _ in range(_TUPLES[name])]
                self.stack.append(tuple(reversed(items)))
            case "APPEND" | "APPENDS":
                items = self._marked() if name == "APPENDS" else [self.stack.pop()]
                self._top(list).extend(items)
            case "SETITEM" | "SETITEMS":
                items = self._marked() if name == "SETITEMS" else [self.stack.pop(), self.stack.pop()][::-1]
                for key, value in zip(items[::2], items[1::2], strict=True):
                    self._top(StateDict)[_text(key)] = value
            case "REDUCE":
                arguments, function = self.stack.pop(), self.stack.pop()
                self.stack.append(_call(function, arguments))
            case "BUILD":
                self.stack.pop()
                if not isinstance(self.stack[-1], StateDict):
                    raise BuildError("it attaches a state to something that is no dictionary")
            case _:
                raise BuildError(f"its pickle uses {name}, which no state dict needs")

    def _remember(self, index: int) -> None:
        if index > MAX_MEMO:
            raise BuildError(f"its pickle remembers object {index}; {MAX_MEMO} are allowed")
        self._memo[index] = self.stack[-1]

    def _marked(self) -> list[Any]:
        """Take what lies above the last mark off the stack, and the mark."""
        items: list[Any] = []
        while not isinstance(item := self.stack.pop(), _Mark):
            items.append(item)
        return items[::-1]

    def _top(self, kind: type) -> Any:  # noqa: ANN401 - one of the two containers
        top = self.stack[-1]
        if type(top) is not kind:
            raise BuildError(f"it puts items into a {type(top).__name__}")
        return top


def _stand_in(module: str, name: str) -> object:
    """Return what stands for a global name; all others are refused here."""
    if (module, name) == ("collections", "OrderedDict"):
        return _OrderedDict()
    if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
        return _RebuildTensor()
    if module == "torch" and name in _STORAGES:
        return _StorageType(_STORAGES[name])
    raise BuildError(f"it asks for {module[:100]}.{name[:100]}, which is no part of a tensor")


def _call(function: object, arguments: object) -> object:
    if isinstance(function, _OrderedDict) and isinstance(arguments, tuple) and not arguments:
        return StateDict()
    if (
        not isinstance(function, _RebuildTensor)
        or not isinstance(arguments, tuple)
        or len(arguments) < _TENSOR_ARGUMENTS
    ):
        raise BuildError(f"it calls a {type(function).__name__.strip('_')} in a way that makes no tensor")
    storage, offset, shape, strides = arguments[:_TENSOR_ARGUMENTS]
    if not isinstance(storage, Storage) or not _is_size(offset):
        raise BuildError("a tensor without a storage or an offset")
    if not _is_sizes(shape) or not _is_sizes(strides):
        raise BuildError("a tensor whose shape or strides are not sizes")
    return TensorView(storage, offset, shape, strides)


def _storage(reference: object) -> Storage:
    """Return the storage that a persistent id names: ("storage", type, key, place, length) and perhaps a view."""
    match reference:
        case ("storage", _StorageType(dtype), str(key), str(), int(length), *view) if _is_size(length):
            # The sixth part of old files says that the storage is a window onto another one; saved modules have none.
            if any(part is not None for part in view):
                raise BuildError(f"storage {key[:100]!r} is a view of another one")
            return Storage(key, dtype, length)
    raise BuildError("a reference that is not a storage")


def _text(value: object) -> str:
    if type(value) is not str:
        raise BuildError(f"a {type(value).__name__} stands where a name belongs")
    return value


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_ELEMENTS


def _is_sizes(value: object) -> bool:
    return type(value) is tuple and len(value) <= _MAX_DIMENSIONS and all(_is_size(item) for item in value)

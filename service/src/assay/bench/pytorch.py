"""PyTorch in eager mode, as one side of a bench: in a process of another interpreter that answers timing requests.

This program neither needs nor imports PyTorch. What is measured is one build of it, and its name says which.
"""

import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from assay.bench.timing import Sample
from assay.bench.workers import pytorch_eager
from assay.errors import BenchError
from assay.packs.manifest import Normalisation

ARCHITECTURES: Final = frozenset(pytorch_eager.MODELS)
"""What torchvision has; EfficientNet-Lite0 it has not."""

DEFAULT_PYTHON: Final = "/usr/bin/python3"
"""Where Debian's and Ubuntu's python3-torch and python3-torchvision are found."""

_START_S: Final = 120.0
"""Importing PyTorch takes seconds, and tens of them from a cold disk on a busy machine."""

_ANSWER_S: Final = 60.0
"""A hundred times what the slowest build needs for one image."""


class PyTorchMissingError(BenchError):
    """There is no PyTorch to measure, for the reason given; a bench goes on without it."""


@dataclass(frozen=True)
class Build:
    """One build of PyTorch. ``onednn`` is its version, or empty where it has none; ``state_bytes`` the model's."""

    version: str
    origin: str
    onednn: str
    blas: str
    state_bytes: int

    @property
    def name(self) -> str:
        """What a row of a table calls it: never just PyTorch."""
        return f"PyTorch {self.version} ({self.origin}, {'oneDNN' if self.onednn else 'no oneDNN'}, {self.blas})"

    @property
    def remark(self) -> str:
        """The sentence that goes with its figures."""
        onednn = f"oneDNN {self.onednn}" if self.onednn else "no oneDNN"
        text = f"{self.name}: eager mode of this one build ({onednn}), not PyTorch's speed as such"
        # At batch 1 PyTorch gives pointwise convolutions to the BLAS, oneDNN or not, as its profiler shows.
        if self.blas == "reference BLAS":
            return (
                f"{text}: with the reference BLAS most convolutions are slow; Debian's libopenblas0-pthread is faster."
            )
        return f"{text}; others differ."


class Worker:
    """A process that runs one model with so many threads. Use as a context manager.

    Raises ``PyTorchMissingError`` if the interpreter, PyTorch, torchvision or the architecture is not there, and
    ``BenchError`` if it fails later.
    """

    def __init__(
        self,
        python: str,
        architecture: str,
        threads: int,
        norm: Normalisation,
        tensors: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        if architecture not in ARCHITECTURES:
            raise PyTorchMissingError(f"No PyTorch row: torchvision has no {architecture}")
        self._folder = tempfile.TemporaryDirectory(prefix="assay-pytorch-")
        folder = Path(self._folder.name)
        command = [python, pytorch_eager.__file__, architecture, str(threads)]
        command.append(json.dumps({"mean": norm.mean, "scale": norm.scale}))
        if tensors is not None:
            weights: Any = {name: np.asarray(value) for name, value in tensors.items()}
            np.savez(folder / "weights.npz", **weights)
            command.append(str(folder / "weights.npz"))
        # Ours would send it to this environment's packages, which are not built for it.
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        # A BLAS with a pool of its own does not hear of PyTorch's number of threads.
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        self._log = (folder / "stderr").open("w+b")
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the interpreter that the user named
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment, bufsize=0
            )
        except OSError as error:
            self._tidy()
            raise PyTorchMissingError(f"No PyTorch row: {python} does not run: {error.strerror or error}") from error
        try:
            self.build = self._introduction(python)
        except BenchError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def infer(self, images: NDArray[np.uint8]) -> tuple[Sample, NDArray[np.float32]]:
        """Return what one call took, by the worker's own clocks, and its logits, float32 [N, classes].

        ``images`` are uint8 [N, H, W, 3].
        """
        request = json.dumps({"shape": images.shape}).encode() + b"\n" + np.ascontiguousarray(images).tobytes()
        try:
            view = memoryview(request)
            while view:
                view = view[self._stdin.write(view) :]
        except OSError as error:
            raise self._failure("has ended") from error
        answer = self._line(_ANSWER_S)
        shape = answer["shape"]
        logits = np.frombuffer(self._bytes(int(np.prod(shape)) * 4, _ANSWER_S), np.float32).reshape(shape)
        return Sample(answer["wall_s"], answer["cpu_s"]), logits

    def close(self) -> None:
        """End the process and remove its files."""
        self._stdin.close()  # the end of its requests
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()
        self._tidy()

    @property
    def _stdin(self) -> IO[bytes]:
        return self._pipe(self._process.stdin)

    @property
    def _stdout(self) -> IO[bytes]:
        return self._pipe(self._process.stdout)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise ValueError("the process was started without a pipe")
        return pipe

    def _introduction(self, python: str) -> Build:
        told = self._line(_START_S)
        if "error" in told:
            raise PyTorchMissingError(
                f"No PyTorch row: {python} says {told['error']}; install python3-torch and python3-torchvision, or "
                "name another interpreter that has them with --torch-python"
            )
        return Build(told["version"], told["origin"], told["onednn"], told["blas"], told["bytes"])

    def _line(self, seconds: float) -> dict[str, Any]:
        """Read one line of JSON, byte by byte: what follows it is not part of it."""
        line = bytearray()
        while not line.endswith(b"\n"):
            line += self._bytes(1, seconds)
        try:
            told: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise self._failure(f"says {bytes(line[:100])!r}") from error
        return told

    def _bytes(self, count: int, seconds: float) -> bytes:
        found, ends = bytearray(), time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            ready.register(self._stdout, selectors.EVENT_READ)
            while len(found) < count:
                if not ready.select(max(0.0, ends - time.monotonic())):
                    raise self._failure(f"does not answer within {seconds:g} s")
                piece = self._stdout.read(count - len(found))
                if not piece:
                    raise self._failure("has ended")
                found += piece
        return bytes(found)

    def _failure(self, what: str) -> BenchError:
        self._log.seek(0)
        last = self._log.read()[-500:].decode(errors="replace").strip()
        return BenchError(f"the process that runs PyTorch {what}{f'; its last words: {last}' if last else ''}")

    def _tidy(self) -> None:
        self._log.close()
        self._folder.cleanup()

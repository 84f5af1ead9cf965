"""The real service as a subprocess on the loopback address: started, asked, its CPU time read, and always ended."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from assay.bench.cores import on
from assay.errors import BenchError
from assay.packs.tar import file_digest

SERVE: Final[Sequence[str]] = ("assay", "serve")
"""The service, as one starts it."""

READY_S: Final = 60
"""Start, load and warm-up take a second or two; a busy machine may take many times that."""

STOP_S: Final = 30
"""Draining an idle service is immediate; this is for a busy machine."""

_POLL_S: Final = 0.02
_ASK_S: Final = 60
"""Longest wait for one answer: the deadlines that are set for floods."""

_KEPT_S: Final = 30
"""Idle seconds after which a connection is not used again; the service closes it after 75."""

_LAST_LINES: Final = 5
"""Lines of its log that are quoted when a service ends too early: the reason is in the last one or two."""

_Handler = Callable[[int, FrameType | None], Any] | int | None
"""What `signal.signal` returns."""

_SAMPLE = re.compile(r"^(\w+)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
_STAGE = re.compile(r"(\w+);dur=([0-9.]+)")


@dataclass(frozen=True)
class Answered:
    """An answer of 200: seconds the client waited, and milliseconds of each stage as the service tells them."""

    seconds: float
    stages_ms: dict[str, float]
    body: bytes


class Service:
    """A running service."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._listening = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._asked = 0.0
        self.port = 0
        self._reader = threading.Thread(target=self._read, name="log of the service", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def _read(self) -> None:
        """Follow its log to the end, so that it never waits for a reader."""
        assert self._process.stderr is not None  # noqa: S101 - it was started with a pipe
        for line in self._process.stderr:
            self._lines.append(line.rstrip())
            if not self.port and '"Listening' in line:
                with contextlib.suppress(ValueError, KeyError):
                    self.port = int(json.loads(line)["port"])
            if self.port:
                self._listening.set()
        self._listening.set()  # it has ended; whoever waits finds out

    def wait_until_ready(self) -> None:
        """Wait until it takes traffic. Raises `BenchError` when it ends before, or takes too long."""
        deadline = time.monotonic() + READY_S
        self._listening.wait(READY_S)
        while time.monotonic() < deadline:
            if (code := self._process.poll()) is not None:
                self._reader.join(STOP_S)
                raise BenchError(f"the service ended with {code} before it was ready; {self._last_words()}")
            with contextlib.suppress(OSError):
                if self.port and self._ask("GET", "/readyz")[0] == http.client.OK:
                    return
            time.sleep(_POLL_S)
        raise BenchError(f"the service was not ready within {READY_S} s; {self._last_words()}")

    def _last_words(self) -> str:
        return "it logged last: " + " | ".join(self._lines) if self._lines else "it logged nothing"

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, http.client.HTTPMessage, bytes]:
        """One request, over a connection that is kept. Raises `OSError` as `http.client` does."""
        if self._connection is not None and time.monotonic() - self._asked > _KEPT_S:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ASK_S)
        self._asked = time.monotonic()
        try:
            headers = {"Content-Type": "application/octet-stream"} if body is not None else {}
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            return response.status, response.headers, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._connection = None
            raise OSError(str(error)) from error

    def classify(self, image: bytes, top_k: int = 3) -> Answered:
        """Classify one image. Raises `BenchError` for any answer but 200."""
        started = time.perf_counter()
        try:
            status, headers, body = self._ask("POST", f"/v1/classify?top_k={top_k}", image)
        except OSError as error:
            raise BenchError(f"the service did not answer: {error}; {self._last_words()}") from error
        seconds = time.perf_counter() - started
        if status != http.client.OK:
            raise BenchError(f"the service answered {status}: {body.decode(errors='replace')[:300]}")
        stages = {name: float(ms) for name, ms in _STAGE.findall(headers.get("Server-Timing", ""))}
        return Answered(seconds, stages, body)

    def metrics(self) -> dict[str, float]:
        """Its metrics by name; those that differ by labels only are added up."""
        found: dict[str, float] = {}
        for name, value in _SAMPLE.findall(self._ask("GET", "/metrics")[2].decode()):
            found[name] = found.get(name, 0.0) + float(value)
        return found

    def cpu_s(self) -> float:
        """CPU seconds of all its threads so far. Raises `BenchError` where there is no /proc."""
        try:
            threads = list(Path(f"/proc/{self.pid}/task").iterdir())
        except OSError as error:
            raise BenchError("CPU time is read from /proc/PID/task, which is not there: run this on Linux") from error
        return sum(_thread_s(thread) for thread in threads)

    def loop_cpu_s(self) -> float:
        """CPU seconds of its event loop so far: the thread that receives and responds, the first of the process."""
        return _thread_s(Path(f"/proc/{self.pid}/task/{self.pid}"))

    def stop(self) -> None:
        """End it by SIGTERM. Raises `BenchError` when it takes too long, or ends with a code other than 0."""
        if self._connection is not None:
            self._connection.close()
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"the service did not stop within {STOP_S} s; {self._last_words()}") from error
        if code:
            raise BenchError(f"the service ended with {code} instead of 0; {self._last_words()}")

    def kill(self) -> None:
        """Make sure that nothing of it is left."""
        if self._connection is not None:
            self._connection.close()
        self._process.kill()
        self._process.wait()
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()


def _thread_s(task: Path) -> float:
    """CPU seconds of a thread, to the nanosecond (first field of ``schedstat``); none for one that has ended."""
    try:
        return int((task / "schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def service_environment(pack: Path, settings: Mapping[str, object] | None = None) -> dict[str, str]:
    """Return an environment in which a pack is served with these settings, whatever is set outside."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    ours = {"model_uri": pack, "model_digest": file_digest(pack), "host": "127.0.0.1", **(settings or {})}
    return {**clean, **{f"ASSAY_{name.upper()}": str(value) for name, value in ours.items()}}


@contextlib.contextmanager
def running(
    pack: Path,
    settings: Mapping[str, object] | None = None,
    cores: frozenset[int] | None = None,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = SERVE,
) -> Iterator[Service]:
    """Run the service until the block ends, on a free port; given once it is ready.

    ``settings``: by field name (``workers=1``). ``cores``: those it stays on, if any. ``environment``: what else it
    finds there. ``program``: the module that is run, and its arguments. Raises `BenchError` when it does not start or
    does not end properly; whatever happens, it does not outlive the block.
    """
    command = [sys.executable, "-m", *program]
    own = {"port": 0, "log_format": "json", **(settings or {})}
    variables = service_environment(pack, own) | dict(environment or {})
    with _Signals() as signals:
        with on(cores):  # our own interpreter and program
            process = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True)  # noqa: S603
        service = Service(process)
        try:
            signals.let_through()
            service.wait_until_ready()
            yield service
            service.stop()
        finally:
            service.kill()


class _Signals:
    """Lets SIGTERM unwind the stack as Ctrl-C does, and both wait while a process is started but not yet looked after.

    Ending this process must end what it has started. Only the main thread may set handlers; elsewhere: nothing.
    """

    def __init__(self) -> None:
        self._before: dict[int, _Handler] = {}
        self._through = False
        self._came = 0

    def __enter__(self) -> "_Signals":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._take) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def let_through(self) -> None:
        """From now on they act; one that came before does so at once."""
        self._through = True
        if self._came:
            self._take(self._came, None)

    def _take(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._came = number
        if not self._through:
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)  # as shells have it

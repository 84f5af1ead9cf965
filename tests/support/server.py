"""`assay serve` as a process of its own, on a free port of the loopback address."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

WAIT_S = 60.0
"""Longest wait for anything here; the machines that run tests may be busy."""


def wait_until(what: str, condition: Callable[[], object], timeout_s: float = WAIT_S) -> object:
    """The first true value of ``condition``."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {timeout_s} s for {what}")


class Server:
    """A running `assay serve`, and the events it has logged."""

    def __init__(self, builtin_dir: Path, arguments: tuple[str, ...], settings: dict[str, object]) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        own = {f"ASSAY_{name.upper()}": str(value) for name, value in settings.items()}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "assay", "serve", "--host", "127.0.0.1", "--port", "0", *arguments],
            env={**clean, "ASSAY_BUILTIN_DIR": str(builtin_dir), "ASSAY_LOG_FORMAT": "json", **own},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, object]] = []
        self.other_lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._url = ""

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                self.events.append(json.loads(line))
            except ValueError:
                self.other_lines.append(line)

    def event(self, beginning: str) -> dict[str, object] | None:
        """The first event whose sentence begins so."""
        return next((event for event in list(self.events) if str(event["event"]).startswith(beginning)), None)

    @property
    def url(self) -> str:
        """Where it listens."""
        if not self._url:
            event = wait_until("the server to listen", lambda: self.event("Listening") or self._ended())
            self._url = f"http://127.0.0.1:{event['port']}"
        return self._url

    def _ended(self) -> None:
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}: {self.events} {self.other_lines}")

    def wait_ready(self) -> "Server":
        """Itself, once it takes traffic."""

        def ready() -> bool:
            self._ended()
            return httpx.get(f"{self.url}/readyz").status_code == 200

        wait_until("the server to be ready", ready)
        return self

    def metrics(self) -> dict[str, float]:
        """Samples by ``name{label values}``; a histogram's buckets left out."""
        text = httpx.get(f"{self.url}/metrics").text
        return {
            sample.name + "".join(f"/{value}" for _, value in sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if not sample.name.endswith("_bucket")
        }

    def begin_peak(self) -> float:
        """MiB the process holds now; its peak is counted anew from here."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.peak()

    def peak(self) -> float:
        """Most MiB the process held since `begin_peak`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Its exit code, once it has ended and everything it logged was read."""
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code


@contextmanager
def running(builtin_dir: Path, *arguments: str, **settings: object) -> Iterator[Server]:
    """A server with these settings (``deadline_ms=200``); killed at the end if it still runs."""
    server = Server(builtin_dir, arguments, settings)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.wait()
        assert server.process.stderr is not None
        server.process.stderr.close()

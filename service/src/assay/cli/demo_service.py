"""The second half of the demo: a real service as a subprocess, asked over HTTP, then stopped."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from assay.errors import AssayError
from assay.packs.tar import file_digest
from assay.platform.cpu import cpu_limit_millicores

_READY_S: Final = 60
"""Start, load and warm-up take a second or two; a busy machine may take many times that."""

_STOP_S: Final = 30
"""Draining an idle service is immediate; this is for a busy machine."""

_POLL_S: Final = 0.1

_PHOTOS: Final = ("chelsea.png", "coffee.png", "rocket.jpg")
"""Photos a visitor recognises; none of them calibrated the pack."""


class DemoError(AssayError):
    """The service of the demo did not start, answer or stop."""

    code = "DemoFailed"


def service_environment(pack: Path) -> dict[str, str]:
    """Return an environment in which ``assay serve`` serves a pack, whatever settings are set outside."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    ours = {
        "ASSAY_MODEL_URI": str(pack),
        "ASSAY_MODEL_DIGEST": file_digest(pack),
        # The demo means to use the whole machine; without a limit the service warns that nobody set one.
        "ASSAY_CPU_LIMIT_MILLICORES": str(cpu_limit_millicores()),
    }
    return {**clean, **ours}


def classify_three(pack: Path, console: Console) -> None:
    """Serve a pack on a free port of the loopback, classify three photos over HTTP, print answers and stages, stop."""
    # Imported here: the names of the photos' distributions belong to what builds datasets.
    from assay.building.distributions import distribution_file
    from assay.building.photos import JUDGING

    photos = [photo for photo in JUDGING if photo.file in _PHOTOS]
    with _service(pack) as port:
        console.print(f"the service answers on http://127.0.0.1:{port}", highlight=False)
        table = Table(title="three photos over HTTP", title_justify="left")
        for name in ("photo", "labels", "milliseconds by stage"):
            table.add_column(name, overflow="fold")
        for photo in photos:
            data = distribution_file(photo.distribution, f"{photo.folder}/{photo.file}", photo.sha256).read_bytes()
            table.add_row(photo.file, *_classified(port, data))
    console.print(table)
    console.print("the service has drained and stopped", highlight=False)


def _classified(port: int, data: bytes) -> tuple[str, str]:
    """Return the labels with their scores, and the stages with their times, one a line."""
    status, headers, body = _ask(port, "POST", "/v1/classify?top_k=3", data)
    if status != http.client.OK:
        raise DemoError(f"the service answered {status}: {body.decode(errors='replace')[:300]}")
    labels = "\n".join(f"{found['score']:.3f}  {found['label']}" for found in json.loads(body)["predictions"])
    stages = [part.strip().partition(";dur=") for part in headers.get("Server-Timing", "").split(",")]
    return labels, "\n".join(f"{float(ms):6.2f}  {name}" for name, _, ms in stages if ms)


def _ask(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body, {"Content-Type": "application/octet-stream"} if body else {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


@contextlib.contextmanager
def _service(pack: Path) -> Iterator[int]:
    """Run ``assay serve`` until the block ends; give its port once it is ready."""
    port = _free_port()
    command = [sys.executable, "-m", "assay", "serve", "--host", "127.0.0.1", "--port", str(port)]
    # Our own interpreter and program. Only warnings are of interest beside the demo's own lines.
    environment = service_environment(pack) | {"ASSAY_LOG_LEVEL": "warning"}
    process = subprocess.Popen(command, env=environment)  # noqa: S603
    try:
        _wait_until_ready(process, port)
        yield port
        process.send_signal(signal.SIGTERM)
        if code := process.wait(_STOP_S):
            raise DemoError(f"the service ended with {code} instead of 0")
    except subprocess.TimeoutExpired as error:
        raise DemoError(f"the service did not stop within {_STOP_S} s") from error
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        if (code := process.poll()) is not None:
            raise DemoError(f"the service ended with {code} before it was ready; its last lines are above")
        with contextlib.suppress(OSError):
            if _ask(port, "GET", "/readyz")[0] == http.client.OK:
                return
        time.sleep(_POLL_S)
    raise DemoError(f"the service was not ready within {_READY_S} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

"""/livez, /readyz and /metrics, from a thread of their own: they answer, and tell the truth, when the loop is stuck."""

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest


class Heartbeat:
    """When the last resync succeeded. Alive while that is not too long ago, counted from the start."""

    def __init__(self, allowed_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._allowed_s = allowed_s
        self._clock = clock
        self._last = clock()
        self.ready = False

    def beat(self) -> None:
        """A resync has succeeded."""
        self._last = self._clock()
        self.ready = True

    @property
    def age_s(self) -> float:
        """Seconds since the last success."""
        return self._clock() - self._last

    @property
    def alive(self) -> bool:
        """Whether it was recent enough."""
        return self.age_s <= self._allowed_s


class ProbeServer:
    """A context manager that serves the three paths on all addresses. Port 0 takes a free one; see `port`."""

    def __init__(self, port: int, heartbeat: Heartbeat, registry: CollectorRegistry) -> None:
        self._server = ThreadingHTTPServer(("", port), _handler(heartbeat, registry))
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(heartbeat: Heartbeat, registry: CollectorRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, generate_latest(registry), CONTENT_TYPE_LATEST)
            elif self.path == "/livez":
                told = f"last successful resync {heartbeat.age_s:.0f} s ago\n".encode()
                self._answer(200 if heartbeat.alive else 503, told, "text/plain")
            elif self.path == "/readyz":
                self._answer(
                    200 if heartbeat.ready else 503, b"ready\n" if heartbeat.ready else b"starting\n", "text/plain"
                )
            else:
                self._answer(404, b"not here: /livez, /readyz, /metrics\n", "text/plain")

        def _answer(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
            """Probes come every few seconds: they are not worth a line."""

    return Handler

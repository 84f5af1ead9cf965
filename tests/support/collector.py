"""An OpenTelemetry collector: takes traces by OTLP over HTTP, in a thread of its own, and keeps them decoded."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from support.server import wait_until

ROOT_KIND = 2  # SPAN_KIND_SERVER of the protocol


@dataclass(frozen=True)
class Span:
    """A span, its identifiers in hexadecimal digits; times in nanoseconds."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    start: int
    end: int
    failed: bool
    state: str
    attributes: dict[str, object]
    resource: dict[str, object]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1e9


def _attributes(pairs) -> dict[str, object]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def _spans(message: ExportTraceServiceRequest) -> Iterator[Span]:
    for group in message.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Span(
                    span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name, span.kind,
                    span.start_time_unix_nano, span.end_time_unix_nano,
                    span.status.code == span.status.STATUS_CODE_ERROR, span.trace_state,
                    _attributes(span.attributes), resource,
                )  # fmt: skip


@dataclass
class Collector:
    """What it has taken so far. While ``answering`` is clear, it takes messages and answers none."""

    url: str = ""
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    status: int = 200
    answering: threading.Event = field(default_factory=threading.Event)

    def root(self, request_id: str) -> Span:
        """The span of a request, once it is here."""

        def find() -> Span | None:
            return next(
                (span for span in list(self.spans) if span.attributes.get("assay.request_id") == request_id), None
            )

        found = wait_until(f"the trace of request {request_id}", find)
        assert isinstance(found, Span)
        return found

    def below(self, root: Span) -> list[Span]:
        """The spans below one, by their beginning. They are sent together with it."""
        return sorted(
            (span for span in list(self.spans) if span.parent_id == root.span_id), key=lambda span: span.start
        )


@contextmanager
def collector() -> Iterator[Collector]:
    """A running one."""
    taken = Collector()
    taken.answering.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            message = ExportTraceServiceRequest.FromString(body)
            taken.paths.append(self.path)
            taken.headers.append({name.lower(): value for name, value in self.headers.items()})
            taken.answering.wait()
            if taken.status == 200:
                taken.spans.extend(_spans(message))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(taken.status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a service that ended without waiting for its answer

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    taken.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield taken
    finally:
        taken.answering.set()
        server.shutdown()
        server.server_close()
        thread.join()

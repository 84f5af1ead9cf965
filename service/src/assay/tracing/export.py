"""The queue between finished requests and the collector: bounded, never waited for, sent by its own thread.

A request that finds no room is dropped and counted, and so is what the collector does not take: traces are a help, and
what they tell is in the metrics as well.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from itertools import chain
from urllib.parse import urlsplit

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import Span

from assay.telemetry import Telemetry
from assay.tracing.finished import Finished
from assay.tracing.spans import Spans, exemplar

LIMIT = 1024
"""Traced requests that may wait. Seven seconds of 140 a second, longer than an attempt to send takes; some 5 MB."""

BATCH = 128
"""Most requests in one message: some 1100 spans, 150 KB."""

PAUSE_S = 1.0
"""Longest wait for a batch to fill: a trace can be looked up a second after its request."""

ATTEMPT_S = 5.0
"""Seconds for a batch to be taken, the exporter's own retries (after 1 and 2 s) included; then it is dropped."""

_PATH = "/v1/traces"  # of OTLP over HTTP
_WARNING_EVERY_S = 60.0
_CLOSE_S = 1.0

_log = structlog.get_logger()


class _FirstWords(logging.Filter):
    """Keeps the exporter's first complaint, and lets none through: one per batch would fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Nothing is logged."""
        self.text = self.text or record.getMessage()
        return False


def _full(endpoint: str) -> str:
    """The address that spans are posted to; one without a path is a collector's, whose path is the protocol's."""
    return endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + _PATH


class Traces:
    """Traces on their way to a collector. `offer` and `flush` are called on the event loop of the requests."""

    def __init__(self, endpoint: str, ratio: float, telemetry: Telemetry) -> None:
        self.endpoint = _full(endpoint)
        self._spans = Spans(ratio)
        self._sent, self._dropped = telemetry.traces_sent, telemetry.traces_dropped
        self._exporter = OTLPSpanExporter(self.endpoint, timeout=ATTEMPT_S)
        self._complaints = _FirstWords()
        self._library_log = logging.getLogger(OTLPSpanExporter.__module__)
        self._library_log.addFilter(self._complaints)
        # Of a header that is no traceparent the library would log a line for each request.
        logging.getLogger("opentelemetry.trace").setLevel(logging.CRITICAL)
        self._waiting: deque[tuple[Span, Finished]] = deque()
        self._changed = threading.Condition()
        self._sending = 0
        self._closed = False
        self._ended = threading.Event()
        self._failing = False
        self._warn_again = 0.0
        # A daemon: a collector that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def offer(self, finished: Finished, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str] | None:
        """Take a finished request to be sent, or drop and count it where there is no room. Never waits.

        What leads to its trace (`exemplar`); None for a request that is not traced, by its caller's decision (told by
        ``headers``, names in lower case), by the ratio's, or because it was dropped.
        """
        span = self._spans.begin(finished, headers)
        if span is None:
            return None
        with self._changed:
            if not self._closed and len(self._waiting) < LIMIT:
                self._waiting.append((span, finished))
                if len(self._waiting) in (1, BATCH):  # else the thread has nothing to wake up for
                    self._changed.notify()
                return exemplar(span)
            reason = "DrainDeadline" if self._closed else "QueueFull"
        self._dropped[reason].inc()
        return None

    async def flush(self, timeout_s: float) -> int:
        """Take nothing more, and send what waits within so many seconds. How many requests' traces were lost."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        await asyncio.to_thread(self._ended.wait, timeout_s)
        with self._changed:
            lost = len(self._waiting) + self._sending
            self._waiting.clear()
            self._sending = 0
        self._dropped["DrainDeadline"].inc(lost)
        return lost

    def close(self) -> None:
        """Stop at once; what still waits is lost. After `flush`, and before the interpreter ends."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()
        self._exporter.shutdown()  # type: ignore[no-untyped-call] # an attempt that waits to be repeated is given up
        self._thread.join(_CLOSE_S)
        self._library_log.removeFilter(self._complaints)

    # What follows runs on the thread that sends.

    def _run(self) -> None:
        try:
            while batch := self._next():
                self._send(batch)
        finally:
            self._ended.set()

    def _next(self) -> list[tuple[Span, Finished]]:
        """The next batch, once it is full or has waited long enough; none when all was sent at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._changed.wait_for(lambda: len(self._waiting) >= BATCH or self._closed, PAUSE_S)
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            self._sending = len(batch)
            return batch

    def _send(self, batch: list[tuple[Span, Finished]]) -> None:
        self._complaints.text = ""
        taken = False
        try:
            spans = list(chain.from_iterable(self._spans.end(span, finished) for span, finished in batch))
            taken = self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception:
            _log.exception("Traces could not be sent, by a fault of this program; please report it.")
        else:
            self._tell(taken=taken)
        with self._changed:
            settled, self._sending = self._sending, 0  # none where the drain has given them up meanwhile
        (self._sent if taken else self._dropped["CollectorFailed"]).inc(settled)

    def _tell(self, *, taken: bool) -> None:
        if taken and self._failing:
            self._failing = False
            _log.info("The collector takes traces again.", endpoint=self.endpoint)
        elif not taken and not self._failing and time.monotonic() >= self._warn_again:
            self._failing, self._warn_again = True, time.monotonic() + _WARNING_EVERY_S
            _log.warning(
                "The collector takes no traces; they are dropped and counted. Requests are not affected. Check the "
                "endpoint (OTLP over HTTP, as a rule port 4318), and the headers that it asks for.",
                endpoint=self.endpoint,
                why=self._complaints.text,
            )

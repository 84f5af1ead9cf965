"""Spans of finished requests: whose trace a request belongs to, whether it is kept, and where its time went."""

from collections.abc import Iterable
from itertools import pairwise
from socket import gethostname

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.trace import Span, SpanKind, StatusCode, format_span_id, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from assay import __version__
from assay.telemetry import STAGES
from assay.tracing.finished import NANO, Finished

_CONTEXT_HEADERS = (b"traceparent", b"tracestate")
_SERVER_FAULT = 500


class _Ended(SpanProcessor):
    """Keeps spans that have ended until they are taken."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep one."""
        self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        """All that were kept."""
        spans, self._spans = self._spans, []
        return spans


class Spans:
    """Makes the spans of one process. `begin` is called on the event loop, `end` on the thread that sends.

    ``ratio``: how many of the requests that no caller has decided about are traced, from 0 to 1.
    """

    def __init__(self, ratio: float) -> None:
        self._ended = _Ended()
        own = Resource.create(
            {
                "service.name": "assay",
                "service.version": __version__,
                "service.instance.id": gethostname(),  # in a cluster, the pod's name
            }
        )
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win; of itself, the library has it the other way round.
        resource = own.merge(OTELResourceDetector().detect())
        provider = TracerProvider(ParentBasedTraceIdRatio(ratio), resource, shutdown_on_exit=False)
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer("assay", __version__)
        self._callers = TraceContextTextMapPropagator()

    def begin(self, finished: Finished, headers: Iterable[tuple[bytes, bytes]]) -> Span | None:
        """The span of a request, in its caller's trace if ``headers`` (names in lower case) tell of one.

        None for a request that is not traced: its caller or the ratio has decided so.
        """
        carrier = {key.decode(): value.decode("latin-1") for key, value in headers if key in _CONTEXT_HEADERS}
        span = self._tracer.start_span(
            finished.name, self._callers.extract(carrier), kind=SpanKind.SERVER, start_time=finished.began_ns
        )
        return span if span.is_recording() else None

    def end(self, span: Span, finished: Finished) -> list[ReadableSpan]:
        """The spans of a request, to be sent: one for each stage, in order, and its own.

        Each stage begins where the one before ended. Of a request of several images, a stage is the sum over them.
        """
        span.set_attributes(dict(finished.attributes))
        if finished.status:
            span.set_attribute("http.response.status_code", finished.status)
        if finished.reason:
            span.set_attribute("error.type", finished.reason)
        if finished.status >= _SERVER_FAULT:
            span.set_status(StatusCode.ERROR)  # a refusal with 4xx is the caller's: convention for server spans
        below = set_span_in_context(span)
        names = [name for name in STAGES if name in finished.stages]
        elapsed = [0.0]
        for name in names:
            elapsed.append(elapsed[-1] + finished.stages[name])
        bounds = pairwise(finished.began_ns + round(seconds * NANO) for seconds in elapsed)
        for name, (start, end) in zip(names, bounds, strict=True):
            self._tracer.start_span(name, below, start_time=start).end(end)
        span.end(finished.ended_ns)
        return self._ended.take()


def exemplar(span: Span) -> dict[str, str]:
    """Labels that lead from a histogram's bucket to the trace of a request in it."""
    context = span.get_span_context()
    return {"trace_id": format_trace_id(context.trace_id), "span_id": format_span_id(context.span_id)}

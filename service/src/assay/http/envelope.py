"""The outermost layer: what every request gets, whatever its route.

Request ids, the variant's name, counting, the answer to a fault, and what a drain does to connections. Plain ASGI: a
framework's middleware would cost as much as the rest of the request's way through it.
"""

import re
import time
import uuid
from dataclasses import dataclass

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.http.limits import discard_rest
from assay.http.problems import INFERENCE_ROOT, internal, of_request_error
from assay.serving.errors import RequestError
from assay.serving.process import Process
from assay.serving.request import Answer
from assay.tracing.finished import Finished

CLASSIFY = "/v1/classify"


def classifies(path: str) -> bool:
    """Whether a path's requests are counted, admitted and drained; all others only tell about the process."""
    return path == CLASSIFY or (path.endswith("/infer") and path.startswith(f"{INFERENCE_ROOT}/models/"))


_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
"""A client's request id is kept when it is of this form; it goes into headers and logs."""

_INFER = f"{INFERENCE_ROOT}/models/{{model}}/infer"
"""The other route as spans are named: without what a client may choose."""

_OK = 200

_log = structlog.get_logger()


@dataclass(slots=True)
class Record:
    """What is known of a request while it is under way; the route leaves its answer here. Times: `perf_counter`."""

    request_id: str
    started: float
    answer: Answer | None = None
    status: int = 0
    body_read: bool = False
    reason: str = ""
    stored: tuple[tuple[bytes, bytes], ...] = ()
    """Images and their results to be stored once they were answered; none while storing is off."""
    gone: bool = False
    """Whether the client has hung up before it had its answer; the connection sets it."""


class LoopClock:
    """CPU time of the event loop's thread, shared out over the requests that it served.

    Each answered request takes what was spent since the one before; time of an idle loop, and of other routes, is
    nobody's. Only sums mean something: under concurrency one request may carry a part of another's.
    """

    def __init__(self) -> None:
        self._mark = 0.0

    def skip(self) -> None:
        """Let what was spent until now be nobody's."""
        self._mark = time.thread_time()

    def share(self) -> float:
        """CPU seconds since the last mark."""
        mark, self._mark = self._mark, time.thread_time()
        return self._mark - mark


class Envelope:
    """ASGI application around the routes of one process."""

    def __init__(self, app: ASGIApp, process: Process) -> None:
        self._app = app
        self._process = process
        self._variant = process.settings.variant.encode()
        self._clock = LoopClock()
        self._concurrent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = Record(_request_id(scope), time.perf_counter())
        scope["assay"] = record
        if scope["method"] == "HEAD":  # GET's answer without its body (RFC 9110, section 9.3.2), which Uvicorn drops
            scope = {**scope, "method": "GET"}
        if classifies(scope["path"]):
            await self._counted(scope, receive, send, record)
        else:
            await self._app(scope, receive, self._dressed(record, receive, send))
            self._clock.skip()

    def _dressed(self, record: Record, receive: Receive, send: Send) -> Send:
        """A ``send`` that adds this service's headers, and lets a refused client finish speaking before it hangs up."""
        closing = False

        async def dressed(message: Message) -> None:
            nonlocal closing
            if message["type"] == "http.response.start":
                record.status = message["status"]
                headers = list(message["headers"])
                headers.append((b"x-request-id", record.request_id.encode()))
                if self._variant:
                    headers.append((b"assay-variant", self._variant))
                closing = any(name.lower() == b"connection" for name, _ in headers)
                if self._process.lifecycle.leaving and not closing:
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            elif closing and not record.body_read and record.status != 408 and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await discard_rest(receive)
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        return dressed

    async def _counted(self, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
        dressed = self._dressed(record, receive, send)
        lifecycle = self._process.lifecycle
        try:
            lifecycle.enter()
        except RequestError as error:
            self._process.telemetry.count_rejected(error.code)
            await of_request_error(error, scope["path"])(scope, receive, dressed)
            self._count(scope, record)
            return
        if not self._concurrent:
            self._clock.skip()
        self._concurrent += 1
        try:
            await self._app(scope, receive, dressed)
        except Exception as error:
            # The framework has answered with a problem already where it could; here it only must not end the connection
            # with a trace in another format.
            if not record.status:
                await internal(error, record.request_id, scope["path"])(scope, receive, dressed)
        finally:
            self._concurrent -= 1
            lifecycle.leave()  # a drain that waits for this goes on in a later turn of the loop, when all here is done
            self._count(scope, record)
            if record.stored and record.status == _OK and self._process.store is not None:
                for image, result in record.stored:
                    self._process.store.offer(record.request_id, image, result)

    def _count(self, scope: Scope, record: Record) -> None:
        finished = time.perf_counter()
        seconds = finished - record.started
        telemetry = self._process.telemetry
        if record.reason:
            telemetry.count_rejected(record.reason)
        stages: dict[str, float] = {}
        cost_s = 0.0
        if record.answer is not None:
            stages = {**record.answer.stages, "respond": finished - record.answer.finished}
            cost_s = record.answer.cpu_s + self._clock.share()
            telemetry.observe_answer(stages, cost_s)
        trace: dict[str, str] | None = None
        if self._process.traces is not None:
            ended = Finished(
                name=f"{scope['method']} {CLASSIFY if scope['path'] == CLASSIFY else _INFER}",
                status=record.status,
                reason=record.reason,
                seconds=seconds,
                ended_ns=time.time_ns(),
                stages=stages,
                attributes=self._attributes(record, cost_s),
            )
            trace = self._process.traces.offer(ended, scope["headers"])
        if record.status:
            telemetry.observe_request(record.status, seconds, trace)
        if self._process.settings.access_log:
            _log.info(
                "A request was answered.",
                request_id=record.request_id,
                status=record.status,
                reason=record.reason or None,
                milliseconds=round(seconds * 1000, 2),
                **(trace or {}),
            )

    def _attributes(self, record: Record, cost_s: float) -> dict[str, str | float]:
        """What a trace tells beside times and status."""
        attributes: dict[str, str | float] = {"assay.request_id": record.request_id}
        if self._variant:
            attributes["assay.variant"] = self._variant.decode()
        if (path := self._process.slot.path) is not None:
            attributes["assay.model.digest"] = path.model.pack.digest
        if record.answer is not None:
            attributes["assay.cost_seconds"] = cost_s
        return attributes


def _request_id(scope: Scope) -> str:
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    return given.decode() if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex

"""Uvicorn's HTTP parser with the limits it lacks: on what precedes and follows a body, on time, and on connections.

Whatever a client does, its connection ends: headers, bodies (see `limits`), answers that nobody reads and silence have
each a time; and what is parsed but told to nobody (headers, trailers, chunk extensions) a size.
"""

import asyncio
import resource

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from assay.http.envelope import Record
from assay.http.problems import MEDIA_TYPE, problem_body

MAX_HEADER_BYTES = 32 << 10
"""Bytes of a request's line and headers together; browsers with all their cookies stay below 16 KiB."""

MAX_CONNECTIONS = 4096
"""Connections at once, of which each takes 12 KB (8000 idle ones: 93 MB). Beyond them, the one that has been idle
longest is closed: a flood must not keep the probes of the kubelet out."""

_RESERVED_SHARE = 4
_LEAST_RESERVED, _MOST_RESERVED = 32, 128
"""File descriptors kept for other things than connections (17 once it serves, and what the store opens): a quarter of
those allowed, within these. Without them a new connection is reset before anybody can choose another to close."""

_FRAMING = (b"content-length", b"transfer-encoding")
"""The headers that say where a body ends."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection.

    Headers that are too long get a 431. Those that do not arrive in time, and clients that do not read, are cut off.
    """

    timeout_s = 10.0
    max_connections = MAX_CONNECTIONS

    _in_headers = True
    _untold_bytes = 0  # handed to the parser since it last told of anything: it keeps unfinished headers to itself
    _headers_too_large = False
    _replaying = False
    _upgrade_with_body = False
    _idle_since = 0.0
    _answering: RequestResponseCycle | None = None  # `cycle` is the last one read, which may wait behind this one
    _header_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the parent does
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._arm()
        if len(self.connections) > self.max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers together with the connection."""
        self._disarm()
        self._expect_read(False)
        self._unset_keepalive_if_required()  # the parent forgets it where the connection broke
        cycle = self._answering
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # the parent tells the last request only, and this one would go on writing
            cycle.message_event.set()
            record = cycle.scope.get("assay")  # where the envelope left it
            if isinstance(record, Record):
                record.gone = True
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _cycle(self) -> RequestResponseCycle | None:
        return self.cycle  # none before the first request, whatever the parent declares

    @property
    def _idle(self) -> bool:
        return not self.transport.is_closing() and (self._cycle is None or self.cycle.response_complete)

    def _make_room(self) -> None:
        idle = [other for other in self.connections if isinstance(other, BoundedProtocol) and other._idle]  # noqa: SLF001
        min(idle, key=lambda other: other._idle_since)._hang_up()  # noqa: SLF001 - this one is idle, so there is one

    def data_received(self, data: bytes) -> None:
        """Take in bytes, unless headers (or trailers, or extensions of chunks) that have not ended are too long.

        Replaces the parent's, which logs a line for whatever a stranger sends, takes the body behind an ``Upgrade`` for
        another protocol, and lets any byte, even one that is no part of a request, end the wait for the next request.
        """
        self._untold_bytes += len(data)
        try:
            while data:
                data = self._parse(data)
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        if self._untold_bytes > MAX_HEADER_BYTES:
            self._headers_too_large = True
            self.send_400_response("")

    def _parse(self, data: bytes) -> bytes:
        """Hand bytes to the parser; what it leaves of them. Raises `httptools.HttpParserError`."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as found:
            if self._upgrade_with_body:
                self._parse_anew()
            return data[found.args[0] :]
        return b""

    def _parse_anew(self) -> None:
        """Go on with the body of a request that asked for another protocol, which is not spoken here.

        Java's client asks for HTTP/2 in each first request, with whatever body. The parser has given up on the message;
        a new one is told how its body is framed, and nothing of what it makes of that is told on.
        """
        self._upgrade_with_body = False
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the parent does
        framing = b"".join(b"%b: %b\r\n" % header for header in self.headers if header[0] in _FRAMING)
        self._replaying = True
        self.parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + b"\r\n")
        self._replaying = False

    def on_message_begin(self) -> None:
        """A request begins."""
        if self._replaying:
            return
        super().on_message_begin()
        self._unset_keepalive_if_required()
        self._in_headers = True
        self._arm()

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        if not self._replaying:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. Trailers are no headers (RFC 9110, section 6.5.1): they could say what the body was after all."""
        if self._in_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The headers are here: start the request, if they are not too long."""
        if self._replaying:
            return
        self._disarm()
        self._unset_keepalive_if_required()
        self._in_headers = False
        self._untold_bytes = 0
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES:
            self._headers_too_large = True
            raise ValueError("headers too large")  # stops the parser, which then calls `send_400_response`
        super().on_headers_complete()
        self._upgrade_with_body = self.parser.should_upgrade() and any(name in _FRAMING for name, _ in self.headers)

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._untold_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The body has ended, unless it is one that the parser did not look at."""
        self._untold_bytes = 0
        if not self._upgrade_with_body:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is written, as far as the program can tell."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self.transport.is_closing():
            self._expect_read(True)

    def pause_writing(self) -> None:
        """The client does not read what it is sent; it has as long to begin as it had to send."""
        super().pause_writing()
        self._expect_read(True)

    def resume_writing(self) -> None:
        """It reads."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._expect_read(False)

    def timeout_keep_alive_handler(self) -> None:
        """No request came for long."""
        self._hang_up()

    def _hang_up(self) -> None:
        """Close the connection; what was written still goes out, if the client reads it in time."""
        if not self.transport.is_closing():
            self.transport.close()
            self._expect_read(True)

    def _expect_read(self, expected: bool) -> None:
        if expected and self._unread_timer is None:
            self._unread_timer = self.loop.call_later(self.timeout_s, self.transport.abort)
        elif not expected and self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _arm(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.timeout_s, self._hang_up)

    def _disarm(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP request, or one with too long headers, with a problem; then hang up."""
        del msg  # the parser's, which may quote what was sent
        if self.transport.is_closing():
            return
        if self._headers_too_large:
            status, code = 431, "HeadersTooLarge"
            detail = f"The request's line and headers have more than {MAX_HEADER_BYTES} bytes."
        else:
            status, code, detail = 400, "BadRequest", "What was sent is not an HTTP request."
        body = problem_body(status, code, detail)
        head = b"content-type: %b\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head % (MEDIA_TYPE.encode(), len(body)) + body)
        self._hang_up()


def _most_connections() -> int:
    """`MAX_CONNECTIONS`, or fewer where the process may not have so many files open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    reserved = max(_LEAST_RESERVED, min(files // _RESERVED_SHARE, _MOST_RESERVED))
    return max(1, min(MAX_CONNECTIONS, files - reserved))


def bounded_protocol(timeout_s: float) -> type[BoundedProtocol]:
    """The protocol with these seconds for headers to arrive and for answers to be read.

    A class of its own, because Uvicorn makes the instances and hands no settings over.
    """
    return type("BoundedProtocol", (BoundedProtocol,), {"timeout_s": timeout_s, "max_connections": _most_connections()})

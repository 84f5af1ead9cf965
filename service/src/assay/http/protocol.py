"""Uvicorn's HTTP parser with limits on headers, which it lacks: their size, and the time they may take."""

import asyncio

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from assay.http.envelope import Record
from assay.http.problems import MEDIA_TYPE, problem_body

MAX_HEADER_BYTES = 32 << 10
"""Bytes of a request's line and headers together; browsers with all their cookies stay below 16 KiB."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Headers that are too long get a 431; those that do not arrive in time, a closed connection."""

    header_timeout_s = 10.0

    _in_headers = True
    _header_bytes = 0
    _headers_too_large = False
    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the parent does
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer together with the connection."""
        self._disarm()
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request, whatever the parent declares
        if cycle is not None and not cycle.response_complete:
            record = cycle.scope.get("assay")  # where the envelope left it
            if isinstance(record, Record):
                record.gone = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in bytes, unless headers that have not ended yet are too long already.

        The parser keeps an unfinished header to itself, so only the bytes handed to it can be counted.
        """
        if self._in_headers:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > MAX_HEADER_BYTES:
            self._headers_too_large = True
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_headers = True
        self._arm()

    def on_headers_complete(self) -> None:
        """The headers are here: start the request, if they are not too long."""
        self._disarm()
        self._in_headers = False
        self._header_bytes = 0
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES:
            self._headers_too_large = True
            raise ValueError("headers too large")  # stops the parser, which then calls `send_400_response`
        super().on_headers_complete()

    def _arm(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_timeout_s, self.transport.close)

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
        self.transport.close()


def bounded_protocol(header_timeout_s: float) -> type[BoundedProtocol]:
    """The protocol with a timeout of its own; Uvicorn makes the instances and hands no settings over."""
    return type("BoundedProtocol", (BoundedProtocol,), {"header_timeout_s": header_timeout_s})

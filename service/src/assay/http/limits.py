"""Reading a body within limits: bytes of this body, bytes of all bodies, and time."""

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from assay.serving.errors import BodyTimeoutError, BodyTooLargeError, ContentEncodingError
from assay.serving.receiving import Allowance

LINGER_S = 2.0
"""Seconds for which the rest of a refused body is read and thrown away. Closing at once would reset the connection, and
a client still sending might never see why."""

LINGER_BYTES = 64 << 20
"""The same in bytes; at 8 MiB allowed, nobody sends eight times that by mistake."""


def _too_large(seen: int, limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"The body has {seen} bytes or more; {limit} are allowed: send a smaller image.")


async def read_body(request: Request, max_bytes: int, timeout_s: float, allowance: Allowance) -> bytes:
    """The whole body. Nothing beyond ``max_bytes`` is kept, whether its length was declared or not.

    Raises `ContentEncodingError` for a compressed body, `BodyTooLargeError`, `BodyTimeoutError` for a body slower than
    ``timeout_s``, `OverloadedError` when all bodies together hold too much, and `ClientDisconnect` when the client went
    away.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ContentEncodingError("The body is compressed, which is not supported: send it as it is.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(int(declared), max_bytes)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_s) as timer:
            loop = asyncio.get_running_loop()
            allowance.receive(wake=lambda: timer.reschedule(loop.time()))
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > max_bytes:
                    raise _too_large(size, max_bytes)
                allowance.take(len(chunk))
                chunks.append(chunk)
                if not message.get("more_body", False):
                    allowance.received()
                    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    except TimeoutError as error:
        if allowance.revoked:
            raise allowance.refusal() from error
        raise BodyTimeoutError(f"The body did not arrive within {timeout_s:g} s; {size} bytes of it did.") from error


async def discard_rest(receive: Receive) -> None:
    """Read and throw away what a client still sends of a refused body, within `LINGER_S` and `LINGER_BYTES`."""
    seen = 0
    try:
        async with asyncio.timeout(LINGER_S):
            while seen < LINGER_BYTES:
                message = await receive()
                seen += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return

"""The service as it would be if it stored in the request's path: an answer leaves once its objects are written.

For ``assay bench storage`` only: the very service, with a layer around it that writes what its background store would
write, by the same sink, image first, then result, and only then lets the answer go. Run as a module, settings from the
environment. It waits on the event loop, which is the best that storing in the path can be: no worker is held meanwhile.
"""

import asyncio
import sys
import time

import uvloop
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.http.envelope import CLASSIFY
from assay.http.server import make_server
from assay.logs import configure_logging
from assay.settings import Settings, load_settings
from assay.storage.names import image_suffix, object_name
from assay.storage.sinks import Sink

_OK = 200


class InPath:
    """Writes image and result of each answered request before the answer is sent."""

    def __init__(self, app: ASGIApp, sink: Sink) -> None:
        self._app, self._sink = app, sink

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises `SinkError` where the sink does not take it: then the request has failed."""
        if scope["type"] != "http" or scope["path"] != CLASSIFY:
            await self._app(scope, receive, send)
            return
        image, answer = bytearray(), list[Message]()

        async def heard() -> Message:
            message = await receive()
            image.extend(message.get("body", b""))
            return message

        async def held(message: Message) -> None:
            answer.append(message)

        await self._app(scope, heard, held)
        if answer and answer[0].get("status") == _OK:
            await self._store(bytes(image), b"".join(message.get("body", b"") for message in answer[1:]))
        for message in answer:
            await send(message)

    async def _store(self, image: bytes, result: bytes) -> None:
        name = object_name("bench", time.time())
        await self._sink.put(name + image_suffix(image), image)
        await self._sink.put(name + ".json", result)


def run(settings: Settings) -> int:
    """Serve until told to end; the exit code."""

    async def main() -> int:
        server = make_server(settings.model_copy(update={"store_uri": ""}))
        server.config.app = InPath(server.config.app, Sink(settings.store_uri))  # type: ignore[arg-type] # an ASGI app
        await server.serve()
        return server.exit_code

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


if __name__ == "__main__":
    chosen = load_settings()
    configure_logging(chosen.log_format, chosen.log_level)
    sys.exit(run(chosen))

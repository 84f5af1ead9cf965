"""A server that does with requests exactly what a test of the load generator needs, and keeps when each arrived."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

DIGEST = "sha256:" + "a" * 64


@dataclass
class TinyServer:
    """How it answers. Times are seconds; ``arrivals`` are those of `time.time`, of requests to classify."""

    delay: float = 0.0
    """What each answer waits for, whatever else is under way."""
    service_time: float = 0.0
    """With one worker: each request is served for this long, in order, and waits until those before it are done."""
    label: str = "cat"
    status: int = 200
    digest: str = DIGEST
    arrivals: list[float] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    port: int = 0
    _free_at: float = 0.0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def _answer(self, path: str) -> tuple[int, bytes]:
        if path != "/v1/classify":
            return 404, b"{}"
        predictions = [{"label": label, "index": 0, "score": 0.5} for label in (self.label, "dog", "fox")]
        return self.status, json.dumps({"predictions": predictions, "model": {"digest": self.digest}}).encode()

    async def _wait(self, arrived: float) -> None:
        if self.service_time:
            # The queue is kept as times, so that a late wake-up delays one answer and not all that follow.
            self._free_at = max(self._free_at, arrived) + self.service_time
            await asyncio.sleep(max(0.0, self._free_at - time.time()))
        if self.delay:
            await asyncio.sleep(self.delay)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                arrived = time.time()
                fields = dict(line.lower().partition(b":")[::2] for line in request.split(b"\r\n")[1:])
                body = await reader.readexactly(int(fields.get(b"content-length", 0)))
                path = request.split(b" ", 2)[1].decode()
                if path == "/v1/classify":
                    self.arrivals.append(arrived)
                    self.bodies.append(body)
                    await self._wait(arrived)
                status, answer = self._answer(path)
                head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n"
                writer.write(head.encode() + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has had enough
        finally:
            writer.close()

    async def _main(self, started: threading.Event, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()


@contextmanager
def tiny_server(**behaviour: object) -> Iterator[TinyServer]:
    """A running one, in a thread of its own."""
    server = TinyServer(**behaviour)
    loop = asyncio.new_event_loop()
    stop, started = asyncio.Event(), threading.Event()

    def live() -> None:
        # Its clock is what a test measures by: it goes first, like the load generator, where that is allowed.
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -10)
        loop.run_until_complete(server._main(started, stop))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=live)
    thread.start()
    assert started.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()

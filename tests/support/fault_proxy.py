"""A proxy before a real API server: it passes everything on, but for what a test wants to go wrong.

Faults are tried in the order they were added; the first that matches a request, and has times left, has it.
"""

import asyncio
import json
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

STARTED_S = 30
WRITES = ("POST", "PUT", "PATCH", "DELETE")
_HOP_BY_HOP = {"host", "connection", "transfer-encoding", "content-length", "content-encoding", "accept-encoding"}


@dataclass(frozen=True)
class Seen:
    """A request that came by. ``at``, ``until``: `time.monotonic`. ``status``: what the operator was told, or 0."""

    method: str
    path: str
    watch: bool
    at: float
    until: float
    status: int


Act = Callable[["FaultProxy", web.Request], Awaitable[web.StreamResponse | None]]
Lines = Callable[[bytes], list[bytes]]


@dataclass
class Fault:
    """What to do with requests whose method and path match; ``watch`` tells watches from other reads."""

    act: Act | None = None
    method: str = ""
    path: str = ""
    watch: bool | None = None
    times: float = float("inf")
    lines: Lines | None = None  # what becomes of each line of a watch
    met: int = 0

    def takes(self, request: web.Request) -> bool:
        """Whether this request is its."""
        if self.met >= self.times or (self.method and request.method not in self.method.split("|")):
            return False
        if self.watch is not None and self.watch != is_watch(request):
            return False
        return re.search(self.path, request.path) is not None


def is_watch(request: web.Request) -> bool:
    return request.query.get("watch") == "true"


def refuse(status: int, **headers: str) -> Act:
    """Answer in the API server's stead."""

    async def act(proxy, request):
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": status,
            "message": "as the test wants",
        }
        return web.json_response(
            body, status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    return act


async def hang(proxy, request):
    """Never answer."""
    await proxy.released.wait()
    return await drop(proxy, request)


async def drop(proxy, request):
    """Close the connection without an answer."""
    request.transport.close()
    return web.Response()


async def lose(proxy, request):
    """Have the API server do it, and lose its answer."""
    await proxy.forward(request)
    return await drop(proxy, request)


def stale(kept: dict[str, bytes]) -> Act:
    """Answer with the first answer this path ever had, as a cache that was never refreshed would."""

    async def act(proxy, request):
        if request.path not in kept:
            answer = await proxy.forward(request)
            kept[request.path] = answer.body
            return answer
        return web.Response(body=kept[request.path], content_type="application/json")

    return act


class FaultProxy:
    """The proxy, on a thread of its own. ``seen`` is what came by, in order."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.url = ""
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="fault-proxy", daemon=True)
        self._thread.start()
        assert self._up.wait(STARTED_S)

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[Fault]:
        """Let it go wrong for as long as the block lasts."""
        self.faults.append(fault)
        try:
            yield fault
        finally:
            self.faults.remove(fault)

    def release(self) -> None:
        """End what hangs."""
        self._loop.call_soon_threadsafe(self.released.set)

    def break_watches(self) -> None:
        """Close every watch, so that they begin anew."""
        self._loop.call_soon_threadsafe(self._close_watches)

    def writes(self) -> list[Seen]:
        """What asked for a change, but for events."""
        return [one for one in self.seen if one.method in WRITES and "/events" not in one.path]

    def stop(self) -> None:
        """End it, and every connection."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(STARTED_S)
        assert not self._thread.is_alive()

    def _close_watches(self) -> None:
        for transport in list(self._watches):
            transport.close()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over, self.released = asyncio.Event(), asyncio.Event()
        self._watches: set[asyncio.BaseTransport] = set()
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        timeout = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.TCPConnector(ssl=False, limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=True) as self._session:
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._up.set()
            await self._over.wait()
            self.released.set()
            self._close_watches()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        fault = next((one for one in self.faults if one.takes(request)), None)
        if fault is not None:
            fault.met += 1
        began = time.monotonic()
        status = 0
        try:
            answer = await fault.act(self, request) if fault is not None and fault.act is not None else None
            if answer is None:
                answer = await self.forward(request, fault.lines if fault else None)
            status = 0 if request.transport is None or request.transport.is_closing() else answer.status
            return answer
        finally:
            self.seen.append(Seen(request.method, request.path, is_watch(request), began, time.monotonic(), status))

    async def forward(self, request: web.Request, lines: Lines | None = None) -> web.StreamResponse:
        """The API server's own answer; a watch is passed on line by line, for as long as it lasts."""
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        async with self._session.request(
            request.method, f"{self._upstream}{request.raw_path}", headers=headers, data=await request.read() or None
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            if not is_watch(request) or answer.status != 200:
                return web.Response(status=answer.status, body=await answer.read(), headers=kept)
            passed_on = web.StreamResponse(status=200, headers=kept)
            await passed_on.prepare(request)
            assert request.transport is not None
            self._watches.add(request.transport)
            try:
                async for line in answer.content:
                    for told in lines(line) if lines else [line]:
                        await passed_on.write(told)
            except (aiohttp.ClientError, ConnectionError):
                pass  # one side has hung up: the other is told by the end of the stream
            finally:
                self._watches.discard(request.transport)
            return passed_on


@dataclass
class Reorder:
    """Lines of a watch in pairs, each pair the other way round, and each line twice."""

    held: list[bytes] = field(default_factory=list)

    def __call__(self, line: bytes) -> list[bytes]:
        self.held.append(line)
        if len(self.held) < 2:
            return []
        first, second = self.held
        self.held.clear()
        return [second, first, second, first]


def gone(line: bytes) -> list[bytes]:
    """Instead of news: the watch's resourceVersion is too old."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Expired",
        "code": 410,
        "message": "too old",
    }
    return [json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"]


def silence(line: bytes) -> list[bytes]:
    """Nothing: the watch has stalled, and nobody says so."""
    return []

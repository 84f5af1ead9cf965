"""Whoever sends the load: a process of its own, so that what measures never waits for what sends.

An open loop sends each request when it is due, by a Poisson process, however slow the answers are; a closed loop keeps
so many requests under way. HTTP/1.1 over asyncio's streams: no client library is part of the service's dependencies,
and one costs more CPU time a request than the service's own event loop. Callers: the benchmarks of this package.
"""

import asyncio
import itertools
import multiprocessing
import random
import signal
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

import uvloop

from assay.errors import BenchError

_ANSWER_S: Final = 120
"""Longest wait for one answer. The floods' deadlines are a minute."""

_BEGIN_S: Final = 60
"""Longest wait for the process to start; it takes half a second on an idle machine."""

_LEAD_S: Final = 0.05
"""Seconds before the first request is due."""

_TICK_S: Final = 0.001
"""The loop's clock ticks in milliseconds, and may wake one too early: nobody is to be sent before it is due."""

_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request; seconds from the start of its run. ``status`` 0: no answer.

    ``due``: when it was to be sent; in a closed loop, when it was. ``sent``: when it was. ``ended``: when its answer
    was there.
    """

    due: float
    sent: float
    ended: float
    status: int

    @property
    def seconds(self) -> float:
        """Seconds from when it was due to its answer."""
        return self.ended - self.due

    @property
    def fine(self) -> bool:
        """Whether it was answered with 200."""
        return self.status == _OK


class Sender:
    """The process that sends. One run at a time."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def poisson(self, port: int, rate: float, seconds: float, seed: int) -> list[Outcome]:
        """Send ``rate`` requests a second for so long, at random times that the seed decides; the images in turn."""
        return self._run("poisson", port, rate, seconds, seed)

    def closed(self, port: int, clients: int, requests: int) -> list[Outcome]:
        """Send so many requests, the images in turn, ``clients`` of them at a time."""
        return self._run("closed", port, clients, requests)

    def _run(self, *order: object) -> list[Outcome]:
        try:
            self._pipe.send(order)
            outcomes: list[Outcome] = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise BenchError("the process that sends the load has ended; its last lines are above") from error
        return outcomes


@contextmanager
def sending(images: Sequence[bytes]) -> Iterator[Sender]:
    """A process that sends these images; on the cores this thread is on now. It does not outlive the block."""
    spawn = multiprocessing.get_context("spawn")  # this process has threads, which a fork would not survive
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        try:
            ours.send(list(images))
            if not ours.poll(_BEGIN_S):
                raise BenchError(f"the process that sends the load did not start within {_BEGIN_S} s")
            ours.recv()
        except (EOFError, OSError) as error:
            raise BenchError("the process that sends the load did not start; its last lines are above") from error
        yield Sender(ours)
    finally:
        ours.close()
        process.terminate()
        process.join()


def _serve(pipe: Connection) -> None:
    """The process's own loop: orders in, outcomes out, until nobody is at the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the orders
    with suppress(EOFError, OSError):
        images: list[bytes] = pipe.recv()
        pipe.send("ready")
        while True:
            kind, *order = pipe.recv()
            run = _poisson if kind == "poisson" else _closed
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                pipe.send(runner.run(run(images, *order)))


def due_times(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Seconds at which requests are due: a Poisson process of this rate, for so long."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    due = chance.expovariate(rate)
    while due < seconds:
        yield due
        due += chance.expovariate(rate)


async def _poisson(images: list[bytes], port: int, rate: float, seconds: float, seed: int) -> list[Outcome]:
    pool, begun = _Pool(port), time.perf_counter() + _LEAD_S
    async with asyncio.TaskGroup() as group:
        tasks = []
        for due, image in zip(due_times(rate, seconds, seed), itertools.cycle(images), strict=False):
            if (wait := begun + due - time.perf_counter()) > 0:
                await asyncio.sleep(wait + _TICK_S)
            tasks.append(group.create_task(_timed(pool, image, begun, due)))
    pool.close()
    return [task.result() for task in tasks]


async def _closed(images: list[bytes], port: int, clients: int, requests: int) -> list[Outcome]:
    pool, begun = _Pool(port), time.perf_counter()
    waiting = iter(list(itertools.islice(itertools.cycle(images), requests)))
    outcomes: list[Outcome] = []

    async def client() -> None:
        for image in waiting:
            outcomes.append(await _timed(pool, image, begun, None))  # noqa: PERF401 - others append too

    async with asyncio.TaskGroup() as group:
        clients_: list[Coroutine[Any, Any, None]] = [client() for _ in range(clients)]
        for each in clients_:
            group.create_task(each)
    pool.close()
    return outcomes


async def _timed(pool: "_Pool", image: bytes, begun: float, due: float | None) -> Outcome:
    sent = time.perf_counter() - begun
    try:
        async with asyncio.timeout(_ANSWER_S):
            status = await pool.post(image)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        status = 0
    return Outcome(sent if due is None else due, sent, time.perf_counter() - begun, status)


class _Pool:
    """Connections that are kept, as many as there are requests under way."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, image: bytes) -> int:
        """The status of the answer. Raises `OSError`, `ValueError` or asyncio's errors where there is none."""
        reader, writer = self._free.pop() if self._free else await self._connect()
        try:
            writer.write(
                b"POST /v1/classify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
                b"Content-Length: %d\r\n\r\n" % len(image)
            )
            writer.write(image)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(_header(head, b"content-length") or 0))
        except BaseException:
            writer.close()
            raise
        if _header(head, b"connection") == b"close":
            writer.close()
        else:
            self._free.append((reader, writer))
        return int(head.split(b" ", 2)[1])

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    def close(self) -> None:
        """Close what is kept."""
        for _, writer in self._free:
            writer.close()
        self._free.clear()


def _header(head: bytes, name: bytes) -> bytes | None:
    """A header's value; ``head``: the lines of an answer before its body, in lower case."""
    found = head.partition(b"\r\n" + name + b":")[2]
    return found.partition(b"\r\n")[0].strip() if found else None

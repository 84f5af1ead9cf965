"""An object store of known slowness: speaks as much of S3 as a write needs, keeps nothing, answers after a pause."""

import asyncio
import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

import uvloop

from assay.errors import BenchError

_BEGIN_S: Final = 60
"""Longest wait for its process to start."""

_STORED: Final = b'HTTP/1.1 200 OK\r\nETag: "0"\r\nContent-Length: 0\r\n\r\n'


@contextmanager
def slow_sink(latency_ms: float) -> Iterator[dict[str, str]]:
    """Run one in a process of its own; given is the environment in which ``s3://bench`` is there.

    It inherits this thread's cores, and does not outlive the block.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs, latency_ms / 1000), daemon=True)
    process.start()
    theirs.close()
    try:
        try:
            if not ours.poll(_BEGIN_S):
                raise BenchError(f"the slow sink did not start within {_BEGIN_S} s")
            port: int = ours.recv()
        except EOFError as error:
            raise BenchError("the slow sink did not start; its last lines are above") from error
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            # It looks at no signature, but a client without credentials goes and asks the cloud's metadata server.
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
        }
    finally:
        ours.close()
        process.terminate()
        process.join()


def _serve(pipe: Connection, latency_s: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this

    async def main() -> None:
        server = await asyncio.start_server(partial(_connection, latency_s=latency_s), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        alone = asyncio.Event()  # whoever started this is gone, however it ended
        asyncio.get_running_loop().add_reader(pipe.fileno(), alone.set)
        await alone.wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, latency_s: float) -> None:
    """Answer each write after the pause, counted from its last byte, until the client hangs up."""
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            await asyncio.sleep(latency_s)
            writer.write(_STORED)
            await writer.drain()
    writer.close()

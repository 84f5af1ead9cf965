"""The server of one process: listens at once, loads its model, serves, drains, and ends with the right exit code."""

import asyncio
import signal
import socket
from collections.abc import Coroutine
from types import FrameType

import structlog
import uvicorn
import uvloop

from assay.constants import EXIT_MISFIT
from assay.errors import AssayError, SettingsError
from assay.http.app import create_app
from assay.http.protocol import bounded_protocol
from assay.logs import bind_process
from assay.serving.misfit import write_last_words
from assay.serving.process import Process, build_process
from assay.settings import Settings

_KEEP_ALIVE_S = 75
"""Idle seconds of a connection: longer than the 60 s of common load balancers, so that they hang up first and none of
their requests meets a closing connection."""

_HANG_UP_S = 5
"""Seconds for the last connections to close once everything was answered."""

_EXIT_FAULT = 1

_log = structlog.get_logger()


class Server(uvicorn.Server):
    """Uvicorn with this service's beginning and end. ``exit_code`` is what the process should end with."""

    def __init__(self, config: uvicorn.Config, process: Process) -> None:
        super().__init__(config)
        self.exit_code = 0
        self._process = process
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then load the model while liveness is answered already."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        ports = [listener.getsockname()[1] for server in self.servers for listener in server.sockets]
        _log.info("Listening; the model is being loaded.", host=self.config.host, port=ports[0] if ports else None)
        self._begin(self._load())

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain on the first signal, end at once on the second. Replaces Uvicorn's, which ends by the signal itself."""
        del frame
        if self._loop is None:
            self.should_exit = True
            return
        self._loop.call_soon_threadsafe(self._told_to_end, sig)

    def _told_to_end(self, sig: int) -> None:
        if self._process.lifecycle.leaving:
            self.should_exit = self.force_exit = True
            return
        _log.info("Told to end; draining.", signal=signal.Signals(sig).name)
        self._begin(self._drain())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(self) -> None:
        try:
            await self._process.load()
        except AssayError as error:
            _log.error("The pack does not fit; this process ends.", code=error.code, why=str(error))
            write_last_words(error, self._process.settings.termination_log)
            self.exit_code, self.should_exit = EXIT_MISFIT, True
        except Exception:
            _log.exception("The model could not be loaded, by a fault of this program; please report it.")
            self.exit_code, self.should_exit = _EXIT_FAULT, True

    async def _drain(self) -> None:
        settings, lifecycle = self._process.settings, self._process.lifecycle
        if await lifecycle.drain(settings.drain_delay_s, settings.drain_timeout_s):
            _log.info("Every request that came in has its answer.", requests=lifecycle.entered)
        else:
            _log.warning("Some requests were not finished in time.", drain_timeout_s=settings.drain_timeout_s)
            self.force_exit = True
        await asyncio.gather(self._flush_store(), self._flush_traces())
        self.should_exit = True

    async def _flush_store(self) -> None:
        timeout_s = self._process.settings.drain_store_timeout_s
        if (store := self._process.store) is not None and (lost := await store.flush(timeout_s)):
            _log.warning(
                "Some answers could not be stored in time; they are lost.",
                answers=lost,
                drain_store_timeout_s=timeout_s,
            )

    async def _flush_traces(self) -> None:
        timeout_s = self._process.settings.drain_traces_timeout_s
        if (traces := self._process.traces) is not None and (lost := await traces.flush(timeout_s)):
            _log.warning(
                "Some traces could not be sent in time; they are lost.", requests=lost, drain_traces_timeout_s=timeout_s
            )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close every connection, then store and traces: nothing must be written when the interpreter ends."""
        await super().shutdown(sockets)
        if self._process.store is not None:
            self._process.store.close()
        if self._process.traces is not None:
            self._process.traces.close()


def make_server(settings: Settings) -> Server:
    """The server for these settings. To be called on the event loop it will run on."""
    process = build_process(settings)
    config = uvicorn.Config(
        create_app(process),
        host=settings.host,
        port=settings.port,
        http=bounded_protocol(settings.receive_timeout_s),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_HANG_UP_S,
    )
    return Server(config, process)


def run(settings: Settings) -> int:
    """Serve until told to end; the exit code.

    0 after a drain, 78 when the pack does not fit. Raises `SettingsError` where the address cannot be listened on.
    """

    async def main() -> int:
        if settings.variant:
            bind_process(variant=settings.variant)
        server = make_server(settings)
        try:
            await server.serve()
        except SystemExit as error:  # how Uvicorn says that it could not listen
            raise SettingsError(
                f"Cannot listen on {settings.host}:{settings.port}; see the log for the reason."
            ) from error
        return server.exit_code

    # Named, not left to be chosen: where uvloop is missing, this must fail and not run a third slower.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())

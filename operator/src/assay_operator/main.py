"""The process: everything is wired together here, and only here."""

import asyncio
import random
import signal
import sys
import time
from dataclasses import dataclass

import kopf
import structlog

from assay_operator import __version__
from assay_operator.cluster.api import Api
from assay_operator.cluster.rivals import Roster
from assay_operator.errors import ApiError
from assay_operator.handlers import startup, watch
from assay_operator.handlers.probe import Heartbeat, ProbeServer
from assay_operator.logs import configure
from assay_operator.plan import Limits
from assay_operator.reconciler import Reconciler
from assay_operator.settings import Settings
from assay_operator.telemetry import Telemetry
from assay_operator.turns import Turns
from assay_operator.workqueue import WorkQueue

FIRST_LIST_AGAIN_S = 2.0  # the CRD may be installed a moment after the operator
SPREAD = 0.2  # of a resync's interval, over which its passes are spread: 500 in twelve seconds are 42 a second
STOP_S = 1.0  # for connections to be closed properly

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Operator:
    """The objects of one process."""

    settings: Settings
    roster: Roster
    turns: Turns
    queue: WorkQueue
    interest: watch.Interest
    heartbeat: Heartbeat
    telemetry: Telemetry

    async def resync(self, spread_s: float = 0.0) -> None:
        """List all ModelVariants and have each looked at within so many seconds. ApiError if they cannot be listed."""
        for entry in await self.roster.renew(self.settings.namespaces):
            key = (entry.namespace, entry.name)
            self.interest.note(key, entry.target)
            # Spread at random, so that news need not wait behind hundreds that have none.
            self.queue.add_later(key, random.uniform(0.0, spread_s))  # noqa: S311 - spreads load, hides no secret
        self.heartbeat.beat()
        self.telemetry.last_resync.set(time.time())

    async def resync_for_ever(self) -> None:
        """Resync at its interval. What fails is tried at the next; /livez tells when that goes on too long."""
        spread_s = self.settings.resync_seconds * SPREAD
        while True:
            await asyncio.sleep(self.settings.resync_seconds - spread_s)
            try:
                await self.resync(spread_s)
            except ApiError as error:
                log.warning("the ModelVariants could not be listed", error=str(error))

    async def first_resync(self) -> None:
        """Wait until ModelVariants can be listed; kopf would not find them before, nor look again."""
        while True:
            try:
                return await self.resync()
            except ApiError as error:
                log.warning("waiting until ModelVariants can be listed", error=str(error))
                await asyncio.sleep(FIRST_LIST_AGAIN_S)

    async def watch(self, stop: asyncio.Event) -> None:
        """Run kopf until told to stop."""
        registry = kopf.OperatorRegistry()
        startup.register_login(registry)
        watch.register(registry, self.queue, self.interest, self.turns)
        others = asyncio.all_tasks()  # kopf cancels what it takes for its own at its end
        tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=startup.kopf_settings(self.settings),
            standalone=True,
            namespaces=self.settings.namespaces,
            clusterwide=not self.settings.namespaces,
            stop_flag=stop,
        )
        _stop_on_signals(stop)  # kopf has just put its own handlers there, with a slow end
        await kopf.run_tasks(tasks, ignored=others)


async def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. A pass under way is cut off: the next process takes up from what it finds."""
    telemetry = Telemetry()
    api = await Api.connect(settings.request_timeout_seconds, telemetry.count_request)
    roster, turns = Roster(api), Turns()
    reconciler = Reconciler(api, roster, turns, telemetry, Limits(running_checks=settings.running_checks))
    queue = WorkQueue(reconciler.reconcile, settings.workers)
    heartbeat = Heartbeat(settings.liveness_seconds)
    operator = Operator(settings, roster, turns, queue, watch.Interest(), heartbeat, telemetry)
    stop = asyncio.Event()
    with ProbeServer(settings.port, heartbeat, telemetry.registry) as probes:
        log.info("started", version=__version__, port=probes.port, namespaces=settings.namespaces or "all")
        try:
            await _until_stopped(operator, stop)
        finally:
            await api.close()
    log.info("stopped")


def _stop_on_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _until_stopped(operator: Operator, stop: asyncio.Event) -> None:
    _stop_on_signals(stop)
    stopped = asyncio.create_task(stop.wait())
    tasks = [asyncio.create_task(operator.queue.run()), stopped]
    try:
        first = asyncio.create_task(operator.first_resync())
        tasks.append(first)
        await asyncio.wait([first, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set():
            tasks += [asyncio.create_task(operator.resync_for_ever()), asyncio.create_task(operator.watch(stop))]
            # The end of any of them ends the process: Kubernetes starts it anew.
            done, _ = await asyncio.wait(tasks[:1] + tasks[1:2] + tasks[3:], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        stop.set()
        for task in tasks:
            task.cancel()
        # kopf would wait five seconds for tasks that are not its own, and there is nothing to lose.
        await asyncio.wait(tasks, timeout=STOP_S)


def main() -> None:
    """Console script: `assay-operator`, without arguments. Ends with 2 where it cannot start."""
    settings = Settings()
    configure(settings.log_format, settings.log_level)
    try:
        asyncio.run(run(settings))
    except ApiError as error:
        log.error("cannot start", error=str(error))
        sys.exit(2)

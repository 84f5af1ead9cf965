"""One end of a real server under load: SIGTERM at a random moment, and what became of every request."""

import asyncio
import json
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from support.images import jpeg
from support.openloop import Outcome, poisson
from support.server import Server, running


@dataclass(frozen=True)
class Drained:
    """What a round found. ``came_in``: requests that the server itself says it had let in."""

    exit_code: int
    came_in: int
    answered: int
    refused: int
    unread: int
    stored: int
    faults: list[str]


async def _end(server: Server, rate: float, at_s: float, seed: int) -> tuple[list[Outcome], float]:
    """Outcomes of the load, and `time.monotonic` just before the signal."""
    gone = asyncio.Event()
    bodies = [jpeg(name) for name in ("coffee", "chelsea", "rocket")]

    async def end() -> float:
        await asyncio.sleep(at_s)
        signalled = time.monotonic()
        server.terminate()
        await asyncio.to_thread(server.wait)
        gone.set()
        return signalled

    return tuple(await asyncio.gather(poisson(server.url, bodies, rate, gone, seed), end()))


def drained(builtin_dir: Path, *, rate: float, seed: int) -> Drained:
    """A round: clients send on until the process is gone, as none behind a Service would. Answers are stored, too.

    ``faults`` names whatever must not be: a request that was let in and not answered, or not stored; a refusal that is
    not "Draining"; a request that failed while the process was still to serve.
    """
    chance = random.Random(seed)
    delay_s, at_s = chance.choice([0.0, 1.0]), chance.uniform(0.5, 2.0)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"drain_delay_s": delay_s, "deadline_ms": 60_000, "queue_budget_ms": 60_000, "drain_timeout_s": 60}
        store = {"store_uri": Path(folder).as_uri(), "drain_store_timeout_s": 60}
        with running(builtin_dir, **settings, **store) as server:
            outcomes, signalled = asyncio.run(_end(server.wait_ready(), rate, at_s, seed))
            code = server.wait()
        results = [json.loads(path.read_text()) for path in Path(folder).rglob("*.json")]
    came_in = server.event("Every request that came in")
    return judged(code, int(came_in["requests"]) if came_in else -1, outcomes, len(results), signalled + delay_s)


def judged(code: int, came_in: int, outcomes: list[Outcome], stored: int, serves_until: float) -> Drained:
    """The round's figures, and its faults. Before ``serves_until`` (`time.monotonic`) nothing may be turned away."""
    answered = sum(outcome.status == 200 for outcome in outcomes)
    refused = [outcome for outcome in outcomes if outcome.status not in (0, 200)]
    unread = [outcome for outcome in outcomes if outcome.status == 0]
    faults = [f"{outcome.status} {outcome.code}" for outcome in refused if outcome.code != "Draining"]
    if code != 0:
        faults.append(f"exit code {code}")
    if answered != came_in:
        faults.append(f"{came_in} requests came in, {answered} were answered")
    if stored != answered:
        faults.append(f"{answered} requests were answered, {stored} are stored")
    early = [outcome for outcome in refused + unread if outcome.ended < serves_until]
    faults += [f"{one.status} {one.code}{one.why}, {serves_until - one.ended:.3f} s too early" for one in early]
    return Drained(code, came_in, answered, len(refused), len(unread), stored, faults)

"""An open loop: requests are sent when they are due, by a Poisson process, however slow the answers are."""

import asyncio
import itertools
import random
import time
from dataclasses import dataclass

import httpx


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request. Times: `time.monotonic`; ``status`` 0 where there was no answer, then ``why``."""

    due: float
    ended: float
    status: int
    why: str = ""
    code: str = ""


async def _send(client: httpx.AsyncClient, url: str, body: bytes, due: float) -> Outcome:
    try:
        answer = await client.post(f"{url}/v1/classify", content=body)
    except httpx.HTTPError as error:
        return Outcome(due, time.monotonic(), 0, type(error).__name__)
    code = answer.json().get("code", "") if answer.status_code != 200 else ""
    return Outcome(due, time.monotonic(), answer.status_code, code=code)


async def poisson(url: str, bodies: list[bytes], rate: float, until: asyncio.Event, seed: int) -> list[Outcome]:
    """Send ``rate`` requests a second until told to stop; the outcome of each, in the order they were due."""
    chance = random.Random(seed)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client, asyncio.TaskGroup() as group:
        tasks = []
        due = time.monotonic()
        for body in itertools.cycle(bodies):
            due += chance.expovariate(rate)
            try:
                async with asyncio.timeout_at(due):
                    await until.wait()
                    break
            except TimeoutError:
                tasks.append(group.create_task(_send(client, url, body, due)))
    return [task.result() for task in tasks]

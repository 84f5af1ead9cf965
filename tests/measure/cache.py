"""What the cache costs where nothing repeats, and what a hit costs.

Two servers side by side, one with a cache; every image goes to both, first to the one and next time first to the other.
Costs are CPU time of the server's process over all its threads, so that others on the machine matter less.

    PYTHONPATH=tests python tests/measure/cache.py [--pairs 1200]
"""

import argparse
import asyncio
import os
import random
import re
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from assay.building.models import build
from assay.platform.cpu import cpu_features, cpu_model
from assay.serving.cache import Cache, key_of
from assay.telemetry import Telemetry
from support.images import jpeg
from support.server import Server, running

WARM_UP = 40
"""Pairs that do not count: the first requests touch memory and code for the first time."""

HITS = 200
"""Hits of each photo."""

SIZES = {"chelsea": (640, 430), "coffee": (900, 600), "rocket": (1024, 683), "china": (1280, 854)}  # 0.28 to 1.1 MP


def photos() -> list[bytes]:
    """Photos of the sizes an upload should have."""
    return [jpeg(name, size, quality=92) for name, size in SIZES.items()]


def cpu_s(server: Server) -> float:
    """CPU seconds of the process so far."""
    fields = Path(f"/proc/{server.process.pid}/schedstat").parent / "task"
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in fields.iterdir()) / 1e9


def cost_ms(server: Server, client: httpx.Client, body: bytes) -> float:
    """CPU-ms of one request."""
    before = cpu_s(server)
    client.post(f"{server.url}/v1/classify", content=body).raise_for_status()
    return (cpu_s(server) - before) * 1000


def misses(plain: Server, caching: Server, client: httpx.Client, pairs: int) -> None:
    """The cost of a cache that never hits: the same image to both, whose digest never came before."""
    bodies, off, on = photos(), [], []
    for number in range(pairs + WARM_UP):
        image = bodies[number % len(bodies)] + os.urandom(8)  # what follows a JPEG's end changes its digest alone
        order = [(plain, off), (caching, on)]
        for server, costs in order if number // len(bodies) % 2 else reversed(order):
            costs.append(cost_ms(server, client, image))
    off, on = off[WARM_UP:], on[WARM_UP:]
    added = [b - a for a, b in zip(off, on, strict=True)]
    resampled = sorted(statistics.median(random.choices(added, k=pairs)) for _ in range(1000))
    mean = statistics.mean(off)
    print(f"no hits, {pairs} pairs of requests of {statistics.mean(map(len, bodies)) / 1000:.0f} KB on average:")
    print(f"  {mean:.2f} CPU-ms a request without a cache, {statistics.mean(on):.2f} with one")
    print(
        f"  added in a pair: median {statistics.median(added):.3f} CPU-ms = {statistics.median(added) / mean:.2%} "
        f"(95 % interval {resampled[25] / mean:.2%} to {resampled[974] / mean:.2%})"
    )
    alone = statistics.mean(asyncio.run(cache_ms(body)) for body in bodies)
    print(f"  the cache's own steps, by themselves: {alone:.3f} CPU-ms = {alone / mean:.2%}")


async def cache_ms(body: bytes, repeats: int = 200) -> float:
    """CPU-ms of a miss in the cache alone: digest, look-up, lead, keep."""
    cache, answer = Cache(64 << 20, Telemetry()), ((1, "a", 0.5), (2, "b", 0.3), (3, "c", 0.1))
    images = [body + number.to_bytes(8) for number in range(repeats)]
    started = time.thread_time()
    for image in images:
        key = await key_of(image, "sha256:0", 3)
        await cache.find(key)
        with cache.lead(key) as land:
            land(answer)
    return (time.thread_time() - started) / repeats * 1000


def hits(caching: Server, client: httpx.Client) -> None:
    """The cost and the time of a hit."""
    for name, body in zip(SIZES, photos(), strict=True):
        client.post(f"{caching.url}/v1/classify", content=body)
        cost = statistics.median(cost_ms(caching, client, body) for _ in range(HITS))
        timings = []
        for _ in range(HITS):
            header = client.post(f"{caching.url}/v1/classify", content=body).headers["Server-Timing"]
            timings.append({key: float(value) for key, value in re.findall(r"(\w+);dur=([0-9.]+)", header)})
        inside = statistics.median(sum(timing.values()) for timing in timings)
        cache = statistics.median(timing["cache"] for timing in timings)
        print(
            f"hit, {name} of {len(body) / 1000:.0f} KB: {cost:.2f} CPU-ms for the process; {inside:.2f} ms from the "
            f"request's arrival to its answer, of them {cache:.2f} for digest and look-up (medians of {HITS})"
        )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1200)
    pairs = parser.parse_args().pairs
    random.seed(0)
    sha = "with SHA extensions" if "sha_ni" in Path("/proc/cpuinfo").read_text() else "without SHA extensions"
    print(f"{cpu_model()}, {sha}{', VNNI' if 'vnni' in cpu_features() else ''}")
    with tempfile.TemporaryDirectory() as folder:
        build("efficientnet-lite0", Path(folder) / "efficientnet-lite0-fp32.tar")
        with (
            running(Path(folder), workers=1) as plain,
            running(Path(folder), workers=1, cache_bytes=64 << 20) as caching,
            httpx.Client(timeout=60) as client,
        ):
            plain.wait_ready(), caching.wait_ready()
            misses(plain, caching, client, pairs)
            hits(caching, client)


if __name__ == "__main__":
    main()

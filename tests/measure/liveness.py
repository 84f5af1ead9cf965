"""How fast liveness answers while a server is asked for more than it can do.

    PYTHONPATH=tests .venv/bin/python tests/measure/liveness.py --seconds 120

The server has one core (its CPU limit, one worker), the load and the probe the other. The probe connects anew each
time, as a kubelet does. Prints the times of the probe, idle and saturated, and what the load was answered.
"""

import argparse
import asyncio
import os
import socket
import statistics
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from assay.building.models import build
from assay.platform.cpu import cpu_model
from support.images import jpeg
from support.openloop import Outcome, poisson
from support.server import Server, running

EVERY_S = 0.1


def probe_ms(port: int) -> float:
    """One probe on a new connection."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        return (time.perf_counter() - began) * 1000


def probed(server: Server, seconds: float) -> list[float]:
    """Times of the probe, one each tenth of a second."""
    port = int(server.url.rsplit(":", 1)[1])
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        times.append(probe_ms(port))
        time.sleep(EVERY_S)
    return times


def loaded(server: Server, rate: float, seconds: float) -> tuple[list[float], list[Outcome]]:
    """Times of the probe under load, and what became of the load."""
    times: list[float] = []
    bodies = [jpeg(name, (960, 640)) for name in ("coffee", "chelsea", "rocket", "china")]

    async def main() -> list[Outcome]:
        until = asyncio.Event()
        loop = asyncio.get_running_loop()

        def probing() -> None:
            times.extend(probed(server, seconds))
            loop.call_soon_threadsafe(until.set)

        threading.Thread(target=probing).start()
        return await poisson(server.url, bodies, rate, until, seed=1)

    return times, asyncio.run(main())


def show(name: str, times: list[float]) -> None:
    """A line of the table."""
    percent = statistics.quantiles(times, n=1000)
    slow = sum(value >= 50 for value in times)
    print(
        f"{name}: {len(times)} probes, ms: p50 {percent[499]:.2f}  p99 {percent[989]:.2f}  p99.9 {percent[998]:.2f}  "
        f"max {max(times):.2f}; {slow} of 50 ms or more"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rate", type=float, default=110, help="requests a second; more than one core can do")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        build("efficientnet-lite0", Path(name) / "efficientnet-lite0-fp32.tar")
        first, second = sorted(os.sched_getaffinity(0))[:2]
        os.sched_setaffinity(0, {first})  # what is started from here on stays there
        with running(Path(name), cpu_limit_millicores=1000) as server:
            os.sched_setaffinity(0, {second})
            server.wait_ready()
            idle = probed(server, 10)
            times, outcomes = loaded(server, options.rate, options.seconds)
            cost = server.metrics()
            print(f"{cpu_model()}; server on core {first}, load of {options.rate:g} req/s and probe on core {second}")
            show("idle", idle)
            show("saturated", times)
            print(f"answers: {dict(Counter(outcome.status for outcome in outcomes))}")
            print(f"answered a second: {cost['assay_requests_total/200'] / options.seconds:.1f}")


if __name__ == "__main__":
    main()

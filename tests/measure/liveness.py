"""How fast liveness answers while a server is asked for more than it can do.

    PYTHONPATH=tests .venv/bin/python tests/measure/liveness.py --seconds 120

The server has one core (its CPU limit, one worker), k6 and the probe the other. The probe connects anew each
time, as a kubelet does. Prints the times of the probe, idle and saturated, and what the load was answered.
"""

import argparse
import os
import socket
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from overload import photos, run

from assay.building.models import build
from assay.platform.cpu import cpu_model
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
    """Times of the probe in ms. Each begins a tenth of a second after the one before ended: a slow one counts once."""
    port = int(server.url.rsplit(":", 1)[1])
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        times.append(probe_ms(port))
        time.sleep(EVERY_S)
    return times


def loaded(server: Server, images: list[Path], rate: float, seconds: float, core: int) -> tuple[list[float], Any]:
    """Times of the probe under load, and what k6 found."""
    with ThreadPoolExecutor(1) as pool:  # only waits for k6, so that nothing here competes with the probe
        load = pool.submit(run, server, images, rate, seconds, core)
        times = probed(server, seconds)
        return times, load.result()


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
        images = photos(Path(name))
        first, second = sorted(os.sched_getaffinity(0))[:2]
        os.sched_setaffinity(0, {first})  # what is started from here on stays there
        with running(Path(name), cpu_limit_millicores=1000) as server:
            os.sched_setaffinity(0, {second})
            server.wait_ready()
            idle = probed(server, 10)
            times, seen = loaded(server, images, options.rate, options.seconds, second)
            print(f"{cpu_model()}; server on core {first}, load of {options.rate:g} req/s and probe on core {second}")
            show("idle", idle)
            show("saturated", times)
            print(f"statuses: {seen['statuses']}")


if __name__ == "__main__":
    main()

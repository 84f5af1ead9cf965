"""What traces cost: a service that sends none, one whose collector takes them, and one whose collector never answers.

    PYTHONPATH=tests .venv/bin/python tests/measure/traces.py

The three take turns, on one core; client and collector have the other. CPU time is that of the whole process, the
thread that sends included. A turn's requests are sent one after the other, connection kept open.
"""

import argparse
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx

from assay.building.models import build
from assay.platform.cpu import cpu_model, notable_features
from support.collector import collector
from support.images import jpeg
from support.s3 import hanging_port
from support.server import Server, running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30, help="turns of each service")
    parser.add_argument("--requests", type=int, default=40, help="requests of a turn")
    options = parser.parse_args()
    first, second = sorted(os.sched_getaffinity(0))[:2]
    print(f"{cpu_model()} ({', '.join(notable_features())}); servers on core {first}, client on core {second}")
    photo = jpeg("coffee", (740, 490))
    with tempfile.TemporaryDirectory() as name, collector() as taken, hanging_port() as dead, ExitStack() as stack:
        folder = Path(name)
        build("efficientnet-lite0", folder / "efficientnet-lite0-fp32.tar")
        os.sched_setaffinity(0, {first})
        endpoints = {"no traces": "", "traces": taken.url, "dead collector": f"http://127.0.0.1:{dead}"}
        servers = {
            kind: stack.enter_context(
                running(folder, cpu_limit_millicores=1000, traces_endpoint=url, drain_traces_timeout_s=0)
            )
            for kind, url in endpoints.items()
        }
        os.sched_setaffinity(0, {second})
        clients = {
            kind: stack.enter_context(httpx.Client(base_url=server.wait_ready().url, timeout=60))
            for kind, server in servers.items()
        }
        cpu_ms: dict[str, list[float]] = {kind: [] for kind in servers}
        wall_ms: dict[str, list[float]] = {kind: [] for kind in servers}
        for turn in range(-2, options.turns):  # the first two warm up
            for kind, server in servers.items():
                before, walls = _cpu_s(server), []
                for _ in range(options.requests):
                    began = time.perf_counter()
                    clients[kind].post("/v1/classify", content=photo).raise_for_status()
                    walls.append((time.perf_counter() - began) * 1000)
                if turn == 0:
                    server.begin_peak()
                if turn >= 0:
                    cpu_ms[kind].append((_cpu_s(server) - before) * 1000 / options.requests)
                    wall_ms[kind].append(statistics.median(walls))
        for kind, server in servers.items():
            counts = {name: value for name, value in server.metrics().items() if name.startswith("assay_traces_")}
            print(
                f"{kind}: {_ratio(cpu_ms, kind)} CPU, {_ratio(wall_ms, kind)} of the median time, "
                f"peak {server.peak():.0f} MiB, {counts}"
            )


def _cpu_s(server: Server) -> float:
    """CPU seconds the process has used, in steps of a hundredth."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ratio(figures: dict[str, list[float]], kind: str) -> str:
    """Median over the turns, and the median of its ratio to the same turns without traces, with quartiles."""
    ratios = [with_it / without for with_it, without in zip(figures[kind], figures["no traces"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{statistics.median(figures[kind]):.2f} ms, {middle:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()

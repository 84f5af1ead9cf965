"""What a dead sink costs the requests: a server that stores into nothing beside one that stores not at all.

    PYTHONPATH=tests .venv/bin/python tests/measure/store.py --pairs 60 --seconds 5

Both run at once; each pair of slices sends Poisson arrivals (open loop, latency from the intended time) to one, then to
the other, the order alternating. Short slices, because on a shared machine a neighbour's burst of ten seconds must hit
both sides. Prints p99 of all slices of each side, the ratios of the pairs, CPU time a request, resident memory, drops.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

from assay.building.models import build
from assay.platform.cpu import cpu_model
from support.images import jpeg
from support.openloop import Outcome, poisson
from support.s3 import hanging_port, refused_port
from support.server import Server, running

SINKS = {"refuses": refused_port, "hangs": hanging_port}
DEAD, WITHOUT = "dead sink", "without"


def rss_mib(server: Server) -> float:
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), 1)


def cpu_s(server: Server) -> float:
    """CPU seconds the process has used."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(outcomes: list[Outcome], share: float) -> float:
    """Milliseconds within which that share of the requests ended."""
    times = sorted((outcome.ended - outcome.due) * 1000 for outcome in outcomes)
    return times[min(len(times) - 1, int(share * len(times)))]


def slice_of(server: Server, bodies: list[bytes], rate: float, seconds: float, seed: int) -> list[Outcome]:
    """Outcomes of so many seconds of load."""

    async def main() -> list[Outcome]:
        until = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, until.set)
        return await poisson(server.url, bodies, rate, until, seed)

    return asyncio.run(main())


def measure(servers: dict[str, Server], options: argparse.Namespace) -> None:
    bodies = [jpeg(photo, (960, 640)) for photo in ("coffee", "chelsea", "rocket", "china")]
    all_: dict[str, list[Outcome]] = {name: [] for name in servers}
    ratios = []
    before = {name: cpu_s(server) for name, server in servers.items()}
    began = time.monotonic()
    for pair in range(options.pairs):
        found = {}
        for name in list(servers)[:: 1 if pair % 2 else -1]:
            found[name] = slice_of(servers[name], bodies, options.rate, options.seconds, pair + 1)
            all_[name] += found[name]
        ratios.append(percentile(found[DEAD], 0.99) / percentile(found[WITHOUT], 0.99))
        if (pair + 1) % 10 == 0:
            held = {name: rss_mib(server) for name, server in servers.items()}
            print(f"after {time.monotonic() - began:.0f} s, pair {pair + 1}: RSS MiB {held}", flush=True)
    for name, outcomes in all_.items():
        spent = (cpu_s(servers[name]) - before[name]) / len(outcomes) * 1000
        figures = ", ".join(f"p{share * 100:g} {percentile(outcomes, share):.1f}" for share in (0.5, 0.9, 0.99))
        codes = dict(Counter(outcome.status for outcome in outcomes))
        print(f"{name}: {len(outcomes)} requests {codes}; ms: {figures}; CPU-ms a request {spent:.2f}")
    for share in (0.5, 0.9, 0.99):
        print(f"p{share * 100:g} ratio, all: {percentile(all_[DEAD], share) / percentile(all_[WITHOUT], share):.3f}")
    quarters = [round(value, 3) for value in statistics.quantiles(ratios, n=4)]
    print(f"p99 ratio of the pairs: quartiles {quarters}, from {min(ratios):.3f} to {max(ratios):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=5, help="of each slice")
    parser.add_argument("--rate", type=float, default=20, help="requests a second")
    parser.add_argument("--sink", choices=SINKS, default="refuses", help="how the sink is dead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, SINKS[options.sink]() as port:
        build("efficientnet-lite0", Path(folder) / "efficientnet-lite0-fp32.tar")
        os.environ.update(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ALLOW_HTTP="true", AWS_REGION="us-east-1")
        os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
        limit = {"cpu_limit_millicores": 2000, "memory_limit_bytes": 2 << 30}
        with (
            running(Path(folder), **limit) as without,
            running(Path(folder), store_uri="s3://dead/answers", drain_store_timeout_s=1, **limit) as dead,
        ):
            servers = {WITHOUT: without.wait_ready(), DEAD: dead.wait_ready()}
            ready = {name: rss_mib(server) for name, server in servers.items()}
            print(f"{cpu_model()}; {options.rate:g} req/s, sink {options.sink}; RSS MiB when ready {ready}", flush=True)
            measure(servers, options)
            print({name: value for name, value in dead.metrics().items() if name.startswith("assay_store")})
            dead.terminate()
            code = dead.wait()
            lost = dead.event("Some answers could not be stored")
            print(f"SIGTERM: exit code {code}, {lost['answers'] if lost else 0} answers lost")


if __name__ == "__main__":
    main()

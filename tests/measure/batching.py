"""What batching costs a lone request, and what it does to the cost of requests that come together.

Two servers side by side, one of which batches; requests, and then floods of several clients, alternate between them.

    PYTHONPATH=tests python tests/measure/batching.py [--pairs 400] [--pack FILE]
"""

import argparse
import random
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from assay.building.models import build
from assay.platform.cpu import cpu_features, cpu_model
from support.images import jpeg
from support.server import Server, running

WARM_UP = 20  # pairs that do not count
CLIENTS = 6  # more than a batch holds, fewer than the queue's budget refuses
FLOODS = 10
FLOOD = 60  # requests of a flood, about a second
PHOTO = ("coffee", (900, 600))  # 0.54 MP, the middle of the uploads this service is made for


def cpu_s(server: Server) -> float:
    """CPU seconds of the process so far, over all its threads."""
    tasks = Path(f"/proc/{server.process.pid}/task")
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in tasks.iterdir()) / 1e9


def interval(ratios: list[float]) -> str:
    """The median and its 95 % interval, by resampling."""
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(1000))
    return f"median {statistics.median(ratios):.3f} (95 % interval {medians[25]:.3f} to {medians[974]:.3f})"


def lone(servers: tuple[Server, Server], client: httpx.Client, pairs: int) -> None:
    """One request at a time."""
    body = jpeg(*PHOTO)
    waits: tuple[list[float], list[float]] = ([], [])
    costs: tuple[list[float], list[float]] = ([], [])
    for number in range(pairs + WARM_UP):
        for which in (0, 1) if number % 2 else (1, 0):
            before, started = cpu_s(servers[which]), time.perf_counter()
            client.post(f"{servers[which].url}/v1/classify", content=body).raise_for_status()
            waits[which].append((time.perf_counter() - started) * 1000)
            costs[which].append((cpu_s(servers[which]) - before) * 1000)
    for what, (off, on) in (("time for the client", waits), ("CPU", costs)):
        off, on = off[WARM_UP:], on[WARM_UP:]
        ratios = [b / a for a, b in zip(off, on, strict=True)]
        print(
            f"lone request, {pairs} pairs, {what}: {statistics.median(off):.2f} ms without, "
            f"{statistics.median(on):.2f} ms with; ratio of a pair: {interval(ratios)}"
        )


def flood(server: Server, body: bytes) -> tuple[float, float]:
    """CPU-ms of a request, and requests per second, when several come at once."""
    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(CLIENTS) as pool:
        before, started = cpu_s(server), time.perf_counter()
        codes = set(
            pool.map(lambda _: client.post(f"{server.url}/v1/classify", content=body).status_code, range(FLOOD))
        )
        assert codes == {200}, codes
        return (cpu_s(server) - before) / FLOOD * 1000, FLOOD / (time.perf_counter() - started)


def together(servers: tuple[Server, Server]) -> None:
    """Several requests at a time."""
    body, cost_ratios, rate_ratios, costs = jpeg(*PHOTO), [], [], []
    before = servers[1].metrics()
    for number in range(FLOODS):
        order = (0, 1) if number % 2 else (1, 0)
        found = {which: flood(servers[which], body) for which in order}
        costs.append(found[0][0])
        cost_ratios.append(found[1][0] / found[0][0])
        rate_ratios.append(found[1][1] / found[0][1])
    after = servers[1].metrics()
    images, batches = (after[name] - before[name] for name in ("assay_batch_size_sum", "assay_batch_size_count"))
    print(f"{CLIENTS} clients, {FLOODS} pairs of {FLOOD} requests: {statistics.median(costs):.2f} CPU-ms without")
    print(f"  cost with batching, ratio of a pair: {interval(cost_ratios)}; mean batch {images / batches:.2f}")
    print(f"  requests per second, ratio of a pair: {interval(rate_ratios)}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--pack", help="the pack to serve; by default EfficientNet-Lite0 FP32")
    options = parser.parse_args()
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "efficientnet-lite0-fp32.tar"
        build("efficientnet-lite0", base)
        pack = options.pack or str(base)
        print(f"{cpu_model()}{', VNNI' if 'vnni' in cpu_features() else ''}; {Path(pack).name}")
        one_core = {"workers": 1, "cpu_limit_millicores": 1000, "queue_budget_ms": 5000, "deadline_ms": 60_000}
        with (
            running(Path(folder), "--model", pack, **one_core) as plain,
            running(Path(folder), "--model", pack, **one_core, batching=True) as batching,
            httpx.Client(timeout=60) as client,
        ):
            servers = plain.wait_ready(), batching.wait_ready()
            lone(servers, client, options.pairs)
            together(servers)


if __name__ == "__main__":
    main()

"""How far `assay capacity` is off: its p99 beside the one that k6 measures, at shares of the ceiling.

    PYTHONPATH=tests .venv/bin/python tests/measure/capacity.py --pack FILE --dataset FILE

The command runs first. Then the server has one core (its CPU limit, one worker) and k6 the other, with the same photos,
Poisson arrivals of several seeds, and latency from when a request was due. A p99 of a short run is itself a matter of
chance: beside the prediction stands the range that 95 of 100 simulated runs of that length fall into.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from assay.bench.capacity import Capacity
from assay.bench.cores import divide, on
from assay.bench.queueing import waits
from assay.bench.service import running
from assay.bench.uploads import uploads
from assay.packs.dataset import read_dataset

K6 = Path(sys.executable).parent / "k6"
SCRIPT = Path(__file__).resolve().parents[2] / "k6" / "scenarios" / "smoke.js"
LIMIT = 1000
RUNS = 400  # simulated runs of the range
MAX_LATE = 0.001  # as in k6/lib/openloop.js


def capacity(options: argparse.Namespace) -> Capacity:
    """What the command says."""
    command = [
        sys.executable, "-m", "assay", "capacity", options.pack, "--dataset", options.dataset, "--json",
        "--cpu-limit", str(LIMIT), "--photos", str(options.photos),
    ]  # fmt: skip
    return Capacity.model_validate_json(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def spread(found: Capacity, rate: float, requests: int) -> tuple[float, float]:
    """The range of p99, in ms, of runs of so many requests."""
    rng = np.random.default_rng(3)
    costs = np.array(found.costs_ms) * max(1, found.busy_cost_ms / found.cost_ms)
    seen = []
    for _ in range(RUNS):
        services = rng.choice(costs, requests)
        sojourns = waits(rng.exponential(1000 / rate, requests), services, 1) + services
        seen.append(np.quantile(sojourns, 0.99) + found.overhead_ms)
    return float(np.quantile(seen, 0.025)), float(np.quantile(seen, 0.975))


def run(port: int, photos: list[Path], rate: float, seconds: float, seed: int) -> dict:
    """One run of k6; what it found."""
    settings = {
        "URL": f"http://127.0.0.1:{port}", "RATE": rate, "SECONDS": seconds, "SEED": seed, "SENDERS": 100,
        "IMAGES": ",".join(map(str, photos)),
    }  # fmt: skip
    done = subprocess.run(
        [K6, "run", "--quiet", "--no-usage-report", SCRIPT],
        env={**os.environ, **{name: str(value) for name, value in settings.items()}},
        capture_output=True, text=True, timeout=seconds + 120,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"k6 found nothing: {done.stderr[-2000:]}")
    return json.loads(lines[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", required=True)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--photos", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=20, help="of each run")
    parser.add_argument("--seeds", type=int, default=3, help="runs at each share")
    options = parser.parse_args()
    found, division = capacity(options), divide(LIMIT)
    print(f"{found.cpu_model} ({', '.join(found.cpu_features)}); {found.pack}; {found.cores}")
    print(f"{found.photos} photos, {found.megapixels:.2f} MP, {found.kilobytes:.0f} KB on average")
    print(f"stages, CPU-ms: {', '.join(f'{stage.stage} {stage.cpu_ms:.2f}' for stage in found.stages)}")
    print(f"cost alone {found.cost_ms:.2f}, busy {found.busy_cost_ms:.2f} CPU-ms; ceiling {found.ceiling:.1f} req/s")
    with tempfile.TemporaryDirectory() as name, on(division.client):
        photos = []
        for number, photo in enumerate(uploads(read_dataset(Path(options.dataset)), options.photos)):
            photos.append(Path(name) / f"{number}.jpg")
            photos[-1].write_bytes(photo)
        with running(Path(options.pack), {"cpu_limit_millicores": LIMIT}, division.server) as service:
            run(service.port, photos, 10, 3, 99)  # warm
            for expected in found.expected:
                cpu_s = service.cpu_s()
                runs = [run(service.port, photos, expected.rate, options.seconds, s) for s in range(options.seeds)]
                cost_ms = (service.cpu_s() - cpu_s) / sum(seen["requests"] for seen in runs) * 1000
                measured = [seen["latencyMs"]["p99"] for seen in runs]
                halves = [seen["latencyMs"]["p50"] for seen in runs]
                low, high = spread(found, expected.rate, round(expected.rate * options.seconds))
                late = max(seen["lateShare"] for seen in runs)
                refused = sum(seen["checksFailed"] for seen in runs)
                p50, p99 = statistics.mean(halves), statistics.mean(measured)
                of = f"{expected.load:.0%} of the ceiling, {expected.rate:.1f} req/s, "
                of += f"{options.seeds} x {options.seconds:g} s"
                each = ", ".join(f"{value:.0f}" for value in measured)
                print(
                    f"{of}: p99 predicted {expected.p99_ms:.0f} ms (of a run {low:.0f} to {high:.0f}), "
                    f"measured {p99:.0f} ({each}), error {expected.p99_ms / p99 - 1:+.0%}; "
                    f"p50 predicted {expected.p50_ms:.1f}, measured {p50:.1f}; cost {cost_ms:.2f} CPU-ms; "
                    f"late {late:.4f}, refused {refused}"
                    f"{'  INVALID' if late > MAX_LATE or refused else ''}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

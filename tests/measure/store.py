"""What a dead sink costs the requests: a server that stores into nothing beside one that stores not at all.

    PYTHONPATH=tests .venv/bin/python tests/measure/store.py --pairs 10 --seconds 30

Both run at once; each pair of halves sends the same Poisson arrivals (k6, open loop) to one, then to the other, the
order alternating. Prints p99 of every half, the ratios, resident memory, and the drops.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from assay.building.models import build
from assay.platform.cpu import cpu_model
from support.images import jpeg
from support.s3 import hanging_port, refused_port
from support.server import Server, running

ROOT = Path(__file__).resolve().parents[2]
SINKS = {"refuses": refused_port, "hangs": hanging_port}


def rss_mib(server: Server) -> float:
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def half(server: Server, images: str, rate: float, seconds: float, seed: int) -> dict[str, float]:
    """One half: what k6 found."""
    given = {"URL": server.url, "IMAGES": images, "RATE": rate, "SECONDS": seconds, "SEED": seed}
    done = subprocess.run(
        [Path(sys.prefix) / "bin" / "k6", "run", "--quiet", "--no-usage-report", ROOT / "k6/scenarios/smoke.js"],
        env={**os.environ, **{name: str(value) for name, value in given.items()}},
        capture_output=True,
        text=True,
        check=False,  # a threshold that was missed is told by its figures
    )
    found = json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])
    latency = found["latencyMs"]
    return {
        "p99": latency["p(99)"],
        "p50": latency["med"],
        "requests": found["requests"],
        "failed": found["checksFailed"],
        "late": found["lateShare"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--sink", choices=SINKS, default="refuses", help="how the sink is dead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, SINKS[options.sink]() as port:
        folder = Path(name)
        build("efficientnet-lite0", folder / "efficientnet-lite0-fp32.tar")
        images = []
        for photo in ("coffee", "chelsea", "rocket", "china"):
            (folder / f"{photo}.jpg").write_bytes(jpeg(photo, (960, 640)))
            images.append(str(folder / f"{photo}.jpg"))
        os.environ.update(
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
            AWS_ALLOW_HTTP="true",
            AWS_REGION="us-east-1",
            AWS_ACCESS_KEY_ID="x",
            AWS_SECRET_ACCESS_KEY="x",
        )
        limit = {"cpu_limit_millicores": 2000, "memory_limit_bytes": 2 << 30}
        with (
            running(folder, **limit) as without,
            running(folder, store_uri="s3://dead/answers", drain_store_timeout_s=1, **limit) as dead,
        ):
            servers = {"without": without.wait_ready(), "dead sink": dead.wait_ready()}
            print(f"{cpu_model()}; {options.rate:g} req/s, sink {options.sink}", flush=True)
            print(f"RSS ready, MiB: { {name: round(rss_mib(one), 1) for name, one in servers.items()} }", flush=True)
            ratios = {"p50": [], "p99": []}
            for pair in range(options.pairs):
                order = list(servers)[:: 1 if pair % 2 else -1]
                arguments = ",".join(images), options.rate, options.seconds, pair + 1
                found = {name: half(servers[name], *arguments) for name in order}
                for name, list_ in ratios.items():
                    list_.append(found["dead sink"][name] / found["without"][name])
                held = {name: round(rss_mib(one), 1) for name, one in servers.items()}
                print(f"pair {pair + 1}: {found} RSS MiB {held}", flush=True)
            for name, list_ in ratios.items():
                low, middle, high = min(list_), statistics.median(list_), max(list_)
                print(f"{name} dead sink / without: median {middle:.3f}, from {low:.3f} to {high:.3f}")
            metrics = dead.metrics()
            print({name: value for name, value in metrics.items() if name.startswith("assay_store")})
            print({name: value for name, value in metrics.items() if name.startswith("assay_requests_total")})
            dead.terminate()
            print(f"exit code {dead.wait()}; {dead.event('Some answers could not be stored')}")


if __name__ == "__main__":
    main()

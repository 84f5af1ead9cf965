"""What a server answers when it is asked for more than it can do, and what large photos cost the others.

    PYTHONPATH=tests .venv/bin/python tests/measure/overload.py

The server has one core (its CPU limit, one worker), k6 the other. First the peak: the most answers a second at rising
rates. Then twice the server's own ceiling for a minute. Then pairs of runs at half the peak, with and without a
12-megapixel photo in every 50th place. About eight minutes in all.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from assay.building.models import build
from assay.platform.cpu import cpu_model, notable_features
from support.images import jpeg
from support.server import Server, running

K6 = Path(sys.executable).parent / "k6"
SCRIPT = Path(__file__).resolve().parents[2] / "k6" / "scenarios" / "overload.js"
SIZES = ((560, 370), (740, 490), (960, 640), (1080, 720), (1280, 850))  # 0.2 to 1.1 MP
PHOTOS = ("coffee", "chelsea", "rocket", "china")
LARGE = (4000, 3000)
BUDGET_MS, DEADLINE_MS = 500, 1000  # the service's defaults


def photos(folder: Path) -> list[Path]:
    """The ordinary uploads, and last the large one."""
    paths = []
    for name in PHOTOS:
        for size in SIZES:
            path = folder / f"{name}-{size[0]}.jpg"
            path.write_bytes(jpeg(name, size))
            paths.append(path)
    large = folder / "large.jpg"
    large.write_bytes(jpeg("china", LARGE))
    return [*paths, large]


def run(server: Server, images: list[Path], rate: float, seconds: float, core: int, *, large: bool = False) -> Any:
    """One run of k6 on a core of its own; what it found."""
    settings = {
        "URL": server.url, "RATE": rate, "SECONDS": seconds, "SEED": 1, "SENDERS": 300,
        "IMAGES": ",".join(map(str, images[:-1])), **({"LARGE": images[-1]} if large else {}),
    }  # fmt: skip
    done = subprocess.run(
        ["taskset", "-c", str(core), K6, "run", "--quiet", "--no-usage-report", SCRIPT],
        env={**os.environ, **{name: str(value) for name, value in settings.items()}},
        capture_output=True, text=True, timeout=seconds + 180,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"k6 found nothing: {done.stderr[-2000:]}")
    return json.loads(lines[-1])


def resident_mib(pid: int) -> float:
    """Resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="of the run at twice the ceiling")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--pair-seconds", type=float, default=20)
    options = parser.parse_args()
    first, second = sorted(os.sched_getaffinity(0))[:2]
    print(f"{cpu_model()} ({', '.join(notable_features())}); server on core {first}, k6 on core {second}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build("efficientnet-lite0", folder / "efficientnet-lite0-fp32.tar")
        images = photos(folder)
        os.sched_setaffinity(0, {first})  # what is started from here on stays there
        with running(folder, cpu_limit_millicores=1000) as server:
            os.sched_setaffinity(0, {second})
            server.wait_ready()
            run(server, images, 20, 10, second)  # prices are learned
            peak = 0.0
            for rate in (40, 50, 60, 70, 80, 100):
                seen = run(server, images, rate, 12, second)
                answered = seen["statuses"].get("200", 0) / 12
                peak = max(peak, answered)
                print(f"  {rate:>4} req/s: {answered:5.1f} answered a second, p99 {seen['acceptedMs']['p(99)']:.0f} ms")
            ceiling = server.metrics()["assay_ceiling_requests_per_second"]
            before = resident_mib(server.process.pid)
            seen = run(server, images, 2 * ceiling, options.seconds, second)
            goodput = seen["statuses"].get("200", 0) / options.seconds
            print(f"peak {peak:.1f} answers a second; ceiling by the server's own gauge {ceiling:.1f}")
            print(
                f"at {2 * ceiling:.0f} req/s for {options.seconds:.0f} s: {goodput:.1f} answers a second "
                f"({goodput / peak:.2f} of the peak), p99 of them {seen['acceptedMs']['p(99)']:.0f} ms "
                f"(bound {BUDGET_MS + DEADLINE_MS}), statuses {seen['statuses']}, late {seen['lateShare']:.4f}, "
                f"RSS {before:.0f} to {resident_mib(server.process.pid):.0f} MiB"
            )
            ratios = []
            for _ in range(options.pairs):
                without = run(server, images, peak / 2, options.pair_seconds, second)["acceptedMs"]["p(99)"]
                with_large = run(server, images, peak / 2, options.pair_seconds, second, large=True)
                ratios.append(with_large["acceptedMs"]["p(99)"] / without)
                print(f"  p99 of the others: {without:.0f} ms, with 2 % of 12 MP {without * ratios[-1]:.0f} ms")
            print(f"p99 with 2 % of 12 MP / without: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to "
                  f"{max(ratios):.2f}, {len(ratios)} pairs")  # fmt: skip


if __name__ == "__main__":
    main()

"""How long the service takes to render its metrics.

    PYTHONPATH=tests .venv/bin/python tests/measure/metrics.py

The server has one core, the client the other. Every series there is exists before it is timed: photos were served,
refused and stored. In both formats, idle and while it serves; times are those of the client, connection kept open.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

import httpx

from assay.building.models import build
from assay.platform.cpu import cpu_model, notable_features
from support.images import jpeg
from support.server import running

FORMATS = {"text": "text/plain", "OpenMetrics": "application/openmetrics-text;version=1.0.0"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=300, help="timed scrapes of each kind")
    options = parser.parse_args()
    first, second = sorted(os.sched_getaffinity(0))[:2]
    print(f"{cpu_model()} ({', '.join(notable_features())}); server on core {first}, client on core {second}")
    photo = jpeg("coffee", (740, 490))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build("efficientnet-lite0", folder / "efficientnet-lite0-fp32.tar")
        os.sched_setaffinity(0, {first})
        with running(
            folder, cpu_limit_millicores=1000, cache_bytes=1 << 20, batching=True, store_uri=f"file://{folder}/store"
        ) as server:
            os.sched_setaffinity(0, {second})
            server.wait_ready()
            with httpx.Client(base_url=server.url, timeout=60) as client:
                for body, query in ((photo, ""), (b"no image", ""), (photo, "?top_k=0"), (b"", "")):
                    client.post(f"/v1/classify{query}", content=body)
                over = threading.Event()
                for state in ("idle", "serving one client"):
                    if state != "idle":
                        sender = threading.Thread(target=_serve, args=(server.url, photo, over))
                        sender.start()
                    for kind, accept in FORMATS.items():
                        times, size = [], 0
                        for _ in range(options.requests):
                            began = time.perf_counter()
                            size = len(client.get("/metrics", headers={"Accept": accept}).content)
                            times.append((time.perf_counter() - began) * 1000)
                        cuts = statistics.quantiles(times, n=100)
                        shown = f"p50 {cuts[49]:.2f} ms, p99 {cuts[98]:.2f}, max {max(times):.2f}; {size} B"
                        print(f"{state}, {kind}: {shown}")
                over.set()
                sender.join()


def _serve(url: str, photo: bytes, over: threading.Event) -> None:
    with httpx.Client(base_url=url, timeout=60) as client:
        while not over.is_set():
            client.post("/v1/classify?top_k=1", content=photo)
            client.post("/v1/classify?top_k=2", content=photo + os.urandom(8))  # not what the cache holds


if __name__ == "__main__":
    main()

"""What hostile input costs a good client: ``python tests/measure/bad_input.py --pack-dir DIR``.

One server with two workers; a good client sends ordinary photos at Poisson times (open loop: latency counts from the
intended time), in alternating windows without and with clients that send the whole corpus of bad files over and over
from a process of their own. Prints p99 of each window, the ratio of each pair, and the peak of the server's memory.
With ``--pin`` the server has one core to itself (limit 1 CPU, one worker), and everybody who sends the other.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from assay.platform.cpu import cpu_model, notable_features
from support.corpus.table import answers, corpus
from support.images import jpeg
from support.server import running

RATE = 12.0  # requests a second: a tenth of what two cores can answer
PHOTO = 930, 700  # 0.65 megapixels, the upload the design's budget is about


def attack(url: str, senders: int) -> None:
    """Send the corpus until standard input closes; print how many files were sent, and answers that are wrong."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    expected, files = answers(), list(corpus().items())
    sent, wrong = 0, set()

    def send(start: int) -> None:
        nonlocal sent
        with httpx.Client(timeout=60) as client:
            at = start
            while not over.is_set():
                name, data = files[at % len(files)]
                found = client.post(f"{url}/v1/classify", content=data)
                answer = found.status_code, found.json().get("code", "")
                if answer != expected[name] and found.status_code not in (429, 504):
                    wrong.add(name)
                sent, at = sent + 1, at + senders

    print("ready", flush=True)
    with ThreadPoolExecutor(senders) as pool:
        list(pool.map(send, range(senders)))
    print(sent, sorted(wrong), flush=True)


def good(url: str, seconds: float, rng: random.Random, statuses: dict[int, int]) -> list[float]:
    """Latencies of a good client, in seconds."""
    bodies = [jpeg(name, PHOTO) for name in ("chelsea", "coffee", "rocket", "china", "flower")]
    latencies: list[float] = []
    with httpx.Client(timeout=60, limits=httpx.Limits(max_connections=64)) as client, ThreadPoolExecutor(32) as pool:

        def one(due: float, body: bytes) -> None:
            status = client.post(f"{url}/v1/classify", content=body).status_code
            statuses[status] = statuses.get(status, 0) + 1
            latencies.append(time.perf_counter() - due)

        due, end = time.perf_counter(), time.perf_counter() + seconds
        while (due := due + rng.expovariate(RATE)) < end:
            time.sleep(max(0.0, due - time.perf_counter()))
            pool.submit(one, due, rng.choice(bodies))
    return latencies


def p99(values: list[float]) -> float:
    """99th percentile, in milliseconds."""
    return statistics.quantiles(values, n=100)[98] * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("--pack-dir", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--senders", type=int, default=2)
    parser.add_argument("--pin", action="store_true", help="server on one core, the senders on the other")
    given = parser.parse_args()
    if given.attack:
        attack(given.attack, given.senders)
        return
    print(f"{cpu_model()}, {', '.join(notable_features())}; {RATE:g} req/s, {given.senders} hostile clients")
    limits = {"cpu_limit_millicores": 1000 if given.pin else 2000, "memory_limit_bytes": 2 << 30}
    rng = random.Random(1)
    first, second = sorted(os.sched_getaffinity(0))[:2]
    if given.pin:
        os.sched_setaffinity(0, {first})
    with running(given.pack_dir, **limits) as server:
        if given.pin:
            os.sched_setaffinity(0, {second})
        server.wait_ready()
        good(server.url, 5, rng, {})
        before, ratios, statuses = server.begin_peak(), [], {}
        for pair in range(given.pairs):
            calm = good(server.url, given.seconds, rng, statuses)
            command = [sys.executable, __file__, "--attack", server.url, "--senders", str(given.senders)]
            hostile = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert hostile.stdout is not None
            hostile.stdout.readline()
            hit = good(server.url, given.seconds, rng, statuses)
            told, _ = hostile.communicate()
            ratios.append(p99(hit) / p99(calm))
            print(
                f"pair {pair}: p99 {p99(calm):.0f} ms alone, {p99(hit):.0f} ms under attack (ratio {ratios[-1]:.2f}), "
                f"slowest {max(hit) * 1000:.0f} ms; medians {statistics.median(calm) * 1000:.0f} and "
                f"{statistics.median(hit) * 1000:.0f} ms; files sent and wrong: {told.strip()}",
                flush=True,
            )
        print(f"median ratio {statistics.median(ratios):.2f}, spread {min(ratios):.2f} to {max(ratios):.2f}")
        rise = server.peak() - before
        print(f"good answers {statuses}; memory {before:.0f} MiB, peak {server.peak():.0f} MiB: +{rise:.0f}")


if __name__ == "__main__":
    main()

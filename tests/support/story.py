"""What a Prometheus sees of a service: idle, loaded, shedding, swapped, its store dead, throttled, gone.

Each chapter ends when Prometheus has seen what it is about; `Story.at` tells when each began.
"""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from assay.packs.archive import read_pack, write_pack
from assay.platform import cgroup
from support.collector import Collector, collector
from support.images import jpeg
from support.prometheus import SCRAPE_S, Prometheus, load
from support.s3 import refused_port
from support.server import Server, running, wait_until

SECOND = "efficientnet-lite0-second"
IDLE_S, LOADED_S, STORE_DEAD_S = 6, 14, 10  # a rate interval or two each
RATE = 12.0  # requests per second: a sixth of one core's ceiling, so that a busy machine does not shed
IN_PARALLEL = 64  # twice what two workers and the budget below have room for
BUDGET_MS = 500  # thirty requests: enough for the load's bunches, though the machine be busy
DEADLINE_MS = 10_000  # likewise: in an ordinary load nothing is refused
QUOTA_US, PERIOD_US = 10_000, 100_000  # a tenth of a core: every request runs into it
LITTLE_CACHE = 20_000  # thirty answers: the pictures that come again, and some that do not
DRAIN_S = 8  # long enough to be seen not to be ready


@dataclass
class Story:
    """When each chapter began and the last one ended, in seconds of the epoch; what k6 found, and the first traces."""

    prometheus: Prometheus
    at: dict[str, float] = field(default_factory=dict)
    k6: dict = field(default_factory=dict)
    traces: Collector = field(default_factory=Collector)

    def begin(self, chapter: str) -> None:
        """A chapter begins."""
        self.at[chapter] = time.time()

    def span(self, chapter: str) -> tuple[float, float]:
        """When a chapter began, and when the next one did."""
        times = [*self.at.values()]
        place = list(self.at).index(chapter)
        return times[place], times[place + 1]


@contextmanager
def quota() -> Iterator[Path]:
    """A control group with a tenth of a core; removed when its processes have ended."""
    own = cgroup.find("cpu")
    assert own is not None, "this kernel has no CPU controller to test with"
    folder = own.folders[0] / f"assay-story-{os.getpid()}"
    folder.mkdir()
    try:
        if own.version == 2:
            (folder / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        yield folder
    finally:
        wait_until("the group's processes to end", lambda: not (folder / "cgroup.procs").read_text())
        folder.rmdir()


def _other_pack(builtin_dir: Path, path: Path) -> str:
    """The base model under another name, which is all that a Prometheus sees of a swap; its digest."""
    base = read_pack(builtin_dir / "efficientnet-lite0-fp32.tar")
    return write_pack(path, base.manifest.model_copy(update={"name": SECOND}), base.model, base.labels)


def address(server: Server) -> str:
    return server.url.removeprefix("http://")


def send(server: Server, bodies: Sequence[bytes], clients: int = 2) -> None:
    """Send each body once, so many at a time."""
    with (
        httpx.Client(timeout=60, limits=httpx.Limits(max_connections=clients)) as client,
        ThreadPoolExecutor(clients) as pool,
    ):
        list(pool.map(lambda body: client.post(f"{server.url}/v1/classify", content=body), bodies))


def mixed(pictures: Sequence[bytes]) -> list[bytes]:
    """Pictures that a cache knows, the same with an end nobody reads, so that it does not, and no picture."""
    return [*pictures, *(body + os.urandom(8) for body in pictures), os.urandom(64)]


def keep_sending(
    server: Server, bodies: Sequence[bytes], prometheus: Prometheus, alerts: Sequence[str], clients: int
) -> None:
    """Send over and over until these alerts fire."""

    def firing() -> bool:
        send(server, bodies, clients)
        fires = {one.labels["alertname"] for one in prometheus.now('ALERTS{alertstate="firing"}')}
        return set(alerts) <= fires

    wait_until(f"{alerts} to fire", firing)


def tell(story: Story, builtin_dir: Path, folder: Path) -> None:
    """Let it all happen."""
    pictures = [jpeg(name, size) for name in ("chelsea", "coffee", "rocket") for size in ((640, 480), (930, 700))]
    files = []
    for number, body in enumerate(pictures):
        files.append(folder / f"{number}.jpg")
        files[-1].write_bytes(body)
    digest = _other_pack(builtin_dir, folder / f"{SECOND}.tar")
    prometheus = story.prometheus
    with ExitStack() as stack:
        refused = stack.enter_context(refused_port())
        story.traces = stack.enter_context(collector())
        first = stack.enter_context(running(builtin_dir, cpu_limit_millicores=2000, queue_budget_ms=BUDGET_MS,
                                            deadline_ms=DEADLINE_MS, drain_delay_s=1, traces_endpoint=story.traces.url,
                                            store_uri=(folder / "store").as_uri()))  # fmt: skip
        second_settings = {
            "cache_bytes": LITTLE_CACHE, "batching": True, "store_queue_bytes": 1 << 20, "drain_delay_s": DRAIN_S,
            "drain_store_timeout_s": 0.3, "store_uri": "s3://answers/gone", "cpu_limit_millicores": 2000,
            "traces_endpoint": f"http://127.0.0.1:{refused}",
        }  # fmt: skip
        for name, value in {"ENDPOINT_URL": f"http://127.0.0.1:{refused}", "REGION": "none", "ALLOW_HTTP": "true",
                            "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x"}.items():  # fmt: skip
            os.environ[f"AWS_{name}"] = value
            stack.callback(os.environ.pop, f"AWS_{name}")
        model = ("--model", (folder / f"{SECOND}.tar").as_uri(), "--digest", digest)
        second = stack.enter_context(running(folder, *model, **second_settings))
        first.wait_ready()
        prometheus.scrape(address(first), namespace="assay", release="assay", pod="assay-1")
        story.begin("idle")
        wait_until("a while", lambda: time.time() - story.at["idle"] > IDLE_S)
        story.begin("loaded")
        story.k6 = load(first.url, prometheus.url, files, RATE, LOADED_S)
        story.begin("shedding")
        keep_sending(first, pictures * 10, prometheus, ["AssayShedding", "AssayErrorBudgetBurnsFast"], IN_PARALLEL)
        story.begin("swapping")
        second.wait_ready()
        prometheus.scrape(address(second), namespace="assay", release="assay", pod="assay-2")
        first.terminate()
        first.wait()
        prometheus.forget(address(first))
        story.begin("store dead")
        wait_until(
            "a while of dropped answers",
            lambda: send(second, mixed(pictures)) or time.time() - story.at["store dead"] > STORE_DEAD_S,
        )
        prometheus.wait_firing("AssayStoreDrops")
        story.begin("throttled")
        with quota() as group, running(builtin_dir, workers=2) as slow:
            slow.wait_ready()
            prometheus.scrape(address(slow), namespace="assay", release="tight", pod="tight-1")
            (group / "cgroup.procs").write_text(str(slow.process.pid))
            keep_sending(slow, pictures[:2], prometheus, ["AssayThrottled", "AssayLatencyHigh"], 2)
            prometheus.forget(address(slow))
        story.begin("gone")
        second.terminate()
        prometheus.wait_firing("AssayNoReadyPods")
        second.wait()
        story.begin("long after")
        # It takes as long as the objective's slowest alert holds.
        prometheus.wait_firing("AssayErrorBudgetBurnsSlowly", 120)
        fired = time.time()
        wait_until("it to be seen in steps of a second, too", lambda: time.time() - fired > 2 * SCRAPE_S)

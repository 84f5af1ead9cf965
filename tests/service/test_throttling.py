"""The kernel's throttling counters, on a live CPU quota: a server in a control group of its own, seen through /metrics.

Needs root and a control group hierarchy with the CPU controller: version 1, or version 2 where it may be delegated.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from assay.platform import cgroup
from assay.platform.cpu import CfsReader
from support.images import jpeg
from support.server import running, wait_until

pytestmark = pytest.mark.system

PERIOD_US = 100_000
QUOTA_US = 10_000  # a tenth of a core: every request of 15 CPU-ms runs into it


@pytest.fixture
def quota() -> Iterator[Path]:
    """A control group with a CPU quota, below this process's own; removed when its processes have ended."""
    own = cgroup.find("cpu")
    assert own is not None, "this kernel has no CPU controller to test with"
    folder = own.folders[0] / f"assay-test-{os.getpid()}"
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


def test_counters_rise_while_a_server_works_against_its_quota(quota, builtin_dir):
    with running(builtin_dir, workers=2) as server:
        server.wait_ready()
        (quota / "cgroup.procs").write_text(str(server.process.pid))
        before = server.metrics()
        body = jpeg("china", (930, 700))
        with httpx.Client(timeout=60) as client:
            wait_until(
                "throttling",
                lambda: (
                    client.post(f"{server.url}/v1/classify", content=body)
                    and server.metrics()["assay_cfs_throttled_periods_total"] >= 5
                ),
            )
        after = server.metrics()
        assert before["assay_cfs_throttled_periods_total"] < after["assay_cfs_throttled_periods_total"]
        assert after["assay_cfs_throttled_periods_total"] <= after["assay_cfs_periods_total"]
        # A throttled thread waits for what is left of the period: never longer than the periods counted, per core.
        seconds = after["assay_cfs_throttled_seconds_total"] - before["assay_cfs_throttled_seconds_total"]
        throttled = after["assay_cfs_throttled_periods_total"] - before["assay_cfs_throttled_periods_total"]
        assert 0 < seconds < throttled * PERIOD_US / 1e6 * (os.cpu_count() or 1)


def test_quota_of_the_group_limits_the_workers_of_a_server_that_starts_in_it(quota, builtin_dir):
    (quota / "cpu.max" if (quota / "cpu.max").exists() else quota / "cpu.cfs_quota_us").write_text(
        f"{PERIOD_US} {PERIOD_US}" if (quota / "cpu.max").exists() else str(PERIOD_US)
    )
    home = quota.parent / "cgroup.procs"
    (quota / "cgroup.procs").write_text(str(os.getpid()))
    try:
        with running(builtin_dir) as server:
            home.write_text(str(os.getpid()))
            metrics = server.wait_ready().metrics()
            assert (metrics["assay_cpu_limit_cores"], metrics["assay_worker_threads"]) == (1, 1)
    finally:
        home.write_text(str(os.getpid()))


def test_counters_of_this_very_process_are_read_from_the_kernel():
    counted = CfsReader().read()
    group = cgroup.find("cpu")
    assert group is not None
    assert (counted is not None) == ("nr_periods" in cgroup.read_table(group.folders[0] / "cpu.stat"))

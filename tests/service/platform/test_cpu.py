"""The CPU limit is the smallest one anybody set; files of both cgroup versions stand in for other machines."""

import os
from pathlib import Path

import pytest

from assay.platform import cgroup
from assay.platform.cpu import (
    CfsCounters,
    CfsReader,
    CpuLimit,
    cfs_quota_millicores,
    cpu_features,
    cpu_limit,
    cpu_model,
)
from assay.platform.memory import memory_limit_bytes
from assay.serving.process import worker_threads
from assay.settings import Settings


class Machine:
    """A `/proc/self` and a `/sys/fs/cgroup` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.process = folder / "self"
        self.process.mkdir()
        self.groups = folder / "cgroup"
        self._mounts: list[str] = []
        self._groups: list[str] = []

    def version_2(self, path: str, root: str = "/") -> "Machine":
        self._mount("cgroup2", self.groups, root, "rw")
        self._groups.append(f"0::{path}")
        return self._write()

    def version_1(self, controllers: str, path: str, root: str = "/") -> "Machine":
        self._mount("cgroup", self.groups / controllers, root, f"rw,{controllers}")
        self._groups.append(f"{len(self._groups) + 1}:{controllers}:{path}")
        return self._write()

    def _mount(self, kind: str, point: Path, root: str, options: str) -> None:
        point.mkdir(parents=True, exist_ok=True)
        self._mounts.append(f"32 31 0:29 {root} {point} rw,relatime shared:9 - {kind} {kind} {options}")

    def _write(self) -> "Machine":
        (self.process / "mountinfo").write_text(
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + "\n".join(self._mounts) + "\n"
        )
        (self.process / "cgroup").write_text("\n".join(self._groups) + "\n")
        return self

    def put(self, path: str, text: str) -> "Machine":
        file = self.groups / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        return self


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_version_2_quota_of_a_container_is_found_at_the_top_of_its_namespace(machine):
    machine.version_2("/").put("cpu.max", "150000 100000")
    assert cfs_quota_millicores(machine.process) == 1500


def test_version_2_quota_of_a_parent_counts_too(machine):
    machine.version_2("/pod/container").put("pod/container/cpu.max", "max 100000").put("pod/cpu.max", "50000 100000")
    assert cfs_quota_millicores(machine.process) == 500


def test_tightest_of_nested_quotas_wins(machine):
    machine.version_2("/pod/container")
    machine.put("pod/container/cpu.max", "200000 100000").put("pod/cpu.max", "300000 100000").put(
        "cpu.max", "max 100000"
    )
    assert cfs_quota_millicores(machine.process) == 2000


def test_version_2_without_a_quota_gives_none(machine):
    assert cfs_quota_millicores(machine.version_2("/").put("cpu.max", "max 100000").process) is None


def test_version_1_quota_is_read_through_the_mount_of_the_cpu_controller(machine):
    machine.version_1("memory", "/x").version_1("cpu,cpuacct", "/docker/abc", root="/docker/abc")
    machine.put("cpu,cpuacct/cpu.cfs_quota_us", "250000").put("cpu,cpuacct/cpu.cfs_period_us", "100000")
    assert cfs_quota_millicores(machine.process) == 2500


def test_version_1_walks_up_and_takes_minus_one_for_no_quota(machine):
    machine.version_1("cpu", "/kubepods/pod")
    machine.put("cpu/kubepods/pod/cpu.cfs_quota_us", "-1").put("cpu/kubepods/pod/cpu.cfs_period_us", "100000")
    machine.put("cpu/kubepods/cpu.cfs_quota_us", "75000").put("cpu/kubepods/cpu.cfs_period_us", "50000")
    assert cfs_quota_millicores(machine.process) == 1500


def test_version_1_is_preferred_where_both_are_mounted_and_version_2_has_no_cpu_controller(machine):
    machine.version_1("cpu", "/").put("cpu/cpu.cfs_quota_us", "100000").put("cpu/cpu.cfs_period_us", "100000")
    machine.version_2("/")
    assert cfs_quota_millicores(machine.process) == 1000


def test_path_of_another_namespace_means_the_top_of_the_mount(machine):
    machine.version_2("/../../elsewhere").put("cpu.max", "100000 100000")
    assert cfs_quota_millicores(machine.process) == 1000


def test_machine_without_control_groups_has_no_quota(tmp_path):
    assert cfs_quota_millicores(tmp_path) is None
    assert cgroup.find("cpu", tmp_path) is None


@pytest.mark.parametrize("text", ["", "garbage", "max", "100000", "0 100000", "100000 0"])
def test_unreadable_quota_is_no_quota(machine, text):
    assert cfs_quota_millicores(machine.version_2("/").put("cpu.max", text).process) is None


def test_smaller_of_declared_and_measured_wins_and_the_difference_is_told(machine):
    machine.version_2("/").put("cpu.max", "150000 100000")
    declared_more = cpu_limit(4000, machine.process)
    assert (declared_more.millicores, declared_more.source, declared_more.disagree) == (1500, "cgroup", True)
    declared_less = cpu_limit(500, machine.process)
    assert (declared_less.millicores, declared_less.source, declared_less.disagree) == (500, "declared", True)
    same = cpu_limit(1500, machine.process)
    assert (same.millicores, same.disagree, same.unlimited) == (1500, False, False)


def test_without_any_limit_the_cores_this_process_may_use_count(machine):
    limit = cpu_limit(None, machine.version_2("/").process)
    assert limit.unlimited
    assert limit.millicores == 1000 * len(os.sched_getaffinity(0))


def test_throttling_is_counted_in_seconds_from_both_versions(machine, tmp_path):
    machine.version_2("/a").put("a/cpu.stat", "usage_usec 9\nnr_periods 50\nnr_throttled 7\nthrottled_usec 1500000")
    second = CfsReader(machine.process).read()
    (tmp_path / "old").mkdir()
    old = Machine(tmp_path / "old").version_1("cpu", "/")
    old.put("cpu/cpu.stat", "nr_periods 50\nnr_throttled 7\nthrottled_time 1500000000")
    assert second == CfsReader(old.process).read()
    assert (second.periods, second.throttled_periods, second.throttled_seconds) == (50, 7, 1.5)


def test_group_that_counts_no_periods_has_no_counters(machine):
    assert CfsReader(machine.version_2("/").put("cpu.stat", "usage_usec 9").process).read() is None


def test_memory_limit_is_the_smallest_of_declared_and_both_versions(machine, tmp_path):
    machine.version_2("/a/b").put("a/b/memory.max", "max").put("a/memory.max", "2147483648")
    assert memory_limit_bytes(None, machine.process) == 2 << 30
    assert memory_limit_bytes(1 << 30, machine.process) == 1 << 30
    (tmp_path / "old").mkdir()
    old = Machine(tmp_path / "old").version_1("memory", "/")
    assert memory_limit_bytes(None, old.put("memory/memory.limit_in_bytes", "9223372036854771712").process) is None
    assert memory_limit_bytes(None, old.put("memory/memory.limit_in_bytes", "536870912").process) == 512 << 20


@pytest.mark.parametrize(("flag", "vnni"), [("avx512_vnni", True), ("avx_vnni", True), ("avx512f", False)])
def test_vnni_stands_for_both_of_its_forms(tmp_path, flag, vnni):
    file = tmp_path / "cpuinfo"
    file.write_text(
        f"processor\t: 0\nmodel name\t: Some CPU @ 2GHz\nflags\t\t: fpu sse avx2 {flag}\n\nprocessor\t: 1\n"
    )
    assert {"avx2", flag} <= cpu_features(file)
    assert ("vnni" in cpu_features(file)) == vnni
    assert cpu_model(file) == "Some CPU @ 2GHz"


def test_features_of_an_arm_cpu_are_read(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nFeatures\t: fp asimd asimddp\n")
    assert {"asimd", "asimddp"} <= cpu_features(file)


def test_this_machine_is_described():
    assert cpu_features()
    assert cpu_model()
    assert cpu_limit().millicores > 0


def test_counters_are_those_of_the_group_a_process_was_moved_to(machine):
    reader = CfsReader(machine.version_2("/a").put("a/cpu.stat", "nr_periods 5\nnr_throttled 1").process)
    assert reader.read() == CfsCounters(5, 1, 0.0)
    machine.version_2("/b").put("b/cpu.stat", "nr_periods 9\nnr_throttled 2")
    assert reader.read() == CfsCounters(9, 2, 0.0)


def test_no_more_threads_than_the_machine_has_cores():
    mistaken = CpuLimit(10**12, "declared", 10**12, None)  # a limit in the wrong unit
    assert worker_threads(Settings(), mistaken) == os.cpu_count()
    assert worker_threads(Settings(), CpuLimit(1500, "declared", 1500, None)) == 1

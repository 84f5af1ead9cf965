"""How much CPU this process may use, and what the CPU can do."""

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from assay.platform import cgroup

_MILLI = 1000  # Kubernetes counts CPU in thousandths of a core
_NOTABLE = (
    "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "vnni", "sha_ni",
    "asimd", "asimddp", "i8mm", "sve",
)  # fmt: skip
"""Features that change what inference costs or answers; the rest of some hundred flags do not."""

_MACOS_FEATURES = {"FEAT_DotProd": "asimddp", "FEAT_I8MM": "i8mm", "AdvSIMD": "asimd"}
"""Apple's names of features, by Linux's."""


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """CPU this process may use. ``declared`` and ``cgroup`` (thousandths of a core) are what was found, or nothing."""

    millicores: int
    source: Literal["declared", "cgroup", "affinity", "count"]
    declared: int | None
    cgroup: int | None

    @property
    def disagree(self) -> bool:
        """Whether both were found and differ by more than rounding."""
        return self.declared is not None and self.cgroup is not None and abs(self.declared - self.cgroup) > 1

    @property
    def unlimited(self) -> bool:
        """Whether nobody set a limit, so that the whole machine was taken for one."""
        return self.source in ("affinity", "count")


def cfs_quota_millicores(process: Path = cgroup.SELF) -> int | None:
    """The tightest CPU quota of this process's group and its parents, rounded to thousandths; nothing without one.

    Version 2: ``cpu.max`` (``<quota|max> <period>``, microseconds); version 1: ``cpu.cfs_quota_us`` (-1 for none).
    """
    group = cgroup.find("cpu", process)
    if group is None:
        return None
    found = []
    for folder in group.folders:
        quota, period = _cpu_max(folder) if group.version == 2 else _cfs_files(folder)
        if quota is not None and quota > 0 and period:
            found.append(max(1, round(quota * _MILLI / period)))
    return min(found, default=None)


def _cpu_max(folder: Path) -> tuple[int | None, int | None]:
    try:
        quota, _, period = (folder / "cpu.max").read_text().partition(" ")
        return (None, None) if quota == "max" else (int(quota), int(period))
    except (OSError, ValueError):
        return None, None


def _cfs_files(folder: Path) -> tuple[int | None, int | None]:
    return cgroup.read_int(folder / "cpu.cfs_quota_us"), cgroup.read_int(folder / "cpu.cfs_period_us")


@dataclass(frozen=True, slots=True)
class CfsCounters:
    """What the scheduler counted since the group began: periods with a quota, those throttled, and for how long."""

    periods: int
    throttled_periods: int
    throttled_seconds: float


class CfsReader:
    """Reads the counters of this process's own group, again and again."""

    def __init__(self, process: Path = cgroup.SELF) -> None:
        self._process = process
        self._membership = ""
        self._statistics: Path | None = None

    def read(self) -> CfsCounters | None:
        """The counters; nothing where the kernel counts none (no CPU controller, or the top group)."""
        membership = cgroup.membership(self._process)
        if membership != self._membership:  # a container has many mounts: they are read only when there is a reason
            self._membership = membership
            group = cgroup.find("cpu", self._process)
            self._statistics = group.folders[0] / "cpu.stat" if group else None
        table = cgroup.read_table(self._statistics) if self._statistics else {}
        if "nr_periods" not in table:
            return None
        # Version 2 counts microseconds, version 1 nanoseconds.
        seconds = table.get("throttled_usec", 0) / 1e6 + table.get("throttled_time", 0) / 1e9
        return CfsCounters(table["nr_periods"], table.get("nr_throttled", 0), seconds)


def cpu_limit(declared: int | None = None, process: Path = cgroup.SELF) -> CpuLimit:
    """The CPU limit. ``declared``: what the pod says, in thousandths of a core; the smaller of it and the quota wins.

    A pod without a limit is told the whole node by the downward API, and a quota may sit on a parent group, so neither
    source is enough by itself. Without both: the cores this process may run on, else the machine's.
    """
    quota = cfs_quota_millicores(process)
    known = [value for value in (declared, quota) if value]
    if known:
        smaller = min(known)
        return CpuLimit(smaller, "declared" if smaller == declared else "cgroup", declared, quota)
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return CpuLimit(len(os.sched_getaffinity(0)) * _MILLI, "affinity", declared, quota)
    return CpuLimit((os.cpu_count() or 1) * _MILLI, "count", declared, quota)


def cpu_limit_millicores(declared: int | None = None) -> int:
    """`cpu_limit`, as a number of thousandths of a core."""
    return cpu_limit(declared).millicores


def _sysctl(name: str) -> str:
    try:
        command = ["/usr/sbin/sysctl", name]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout  # noqa: S603 - fixed names
    except (OSError, subprocess.SubprocessError):
        return ""


def _cpuinfo(key: str, path: Path) -> str:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key), "")


def _macos_features() -> frozenset[str]:
    flags = f"{_sysctl('machdep.cpu.features')} {_sysctl('machdep.cpu.leaf7_features')}".lower().split()
    arm = {ours for theirs, ours in _MACOS_FEATURES.items() if f"{theirs}: 1" in _sysctl("hw.optional.arm")}
    return frozenset(flags) | arm


@cache
def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """What the CPU can do, by Linux's flag names; ``vnni`` stands for either of ``avx512_vnni`` and ``avx_vnni``."""
    if sys.platform == "darwin":
        found = _macos_features()
    else:
        found = frozenset((_cpuinfo("flags", cpuinfo) or _cpuinfo("Features", cpuinfo)).split())  # x86, else ARM
    return found | {"vnni"} if found & {"avx512_vnni", "avx_vnni"} else found


def notable_features() -> tuple[str, ...]:
    """Those of `cpu_features` that change cost or answers, in a fixed order."""
    return tuple(name for name in _NOTABLE if name in cpu_features())


@cache
def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The CPU's name, as the system tells it."""
    if sys.platform == "darwin":
        told = _sysctl("machdep.cpu.brand_string").partition(":")[2].strip()
    else:
        told = _cpuinfo("model name", cpuinfo)
    return told or platform.processor() or platform.machine()

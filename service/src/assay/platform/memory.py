"""How much memory this process may use."""

from pathlib import Path

from assay.platform import cgroup

_UNLIMITED = 1 << 60  # version 1 writes "no limit" as the largest multiple of a page below 2**63


def cgroup_bytes(process: Path = cgroup.SELF) -> int | None:
    """The tightest memory limit of this process's group and its parents, in bytes; nothing without one."""
    group = cgroup.find("memory", process)
    if group is None:
        return None
    name = "memory.max" if group.version == 2 else "memory.limit_in_bytes"
    limits = [cgroup.read_int(folder / name) for folder in group.folders]
    return min((limit for limit in limits if limit is not None and limit < _UNLIMITED), default=None)


def memory_limit_bytes(declared: int | None = None, process: Path = cgroup.SELF) -> int | None:
    """The smaller of what the pod says and what its control groups allow, in bytes; nothing without a limit."""
    return min((value for value in (declared, cgroup_bytes(process)) if value), default=None)

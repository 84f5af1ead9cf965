"""How much memory this process may use."""

import ctypes
import sys
from pathlib import Path

from assay.platform import cgroup

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # parameters of mallopt(3)

_LARGE_BLOCK = 4 << 20
"""From this size on a block is the system's again when it is freed. The pixels of an ordinary upload (0.65 megapixels,
2.6 MB) stay below, and are not paged in anew for each request."""

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


def return_large_blocks() -> None:
    """Have the C library give large blocks back as soon as they are freed, where it is glibc.

    By itself it raises that size to 32 MiB after the first large block, and then keeps as much in every thread's
    arena: a service would stay as large as the largest pictures it ever had, times its threads.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none, and returns blocks anyway
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, 2 * _LARGE_BLOCK)

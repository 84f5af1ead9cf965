"""Where this process's control groups are, in both versions of the kernel's interface.

Sources: Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of Linux, and proc(5) for ``mountinfo``.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SELF = Path("/proc/self")
"""The kernel's folder about this process."""


@dataclass(frozen=True, slots=True)
class Group:
    """A controller's folders for this process, its own first, then each parent up to the mount."""

    version: int
    folders: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Mount:
    root: str
    point: Path
    kind: str
    options: frozenset[str]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _mounts(process: Path) -> list[_Mount]:
    found = []
    for line in _lines(process / "mountinfo"):
        front, _, back = line.partition(" - ")
        fields, tail = front.split(), back.split()
        if len(fields) > 4 and len(tail) > 2:  # proc(5): root is the 4th field, mount point the 5th
            found.append(_Mount(fields[3], Path(fields[4]), tail[0], frozenset(tail[2].split(","))))
    return found


def membership(process: Path = SELF) -> str:
    """Which groups a process is in, as the kernel tells it; empty where it tells nothing."""
    return "\n".join(_lines(process / "cgroup"))


def _membership(process: Path) -> dict[str, str]:
    """Controller to the path of this process's group; version 2 has one hierarchy, under the empty name."""
    found: dict[str, str] = {}
    for line in membership(process).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _walk(mount: _Mount, path: str) -> tuple[Path, ...]:
    """Folders from the group up to the mount. A path the mount does not show (another namespace) means its top."""
    try:
        below = PurePosixPath(path).relative_to(mount.root)
    except ValueError:
        below = PurePosixPath()
    if ".." in below.parts:
        below = PurePosixPath()
    parts = below.parts
    return tuple(mount.point.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))


def find(controller: str, process: Path = SELF) -> Group | None:
    """The group of a controller (``cpu``, ``memory``): of version 1 where it is mounted, else of 2, else nothing."""
    groups = _membership(process)
    mounts = _mounts(process)
    if controller in groups:
        for mount in mounts:
            if mount.kind == "cgroup" and controller in mount.options:
                return Group(1, _walk(mount, groups[controller]))
    for mount in mounts:
        if mount.kind == "cgroup2" and "" in groups:
            return Group(2, _walk(mount, groups[""]))
    return None


def read_int(path: Path) -> int | None:
    """The whole number a file holds, or nothing where there is no such file or number (``max`` for no limit)."""
    lines = _lines(path)
    try:
        return int(lines[0]) if lines else None
    except ValueError:
        return None


def read_table(path: Path) -> dict[str, int]:
    """A file of ``name number`` lines, such as ``cpu.stat``; lines of another shape are left out."""
    table = {}
    for line in _lines(path):
        name, _, value = line.partition(" ")
        if value.isdecimal():
            table[name] = int(value)
    return table

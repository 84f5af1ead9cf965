"""The cluster's daemons: started, found again and stopped by what was recorded of them, never by a name.

A record in ``state/run`` holds the pid and when that process began, so a pid that the kernel has meanwhile given to
another process is not taken for ours.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from one_node.commands import ClusterError

GRACE_S = 10  # from SIGTERM to SIGKILL: etcd's and the kubelet's own shutdown takes under two
_START_TIME = 19  # field 22 of /proc/PID/stat (proc(5)), counted from the field after the state


def commands(state: Path) -> dict[str, list[str]]:
    """Return the command line of each daemon by its name, in the order of their start."""
    parts = re.split(r"^\[(.+)\]$", (state / "conf/commands").read_text(), flags=re.MULTILINE)
    return {name: shlex.split(words, comments=True) for name, words in zip(parts[1::2], parts[2::2], strict=True)}


def record_of(state: Path, name: str) -> Path:
    """Return where the process of a daemon is recorded."""
    return state / "run" / f"{name}.json"


def start_time(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot; None where it no longer runs."""
    try:
        status, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if status in "ZX" else int(fields[_START_TIME - 1])


def running(state: Path, name: str) -> int | None:
    """Return the pid of the process that we started by that name, if it still runs."""
    try:
        record = json.loads(record_of(state, name).read_text())
    except (FileNotFoundError, ValueError):
        return None
    pid = int(record["pid"])
    return pid if start_time(pid) == record["start"] else None


def start(state: Path, *names: str) -> None:
    """Start those that do not run; their output goes to ``state/log``."""
    for name in names:
        if running(state, name):
            continue
        with (state / "log" / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                commands(state)[name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=state,
                start_new_session=True,
            )
        process.returncode = 0  # it outlives this program, which will not wait for it
        record_of(state, name).write_text(json.dumps({"pid": process.pid, "start": start_time(process.pid)}))


def stop(state: Path, name: str) -> None:
    """End a daemon if it is ours and runs, and forget it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE_S
        if pid := running(state, name):
            kill(pid, number)
        while running(state, name) and time.monotonic() < deadline:
            time.sleep(0.05)
    record_of(state, name).unlink(missing_ok=True)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Signal a process, which may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def ended(state: Path) -> list[str]:
    """Return those that are recorded and no longer run."""
    return [name for name in commands(state) if record_of(state, name).exists() and not running(state, name)]


def forget_ended(state: Path) -> None:
    """Remove the records of those that no longer run."""
    for name in ended(state):
        record_of(state, name).unlink()


def wait(state: Path, what: str, probe: Callable[[], object], seconds: float) -> None:
    """Wait for what a probe sees, while every daemon that was started runs.

    Raises:
        ClusterError: a daemon ended, or the time is over.

    """
    deadline = time.monotonic() + seconds
    while not probe():
        gone = ended(state)
        if gone or time.monotonic() > deadline:
            why = f"{', '.join(gone)} ended" if gone else f"no sign of it after {seconds} s"
            raise ClusterError(f"waiting for {what}: {why}; see the logs in {state}/log")
        time.sleep(0.1)

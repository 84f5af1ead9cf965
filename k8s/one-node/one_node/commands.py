"""Other programs, run so that a failure becomes one sentence."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO


class ClusterError(Exception):
    """What stopped a command: a sentence with what was seen and what to do."""


def say(text: str) -> None:
    """Tell the person at the terminal; stdout is for what other programs read."""
    print(f"cluster: {text}", file=sys.stderr)


def run(
    *argv: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[str] | None = None,
    stderr: int | IO[str] | None = None,
) -> None:
    """Run a command that must succeed; ``env`` is added to this process's.

    Raises:
        ClusterError: it is not there, or failed.

    """
    words = [str(word) for word in argv]
    try:
        subprocess.run(words, check=True, cwd=cwd, env={**os.environ, **(env or {})}, stdout=stdout, stderr=stderr)
    except FileNotFoundError as error:
        raise ClusterError(f"{words[0]} is not on this machine: `cluster build` installs what is needed") from error
    except subprocess.CalledProcessError as error:
        raise ClusterError(f"`{' '.join(words)}` failed with status {error.returncode}") from error


def output(*argv: str | Path) -> str | None:
    """Return what a command printed, or None where it failed or is not there."""
    try:
        done = subprocess.run([str(word) for word in argv], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None

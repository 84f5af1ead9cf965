"""Other programs, run so that a failure becomes one sentence."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The project's folder."""

FOLDER = ROOT / ".cluster"
"""Where it is kept which cluster was made, its kubeconfig, and links to kubectl and helm in ``bin``."""


class ToolError(Exception):
    """What stopped a command: a sentence with what was seen and what to do."""


def environment() -> dict[str, str]:
    """Return this process's environment, with the tools of .cluster/bin before the machine's own."""
    return os.environ | {"PATH": f"{FOLDER / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def which(name: str) -> str | None:
    """Return the path of a program, .cluster/bin first."""
    return shutil.which(name, path=environment()["PATH"])


def run(*argv: str | Path) -> None:
    """Run a command that must succeed, its output being for the person at the terminal.

    Raises:
        ToolError: it is not there, or failed.

    """
    words = [str(word) for word in argv]
    try:
        # Where the output is a file, ours must stand before that of the command.
        print(end="", flush=True)
        subprocess.run([which(words[0]) or words[0], *words[1:]], check=True, env=environment(), cwd=ROOT)
    except FileNotFoundError as error:
        raise ToolError(f"{words[0]} is not on this machine") from error
    except subprocess.CalledProcessError as error:
        raise ToolError(f"`{' '.join(words)}` failed with status {error.returncode}") from error


def capture(*argv: str | Path) -> str:
    """Return what a command printed.

    Raises:
        ToolError: it is not there, or failed; with what it said.

    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            [which(words[0]) or words[0], *words[1:]],
            check=True,
            capture_output=True,
            text=True,
            env=environment(),
            cwd=ROOT,
        )
    except FileNotFoundError as error:
        raise ToolError(f"{words[0]} is not on this machine") from error
    except subprocess.CalledProcessError as error:
        raise ToolError(f"`{' '.join(words)}` failed: {error.stderr.strip()}") from error
    return done.stdout


def succeeds(*argv: str | Path) -> bool:
    """Return whether a command is there and exits with 0."""
    try:
        capture(*argv)
    except ToolError:
        return False
    return True

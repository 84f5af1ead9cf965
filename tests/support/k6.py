"""k6 on this machine: its scripts' functions evaluated, and whole runs through k6/run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

K6 = Path(sys.executable).parent / "k6"
ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "k6" / "run"
# A run's own time comes on top: k6 starts in under a second, on busy cores in several.
STARTUP_S = 60
ATTEMPTS = 5

_EVALUATE = """
{imports}
export const options = {{ iterations: 1 }};
const value = (() => {{ {code} }})();
export default function () {{}}
export function handleSummary() {{ return {{ stdout: JSON.stringify(value) }}; }}
"""


def evaluate(folder: Path, imports: dict[str, str], code: str) -> Any:
    """What JavaScript returns that may use functions of k6/lib: ``{"arrivals.js": "arrivals, uniform"}``."""
    script = folder / "evaluate.js"
    lines = [f"import {{ {names} }} from '{ROOT}/k6/lib/{file}';" for file, names in imports.items()]
    script.write_text(_EVALUATE.format(imports="\n".join(lines), code=code))
    done = subprocess.run(
        [K6, "run", "--quiet", "--no-usage-report", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=STARTUP_S,
    )
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Run:
    """A run through k6/run: its exit code, what it printed, and its files."""

    code: int
    log: str
    out: Path

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json."""
        return json.loads((self.out / "summary.json").read_text())

    @property
    def reasons(self) -> str:
        """Why the verdict is what it is."""
        return " | ".join(self.summary["reasons"])


def run(
    scenario: str, out: Path, *, during: Callable[[subprocess.Popen[str]], None] = lambda _: None, **settings: object
) -> Run:
    """Run a scenario; ``during`` is called with the shell's process once k6 has said what it will do.

    It goes before what else the machine does, where that is allowed: its schedule must hold for a run to be valid.
    """
    environment = os.environ | {"K6": str(K6), "OUT": str(out)} | {name: str(each) for name, each in settings.items()}
    with subprocess.Popen(
        ["nice", "-n", "-10", "sh", RUN, scenario],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        log = ""
        for line in process.stdout:
            log += line
            if "level=info" in line and " requests to " in line:
                during(process)
        code = process.wait(timeout=STARTUP_S)
    return Run(code, log, out)


def undisturbed(attempt: Callable[[], Run], as_expected: Callable[[Run], bool] = lambda _: True) -> Run:
    """The first of at most `ATTEMPTS` runs that the machine itself did not disturb, else the last one.

    A run is invalid where the generator got no CPU in time, and says so itself. Where times are compared with theory,
    the server may have got none: what is wrong in the program is so in every attempt.
    """
    for _ in range(ATTEMPTS):
        done = attempt()
        if not _disturbed(done) and as_expected(done):
            break
    return done


def _disturbed(done: Run) -> bool:
    probes = done.summary.get("probes", [])
    return "had no CPU when they were due" in done.reasons or any(probe["verdict"] == "invalid" for probe in probes)

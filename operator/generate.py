"""Write docs/faults.md anew, from the names of the tests: ``make docs``.

A test of a fault carries the numbers of its rows in its name (``test_fault_29_36_foreign_edit_…``); the folder it is in
tells the level. A test compares the file with what this makes.
"""

import ast
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "faults.md"
FOLDERS = {"P": "tests/operator", "A": "tests/apiserver", "E": "tests/e2e"}
_NAME = re.compile(r"test_fault((?:_\d+)+)_")


@dataclass(frozen=True)
class Fault:
    """A row: what goes wrong, what must happen, and at which levels it must be shown."""

    number: int
    what: str
    expected: str
    levels: str


FAULTS = (
    Fault(
        1,
        "killed between Job create and status write",
        "same name, adopted only if owner uid and rendered template match; one Job",
        "P A E",
    ),
    Fault(2, "killed between Pass and apply", "applied once, no second check", "P A E"),
    Fault(3, "killed mid-rollout or mid-rollback", "resumes; deadlines from API objects' times", "P A"),
    Fault(
        4, "down for hours while spec changes twice", "only the latest spec counts; resync < 60 s after start", "P A"
    ),
    Fault(5, "two operators at once", "preconditions: no duplicate Job, no flapping", "P A"),
    Fault(6, "watch silently stalls", "reconnect, resync, staleness metric, liveness", "A"),
    Fault(7, "410 Gone, duplicated, reordered, initial-list events", "idempotent, no extra writes, no hot loop", "P A"),
    Fault(8, "stale cache after restart", "fresh GET + precondition before anything destructive", "P A"),
    Fault(9, "429, 5xx, 30 s hangs", "backoff with jitter, Retry-After honoured, conditions keep their value", "A"),
    Fault(10, "401, 403", "re-auth; Stalled InsufficientPermissions naming verb and resource", "A"),
    Fault(11, "check image or pack cannot be pulled", "CheckImagePullFailed / PackUnavailable; never Pass", "A E"),
    Fault(
        12,
        "check pod unschedulable, quota, PodSecurity, LimitRange",
        "message quotes the scheduler or FailedCreate",
        "A E",
    ),
    Fault(13, "check pod OOM-killed, SIGILL, crash", "Error with code or signal; maxAttempts; Stalled", "P E"),
    Fault(14, "node drained under the check", "not counted as an attempt", "A E"),
    Fault(15, "check hangs", "CheckTimedOut", "P E"),
    Fault(16, "exit 0 with missing, truncated, garbage, NaN result or wrong nonce", "CheckResultInvalid", "P E"),
    Fault(17, "Job or pod deleted before the result was read / after", "attempt + 1 / no effect", "P E"),
    Fault(
        18, "foreign Job with our name, or ours edited", "Stalled JobNameConflict; neither adopted nor deleted", "P A"
    ),
    Fault(19, "noisy neighbour", "Inconclusive, retried; never a lucky Pass", "P"),
    Fault(20, "accuracy or cost fails", "Rejected; Deployment generation unchanged; one event", "P E"),
    Fault(21, "model changed while its check runs", "old result ignored", "P A"),
    Fault(22, "A to B to A quickly", "stored verdict of the same inputsHash reused", "P A"),
    Fault(
        23,
        "bytes behind a URI change after the check",
        "pod never ready: exits 78 with DigestMismatch in its termination message, rolled back",
        "E",
    ),
    Fault(24, "new pods never ready", "old pods keep serving; rolled back at the deadline", "P E"),
    Fault(25, "new pods ready, then crash-loop", "soak catches it, rolled back", "P E"),
    Fault(26, "rollout blocked by quota", "rolled back early, ReplicaFailure quoted", "P A"),
    Fault(27, "rollback cannot complete", "RollbackFailed, nothing scaled down, retried, paged", "P A"),
    Fault(28, "spec reverted to lastGood mid-rollout", "immediate, no check", "P A"),
    Fault(29, "someone edits our annotations", "restored within 60 s, event DriftCorrected, rate-capped", "A E"),
    Fault(
        30,
        "target Deployment deleted and re-created",
        "TargetNotFound, then lastGood applied; never an unapproved model",
        "P A",
    ),
    Fault(
        31,
        "two ModelVariants, one Deployment; then the older is deleted",
        "the older wins, the other Stalled TargetConflict; then it adopts as in 45",
        "P A",
    ),
    Fault(32, "HPA scales during the rollout", "replicas untouched; completion uses live numbers", "A"),
    Fault(33, "node drain or PDB during the rollout", "slows, no drop with ≥ 2 replicas", "E"),
    Fault(
        34,
        "CR deleted while checking or rolling, operator up or down",
        "returns at once; Job garbage-collected; what serves goes on",
        "A E",
    ),
    Fault(35, "namespace deleted; CRD deleted or upgraded", "nothing stuck; operator recovers", "A"),
    Fault(
        36,
        "`helm upgrade`, `helm rollback`, `kubectl rollout undo` after a swap",
        "model kept; undo corrected as drift and explained",
        "E",
    ),
    Fault(37, "invalid spec that slips past CEL", "Stalled InvalidSpec", "P"),
    Fault(38, "clock skew", "deadlines by API-server time; backoff by monotonic clock", "P"),
    Fault(
        39,
        "status wiped or forged",
        "what serves becomes Unverified, is re-checked; a lastGood or Pass without evidence is never acted on",
        "P A",
    ),
    Fault(40, "memory growth", "RSS metric, limit, restart harmless", "A"),
    Fault(
        41,
        "500 ModelVariants at start",
        "bounded pool, jitter, cap of concurrent checks per namespace (CheckQueued)",
        "A",
    ),
    Fault(42, "`suspend` mid-rollout", "no writes, conditions go on", "P A"),
    Fault(
        43,
        "`compareWith` set to the candidate itself or to a repack of it",
        "YardstickNotApproved; no check, no rollout",
        "P A E",
    ),
    Fault(44, "pack with permuted or off-by-one labels", "LabelsDiffer / accuracy Fail", "P E"),
    Fault(45, "CR deleted and re-created, or renamed", "incumbent adopted as Unverified, no unwanted rollout", "P E"),
    Fault(
        46,
        "HPA or reschedule puts a pod on a node without the pack's CPU features",
        "that pod never ready (exit 78, CpuFeatureMissing), event and metric; others serve."
        " End to end on one node: a pack whose `requires_cpu` names a feature no CPU has, rolled out by skip-check,"
        " is rolled back",
        "P E",
    ),
    Fault(
        47,
        "image rebuilt under the same tag with other built-in packs",
        "imageID differs: Unverified, re-checked",
        "P A",
    ),
    Fault(
        48, "Deployment changes between Pass and apply", "precondition fails, re-planned, new inputsHash checked", "P A"
    ),
)

INTRODUCTION = """# Faults the operator survives

Each row is tested at every level it names: **P** the plan, a pure function; **A** a real operator before a real API
server, with a proxy that loses, delays and refuses where the fault asks for it; **E** end to end on a running cluster.
The tests' names carry the rows' numbers: `make docs` writes this page from them, and CI demands that each named test
ran and passed; where a run is late on a slow machine, it leaves level E out and says so.

| # | fault | what must happen | levels | tests |
|---|---|---|---|---|
"""


def tests_of(folder: str) -> dict[int, list[str]]:
    """Names of the tests in a folder, by the number of each row they show."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted((ROOT / folder).glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (named := _NAME.match(node.name)):
                for number in named[1].split("_")[1:]:
                    found[int(number)].append(node.name)
    return found


def tests_by_level() -> dict[str, dict[int, list[str]]]:
    """For each level, the tests of each row."""
    return {level: tests_of(folder) for level, folder in FOLDERS.items()}


def missing() -> list[str]:
    """Rows and levels that no test shows."""
    found = tests_by_level()
    return [
        f"{fault.number} {level}"
        for fault in FAULTS
        for level in fault.levels.split()
        if not found[level][fault.number]
    ]


def page() -> str:
    """The page, with a line for each fault."""
    found = tests_by_level()
    rows = []
    for fault in FAULTS:
        tests = [f"{level}: `{name}`" for level in FOLDERS for name in found[level][fault.number]]
        tests += [f"**{level}: none yet**" for level in fault.levels.split() if not found[level][fault.number]]
        rows.append(f"| {fault.number} | {fault.what} | {fault.expected} | {fault.levels} | {'<br>'.join(tests)} |")
    return INTRODUCTION + "\n".join(rows) + "\n"


def main() -> None:
    """Write the page; say which tests there are still to write."""
    PAGE.write_text(page())
    if lacking := missing():
        print("no test yet for:", ", ".join(lacking), file=sys.stderr)


if __name__ == "__main__":
    main()

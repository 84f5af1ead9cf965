"""The operator with hundreds of ModelVariants before a real API server: restarts, rest, and a soak of spec changes.

    PYTHONPATH=tests .venv/bin/python tests/measure/scale.py --variants 500 --changes 10000 --minutes 40

etcd, kube-apiserver and the operator are real; Deployments, Jobs and pods are moved by this program, through the API.
Prints seconds, writes per variant, calls at rest, and a series of the operator's resident memory with its slope.
Ends with 1 if anything is stuck, wrong, or happened that must never happen.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import yaml

from assay.platform.cpu import cpu_model
from support.apiserver import KUBE, ApiServer
from support.controllers import Namespace
from support.fleet import PACKS, Fleet
from support.operator_process import OperatorProcess, chart_rules, grant, started

ROOT = Path(__file__).parents[2]
MIB = 2**20
WEIGHTS = {"good": 36, "other": 30, "bad": 12, "dead": 5, "base": 17}
SETTLE_S = 1200
CRASHES = 0.02  # share of checks that end without a result
KEPT_S = 300.0  # a finished Job; a day in a real cluster, of which this is a short one
SAMPLES = 40  # of memory, over a soak


class Trial:
    """One API server, one fleet, and operators one after the other."""

    def __init__(self, folder: Path, stack: ExitStack, checks: int) -> None:
        self.folder, self.checks = folder, checks
        self.api = ApiServer(KUBE, folder)
        stack.callback(self.api.stop)
        self.api.define(yaml.safe_load((ROOT / "charts/assay/files/crd/modelvariants.yaml").read_text()))
        namespace = Namespace(self.api, "scale")
        grant(namespace, chart_rules(ROOT))
        self.fleet = stack.enter_context(Fleet(namespace, crashes=CRASHES, kept_s=KEPT_S))
        self.began = 0.0
        self.operator: OperatorProcess
        self.start()
        stack.callback(lambda: self.operator.end())

    def start(self) -> None:
        """Start an operator as the chart does, but for the number of checks."""
        self.began = time.monotonic()
        self.operator = started(self.api, "scale", self.folder, running_checks=self.checks)

    def settle(self, what: str, done: Callable[[], bool]) -> None:
        """Wait, and print the seconds since the operator's start, and what it wrote for each variant since."""
        count = len(self.fleet.variants())
        while not done():
            if time.monotonic() > self.began + SETTLE_S:
                sys.exit(f"{what}: not settled in {SETTLE_S} s: {self.fleet.unsettled()[:5]}, {self.fleet.broken[:5]}")
            time.sleep(1)
        seconds = time.monotonic() - self.began
        calls = {method: self.calls(method) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")}
        writes = sum(calls.values()) - calls["GET"]
        told = "  ".join(f"{method} {number / count:.2f}" for method, number in calls.items())
        print(f"{what}: {seconds:.0f} s, {writes / count:.2f} writes for each", flush=True)
        print(f"  {told}; {self.memory():.0f} MiB", flush=True)

    def calls(self, method: str) -> float:
        return self.operator.total("assay_api_requests_total", method=method)

    def memory(self) -> float:
        """Resident, in MiB, as the operator's own metric tells it."""
        return self.operator.total("process_resident_memory_bytes") / MIB

    def passes(self) -> float:
        return self.operator.total("assay_reconcile_duration_seconds_count")

    def all_settled(self) -> bool:
        return not self.fleet.unsettled()


def restarts(trial: Trial, names: list[str], base: list[str]) -> None:
    """Settle everything; then end the operator, and have it find all settled, and all asking for something else."""
    trial.fleet.add(names, "good")
    trial.fleet.add(base, "base")
    trial.settle("made while it ran, nine in ten with a check and a rollout", trial.all_settled)
    trial.operator.end()
    trial.start()
    count = len(names) + len(base)
    trial.settle("restarted, nothing has changed", lambda: trial.passes() >= count and trial.all_settled())
    trial.operator.end(signal.SIGKILL)
    for name in names:
        trial.fleet.ask(name, "base")
    trial.start()
    trial.settle("killed; restarted when nine in ten ask for the base: a rollout each", trial.all_settled)


def rest(trial: Trial, minutes: float) -> None:
    """Print what is asked of the API server while nothing happens."""
    before, began = trial.calls("GET"), time.monotonic()
    time.sleep(minutes * 60)
    calls = (trial.calls("GET") - before) / (time.monotonic() - began) * 60
    print(f"at rest: {calls:.0f} reads a minute, {trial.memory():.0f} MiB", flush=True)


def soak(trial: Trial, names: list[str], changes: int, minutes: float, seed: int) -> None:
    """Change specs at random times, and print the operator's memory as it goes."""
    choice = random.Random(seed)
    series: list[tuple[int, float, float]] = []
    began, every, late = time.monotonic(), max(1, changes // SAMPLES), 0.0
    due = began
    for number in range(changes):
        if number % every == 0:
            series.append((number, time.monotonic() - began, trial.memory()))
            print(f"  {number} changes, {series[-1][1]:.0f} s, {series[-1][2]:.1f} MiB", flush=True)
        due += choice.expovariate(changes / (minutes * 60))
        time.sleep(max(0.0, due - time.monotonic()))
        late = max(late, time.monotonic() - due)
        pack = choice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        agreement = choice.choice([0, 0, 0, 500, 600, 700])
        trial.fleet.ask(choice.choice(names), pack, check={"minTop1AgreementPermille": agreement})
    trial.began = time.monotonic()
    print(f"{changes} changes in {trial.began - began:.0f} s, at most {late:.0f} s late", flush=True)
    trial.settle("the last ones (writes since the operator's start)", trial.all_settled)
    series.append((changes, time.monotonic() - began, trial.memory()))
    settled = np.array([(number, memory) for number, _, memory in series if number >= changes / 4])
    slope, _ = np.polyfit(settled[:, 0], settled[:, 1], 1)
    print(f"memory after the first quarter: {settled[:, 1].min():.1f} to {settled[:, 1].max():.1f} MiB, ", end="")
    print(f"slope {slope * 1000:+.2f} MiB for 1,000 changes, {slope * changes:+.1f} for all")
    fleet = trial.fleet
    print(f"{fleet.checks_made} checks were made, at most {fleet.most_checks} ran at once, {fleet.rollouts} rollouts")
    failed = trial.operator.total("assay_reconcile_errors_total")
    print(f"{trial.passes():.0f} passes, {failed:.0f} of them failed and were repeated")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", type=int, default=500)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rest", type=float, default=3, help="minutes")
    parser.add_argument("--checks", type=int, default=2, help="that may run at a time; the chart's default is two")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    assert set(WEIGHTS) == set(PACKS)
    print(f"{cpu_model()}; {given}", flush=True)
    names = [f"v{number:03}" for number in range(given.variants)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what it started ends too
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        trial = Trial(Path(folder), stack, given.checks)
        restarts(trial, names[len(names) // 10 :], names[: len(names) // 10])
        rest(trial, given.rest)
        soak(trial, names, given.changes, given.minutes, given.seed)
        found = trial.fleet.wrong() + trial.fleet.broken
        print(f"stuck, wrong or broken: {len(found)}", *found[:20], sep="\n  ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()

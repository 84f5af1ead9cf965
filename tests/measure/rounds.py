"""The operator ended at random moments, many times, and what has come of it.

    PYTHONPATH=tests .venv/bin/python tests/measure/rounds.py --rounds 200 --seed 1

etcd, kube-apiserver and the operator are real; Deployments, Jobs and pods are moved by this program, through the API.
In each round some of six ModelVariants are asked for other packs (good, bad, dead on arrival, the base), and the
operator is ended by SIGTERM or SIGKILL up to three seconds later, now and then more than once. Then all must become
Ready or Stalled, as they should; no variant may ever have two checks, no attempt two Jobs, no target a digest that did
not pass. Ends with 1 in the first round in which this is not so.
"""

import argparse
import signal
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import yaml

from assay.platform.cpu import cpu_model
from support.apiserver import KUBE, ApiServer
from support.controllers import Namespace
from support.fleet import Fleet
from support.operator_process import chart_rules, grant, started
from support.rounds import Rounds

ROOT = Path(__file__).parents[2]
NAMES = [f"v{number}" for number in range(6)]
CHECK_S = 1.5  # so that many rounds end the operator while checks run


def told(fleet: Fleet) -> str:
    """How much has happened."""
    return f"{fleet.checks_made} checks, {fleet.rollouts} rollouts"


def play(rounds: Rounds, count: int) -> None:
    """Play them, and print what came of it."""
    times = []
    for number in range(count):
        try:
            times.append(rounds.play())
        except AssertionError as error:
            sys.exit(f"round {number + 1}: {error}")
        if (number + 1) % 10 == 0:
            print(
                f"  {number + 1} rounds, {rounds.fleet.checks_made} checks, {rounds.fleet.rollouts} rollouts",
                flush=True,
            )
    ends = ", ".join(f"{number} by {how.name}" for how, number in rounds.ends.items())
    print(f"{count} rounds; the operator was ended {sum(rounds.ends.values())} times ({ends})")
    print(f"{told(rounds.fleet)}, at most {rounds.fleet.most_checks} checks at once")
    print(f"settled after the last start: median {statistics.median(times):.1f} s, longest {max(times):.1f} s")
    print("nothing stuck, no second check, no digest that did not pass")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{cpu_model()}; {given}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what it started ends too
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        api = ApiServer(KUBE, folder)
        stack.callback(api.stop)
        api.define(yaml.safe_load((ROOT / "charts/assay/files/crd/modelvariants.yaml").read_text()))
        namespace = Namespace(api, "rounds")
        grant(namespace, chart_rules(ROOT))
        fleet = stack.enter_context(Fleet(namespace, check_s=CHECK_S, seed=given.seed))
        fleet.add(NAMES)
        rounds = Rounds(fleet, NAMES, lambda: started(api, "rounds", folder), given.seed)
        stack.callback(lambda: rounds.operator.end())
        play(rounds, given.rounds)


if __name__ == "__main__":
    main()

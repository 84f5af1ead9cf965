"""Ends a real server under Poisson load, at random moments, many times: is a request lost that was let in?

    PYTHONPATH=tests .venv/bin/python tests/measure/drain.py --rounds 50

Clients go on sending until the process is gone. Prints a line for each round and the sums; exit 1 when one was lost.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from assay.building.models import build
from assay.platform.cpu import cpu_model
from support.drain import drained


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--rate", type=float, default=30, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        build("efficientnet-lite0", Path(folder) / "efficientnet-lite0-fp32.tar")
        for number in range(options.rounds):
            found = drained(Path(folder), rate=options.rate, seed=options.seed + number)
            rounds.append(found)
            print(f"{number + 1:3d}  {found}", flush=True)
    print(cpu_model())
    for name in ("came_in", "answered", "stored", "refused", "unread"):
        print(f"{name:9s} {sum(getattr(found, name) for found in rounds)}")
    faults = sum(len(found.faults) for found in rounds)
    print(f"faults    {faults} in {len(rounds)} rounds")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

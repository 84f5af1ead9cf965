"""The command line: `PYTHONPATH=k8s python3 -m local_cluster COMMAND`, as the Makefile calls it."""

import argparse
import os
import sys

from local_cluster import release, target
from local_cluster.load import INVALID, load
from local_cluster.monitoring import monitoring
from local_cluster.providers import choose
from local_cluster.swap import swap
from local_cluster.tools import ROOT, ToolError

SAMPLES = ROOT / "k8s/samples"


def _run(command: str, namespace: str, sample: str) -> int:
    if command == "cluster":
        # The one that was made, even if Docker has been started or stopped since: two would be mistaken for each other.
        target.start((target.MADE.exists() and target.recorded()) or choose())
        return 0
    found = target.find()
    match command:
        case "image":
            release.build_images(found)
        case "up":
            release.up(found, namespace)
        case "swap":
            path = SAMPLES / f"{sample}.yaml"
            if not path.exists():
                known = ", ".join(sorted(file.stem for file in SAMPLES.glob("*.yaml")))
                raise ToolError(f"there is no sample {sample!r}; there are {known}")
            return swap(found, namespace, path)
        case "load":
            return load(found, namespace, os.environ)
        case "monitoring":
            monitoring(found)
        case "down":
            release.down(found, namespace)
    return 0


def main() -> int:
    """Run one command; return the exit code, after a sentence on stderr where a tool failed."""
    parser = argparse.ArgumentParser(prog="local_cluster", description=__doc__)
    parser.add_argument("command", choices=["cluster", "image", "up", "swap", "load", "monitoring", "down"])
    command = parser.parse_args().command
    try:
        return _run(command, os.environ.get("NAMESPACE", "assay"), os.environ.get("SAMPLE", "int8"))
    except ToolError as error:
        print(f"make {command}: {error}", file=sys.stderr)
        # A load test that could not be run has found nothing: neither a pass nor a failure of the service.
        return INVALID if command == "load" else 1


if __name__ == "__main__":
    sys.exit(main())

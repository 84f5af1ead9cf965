"""Run the operator's tests over every mutant of its plan: ``python tests/measure/mutants.py``.

Tests are collected once. For each mutant a child is forked, the function's code exchanged in it, and those tests run
that call the function, until one fails: the quick ones first, those that failed most often before the others, the
stateful test last. Mutants outside functions have their module executed anew. What survives must be in the list of
`docs/mutation.md` with a reason; the exit code is 1 when a survivor is not, or when an entry is killed or gone.
"""

import argparse
import collections
import importlib.abc
import importlib.util
import io
import json
import os
import re
import resource
import sys
import time
from pathlib import Path

import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from support.mutation import Mutant, mutants

ROOT = Path(__file__).parents[2]
PACKAGE = "assay_operator.plan"
PLAN = ROOT / "operator/src/assay_operator/plan"
EXPLAINED = ROOT / "docs/mutation.md"
ENTRY = re.compile(r"^- (`.+`: `.+` → `.+`(?: \(\d+\))?)$", re.MULTILINE)
LONGEST_CPU_S = 240  # a mutant that never ends; the stateful test takes a tenth of it
FAILED, SURVIVED = 1, 0


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Executes a mutant's code in place of its module's."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = PACKAGE if mutant.module == "__init__" else f"{PACKAGE}.{mutant.module}"

    def find_spec(self, fullname, path=None, target=None):  # noqa: ARG002 - called by name
        if fullname != self.name:
            return None
        file = PLAN / f"{self.mutant.module}.py"
        places = [str(PLAN)] if fullname == PACKAGE else None
        return importlib.util.spec_from_file_location(fullname, file, loader=self, submodule_search_locations=places)

    def create_module(self, spec):  # noqa: ARG002 - the signature of importlib
        return None

    def exec_module(self, module):
        exec(self.mutant.code, module.__dict__)


class Session:
    """A pytest plugin: instead of running the tests once, run them for each mutant."""

    def __init__(self, todo: list[Mutant], report) -> None:
        self.todo, self.report = todo, report
        self.kills: collections.Counter[str] = collections.Counter()
        self.calls: dict[str, set[tuple[str, str]]] = {}

    def pytest_runtestloop(self, session):
        for item in session.items:
            self.calls[item.nodeid] = self._watched(item)
        for mutant in self.todo:
            name = (mutant.module, mutant.function)
            items = [item for item in session.items if name in self.calls[item.nodeid]]
            items.sort(key=lambda item: ("TestPlan" in item.nodeid, -self.kills[item.nodeid]))
            code, told = _forked(lambda: _first_failure(mutant, items))  # noqa: B023 - called at once
            self.kills[told] += bool(told)
            self.report(mutant, code, told)
        return True

    def _watched(self, item) -> set[tuple[str, str]]:
        """The plan's functions that a test calls. It has to pass."""
        called: set[tuple[str, str]] = set()

        def watch(frame, event, _argument):
            if event == "call" and frame.f_code.co_filename.startswith(str(PLAN)):
                name = frame.f_code.co_qualname.partition(".<locals>")[0]
                called.add((Path(frame.f_code.co_filename).stem, name))

        sys.setprofile(watch)
        try:
            reports = runtestprotocol(item, log=False, nextitem=None)
        finally:
            sys.setprofile(None)
        failed = [report for report in reports if report.failed]
        if failed:
            raise pytest.UsageError(f"{item.nodeid} fails without a mutant: {failed[0].longreprtext}")
        return called


def _first_failure(mutant: Mutant, items) -> str:
    target = sys.modules[f"{PACKAGE}.{mutant.module}"]
    for name in mutant.function.split("."):
        target = vars(target)[name]
    target = getattr(target, "fget", None) or getattr(target, "func", None) or target
    target.__code__ = mutant.code
    for item in items:
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=None)):
            return item.nodeid
    return ""


def _forked(work) -> tuple[int, str]:
    """What `work` returns in a child, with 1 if that says that a test failed, or the child did not live to tell."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_CPU_S, LONGEST_CPU_S))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        told = "not to be imported"
        try:
            told = work()
        finally:
            os.write(writing, told.encode())
            os._exit(FAILED if told else SURVIVED)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return (code, told) if code in (FAILED, SURVIVED) else (FAILED, told or f"ended with {code}")


def _pytest(tests: list[str], *plugins) -> int:
    # Hypothesis is imported long before, so that a child need not do it.
    options = ["-q", "-s", "-x", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main([*options, f"--rootdir={ROOT}", *tests], plugins=list(plugins))


def _whole(mutant: Mutant, tests: list[str]) -> str:
    sys.meta_path.insert(0, Loader(mutant))
    sys.stdout = sys.stderr = io.StringIO()
    return "" if _pytest(tests) == 0 else "some test"


def run(todo: list[Mutant], tests: list[str], report) -> None:
    """All mutants of the list; `report` is called with each and what killed it."""
    quick = [name for name in tests if "stateful" not in name]
    for mutant in [mutant for mutant in todo if mutant.whole]:
        code, told = _forked(lambda: _whole(mutant, quick) or _whole(mutant, tests))  # noqa: B023 - called at once
        report(mutant, code, told)
    rest = [mutant for mutant in todo if not mutant.whole]
    if rest and (code := _pytest(tests, Session(rest, report))):
        raise SystemExit(f"pytest ended with {code}")


def main() -> None:
    """Run, and tell what survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose description contains this")
    parser.add_argument("--from", dest="source", type=Path, help="mutants of this file of descriptions, one a line")
    parser.add_argument("--examples", type=int, default=100, help="of the stateful test")
    parser.add_argument("--results", type=Path, help="write one line of JSON for each mutant")
    parser.add_argument("--share", default="0/1", help="i/n: every n-th mutant, from the i-th")
    given = parser.parse_args()
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate)
    )
    hypothesis.settings.load_profile("mutants")
    os.environ["PLAN_EXAMPLES"] = str(given.examples)
    wanted = set(given.source.read_text().splitlines()) if given.source else None
    index, of = map(int, given.share.split("/"))
    known = [mutant for file in sorted(PLAN.glob("*.py")) for mutant in mutants(file)]
    todo = [one for one in known if given.only in one.key and (wanted is None or one.key in wanted)][index::of]
    survivors: list[Mutant] = []
    started = time.monotonic()
    results = given.results.open("w") if given.results else None

    def report(mutant: Mutant, code: int, told: str) -> None:
        if code == SURVIVED:
            survivors.append(mutant)
        if results:
            line = {"mutant": mutant.key, "line": mutant.line, "survived": code == SURVIVED, "killed_by": told}
            print(json.dumps(line, ensure_ascii=False), file=results, flush=True)

    run(todo, [str(file) for file in sorted((ROOT / "tests/operator").glob("test_*.py")) if _plans(file)], report)
    explained = set(ENTRY.findall(EXPLAINED.read_text())) if EXPLAINED.exists() else set()
    unexplained = [one for one in survivors if one.key not in explained]
    for mutant in unexplained:
        print(f"survived: {mutant.module}.py:{mutant.line} {mutant.key}")
    left = {one.key for one in survivors} | ({one.key for one in known} - {one.key for one in todo})
    for key in sorted(explained - left):
        print(f"in {EXPLAINED.name}, and yet killed or gone: {key}")
    print(
        f"{len(todo)} mutants, {len(todo) - len(survivors)} killed, {len(survivors) - len(unexplained)} explained, "
        f"{len(unexplained)} not; {time.monotonic() - started:.0f} s"
    )
    sys.exit(1 if unexplained or explained - left else 0)


def _plans(file: Path) -> bool:
    """Whether the file's tests are of plans; the others start processes."""
    return any(word in file.read_text() for word in ("assay_operator.plan", "support.world", "support.end_states"))


if __name__ == "__main__":
    main()

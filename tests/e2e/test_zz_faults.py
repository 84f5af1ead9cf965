"""That every test of docs/faults.md ran and passed: in this run, and in those that wrote their results before it."""

import os
import runpy
from xml.etree import ElementTree as ET

import pytest

RESULTS = {"P": "test.xml", "A": "apiserver.xml"}
"""What `make test` and `make test-system` write, by the level they run."""


def passed_in(path) -> set[str]:
    """Names of the tests that passed, by JUnit's account."""
    return {
        case.get("name", "").partition("[")[0]
        for case in ET.parse(path).iter("testcase")
        if not any(case.find(outcome) is not None for outcome in ("failure", "error", "skipped"))
    }


@pytest.mark.parametrize("level", ["P", "A", "E"])
def test_each_test_of_a_fault_ran_and_passed(root, passed_tests, level):
    named = runpy.run_path(str(root / "operator" / "generate.py"))["tests_by_level"]()[level]
    names = {name for tests in named.values() for name in tests}
    assert names
    if level == "E":
        passed = passed_tests
    else:
        path = root / ".results" / RESULTS[level]
        if not path.exists() and not os.environ.get("CI"):
            return  # by hand, one run need not follow the others
        passed = passed_in(path)
    assert names - passed == set()

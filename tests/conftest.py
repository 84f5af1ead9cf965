"""What every test may ask for."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell starts what runs in the background with SIGINT ignored, and what a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parents[1]
_passed: set[str] = set()
_unexplained_skips: list[str] = []


@pytest.fixture(scope="session")
def passed_tests() -> set[str]:
    """Names of the tests that have passed in this run so far, parameters left out."""
    return _passed


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """A folder with labelled photos and a model that are not part of the project; mark such tests `shared_data`."""
    folder = Path(os.environ.get("SHARED_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / "photos" / "labels.csv").exists():
        pytest.skip(f"there are no labelled photos in {folder}: set SHARED_DATA")
    return folder


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what passed, and what was skipped, apart from tests whose photos are not part of the project."""
    if report.when == "call" and report.passed:
        _passed.add(report.nodeid.rpartition("::")[2].partition("[")[0])
    if report.skipped and "shared_data" not in report.keywords:
        _unexplained_skips.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failed run: a skip must not hide what is missing."""
    if os.environ.get("CI") and _unexplained_skips and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter) -> None:
    """Name the skips that made CI fail."""
    if os.environ.get("CI") and _unexplained_skips:
        terminalreporter.section("skipped, which CI does not allow")
        for nodeid in _unexplained_skips:
            terminalreporter.line(nodeid)

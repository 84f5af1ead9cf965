"""Processes are started, found again and ended by what was recorded of them."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from one_node import daemons
from one_node.commands import ClusterError


@pytest.fixture
def state(tmp_path):
    """A cluster of one daemon that sleeps, and one that ends at once."""
    for folder in ("conf", "run", "log"):
        (tmp_path / folder).mkdir()
    (tmp_path / "conf/commands").write_text(
        f"# a comment\n[sleeper]\n{sys.executable} -c\n'import time; print(\"awake\", flush=True); time.sleep(300)'\n"
        f"\n[brief]\n{sys.executable} -c ''  # ends\n"
    )
    yield tmp_path
    for name in ("sleeper", "brief"):
        daemons.stop(tmp_path, name)


def until(probe):
    deadline = time.monotonic() + 10
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_commands_are_read_in_order_over_lines_and_without_comments(state):
    assert list(daemons.commands(state)) == ["sleeper", "brief"]
    assert daemons.commands(state)["brief"] == [sys.executable, "-c", ""]


def test_daemon_is_started_once_logged_and_ended(state):
    daemons.start(state, "sleeper")
    pid = daemons.running(state, "sleeper")
    until(lambda: (state / "log/sleeper.log").read_text() == "awake\n")
    daemons.start(state, "sleeper")
    assert daemons.running(state, "sleeper") == pid

    daemons.stop(state, "sleeper")

    assert daemons.start_time(pid) is None
    assert not daemons.record_of(state, "sleeper").exists()


def test_daemon_that_ignores_the_polite_signal_is_killed(state, monkeypatch):
    monkeypatch.setattr(daemons, "GRACE_S", 0.3)
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(300)"
    (state / "conf/commands").write_text(f'[sleeper]\n{sys.executable} -c "{script}"\n')
    daemons.start(state, "sleeper")
    pid = daemons.running(state, "sleeper")
    until(lambda: "deaf" in (state / "log/sleeper.log").read_text())

    daemons.stop(state, "sleeper")

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_process_that_got_the_pid_of_an_ended_daemon_is_left_alone(state):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        began = daemons.start_time(stranger.pid)
        daemons.record_of(state, "sleeper").write_text(json.dumps({"pid": stranger.pid, "start": began - 1}))

        assert daemons.running(state, "sleeper") is None
        daemons.stop(state, "sleeper")

        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_wait_names_the_daemon_that_ended(state):
    daemons.start(state, "brief")
    with pytest.raises(ClusterError, match=r"waiting for Godot: brief ended; see the logs in .*/log"):
        daemons.wait(state, "Godot", lambda: False, 60)
    assert daemons.ended(state) == ["brief"]
    daemons.forget_ended(state)
    assert daemons.ended(state) == []


def test_wait_ends_when_its_time_is_over(state):
    with pytest.raises(ClusterError, match="no sign of it after 0 s"):
        daemons.wait(state, "Godot", lambda: False, 0)

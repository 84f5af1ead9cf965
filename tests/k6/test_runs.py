"""Whole runs of the load generator: its schedule, its verdicts and its exit codes, against servers of known behaviour.

These run on real time, so they are run one by one (`system`), not beside the tests that fill all cores.
"""

import os
import signal
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from support.k6 import evaluate, run, undisturbed
from support.server import running
from support.tiny_server import tiny_server

pytestmark = pytest.mark.system

LEVEL = 0.01


def due_times(folder, rate, seconds, seed):
    return np.array(
        evaluate(
            folder, {"arrivals.js": "arrivals"}, f"return arrivals({{rate: {rate}, seconds: {seconds}, seed: {seed}}});"
        )
    )


def offsets(server, due):
    """Seconds that each request arrived after it was due, up to a constant: that of the first tenth at best."""
    arrived = np.array(sorted(server.arrivals))
    assert len(arrived) == len(due)
    late = (arrived - arrived[0]) - (due - due[0])
    return late - late.min()


def test_real_service_passes_with_every_label_right_and_harmful_files_refused(built, real_set, tmp_path):
    with running(built, cpu_limit_millicores=1000) as server:
        server.wait_ready()
        settings = {"RATE": 10, "SECONDS": 4, "MIX": "hostile", "P99_MS": 2000}
        done = undisturbed(lambda: run("load", tmp_path, URL=server.url, SET=real_set, **settings))
    assert done.code == 0, done.log
    summary = done.summary
    assert summary["verdict"] == "pass"
    assert summary["faults"] == {}
    assert {"200", "415"} < set(summary["statuses"]) <= {"200", "413", "415", "422"}
    assert summary["stages"]["infer"] > summary["stages"]["postprocess"] > 0
    assert summary["model"]["precision"] == "FP32"
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_server_that_sleeps_does_not_slow_the_arrivals(tiny_set, tmp_path):
    due = due_times(tmp_path, 30, 3, 2)

    def attempt(delay):
        nonlocal server
        with tiny_server(delay=delay) as server:
            return run("smoke", tmp_path / str(delay), URL=server.url, SET=tiny_set, RATE=30, SECONDS=3, SEED=2)

    for delay in (0.0, 1.5):
        server = None
        done = undisturbed(partial(attempt, delay))
        assert done.code == 0, done.log
        # Were the server waited for, each answer would push all that follow by 1500 ms.
        assert np.quantile(offsets(server, due), 0.95) < 0.2
        assert stats.kstest(np.diff(sorted(server.arrivals)), stats.expon(scale=1 / 30).cdf).pvalue > LEVEL
        assert done.summary["latencyMs"]["p50"] >= delay * 1000


def test_latency_is_that_of_an_m_d_1_queue(tiny_set, tmp_path):
    rate, service, seconds, seed = 15, 0.040, 8, 4

    def attempt():
        with tiny_server(service_time=service) as server:
            return run("smoke", tmp_path, URL=server.url, SET=tiny_set, RATE=rate, SECONDS=seconds, SEED=seed)

    # Lindley's recursion on these very arrivals: what a queue with one server makes of them, to the millisecond.
    sojourns = lindley(due_times(tmp_path, rate, seconds, seed), service) * 1000
    expected = {
        "mean": pytest.approx(sojourns.mean(), rel=0.1),
        "p95": pytest.approx(np.quantile(sojourns, 0.95), rel=0.1),
    }

    def seen(done):
        return {name: done.summary["latencyMs"][name] for name in expected}

    done = undisturbed(attempt, lambda done: seen(done) == expected)
    assert done.code == 0, done.log
    assert seen(done) == expected


def lindley(due, service):
    """Sojourn times in a queue with one server and a fixed service time."""
    sojourns, free = [], 0.0
    for time in due:
        free = max(free, time) + service
        sojourns.append(free - time)
    return np.array(sojourns)


def test_long_arrivals_give_the_mean_wait_of_theory(tmp_path):
    rate, service = 15.0, 0.040
    load = rate * service
    found = lindley(due_times(tmp_path, rate, 4000, 9), service).mean()
    # Pollaczek and Khinchine for a fixed service time; 60,000 arrivals leave 3 % of error (four standard errors).
    assert found == pytest.approx(service + load * service / (2 * (1 - load)), rel=0.03)


def test_too_few_senders_make_the_run_invalid(tiny_set, tmp_path):
    with tiny_server(delay=0.2) as server:
        done = run("load", tmp_path, URL=server.url, SET=tiny_set, RATE=15, SECONDS=1, SENDERS=1)
    assert done.code == 2
    assert "all 1 senders waited for answers: raise SENDERS" in done.reasons
    assert done.log.splitlines()[-1].startswith('{"verdict":"invalid"')


def test_generator_without_cpu_makes_the_run_invalid(tiny_set, tmp_path):
    def starve(shell):
        (k6,) = children(shell.pid)

        def stop_and_go():
            for signal_number in (signal.SIGSTOP, signal.SIGCONT):
                threading.Event().wait(0.8)
                os.kill(k6, signal_number)

        threading.Thread(target=stop_and_go).start()

    with tiny_server() as server:
        done = run("load", tmp_path, during=starve, URL=server.url, SET=tiny_set, RATE=30, SECONDS=3)
    assert done.code == 2
    assert "the load generator had no CPU when they were due" in done.reasons


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_run_that_is_stopped_is_invalid_and_still_summed_up(tiny_set, tmp_path):
    with tiny_server() as server:
        done = run(
            "soak", tmp_path, during=lambda shell: shell.terminate(), URL=server.url, SET=tiny_set, RATE=20, SECONDS=60
        )
    assert done.code == 2
    assert "requests were never sent: the run was cut short" in done.reasons


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"label": "dog"}, "answers were wrong (wrong label)"),
        ({"digest": "sha256:other"}, "answers were wrong (another model)"),
        ({"status": 503}, "x 503"),
        ({"delay": 0.4}, "and 250 ms is the limit"),
        ({"delay": 60}, "x none"),
    ],
    ids=["wrong label", "another model", "refuses", "slow", "hangs"],
)
def test_a_service_that_does_not_do_as_it_should_fails(tiny_set, tmp_path, behaviour, reason):
    message = tmp_path / "message"
    with tiny_server(**behaviour) as server:
        settings = {"RATE": 20, "SECONDS": 1, "TIMEOUT_S": 2, "TERMINATION_LOG": message}
        done = undisturbed(lambda: run("load", tmp_path / "out", URL=server.url, SET=tiny_set, **settings))
    assert done.code == 1, done.log
    assert reason in done.reasons
    assert '"verdict":"fail"' in message.read_text()


def test_nobody_listening_fails(tiny_set, tmp_path):
    done = undisturbed(lambda: run("load", tmp_path, URL="http://127.0.0.1:1", SET=tiny_set, RATE=20, SECONDS=1))
    assert done.code == 1
    assert "x none" in done.reasons


def test_run_that_cannot_begin_is_invalid_whatever_an_earlier_one_left(tmp_path):
    (tmp_path / "verdict").write_text("pass\n")
    message = tmp_path / "message"
    done = run("load", tmp_path, SET=tmp_path / "nowhere" / "set.json", TERMINATION_LOG=message)
    assert done.code == 2
    assert "left no verdict" in message.read_text()


def test_unknown_scenario_is_invalid(tmp_path):
    done = run("tsunami", tmp_path)
    assert done.code == 2
    assert "there is no scenario tsunami" in done.log


def test_uploads_differ_in_every_mix_but_the_one_of_repeats(tiny_set, tmp_path):
    for mix, distinct in (("distinct", True), ("repeats", False)):
        with tiny_server() as server:
            run("smoke", tmp_path / mix, URL=server.url, SET=tiny_set, RATE=30, SECONDS=1, MIX=mix)
        assert len(server.bodies) > 10
        assert (len(set(server.bodies)) == len(server.bodies)) == distinct


def test_spike_is_judged_by_what_comes_before_and_after_it(tiny_set, tmp_path):
    # 40 a second can be served: 20 are fine, 80 queue up, and the queue is gone before the last phase begins.
    with tiny_server(service_time=0.015) as server:
        done = undisturbed(lambda: run("spike", tmp_path, URL=server.url, SET=tiny_set, RATE=20, SECONDS=5))
    assert done.code == 0, done.log
    found = done.summary["phases"]
    assert found["spike"]["p99"] > 2 * found["before"]["p99"]
    assert [phase["name"] for phase in done.summary["plan"]] == ["before", "spike", "recovery", "after"]


def test_breakpoint_finds_the_ceiling_of_a_queue(tiny_set, tmp_path):
    service, limit, seconds, seed = 0.020, 150, 2, 1
    with tiny_server(service_time=service) as server:
        settings = {"START_RATE": 20, "SECONDS": seconds, "P99_MS": limit, "RESOLUTION_PERCENT": 20, "SEED": seed}
        done = undisturbed(lambda: run("breakpoint", tmp_path, URL=server.url, SET=tiny_set, **settings))
    assert done.code == 0, done.log
    ceiling = done.summary["ceiling"]
    # What theory says of each probe on its own arrivals, apart from those that are within 30 ms of the limit.
    for probe in done.summary["probes"]:
        expected = np.quantile(lindley(due_times(tmp_path, probe["rate"], seconds, seed), service), 0.99) * 1000
        if abs(expected - limit) > 30:
            assert probe["verdict"] == ("pass" if expected < limit else "fail")
    assert 20 <= ceiling["low"] < ceiling["high"] < 100
    assert ceiling["high"] / ceiling["low"] <= 1.2
    assert "<h2>Ceiling</h2>" in (tmp_path / "report.html").read_text()

"""The process that sends the load, against a real service; and what its outcomes add up to."""

import os
import socket

import pytest

from assay.bench.sender import Outcome, due_times, sending
from assay.bench.service import running
from assay.bench.slices import LATE_S, load, percentile
from assay.errors import BenchError


@pytest.fixture(scope="module")
def service(colours):
    with running(colours / "pack.tar", {"cpu_limit_millicores": 1000}) as started:
        yield started


def test_open_loop_sends_each_arrival_once_when_it_is_due(service, squares):
    with sending(squares) as sender:
        outcomes = sender.poisson(service.port, 40, 1, 3)
    assert [outcome.due for outcome in outcomes] == list(due_times(40, 1, 3))
    # On a busy machine a service of one core may shed one; it was sent all the same.
    assert all(outcome.due <= outcome.sent < outcome.ended and outcome.status in (200, 429) for outcome in outcomes)


def test_closed_loop_keeps_so_many_under_way_and_no_more(service, squares):
    with sending(squares) as sender:
        outcomes = sender.closed(service.port, 5, 40)
    assert len(outcomes) == 40
    assert all(outcome.fine for outcome in outcomes)
    # Whoever was sent before another one ended was under way beside it.
    most = max(sum(a.sent <= b.sent < a.ended for a in outcomes) for b in outcomes)
    assert most == 5


def test_requests_are_sent_by_another_process_than_this_one(service, squares):
    before = service.metrics().get("assay_requests_total", 0)
    with sending(squares) as sender:
        own = os.times().children_user
        sender.closed(service.port, 2, 30)
        assert os.times().children_user == own  # it still runs, and is no child that was waited for
    assert service.metrics()["assay_requests_total"] - before == 30


def test_a_port_nobody_listens_on_is_no_answer(squares):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with sending(squares) as sender:
            outcomes = sender.poisson(taken.getsockname()[1], 20, 0.5, 1)
    assert outcomes
    assert not any(outcome.fine for outcome in outcomes)
    met = load([outcomes])
    assert (met.answered, met.p50_ms) == (0, None)
    assert "refused or lost" in met.flaw


def test_a_sender_that_is_gone_is_told(squares):
    with sending(squares) as sender:
        sender._pipe.close()
        with pytest.raises(BenchError, match="has ended"):
            sender.closed(1, 1, 1)


def test_arrivals_are_those_of_a_poisson_process():
    times = list(due_times(50, 400, 5))
    assert times == sorted(times)
    assert abs(len(times) - 20_000) < 4 * 20_000**0.5  # four standard deviations; the seed is fixed
    per_second = [sum(second <= time < second + 1 for time in times) for second in range(400)]
    mean = sum(per_second) / 400
    assert 0.8 < sum((count - mean) ** 2 for count in per_second) / 400 / mean < 1.2  # variance equals mean
    assert times != list(due_times(50, 400, 6))


def outcomes(late: int, refused: int, count: int = 2000) -> list[Outcome]:
    return [
        Outcome(
            due=number / 100,
            sent=number / 100 + (LATE_S * 1.1 if number < late else 0.001),
            ended=number / 100 + 0.05,
            status=429 if number >= count - refused else 200,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(("late", "refused", "flawed"), [(0, 0, False), (2, 0, False), (3, 0, True), (0, 1, True)])
def test_late_and_refused_requests_make_a_run_invalid(late, refused, flawed):
    met = load([outcomes(late, refused)])
    assert (met.late, met.requests - met.answered) == (late, refused)
    assert bool(met.flaw) == flawed


def test_latency_counts_from_when_a_request_was_due():
    met = load([[Outcome(due=1.0, sent=1.5, ended=1.6, status=200)]])
    assert met.p50_ms == pytest.approx(600)


def test_percentiles_are_values_that_were_seen():
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.99) == 100
    assert percentile(values, 0.5) == 51
    assert percentile([], 0.5) is None

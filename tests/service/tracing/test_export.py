"""The queue of traces by itself: its bound, what it counts, and a collector that is away."""

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from assay.telemetry import TRACE_DROPS, Telemetry
from assay.tracing.export import LIMIT, Traces
from assay.tracing.finished import Finished
from support.collector import collector
from support.s3 import refused_port
from support.server import wait_until


def finished(number: int, status: int = 200) -> Finished:
    stages = {"receive": 0.001, "infer": 0.008}
    return Finished("POST /v1/classify", status, "", 0.01, time.time_ns(), stages, {"assay.request_id": f"r{number}"})


def counted(telemetry: Telemetry) -> dict[str, float]:
    read = telemetry.registry.get_sample_value
    drops = {reason: read("assay_traces_dropped_total", {"reason": reason}) for reason in TRACE_DROPS}
    return {"sent": read("assay_traces_sent_total"), **drops}


@pytest.fixture
def telemetry():
    return Telemetry()


def test_what_finds_no_room_is_dropped_and_counted_and_never_waited_for(telemetry):
    with collector() as taken:
        taken.answering.clear()
        traces = Traces(taken.url, 1, telemetry)
        offered = LIMIT + 300  # the queue, a batch under way, and more
        led = [traces.offer(finished(number), []) for number in range(offered)]
        dropped = led.count(None)
        assert counted(telemetry)["QueueFull"] == dropped > 0
        taken.answering.set()
        assert asyncio.run(traces.flush(30)) == 0
        traces.close()
        assert counted(telemetry) == {"sent": offered - dropped, "QueueFull": dropped, "CollectorFailed": 0,
                                      "DrainDeadline": 0}  # fmt: skip
        assert len(taken.spans) == 3 * (offered - dropped)


def test_collector_that_is_away_holds_nothing_up_and_what_it_missed_is_counted(telemetry, caplog):
    with refused_port() as port:
        traces = Traces(f"http://127.0.0.1:{port}", 1, telemetry)
        assert traces.offer(finished(0), []) is not None
        assert asyncio.run(traces.flush(0)) + counted(telemetry)["CollectorFailed"] == 1
        traces.close()
    assert not [record for record in caplog.records if record.name.startswith(("opentelemetry", "urllib3", "requests"))]


def test_log_says_why_a_collector_takes_nothing_and_when_it_takes_more_again(telemetry):
    with collector() as taken, capture_logs() as log:
        taken.status = 401
        traces = Traces(taken.url, 1, telemetry)
        traces.offer(finished(0), [])
        wait_until("the refusal", lambda: counted(telemetry)["CollectorFailed"] == 1)
        taken.status = 200
        traces.offer(finished(1), [])
        assert asyncio.run(traces.flush(30)) == 0
        traces.close()
    assert counted(telemetry)["sent"] == 1
    assert "401" in log[0]["why"]
    assert [entry["log_level"] for entry in log] == ["warning", "info"]
    assert {span.attributes.get("assay.request_id") for span in taken.spans} == {"r1", None}


@pytest.mark.parametrize(("given", "path"), [("", "/v1/traces"), ("/", "/v1/traces"), ("/otlp/v1/x", "/otlp/v1/x")])
def test_endpoint_is_a_collector_or_a_whole_address(telemetry, given, path):
    with collector() as taken:
        traces = Traces(taken.url + given, 1, telemetry)
        traces.offer(finished(0), [])
        assert asyncio.run(traces.flush(30)) == 0
        traces.close()
        assert taken.paths == [path]


def test_ratio_is_the_share_of_requests_that_nobody_has_decided_about(telemetry):
    called = [(b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
    with collector() as taken:
        traces = Traces(taken.url, 0.25, telemetry)
        led = [traces.offer(finished(number), []) for number in range(600)]
        assert 100 < 600 - led.count(None) < 200  # 150 expected, sigma 10.6
        assert traces.offer(finished(600), called) is not None
        asyncio.run(traces.flush(30))
        traces.close()


def test_server_fault_is_marked_as_one(telemetry):
    with collector() as taken:
        traces = Traces(taken.url, 1, telemetry)
        for number, status in enumerate((200, 429, 500, 503)):
            traces.offer(finished(number, status), [])
        asyncio.run(traces.flush(30))
        traces.close()
        assert [taken.root(f"r{number}").failed for number in range(4)] == [False, False, True, True]


def test_what_comes_after_the_end_is_dropped(telemetry):
    with collector() as taken:
        traces = Traces(taken.url, 1, telemetry)
        asyncio.run(traces.flush(30))
        assert traces.offer(finished(0), []) is None
        assert counted(telemetry)["DrainDeadline"] == 1
        traces.close()

"""Traces as a process sends them: to a collector that decodes them, to one that never answers, and to none."""

import os
import re
import subprocess
import sys

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from support.collector import ROOT_KIND, collector
from support.images import jpeg
from support.s3 import hanging_port
from support.server import running, wait_until
from support.tensors import files, infer, one

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OPEN_METRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


def classify(server, request_id, body=None, **headers):
    given = {"X-Request-Id": request_id, **headers}
    return httpx.post(f"{server.url}/v1/classify", content=body or jpeg(), headers=given, timeout=60)


def stages_of(answer):
    entries = (entry.split(";dur=") for entry in answer.headers["Server-Timing"].split(", "))
    return {name: float(milliseconds) / 1000 for name, milliseconds in entries}


@pytest.fixture(scope="module")
def story(builtin_dir):
    """A traced server's requests, its metrics, and its end: until then the collector had answered nothing."""
    with collector() as taken, running(
        builtin_dir, traces_endpoint=taken.url, drain_traces_timeout_s=30, cache_bytes=1_000_000, variant="blue",
        access_log=True,
    ) as server:  # fmt: skip
        server.wait_ready()
        assert server.metrics()["assay_traces_sent_total"] == 0
        taken.answering.clear()
        pictures = files(jpeg(), jpeg("coffee"))
        several = one("encoded", [2], "BYTES", binary_data_size=len(pictures))
        answers = {
            "plain": classify(server, "plain"),
            "again": classify(server, "again"),
            "broken": classify(server, "broken", b"no picture"),
            "called": classify(server, "called", traceparent=f"00-{TRACE}-{CALLER}-01", tracestate="shop=7"),
            "unsampled": classify(server, "unsampled", traceparent=f"00-{TRACE}-{CALLER}-00"),
            "nonsense": classify(server, "nonsense", traceparent="00-nonsense"),
            "several": infer(server, several, pictures, **{"X-Request-Id": "several"}),
        }
        httpx.get(f"{server.url}/livez")
        scrapes = [httpx.get(f"{server.url}/metrics", headers=headers).text for headers in ({}, OPEN_METRICS)]
        server.terminate()
        wait_until("the last answer", lambda: server.event("Every request that came in"))
        assert taken.spans == []
        taken.answering.set()
        assert server.wait() == 0
        yield server, taken, answers, scrapes


def test_drain_sends_the_traces_that_wait(story):
    server, taken, answers, _ = story
    roots = {span.attributes["assay.request_id"] for span in taken.spans if span.kind == ROOT_KIND}
    assert roots == set(answers) - {"unsampled"}
    assert set(taken.paths) == {"/v1/traces"}
    assert server.event("Some traces could not be sent") is None


@pytest.mark.parametrize("request_id", ["plain", "again", "called", "several"])
def test_spans_are_the_stages_with_the_times_that_the_client_is_told(story, request_id):
    _, taken, answers, _ = story
    root = taken.root(request_id)
    spans = taken.below(root)
    told = stages_of(answers[request_id])
    assert [span.name for span in spans] == list(told)
    for span in spans[:-1]:
        assert span.seconds == pytest.approx(told[span.name], abs=2e-6), span.name  # the header has microseconds
    assert spans[-1].seconds >= told["respond"] - 2e-6  # the header is written before it is sent
    assert [span.end for span in spans[:-1]] == [span.start for span in spans[1:]]
    assert spans[0].start == root.start
    assert {span.trace_id for span in spans} == {root.trace_id}


@pytest.mark.parametrize("request_id", ["again", "called"])
def test_stages_of_an_image_are_all_of_its_request(story, request_id):
    _, taken, _, _ = story
    root = taken.root(request_id)
    assert sum(span.seconds for span in taken.below(root)) == pytest.approx(root.seconds, abs=1e-6)


def test_span_tells_which_model_answered_at_what_cost(story):
    _, taken, answers, _ = story
    root = taken.root("plain")
    assert root.name == "POST /v1/classify"
    assert root.resource["service.name"] == "assay"
    assert 0 < root.attributes.pop("assay.cost_seconds") < 5
    assert root.attributes == {
        "assay.request_id": "plain",
        "assay.variant": "blue",
        "assay.model.digest": answers["plain"].json()["model"]["digest"],
        "http.response.status_code": 200,
    }
    assert taken.root("several").name == "POST /v2/models/{model}/infer"


def test_refusal_has_a_span_with_its_code_and_no_stages(story):
    _, taken, answers, _ = story
    root = taken.root("broken")
    assert root.attributes["http.response.status_code"] == answers["broken"].status_code == 415
    assert root.attributes["error.type"] == answers["broken"].json()["code"]
    assert taken.below(root) == []
    assert not root.failed  # it is the caller's fault


def test_trace_of_the_caller_is_taken_over(story):
    _, taken, _, _ = story
    assert (taken.root("called").trace_id, taken.root("called").parent_id) == (TRACE, CALLER)
    assert taken.root("called").state == "shop=7"
    for own in ("plain", "nonsense"):
        assert taken.root(own).parent_id == ""
        assert taken.root(own).trace_id not in ("", TRACE)


def test_log_names_the_trace_of_a_request(story):
    server, taken, _, _ = story
    lines = {event["request_id"]: event for event in server.events if event["event"] == "A request was answered."}
    assert lines["plain"]["trace_id"] == taken.root("plain").trace_id
    assert "trace_id" not in lines["unsampled"]


def test_histogram_leads_to_traces_in_openmetrics_only(story):
    _, taken, _, (text, open_metrics) = story
    assert "trace_id" not in text
    samples = [
        sample
        for family in text_string_to_metric_families(open_metrics)
        for sample in family.samples
        if sample.exemplar is not None
    ]
    assert {sample.name for sample in samples} == {"assay_request_duration_seconds_bucket"}
    known = {(span.trace_id, span.span_id): span for span in taken.spans}
    for sample in samples:
        labels = sample.exemplar.labels
        root = known[labels["trace_id"], labels["span_id"]]
        assert root.seconds == pytest.approx(sample.exemplar.value, abs=1e-6)
        assert str(root.attributes["http.response.status_code"]) == sample.labels["code"]


def test_collector_that_never_answers_costs_no_request_and_holds_the_end_up_no_longer_than_allowed(builtin_dir):
    with (
        hanging_port() as port,
        running(builtin_dir, traces_endpoint=f"http://127.0.0.1:{port}", drain_traces_timeout_s=0.2) as server,
    ):
        server.wait_ready()
        assert [classify(server, f"r{number}").status_code for number in range(8)] == [200] * 8
        assert server.metrics()["assay_traces_sent_total"] == 0
        server.terminate()
        assert server.wait() == 0
        # All of them, unless the machine is so busy that an attempt for the first ones has ended.
        assert 1 <= server.event("Some traces could not be sent")["requests"] <= 8
        assert [event for event in server.events if event["level"] == "error"] == []
        assert server.other_lines == []


def test_nothing_is_traced_and_nothing_for_it_imported_unless_asked(builtin_dir):
    program = (
        "import sys; from assay.http.app import create_app; from assay.serving.process import build_process;"
        "from assay.settings import load_settings; process = build_process(load_settings()); create_app(process);"
        "assert process.traces is None; process.executor.close();"
        "print(sorted(name for name in sys.modules if name.startswith(('opentelemetry', 'requests', 'google'))))"
    )
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "ASSAY_LOG_FORMAT": "json"}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert not re.search(r"opentelemetry\.(sdk|exporter|proto)|requests|google", found.stdout)


def test_nothing_is_sent_by_default_whatever_the_environment_of_opentelemetry_says(builtin_dir, monkeypatch):
    with collector() as taken:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", taken.url)
        with running(builtin_dir) as server:
            server.wait_ready()
            answer = classify(server, "plain", traceparent=f"00-{TRACE}-{CALLER}-01")
            assert answer.status_code == 200
            assert "trace_id" not in httpx.get(f"{server.url}/metrics", headers=OPEN_METRICS).text
            server.terminate()
            assert server.wait() == 0
        assert taken.paths == []


def test_variables_of_opentelemetry_say_who_sends_and_how(builtin_dir, monkeypatch):
    with collector() as taken:
        monkeypatch.setenv("OTEL_SERVICE_NAME", "photos")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=staging,service.instance.id=pod-7")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        with running(builtin_dir, traces_endpoint=taken.url) as server:
            server.wait_ready()
            classify(server, "plain")
            resource = taken.root("plain").resource
    told = ("service.name", "deployment.environment", "service.instance.id")
    assert [resource[name] for name in told] == ["photos", "staging", "pod-7"]
    assert (taken.headers[0]["x-key"], taken.headers[0]["content-encoding"]) == ("secret", "gzip")


def test_endpoint_without_what_sends_traces_ends_with_what_to_install():
    program = (
        "import sys; sys.modules['opentelemetry.sdk'] = sys.modules['opentelemetry.exporter'] = None;"
        "from assay.cli import main; main(['serve', '--port', '0'])"
    )
    environment = {**os.environ, "ASSAY_TRACES_ENDPOINT": "http://collector:4318"}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert found.returncode == 2
    assert "pip install 'service[traces]'" in found.stderr

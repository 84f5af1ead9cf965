"""What a server tells about itself: every line of its log is JSON with the request's id, and its metrics are cheap."""

import statistics
import time

import httpx
import pytest

from support.corpus.seeds import seeds
from support.images import bomb, jpeg
from support.server import running, wait_until

SCRAPE_S = 0.05
"""Ten times what a scrape may take on an idle machine (5 ms, docs/measurements.md): this one runs other tests."""


@pytest.fixture(scope="module")
def served(builtin_dir):
    """A server that logs each request, ended as Kubernetes ends it; and the answers it gave."""
    with running(builtin_dir, access_log="true", variant="blue", workers=1) as server:
        server.wait_ready()
        bodies = [jpeg(), b"I am a picture, honestly.", seeds()["jpeg"][:900], jpeg("coffee")]
        answers = [httpx.post(f"{server.url}/v1/classify", content=body) for body in bodies]
        answers += [httpx.post(f"{server.url}/v1/classify", params={"top_k": "0"}), httpx.get(f"{server.url}/nowhere")]
        server.terminate()
        assert server.wait() == 0
        yield server, answers


def test_every_line_of_the_log_is_json_with_a_level_and_a_time(served):
    server, _ = served
    assert server.other_lines == []
    assert len(server.events) > 6
    for event in server.events:
        assert {"event", "level", "timestamp", "variant"} <= set(event), event


def test_log_has_one_line_for_each_request_with_the_id_its_client_got(served):
    server, answers = served
    lines = {event["request_id"]: event for event in server.events if event["event"] == "A request was answered."}
    counted = [answer for answer in answers if answer.status_code != 404]  # other routes are not logged
    assert {answer.headers["X-Request-Id"] for answer in counted} == set(lines)
    for answer in counted:
        assert lines[answer.headers["X-Request-Id"]]["status"] == answer.status_code
        assert lines[answer.headers["X-Request-Id"]]["reason"] == (
            answer.json()["code"] if answer.status_code >= 400 else None
        )


def test_log_holds_nothing_of_what_was_sent(served):
    server, _ = served
    text = repr(server.events)
    assert "honestly" not in text
    assert "top_k" not in text


def test_scrape_is_cheap_after_many_kinds_of_answers(server):
    for body in seeds().values():
        httpx.post(f"{server.url}/v1/classify", content=body)
    with httpx.Client() as client:
        times = []
        for _ in range(30):
            started = time.perf_counter()
            assert client.get(f"{server.url}/metrics").status_code == 200
            times.append(time.perf_counter() - started)
    assert statistics.median(times) < SCRAPE_S


def test_no_refusal_makes_a_series_that_was_not_there_from_the_start(builtin_dir):
    refused = {"UnsupportedMediaType", "TooManyPixels", "ImageBroken", "InvalidParameter", "MultipartInvalid",
               "BodyTooLarge", "ContentEncodingUnsupported", "MethodNotAllowed", "ModelNotFound", "NotFound",
               "InferenceInvalid"}  # fmt: skip
    with running(builtin_dir) as server:
        server.wait_ready()
        before = counters(server)
        url = f"{server.url}/v1/classify"
        for body, options in (
            (b"text", {}),
            (bomb(), {}),
            (jpeg()[:9000], {}),
            (b"", {"params": {"top_k": "0"}}),
            (b"", {"headers": {"Content-Type": "multipart/form-data; boundary=b"}}),
            (bytes((8 << 20) + 1), {}),
        ):
            httpx.post(url, content=body, **options)
        httpx.get(url)
        for path in ("nobody/infer", "a/b/c/infer", "assay/infer"):
            httpx.post(f"{server.url}/v2/models/{path}", content=b"{}")
        httpx.post(f"{server.url}/v2/models/assay/infer", content=b"{}", headers={"Content-Encoding": "gzip"})
        after = counters(server)
    assert {name.rpartition("/")[2] for name in after if "rejected" in name and after[name]} == refused
    assert set(after) == set(before)
    assert set(before.values()) == {0}


def counters(server) -> dict[str, float]:
    """Those of requests, by status and by reason of their refusal."""
    kinds = ("assay_requests_total/", "assay_rejected_total/")
    return {name: value for name, value in server.metrics().items() if name.startswith(kinds)}


def test_metrics_tell_when_nothing_is_under_way(server):
    wait_until("the last request", lambda: server.metrics()["assay_inflight_requests"] == 0)
    assert server.metrics()["assay_queue_cost_seconds"] == 0

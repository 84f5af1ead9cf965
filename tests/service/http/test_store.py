"""Storing as a process does it: into a real S3-compatible server, into files, and into sinks that are dead."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.images import encoded, jpeg, photo
from support.s3 import hanging_port, refused_port, s3_server
from support.server import running, wait_until


@pytest.fixture(scope="module")
def bucket():
    with s3_server() as started:
        yield started


@pytest.fixture
def s3_environment(bucket, monkeypatch):
    for name, value in bucket.environment().items():
        monkeypatch.setenv(name, value)


def classify(server, data, request_id):
    return httpx.post(f"{server.url}/v1/classify", content=data, headers={"X-Request-Id": request_id}, timeout=60)


def send(server, bodies, clients=4):
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(lambda numbered: classify(server, numbered[1], f"r{numbered[0]}"), enumerate(bodies)))


def pairs(objects):
    """Image and result by request id; each result has its image beside it."""
    results = {name: json.loads(data) for name, data in objects.items() if name.endswith(".json")}
    images = {name.rsplit(".", 1)[0]: data for name, data in objects.items() if not name.endswith(".json")}
    assert len(images) == len(results)
    return {result["request_id"]: (images[name.removesuffix(".json")], result) for name, result in results.items()}


def test_sigterm_loses_nothing_that_was_answered_while_the_sink_is_alive(builtin_dir, bucket, s3_environment):
    bodies = [jpeg("coffee"), encoded(photo("chelsea"), "PNG"), jpeg("rocket")] * 20
    with running(builtin_dir, store_uri="s3://answers/drained", drain_store_timeout_s=60) as server:
        server.wait_ready()
        bucket.pause()  # so that all of it still waits when the end comes
        answers = send(server, bodies)
        assert {answer.status_code for answer in answers} == {200}
        assert server.metrics()["assay_store_queue_bytes"] > sum(map(len, bodies))
        server.terminate()
        wait_until("the drain", lambda: server.event("Every request that came in"))
        bucket.go_on()
        assert server.wait() == 0
    kept = pairs(bucket.objects("drained"))
    assert {name: kept[name][0] for name in kept} == {f"r{number}": body for number, body in enumerate(bodies)}
    assert [kept[f"r{number}"][1] for number in range(len(bodies))] == [answer.json() for answer in answers]
    assert server.event("Some answers could not be stored") is None


def test_wrong_credentials_fail_no_request_and_are_not_logged(builtin_dir, bucket, s3_environment, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-right-secret")
    with running(builtin_dir, store_uri="s3://answers/refused", drain_store_timeout_s=0.1) as server:
        assert classify(server.wait_ready(), jpeg(), "a").status_code == 200
        told = wait_until("a warning", lambda: server.event("The store takes no answers"))
        server.terminate()
        assert server.wait() == 0
    assert "403" in told["why"]
    log = json.dumps(server.events) + "".join(server.other_lines)
    assert "not-the-right-secret" not in log
    assert bucket.key not in log
    assert bucket.objects("refused") == {}


def test_only_answered_requests_are_stored_and_hostile_names_stay_inside(builtin_dir, tmp_path):
    folder = tmp_path / "inside"
    with running(builtin_dir, store_uri=folder.as_uri()) as server:
        server.wait_ready()
        assert [classify(server, jpeg(), name).status_code for name in ("..", "..", "../../up")] == [200] * 3
        assert classify(server, b"no image", "bad").status_code == 415
        server.terminate()
        assert server.wait() == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 6
    assert all(len(path.relative_to(folder).parts) == 4 for path in files)


def rss_bytes(server):
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("dead", [refused_port, hanging_port])
def test_dead_sink_fails_no_request_and_holds_no_more_than_its_queue(builtin_dir, monkeypatch, dead):
    photos = [jpeg("coffee", (1024, 768), quality=95)] * 25
    with dead() as port:
        for name, value in {"ENDPOINT_URL": f"http://127.0.0.1:{port}", "REGION": "us-east-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
            monkeypatch.setenv(f"AWS_{name}", "x")
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        settings = {"store_uri": "s3://bucket", "store_queue_bytes": 1 << 20, "drain_store_timeout_s": 0.3}
        with running(builtin_dir, deadline_ms=60_000, queue_budget_ms=60_000, **settings) as server:
            server.wait_ready()
            assert {answer.status_code for answer in send(server, photos)} == {200}  # the queue is full now
            before = rss_bytes(server)
            assert {answer.status_code for answer in send(server, photos)} == {200}
            assert rss_bytes(server) - before < 16 << 20
            metrics = server.metrics()
            waiting = (1 << 20) // (len(photos[0]) + 1024)  # some less than that: results take room too
            assert metrics["assay_store_queue_bytes"] <= 1 << 20
            assert metrics["assay_store_written_total"] == 0
            assert metrics["assay_store_dropped_total/QueueFull"] >= len(photos) * 2 - waiting
            began = time.monotonic()
            server.terminate()
            assert server.wait() == 0
            assert time.monotonic() - began < 10
        lost = server.event("Some answers could not be stored")["answers"]
        assert lost + metrics["assay_store_dropped_total/QueueFull"] == len(photos) * 2


def test_uri_that_names_no_sink_ends_the_process_at_once(builtin_dir):
    with running(builtin_dir, store_uri="ftp://host/a") as server:
        assert server.wait() == 2
        assert any("ASSAY_STORE_URI" in line for line in server.other_lines)

"""A client that hangs up while its request waits is not worked for."""

import socket

import pytest

from support.images import encoded, jpeg, photo
from support.server import running, wait_until


def sent(server, body: bytes) -> socket.socket:
    """A connection with a complete request on it."""
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    head = f"POST /v1/classify HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


@pytest.fixture
def server(builtin_dir):
    with running(builtin_dir, workers=1, queue_budget_ms=600_000, deadline_ms=600_000) as started:
        yield started.wait_ready()


def test_requests_of_a_client_that_hung_up_are_dropped_before_they_are_decoded(server):
    dear = encoded(photo("coffee", (2000, 1500)), "PNG", compress_level=1)  # a tenth of a second each
    busy = [sent(server, dear) for _ in range(8)]
    wait_until("the worker to be busy", lambda: server.metrics()["assay_inflight_requests"] > 0)
    for connection in [sent(server, jpeg()) for _ in range(5)]:
        connection.close()
    for connection in busy:
        assert connection.recv(20).startswith(b"HTTP/1.1 200 ")
        connection.close()
    wait_until("the queue to be empty", lambda: server.metrics()["assay_inflight_requests"] == 0)
    metrics = server.metrics()
    assert metrics["assay_stage_duration_seconds_count/decode"] == 8
    assert metrics["assay_rejected_total/ClientDisconnect"] == metrics["assay_requests_total/499"] == 5
    assert metrics["assay_queue_cost_seconds"] == 0
    assert [event for event in server.events if event["level"] == "error"] == []


def test_client_that_hangs_up_within_its_body_is_counted_and_is_no_fault(server):
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nfew")
        wait_until("the request", lambda: server.metrics()["assay_inflight_requests"] == 1)
    wait_until("its end", lambda: server.metrics()["assay_inflight_requests"] == 0)
    assert server.metrics()["assay_rejected_total/ClientDisconnect"] == 1
    assert server.metrics()["assay_requests_total/500"] == 0
    assert [event for event in server.events if event["level"] == "error"] == []

"""A few hundred files nobody should have to send: each gets its answer, and none of them hurts the service."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from support.corpus.table import PICTURE_BYTES, answer, answers, corpus
from support.images import jpeg
from support.server import running, wait_until

SENDERS = 4
RISE_MIB = 100
"""What hostile input may add to the memory of a service that has answered ordinary requests."""


@pytest.fixture(scope="module")
def service(builtin_dir):
    """A server whose queue takes all that is sent here, however slow the machine is; the rest is as by default."""
    limits = {
        "cpu_limit_millicores": 2000,
        "memory_limit_bytes": 2 << 30,
        "deadline_ms": 600_000,
        "queue_budget_ms": 600_000,
    }
    with running(builtin_dir, workers=2, receive_timeout_s=3, **limits) as server:
        server.wait_ready()
        with ThreadPoolExecutor(SENDERS) as pool, httpx.Client(timeout=60) as client:
            photos = [jpeg(name, (1200, 900)) for name in ("chelsea", "coffee", "rocket", "china")] * 25
            list(pool.map(lambda body: client.post(f"{server.url}/v1/classify", content=body), photos))
        yield server


def test_every_file_has_an_expected_answer():
    assert set(answers()) == set(corpus())
    assert len(corpus()) >= 150


def test_corpus_gets_its_answers_and_does_no_harm(service):
    expected, before = answers(), service.begin_peak()
    with ThreadPoolExecutor(SENDERS) as pool, httpx.Client(timeout=120) as client:

        def send(name: str) -> tuple[str, int, str]:
            found = client.post(f"{service.url}/v1/classify", content=corpus()[name])
            assert found.status_code == 200 or found.headers["Content-Type"] == "application/problem+json"
            return name, found.status_code, found.json().get("code", "")

        found = list(pool.map(send, corpus()))
    wrong = {name: (status, code) for name, status, code in found if (status, code) != expected[name]}
    assert wrong == {}
    assert service.peak() - before < RISE_MIB
    assert service.other_lines == []
    assert [event for event in service.events if event["level"] in ("warning", "error")] == []


def test_bodies_that_never_end_do_no_harm(service):
    host, port = service.url.removeprefix("http://").split(":")
    head = b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    before = service.begin_peak()

    def pour(_: int) -> bytes:
        """Send 7 MB and then nothing, without ever saying that this was all; what comes back."""
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            try:
                connection.sendall(head)
                for _ in range(7):
                    connection.sendall(b"100000\r\n" + bytes(1 << 20) + b"\r\n")
                return connection.recv(1000)
            except ConnectionError:
                return b"HTTP/1.1 429 "  # refused while it was still sending

    with ThreadPoolExecutor(20) as pool:
        poured = [pool.submit(pour, number) for number in range(20)]
        wait_until("bodies to be held", lambda: service.metrics()["assay_inflight_requests"] > 4)
        good = [httpx.post(f"{service.url}/v1/classify", content=jpeg(), timeout=60).status_code for _ in range(10)]
        statuses = {bytes(one.result()[9:12]) for one in poured}
    assert good == [200] * 10
    assert statuses <= {b"408", b"429"}
    assert service.peak() - before < RISE_MIB


def test_answers_on_disk_are_those_of_the_functions_alone():
    """The table was written by these functions; a change of theirs must show in it."""
    names = [name for name in corpus() if name.startswith(("lie-", "cut-", "exif-"))]
    assert {name: answer(corpus()[name]) for name in names} == {name: answers()[name] for name in names}


def test_table_is_for_the_limits_of_a_service_with_two_gibibytes(service):
    large = json.loads(httpx.post(f"{service.url}/v1/classify", content=corpus()["bomb-webp-4000x3000"]).text)
    assert f"{PICTURE_BYTES >> 20} are allowed" in large["detail"]

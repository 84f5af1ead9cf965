"""What cannot be answered is refused in one shape, with a stable code, and nothing of the inside in it."""

import re
import socket
import time

import httpx
import pytest

from support.images import bomb, encoded, jpeg, photo
from support.server import running, wait_until


def post(server, data=b"", **options):
    return httpx.post(f"{server.url}/v1/classify", content=data, timeout=30, **options)


def assert_problem(answer, status, code):
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json"), answer.text
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "code", "detail"}
    assert (problem["status"], problem["code"]) == (status, code)
    assert answer.headers["X-Request-Id"]
    assert not re.search(r"Traceback|\.py|/site-packages|PIL\.|Error\(", answer.text)


CUT = int(len(jpeg()) * 0.6)

IMAGES = {
    "nothing": (b"", 415, "UnsupportedMediaType"),
    "zero bytes": (bytes(5000), 415, "UnsupportedMediaType"),
    "text": (b"I am a picture, honestly.", 415, "UnsupportedMediaType"),
    "HTML": (b"<!doctype html><html></html>", 415, "UnsupportedMediaType"),
    "SVG": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "UnsupportedMediaType"),
    "zip": (b"PK\x03\x04" + bytes(100), 415, "UnsupportedMediaType"),
    "PDF": (encoded(photo(), "PDF"), 415, "UnsupportedMediaType"),
    "truncated JPEG": (jpeg()[:CUT], 422, "ImageBroken"),
    "truncated progressive JPEG": (jpeg(progressive=True)[:CUT], 422, "ImageBroken"),
    "truncated PNG": (encoded(photo(), "PNG")[:20000], 422, "ImageBroken"),
    "JPEG of two bytes": (b"\xff\xd8\xff", 422, "ImageBroken"),
    "PNG bomb": (bomb(), 413, "TooManyPixels"),
    "endless segments": (b"\xff\xd8" + b"\xff\xe1\x00\x02" * (1 << 20), 422, "ImageBroken"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_bad_image_is_refused(server, name):
    data, status, code = IMAGES[name]
    assert_problem(post(server, data), status, code)


@pytest.mark.parametrize("top_k", ["0", "-1", "1000000000", "abc", "", "3.5", "NaN"])
def test_bad_top_k_is_refused(server, top_k):
    assert_problem(post(server, jpeg(), params={"top_k": top_k}), 400, "InvalidParameter")


def form(parts, boundary="b"):
    body = b"".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n\r\n'.encode() + data + b"\r\n"
        for name, data in parts
    )
    return body + f"--{boundary}--\r\n".encode()


FORMS = {
    "without a file": form([("image", b"x")]),
    "with two files": form([("file", b"x"), ("file", b"y")]),
    "with a hundred parts": form([("field", b"x")] * 100),
    "cut off": form([("file", jpeg())])[:-30],
    "without a boundary in it": jpeg(),
    "empty": b"",
}


@pytest.mark.parametrize("name", FORMS)
def test_bad_form_is_refused(server, name):
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert_problem(post(server, FORMS[name], headers=headers), 400, "MultipartInvalid")


@pytest.mark.parametrize("parameters", ["", "; boundary=", f"; boundary={'b' * 5000}"])
def test_form_with_a_bad_boundary_is_refused(server, parameters):
    headers = {"Content-Type": f"multipart/form-data{parameters}"}
    assert_problem(post(server, FORMS["with two files"], headers=headers), 400, "MultipartInvalid")


def test_declared_length_beyond_the_limit_is_refused(server):
    assert_problem(post(server, bytes((8 << 20) + 1)), 413, "BodyTooLarge")


def test_chunked_body_beyond_the_limit_is_refused_while_it_is_sent(server):
    before = server.metrics()["process_resident_memory_bytes"]
    assert_problem(post(server, (bytes(1 << 20) for _ in range(60))), 413, "BodyTooLarge")
    assert server.metrics()["process_resident_memory_bytes"] - before < 30 << 20


def test_refused_connection_is_closed_and_the_next_one_works(server):
    assert post(server, bytes((8 << 20) + 1)).headers["Connection"] == "close"
    assert post(server, jpeg()).status_code == 200


def test_unknown_route_and_method_are_problems_too(server):
    assert_problem(httpx.get(f"{server.url}/nowhere"), 404, "NotFound")
    assert_problem(httpx.get(f"{server.url}/v1/classify"), 405, "MethodNotAllowed")
    assert_problem(httpx.get(f"{server.url}/v1/classify/"), 404, "NotFound")


def test_refusals_are_counted_by_reason(server):
    before = server.metrics().get("assay_rejected_total/TooManyPixels", 0)
    post(server, bomb())
    assert server.metrics()["assay_rejected_total/TooManyPixels"] == before + 1


def raw(server, request: bytes) -> bytes:
    """What comes back for bytes sent as they are, until the server hangs up."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /livez HTTP/1.1\r\nHost: a\r\nX-Big: " + b"a" * (1 << 20) + b"\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a\r\n" + b"X-Many: a\r\n" * 100_000 + b"\r\n",
        b"GET /livez?" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a\r\nX-Big: " + b"a" * (40 << 10) + b"\r\n\r\n",
    ],
    ids=["one of 1 MB", "a hundred thousand", "a long line", "just above the limit"],
)
def test_headers_beyond_the_limit_are_refused(server, request_bytes):
    try:
        received = raw(server, request_bytes)
    except ConnectionError:  # it hung up while we were still sending, which is as good
        return
    assert received.startswith(b"HTTP/1.1 431 ")
    assert b'"code": "HeadersTooLarge"' in received


def test_what_is_no_http_is_a_problem_too(server):
    received = raw(server, b"hello there\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b'"code": "BadRequest"' in received


@pytest.fixture(scope="module")
def impatient(builtin_dir):
    with running(builtin_dir, receive_timeout_s=0.5, workers=1) as started:
        yield started.wait_ready()


def test_slow_body_is_cut(impatient):
    received = raw(impatient, b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nfew")
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b'"code": "BodyTimeout"' in received


@pytest.mark.parametrize("beginning", [b"", b"POST /v1/classify HTT", b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nX"])
def test_headers_that_never_end_are_cut(impatient, beginning):
    started = time.monotonic()
    assert raw(impatient, beginning) == b""
    assert time.monotonic() - started < 20


def test_many_slow_bodies_leave_room_for_others(impatient):
    host, port = impatient.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nfew")
        assert post(impatient, jpeg()).status_code == 200
    finally:
        for connection in slow:
            connection.close()


def test_bodies_of_all_clients_together_are_bounded(builtin_dir):
    limits = {"max_receiving_bytes": 2 << 20, "max_body_bytes": 1 << 20, "receive_timeout_s": 60}
    with running(builtin_dir, **limits) as server:
        server.wait_ready()
        host, port = server.url.removeprefix("http://").split(":")
        head = b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n"
        held = []
        try:
            for _ in range(2):
                held.append(socket.create_connection((host, int(port)), timeout=60))
                held[-1].sendall(head + bytes(1000 << 10))
            wait_until("both bodies", lambda: server.metrics()["assay_inflight_requests"] == 2)
            # Whoever holds most yields; a photo of ordinary size is answered at once.
            assert post(server, jpeg() + bytes(200 << 10)).status_code == 200
            received = wait_until("the refusal", lambda: next((got(one) for one in held if got(one)), b""))
            assert received.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 1" in received.lower()
        finally:
            for connection in held:
                connection.close()


def got(connection) -> bytes:
    """What has arrived by now."""
    connection.setblocking(False)
    try:
        return connection.recv(4096, socket.MSG_PEEK)
    except BlockingIOError:
        return b""

"""What connections may do to a process: what surrounds a body, answers that nobody reads, and how many there are."""

import re
import resource
import signal
import socket
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import pytest

from support.images import jpeg
from support.server import Server, running, wait_until

GET = b"GET /livez HTTP/1.1\r\nHost: a\r\n"
LAST = GET + b"Connection: close\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
SMALL_BUFFER = 4096  # bytes a client's kernel takes for it: what is beyond waits in the server


def connect(server: Server, **options: int) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.socket()
    for name, value in options.items():
        connection.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    connection.settimeout(30)
    connection.connect((host, int(port)))
    return connection


def statuses(connection: socket.socket) -> list[int]:
    """The status of each answer, once the server has hung up."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


def connections(server: Server) -> int:
    """Sockets that the process has open, beside the one it listens on."""
    found = 0
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found += str(descriptor.readlink()).startswith("socket:")
    return found


@pytest.mark.parametrize(
    "beginning",
    [GET + CHUNKED + b"0\r\nX-Never: ", GET + CHUNKED + b"0\r\n", GET + CHUNKED + b"5;"],
    ids=["a trailer", "many trailers", "an extension of a chunk"],
)
def test_what_follows_a_body_is_bounded(server, beginning):
    more = b"X: a\r\n" * 10_000 if beginning.endswith(b"0\r\n") else b"a" * 65536
    with closing(connect(server)) as connection:
        connection.sendall(beginning)
        with pytest.raises(ConnectionError):
            connection.sendall(more * 1000)  # 60 MB, were they taken


def test_trailers_do_not_change_what_the_body_was(server):
    photo = jpeg()
    request = b"POST /v1/classify HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"%x\r\n%b\r\n0\r\n" % (len(photo), photo)
    with closing(connect(server)) as connection:
        connection.sendall(request + b"Content-Type: multipart/form-data; boundary=b\r\n\r\n" + LAST)
        assert statuses(connection) == [200, 200]


@pytest.mark.parametrize("chunked", [False, True], ids=["by length", "in chunks"])
@pytest.mark.parametrize("apart", [False, True], ids=["at once", "later"])
def test_body_of_a_client_that_would_speak_http2_is_read(server, chunked, apart):
    photo = jpeg()
    head = b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    if chunked:
        head, body = head + CHUNKED, b"%x\r\n%b\r\n0\r\n\r\n" % (len(photo), photo)
    else:
        head, body = head + b"Content-Length: %d\r\n\r\n" % len(photo), photo
    with closing(connect(server)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if apart:
            connection.sendall(head)
            wait_until("the request", lambda: server.metrics()["assay_inflight_requests"] >= 1)
            connection.sendall(body)
        else:
            connection.sendall(head + body)
        connection.sendall(LAST)
        assert statuses(connection) == [200, 200]


def test_body_of_an_upgrade_is_never_taken_for_a_request(server):
    smuggled = GET + b"\r\n"
    head = b"POST /livez HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n"
    with closing(connect(server)) as connection:
        connection.sendall(head % len(smuggled) + smuggled)
        connection.sendall(LAST)
        assert statuses(connection) == [405, 200]


@pytest.mark.parametrize(
    "framing",
    [b"Transfer-Encoding: gzip\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"Content-Length: x\r\n"],
)
def test_upgrade_whose_body_has_no_clear_end_is_refused(server, framing):
    head = b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
    before = len(server.events)
    with closing(connect(server)) as connection:
        connection.sendall(head + framing + b"\r\nabcde")
        assert statuses(connection) == [400]
    assert server.events[before:] == []


def test_answer_without_its_body_is_given_to_head(server):
    for path in ("/livez", "/readyz", "/"):
        told, full = httpx.head(server.url + path), httpx.get(server.url + path)
        assert (told.status_code, told.content) == (200, b"")
        assert told.headers["Content-Length"] == full.headers["Content-Length"]
    assert httpx.head(f"{server.url}/v1/classify").status_code == 405


def test_compressed_body_is_told_that_it_is(server):
    answer = httpx.post(f"{server.url}/v1/classify", content=jpeg(), headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (415, "ContentEncodingUnsupported")


@pytest.fixture(scope="module")
def impatient(builtin_dir):
    with running(builtin_dir, receive_timeout_s=0.5, workers=1) as started:
        yield started.wait_ready()


def test_client_that_never_reads_is_cut(impatient):
    requests = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 1000  # more than the kernel takes in
    before, told = connections(impatient), len(impatient.events)
    with closing(connect(impatient, SO_RCVBUF=SMALL_BUFFER)) as silent:
        silent.sendall(requests)
        wait_until("the connection to be cut", lambda: connections(impatient) <= before)
    assert httpx.get(f"{impatient.url}/livez").status_code == 200  # whatever follows the cut has happened
    # The request that was being answered, which is not the last one read, was not answered into a closed connection.
    assert impatient.events[told:] == []


def test_strangers_fill_no_log(impatient):
    before = len(impatient.events)
    for _ in range(20):
        with closing(connect(impatient)) as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01 TLS, for example\r\n\r\n")
            assert statuses(connection) == [400]
    with closing(connect(impatient)) as connection:
        connection.sendall(GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + LAST)
        assert statuses(connection) == [200, 200]
    assert impatient.events[before:] == []


def test_flood_of_idle_connections_keeps_no_probe_out(builtin_dir):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))  # what the server inherits
    try:
        with running(builtin_dir, workers=1) as server, ExitStack() as stack:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            server.wait_ready()
            for _ in range(200):
                idle = stack.enter_context(closing(connect(server)))
                idle.sendall(GET + b"\r\n")
                assert idle.recv(16).startswith(b"HTTP/1.1 200 ")
            assert httpx.get(f"{server.url}/livez").status_code == 200
            assert httpx.post(f"{server.url}/v1/classify", content=jpeg()).status_code == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_process_that_is_told_to_end_while_it_loads_ends_well(builtin_dir):
    with running(builtin_dir, workers=8) as server:
        assert server.url  # it listens, and has begun to load
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert server.other_lines == []

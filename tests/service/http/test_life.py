"""From loading to the end: when a process takes traffic, and how it stops."""

import hashlib
import json
import shutil
import socket
import threading
import time

import httpx
import pytest

from assay.packs.archive import write_pack
from support.images import jpeg
from support.server import running, wait_until


def test_process_tells_why_it_is_not_ready_while_it_loads(builtin_dir):
    with running(builtin_dir) as server:
        first = httpx.get(f"{server.url}/readyz")
        if first.status_code != 200:
            assert (first.status_code, first.json()["code"]) == (503, "NotReady")
        assert httpx.get(f"{server.url}/livez").status_code == 200
        server.wait_ready()
        assert server.metrics()["assay_ready"] == 1


class Traffic:
    """Clients that send one photo after the other, and write down every answer."""

    def __init__(self, server, clients=4) -> None:
        self.answers: list[httpx.Response] = []
        self._stop = threading.Event()
        self._server = server
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]

    def _run(self) -> None:
        data = jpeg("coffee")
        with httpx.Client(timeout=30) as client:
            while not self._stop.is_set():
                try:
                    self.answers.append(client.post(f"{self._server.url}/v1/classify", content=data))
                except httpx.HTTPError:
                    return  # nobody listens any more, or hung up before it read the request

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_sigterm_fails_no_request_that_was_accepted(builtin_dir):
    with running(builtin_dir, drain_delay_s=0.5) as server:
        server.wait_ready()
        with Traffic(server) as traffic:
            wait_until("some answers", lambda: len(traffic.answers) > 20)
            server.terminate()
            assert server.wait() == 0
        served = [answer for answer in traffic.answers if answer.status_code == 200]
        assert len(served) == server.event("Every request that came in")["requests"]
        assert {answer.status_code for answer in traffic.answers} <= {200, 503}
        for answer in traffic.answers:
            if answer.status_code == 503:
                assert answer.json()["code"] == "Draining"
                assert answer.headers["Connection"] == "close"


def test_draining_process_serves_on_but_is_not_ready(builtin_dir):
    with running(builtin_dir, drain_delay_s=30) as server:
        server.wait_ready()
        server.terminate()
        wait_until("the drain", lambda: httpx.get(f"{server.url}/readyz").status_code == 503)
        told = httpx.get(f"{server.url}/readyz")
        assert told.json()["code"] == "Draining"
        answer = httpx.post(f"{server.url}/v1/classify", content=jpeg())
        assert answer.status_code == 200
        assert answer.headers["Connection"] == "close"
        assert server.metrics()["assay_ready"] == 0
        server.terminate()  # a second time: now
        assert server.wait() == 0


def test_request_under_way_is_finished_and_a_new_one_refused(builtin_dir):
    with running(builtin_dir, receive_timeout_s=30) as server:
        server.wait_ready()
        host, port = server.url.removeprefix("http://").split(":")
        data = jpeg()
        with socket.create_connection((host, int(port)), timeout=30) as slow:
            slow.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(data))
            wait_until("the request", lambda: server.metrics()["assay_inflight_requests"] == 1)
            server.terminate()
            refused = wait_until(
                "the drain",
                lambda: next((a for a in [httpx.post(f"{server.url}/v1/classify", content=data)] if a.is_error), None),
            )
            assert (refused.status_code, refused.json()["code"]) == (503, "Draining")
            assert refused.headers["Connection"] == "close"
            slow.sendall(data)
            assert slow.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert server.wait() == 0


def test_request_that_never_ends_does_not_keep_the_process(builtin_dir):
    with running(builtin_dir, receive_timeout_s=600, drain_timeout_s=0.3) as server:
        server.wait_ready()
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
            wait_until("the request", lambda: server.metrics()["assay_inflight_requests"] == 1)
            started = time.monotonic()
            server.terminate()
            assert server.wait() == 0
            assert time.monotonic() - started < 15
        assert server.event("Some requests were not finished in time")


@pytest.fixture
def misfits(builtin_dir, base_pack, tmp_path):
    """A folder with packs that do not fit."""
    folder = tmp_path / "packs"
    folder.mkdir()
    shutil.copy(builtin_dir / "efficientnet-lite0-fp32.tar", folder / "good.tar")
    needy = base_pack.manifest.model_copy(update={"requires_cpu": ("quantum",)})
    write_pack(folder / "needy.tar", needy, base_pack.model, base_pack.labels)
    write_pack(folder / "hollow.tar", base_pack.manifest, b"not a model", base_pack.labels)
    (folder / "junk.tar").write_bytes(b"junk" * 1000)
    return folder


def digest(path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


CASES = {
    "wrong digest": ("good", {"model_digest": "sha256:" + "0" * 64}, "DigestMismatch"),
    "missing CPU feature": ("needy", {}, "CpuFeatureMissing"),
    "model that does not load": ("hollow", {}, "PackInvalid"),
    "no pack at all": ("junk", {}, "PackInvalid"),
    "no such file": ("absent", {}, "PackUnavailable"),
    "another precision": ("good", {"model_precision": "INT8"}, "PrecisionMismatch"),
}


@pytest.mark.parametrize("name", CASES)
def test_pack_that_does_not_fit_ends_the_process_with_a_reason(misfits, tmp_path, name):
    pack, settings, code = CASES[name]
    last_words = tmp_path / "termination-log"
    last_words.touch()
    with running(misfits, "--model", f"builtin:{pack}", termination_log=last_words, **settings) as server:
        assert server.wait() == 78
    words = json.loads(last_words.read_text())
    assert words["code"] == code
    assert len(words["message"]) > 20
    assert server.event("The pack does not fit")["code"] == code


def test_termination_message_is_not_written_where_there_is_no_such_file(misfits, tmp_path):
    with running(misfits, "--model", "builtin:absent", termination_log=tmp_path / "none") as server:
        assert server.wait() == 78
    assert not (tmp_path / "none").exists()


def test_fetched_pack_is_served_by_its_digest(builtin_dir, tmp_path):
    pack = builtin_dir / "efficientnet-lite0-fp32.tar"
    settings = {"model_digest": digest(pack), "cache_dir": tmp_path, "model_precision": "FP32", "variant": "v"}
    with running(tmp_path, "--model", pack.as_uri(), **settings) as server:
        told = httpx.get(f"{server.wait_ready().url}/v1/model").json()
    assert (told["digest"], told["variant"]) == (digest(pack), "v")


def test_port_in_use_is_told(builtin_dir):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with running(builtin_dir, "--port", str(taken.getsockname()[1])) as server:
            assert server.wait() == 2
        assert any("Cannot listen" in line for line in server.other_lines)

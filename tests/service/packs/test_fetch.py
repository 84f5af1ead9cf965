"""Fetching: over real HTTP from a real server on the loopback that can misbehave."""

import hashlib
import http.server
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from assay.errors import DigestMismatchError, PackError, PackUnavailableError
from assay.packs.fetch import fetch
from support.small_packs import SOME_DIGEST

LIMIT = 4 << 20
BODY = random.Random(0).randbytes(3 << 20)
DIGEST = f"sha256:{hashlib.sha256(BODY).hexdigest()}"


@dataclass
class Site:
    """What the server does with the next requests; ``plan`` is used up one by one, then it behaves."""

    port: int = 0
    plan: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def url(self, path: str = "/packs/p.tar") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@pytest.fixture
def site():
    state = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            state.paths.append(self.path)
            act = state.plan.pop(0) if state.plan else "serve"
            if act in ("403", "404", "503"):
                self.send_response(int(act))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            claimed = LIMIT + 1 if act == "claims too much" else len(BODY)
            self.send_header("Content-Length", str(claimed))
            self.end_headers()
            if act == "breaks off":
                self.wfile.write(BODY[: len(BODY) // 2])
                self.close_connection = True
            elif act == "hangs":
                self.wfile.write(BODY[:1000])
                self.wfile.flush()
                stop.wait(30)
            elif act == "lies":
                self.wfile.write(bytes(len(BODY)))
            else:
                self.wfile.write(BODY)

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            """A client that gives up is what these tests are about."""

    stop = threading.Event()
    server = Server(("127.0.0.1", 0), Handler)
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield state
    stop.set()
    server.shutdown()
    thread.join()
    server.server_close()


def get(site, cache, digest=DIGEST, **options):
    return fetch(options.pop("uri", site.url()), digest, cache_dir=cache, max_bytes=LIMIT, **options)


def test_a_pack_comes_over_http_with_progress_and_is_kept_by_its_digest(site, tmp_path):
    seen = []
    path = get(site, tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == BODY
    assert path.name == f"{DIGEST.replace(':', '-')}.tar"
    assert seen[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_what_is_in_the_cache_is_not_fetched_again(site, tmp_path):
    get(site, tmp_path)
    get(site, tmp_path)
    assert len(site.paths) == 1


def test_a_spoilt_file_in_the_cache_is_fetched_again(site, tmp_path):
    get(site, tmp_path).write_bytes(b"spoilt")
    assert get(site, tmp_path).read_bytes() == BODY


def test_an_escaped_name_is_asked_for_as_written(site, tmp_path):
    get(site, tmp_path, uri=site.url("/a%20b/c%20d.tar"))
    assert site.paths == ["/a%20b/c%20d.tar"]


@pytest.mark.parametrize("fault", ["503", "breaks off"])
def test_a_passing_fault_is_tried_again(site, tmp_path, fault):
    site.plan = [fault, fault]
    assert get(site, tmp_path).read_bytes() == BODY
    assert len(site.paths) == 3


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("404", PackUnavailableError),
        ("403", PackUnavailableError),
        ("claims too much", PackUnavailableError),
        ("lies", DigestMismatchError),
    ],
)
def test_a_lasting_fault_is_told_at_once_and_leaves_nothing(site, tmp_path, act, error):
    site.plan = [act] * 9
    with pytest.raises(error):
        get(site, tmp_path)
    assert len(site.paths) == 1
    assert list(tmp_path.iterdir()) == []


def test_attempts_run_out(site, tmp_path):
    site.plan = ["503"] * 9
    with pytest.raises(PackUnavailableError, match="in 2 attempts"):
        get(site, tmp_path, attempts=2)
    assert len(site.paths) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_hangs_is_given_up_in_time(site, tmp_path):
    site.plan = ["hangs"] * 9
    start = time.monotonic()
    with pytest.raises(PackUnavailableError):
        get(site, tmp_path, timeout_s=1.5)
    assert time.monotonic() - start < 10
    assert list(tmp_path.iterdir()) == []


def test_nobody_listening_is_unavailable(tmp_path):
    with pytest.raises(PackUnavailableError, match="could not be fetched"):
        fetch("http://127.0.0.1:9/p.tar", DIGEST, cache_dir=tmp_path, max_bytes=LIMIT, attempts=2)


def test_concurrent_fetches_of_one_pack_all_succeed(site, tmp_path):
    with ThreadPoolExecutor(6) as pool:
        paths = list(pool.map(lambda _: get(site, tmp_path), range(6)))
    assert {path.read_bytes() == BODY for path in paths} == {True}
    assert list(tmp_path.iterdir()) == [paths[0]]


def test_an_object_store_is_reached_by_its_scheme(site, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{site.port}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert get(site, tmp_path, uri="s3://bucket/folder/p.tar").read_bytes() == BODY
    assert site.paths == ["/bucket/folder/p.tar"]


def test_a_file_uri_and_a_plain_path_are_read_where_they_are(tmp_path):
    path = tmp_path / "a pack.tar"
    path.write_bytes(BODY)
    escaped = f"file://{str(path).replace(' ', '%20')}"
    assert fetch(escaped, DIGEST, cache_dir=tmp_path, max_bytes=LIMIT) == path
    assert fetch(str(path), None, cache_dir=tmp_path, max_bytes=LIMIT) == path
    with pytest.raises(DigestMismatchError):
        fetch(str(path), SOME_DIGEST, cache_dir=tmp_path, max_bytes=LIMIT)
    with pytest.raises(PackUnavailableError, match="over the limit"):
        fetch(str(path), DIGEST, cache_dir=tmp_path, max_bytes=1000)


def test_a_built_in_is_found_by_name_and_a_missing_one_names_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_BUILTIN_DIR", str(tmp_path))
    (tmp_path / "good.tar").write_bytes(BODY)
    assert fetch("builtin:good", None, cache_dir=tmp_path, max_bytes=LIMIT) == tmp_path / "good.tar"
    for name in ("bad", "../good", "", "Good"):
        with pytest.raises(PackUnavailableError, match="there: good"):
            fetch(f"builtin:{name}", None, cache_dir=tmp_path, max_bytes=LIMIT)


@pytest.mark.parametrize(
    ("uri", "digest", "told"),
    [
        ("https://example.org/p.tar", None, "needs a digest"),
        ("file:///p.tar", None, "needs a digest"),
        ("ftp://example.org/p.tar", DIGEST, "scheme 'ftp' is unknown"),
        ("http://example.org/p.tar?token=secret", DIGEST, "queries"),
        ("http://user:secret@example.org/p.tar", DIGEST, "credentials"),
        ("http://example.org/", DIGEST, "names no file"),
        ("http://user:secret@[/p.tar", DIGEST, "no host and path"),
        ("file://elsewhere/p.tar", DIGEST, "file:///absolute"),
        ("builtin:p", "sha256:123", "not a digest"),
        ("p.tar", DIGEST.upper(), "not a digest"),
    ],
)
def test_a_uri_that_cannot_be_trusted_is_refused_without_a_request(tmp_path, uri, digest, told):
    with pytest.raises(PackError, match=told) as caught:
        fetch(uri, digest, cache_dir=tmp_path, max_bytes=LIMIT)
    assert "secret" not in str(caught.value)

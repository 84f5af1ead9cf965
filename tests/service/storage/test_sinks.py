"""Sinks: which URIs name one, files that appear whole, and failures told without a secret in them."""

import asyncio
import http.server
import threading

import pytest

from assay.errors import SettingsError
from assay.storage.sinks import Sink, SinkError
from support.s3 import refused_port


@pytest.mark.parametrize(
    ("uri", "complaint"),
    [
        ("answers", "scheme must be one of file, s3, gs, az"),
        ("http://127.0.0.1/answers", "scheme must be one of"),
        ("file://host/folder", "write file:///absolute/path"),
        ("file:folder", "write file:///absolute/path"),
        ("s3:///prefix", "names no bucket"),
        ("s3://[", "is no URI"),
        ("s3://AKIDEXAMPLE:topsecret@bucket/a", "holds credentials"),
        ("s3://bucket/a?secret=topsecret", "holds credentials, a query"),
    ],
)
def test_uri_that_names_no_sink_is_refused(uri, complaint):
    with pytest.raises(SettingsError, match=complaint) as refusal:
        Sink(uri)
    assert "topsecret" not in str(refusal.value)


@pytest.mark.parametrize("uri", ["s3://bucket", "gs://bucket/a/b", "az://container/a", "file:///tmp/a"])
def test_making_a_sink_touches_nothing(uri):
    Sink(uri)


def put(uri, name="2026/a.json", data=b"{}"):
    asyncio.run(Sink(uri).put(name, data))


def test_file_appears_whole_in_folders_that_are_made(tmp_path):
    folder = tmp_path / "a b" / "ü"
    put(folder.as_uri())
    assert [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()] == ["2026/a.json"]


def test_reader_of_a_folder_never_sees_a_part_of_a_file(tmp_path):
    size = 4 << 20
    seen, stop = set(), threading.Event()

    def watch():
        while not stop.is_set():
            seen.update(path.stat().st_size for path in tmp_path.glob("*.bin"))

    async def write():
        sink = Sink(tmp_path.as_uri())
        for number in range(30):
            await sink.put(f"{number}.bin", bytes(size))

    watcher = threading.Thread(target=watch)
    watcher.start()
    asyncio.run(write())
    stop.set()
    watcher.join()
    assert seen == {size}


def test_folder_that_cannot_be_is_a_failure_of_the_sink(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SinkError):
        put((tmp_path / "file" / "folder").as_uri())


@pytest.fixture
def talkative(monkeypatch):
    """An object store that refuses, and quotes credentials as it does."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_PUT(self):
            body = b"<Error><Code>SignatureDoesNotMatch</Code><Key>AKIDEXAMPLE</Key><S>topsecret</S></Error>"
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        environment(monkeypatch, server.server_address[1])
        yield
        server.shutdown()
        thread.join()


def environment(monkeypatch, port):
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "topsecret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)


def test_refusal_is_told_by_status_and_code_alone(talkative):
    with pytest.raises(SinkError) as failure:
        put("s3://bucket/a")
    assert str(failure.value) == "status 403 Forbidden, SignatureDoesNotMatch"


def test_unreachable_store_is_told_as_such(monkeypatch):
    with refused_port() as port:
        environment(monkeypatch, port)
        with pytest.raises(SinkError, match=r"^no connection$"):
            put("s3://bucket/a")

"""A checkpoint is the file that was meant: by the digits in its name, or by a full sha256; over real HTTP too."""

import functools
import hashlib
import http.server
import threading

import pytest

from assay.building.weights_file import find_weights
from assay.errors import BuildError, DigestMismatchError, PackError, PackUnavailableError

BODY = b"the bytes of a checkpoint" * 100
SHA256 = hashlib.sha256(BODY).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


@pytest.fixture
def site(tmp_path):
    """A folder, and the URL of a real server that serves it; `requests` are the paths it was asked for."""
    folder = tmp_path / "site"
    folder.mkdir()
    requests = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            requests.append(self.path)
            super().do_GET()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def put(folder, name):
    (folder / name).write_bytes(BODY)
    return str(folder / name)


@pytest.mark.parametrize("name", [f"model-{SHA256[:8]}.pth", f"model-{SHA256}.pt", "model.pth", "model-v2.pth"])
def test_a_file_here_needs_no_digest_and_keeps_its_promise_if_its_name_has_one(tmp_path, name):
    found = find_weights(put(tmp_path, name), None, cache_dir=tmp_path / "cache")
    assert (found.path, found.name, found.sha256) == (tmp_path / name, name, SHA256)


def test_a_file_that_is_not_what_its_name_says_is_refused_with_both_digests(tmp_path):
    path = put(tmp_path, f"model-{OTHER[:8]}.pth")
    with pytest.raises(DigestMismatchError, match=f"has sha256 {SHA256}, but {OTHER[:8]} is in its name"):
        find_weights(path, None, cache_dir=tmp_path)
    # Whoever knows all of it knows better than the name.
    assert find_weights(path, SHA256, cache_dir=tmp_path).sha256 == SHA256


def test_a_file_that_is_not_the_one_asked_for_is_refused(tmp_path):
    path = put(tmp_path, f"model-{SHA256[:8]}.pth")
    with pytest.raises(DigestMismatchError, match=f"has sha256 {SHA256}, but {OTHER} is asked for"):
        find_weights(path, OTHER, cache_dir=tmp_path)


@pytest.mark.parametrize("sha256", ["", SHA256[:8], SHA256.upper(), f"sha256:{SHA256}"])
def test_a_digest_that_is_none_is_told(tmp_path, sha256):
    with pytest.raises(BuildError, match="is not a sha256"):
        find_weights(put(tmp_path, "m.pth"), sha256, cache_dir=tmp_path)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(BuildError, match="there is no file"):
        find_weights(str(tmp_path / "none.pth"), None, cache_dir=tmp_path)


@pytest.mark.parametrize(("name", "sha256"), [(f"model-{SHA256[:8]}.pth", None), ("model.pth", SHA256)])
def test_a_file_comes_over_http_once(tmp_path, site, name, sha256):
    folder, url, requests = site
    put(folder, name)
    seen = []
    for _ in range(2):
        found = find_weights(
            f"{url}/{name}", sha256, cache_dir=tmp_path / "cache", progress=lambda *told: seen.append(told)
        )
        assert (found.path.read_bytes(), found.name, found.sha256) == (BODY, name, SHA256)
    assert requests == [f"/{name}"]
    assert seen[-1] == (len(BODY), len(BODY))


@pytest.mark.parametrize("pin", ["name", "sha256"])
def test_another_file_over_http_is_refused_and_not_kept(tmp_path, site, pin):
    folder, url, _ = site
    name = f"model-{OTHER[:8]}.pth" if pin == "name" else "model.pth"
    put(folder, name)
    expected = OTHER[:8] if pin == "name" else OTHER
    with pytest.raises(DigestMismatchError, match=f"{name} has digest sha256:{SHA256}, but sha256:{expected} was"):
        find_weights(f"{url}/{name}", None if pin == "name" else OTHER, cache_dir=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_file_that_the_server_does_not_have_is_told(tmp_path, site):
    _, url, _ = site
    with pytest.raises(PackUnavailableError, match="is not there"):
        find_weights(f"{url}/model-{SHA256[:8]}.pth", None, cache_dir=tmp_path)


@pytest.mark.parametrize(
    ("url", "sha256", "told"),
    [
        ("https://example.org/model.pth", None, "is not pinned"),
        ("s3://bucket/model-1234567.pth", None, "is not pinned"),
        ("https://example.org/model.pth?x=-12345678.pth", None, "is not pinned"),
        ("http://example.org/model-12345678.pth", None, "can be forged"),
        ("http://localhost/model-12345678.pth", None, "can be forged"),
        ("https://[/model-12345678.pth", None, "is no URL"),
    ],
)
def test_a_url_without_a_pin_that_holds_is_refused_without_a_request(tmp_path, url, sha256, told):
    with pytest.raises(BuildError, match=told):
        find_weights(url, sha256, cache_dir=tmp_path)


def test_a_url_that_is_none_is_refused(tmp_path):
    with pytest.raises(PackError, match="scheme 'ftp' is unknown"):
        find_weights("ftp://example.org/model.pth", SHA256, cache_dir=tmp_path)

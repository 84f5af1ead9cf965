"""A real S3-compatible server, and sinks that are dead in the ways sinks are."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore
from obstore.store import S3Store


class Bucket:
    """The bucket ``answers`` of a running server."""

    def __init__(self, process: subprocess.Popen[str], port: int, key: str, secret: str) -> None:
        self._process = process
        self.port, self.key, self.secret = port, key, secret

    def environment(self) -> dict[str, str]:
        """What a program needs in its environment to write here."""
        return {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
        }

    def objects(self, prefix: str) -> dict[str, bytes]:
        """What the bucket holds below a prefix, by name."""
        store = S3Store(
            "answers",
            endpoint=f"http://127.0.0.1:{self.port}",
            region="us-east-1",
            access_key_id=self.key,
            secret_access_key=self.secret,
            client_options={"allow_http": True},
        )
        names = [item["path"] for page in obstore.list(store, prefix) for item in page]
        return {name: bytes(obstore.get(store, name).bytes()) for name in names}

    def pause(self) -> None:
        """Stop the server in its tracks: it accepts connections, by the kernel, and answers none."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it work again."""
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def s3_server() -> Iterator[Bucket]:
    """Moto's server, in the environment that `make .venv/.test` sets up beside the tests' own."""
    python = Path(sys.prefix) / "s3" / "bin" / "python"
    assert python.exists(), f"{python} is not there: run `make .venv/.s3`"
    with subprocess.Popen(
        [python, Path(__file__).with_name("s3_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            told = json.loads(process.stdout.readline())
            yield Bucket(process, told["port"], told["id"], told["secret"])
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@contextmanager
def hanging_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        yield listener.getsockname()[1]


@contextmanager
def refused_port() -> Iterator[int]:
    """A port nobody listens on; bound, so that nobody else takes it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]

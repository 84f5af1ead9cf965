"""A cluster as the tests see it: kubectl with one kubeconfig, and waits for conditions."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OWN_CONTEXTS = re.compile(r"^(one-node-kube|kind-.*|minikube)$")
POLL_S = 0.5


class Cluster:
    """kubectl and helm against one cluster, in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str, binaries: Path) -> None:
        self.namespace = namespace
        self._env = os.environ | {"KUBECONFIG": str(kubeconfig), "PATH": f"{binaries}:{os.environ['PATH']}"}
        context = self._run("kubectl", "config", "current-context").strip()
        allowed = os.environ.get("CONTEXT")
        if not (OWN_CONTEXTS.match(context) or context == allowed):
            raise RuntimeError(
                f"the context {context!r} is no development cluster; these tests change what runs there. "
                f"To run them there all the same: CONTEXT={context}"
            )

    def _run(self, *argv: str, stdin: str | None = None, timeout: float = 120) -> str:
        done = subprocess.run(argv, env=self._env, input=stdin, capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
        return done.stdout

    def kubectl(self, *argv: str, stdin: str | None = None, timeout: float = 120) -> str:
        """What kubectl printed; CalledProcessError with its stderr where it failed."""
        return self._run("kubectl", "--namespace", self.namespace, *argv, stdin=stdin, timeout=timeout)

    def helm(self, *argv: str, timeout: float = 300) -> str:
        """What helm printed."""
        return self._run(
            shutil.which("helm", path=self._env["PATH"]) or "helm",
            "--namespace",
            self.namespace,
            *argv,
            timeout=timeout,
        )

    def get(self, *argv: str) -> Any:
        """One object or list, as parsed JSON."""
        return json.loads(self.kubectl("get", *argv, "--output=json"))

    def items(self, *argv: str) -> list[Any]:
        """The items of a list."""
        items: list[Any] = self.get(*argv)["items"]
        return items

    def apply(self, *objects: Any) -> None:
        """Apply objects as a user would."""
        self.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(item) for item in objects))

    def exists(self, *argv: str) -> bool:
        """Whether `kubectl get` finds it."""
        return bool(self.kubectl("get", *argv, "--ignore-not-found", "--output=name").strip())

    def pod_json(self, pod: str, path: str, port: int = 8000) -> Any:
        """What a pod answers to a GET, through the API server's proxy."""
        return json.loads(
            self.kubectl("get", "--raw", f"/api/v1/namespaces/{self.namespace}/pods/{pod}:{port}/proxy{path}")
        )

    def put_file(self, pod: str, source: Path, target: str) -> None:
        """Copy a file into a pod, whatever tools its image has apart from Python."""
        code = f"import sys; open({target!r}, 'wb').write(sys.stdin.buffer.read())"
        argv = ["kubectl", "--namespace", self.namespace, "exec", "--stdin", pod, "--", "python", "-c", code]
        with source.open("rb") as body:
            subprocess.run(argv, env=self._env, stdin=body, capture_output=True, check=True, timeout=120)

    @contextmanager
    def forwarded(self, what: str, port: int) -> Iterator[str]:
        """The base URL of a local port that leads to a Service or pod."""
        argv = ["kubectl", "--namespace", self.namespace, "port-forward", what, f":{port}"]
        with subprocess.Popen(argv, env=self._env, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                found = re.search(r"127\.0\.0\.1:(\d+)", line)
                assert found, f"kubectl port-forward said {line!r}"
                yield f"http://127.0.0.1:{found[1]}"
            finally:
                process.terminate()
                process.wait(timeout=10)


def wait_for(what: str, probe: Callable[[], Any], timeout: float, explain: Callable[[], str] = lambda: "") -> Any:
    """What the probe returns once it is true; AssertionError with an explanation after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while not (seen := probe()):
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s for {what}\n{explain()}"
        time.sleep(POLL_S)
    return seen

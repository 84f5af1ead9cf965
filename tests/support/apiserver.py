"""A real etcd and kube-apiserver, alone: no controllers, no kubelet, so a test plays their part through the API."""

import copy
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx

KUBE = Path.home() / ".cache" / "one-node-kube" / "bin" / "kube"  # every program of Kubernetes, kubectl too
ADMIN = "admin-token"
OPERATOR = "operator-token"
RENEWED = "operator-token-renewed"  # of the same user
STARTED_S = 300  # several processes at once on a busy two-core machine
WAIT_S = 30  # for the operator to act: a resync in these tests comes every second


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(condition: Callable, what: str, wait_s: float = WAIT_S):
    """The condition's first true value; an error that says what did not come about."""
    end = time.monotonic() + wait_s
    last = None
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except (KeyError, IndexError, httpx.HTTPStatusError) as error:
            last = error
        time.sleep(0.1)
    raise AssertionError(f"not within {wait_s} s: {what} ({last!r})")


class ApiServer:
    """The two processes and an administrator's client. `stop` ends them by their handles."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.folder = folder
        client_port, peer_port, self.port = free_port(), free_port(), free_port()
        (folder / "tokens.csv").write_text(
            f'{ADMIN},admin,1,"system:masters"\n{OPERATOR},assay-operator,2\n{RENEWED},assay-operator,3\n'
        )
        subprocess.run(["openssl", "genrsa", "-out", folder / "sa.key", "2048"], check=True, capture_output=True)
        etcd = [
            f"--data-dir={folder}/etcd",
            f"--listen-client-urls=http://127.0.0.1:{client_port}",
            f"--advertise-client-urls=http://127.0.0.1:{client_port}",
            f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer_port}",
            f"--initial-cluster=default=http://127.0.0.1:{peer_port}",
            "--unsafe-no-fsync",
            "--log-level=error",
        ]
        server = [
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--etcd-servers=http://127.0.0.1:{client_port}",
            f"--cert-dir={folder}/certificates",
            f"--token-auth-file={folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder}/sa.key",
            f"--service-account-signing-key-file={folder}/sa.key",
            "--service-cluster-ip-range=10.96.0.0/24",
            "--disable-admission-plugins=ServiceAccount",  # no controller makes ServiceAccounts here
            "--endpoint-reconciler-type=none",
        ]
        self._processes = [
            self._start(binary, "etcd", etcd, folder),
            self._start(binary, "kube-apiserver", server, folder),
        ]
        self.url = f"https://127.0.0.1:{self.port}"
        self._clients: list[httpx.Client] = []
        self.http = self._client(ADMIN)
        try:
            eventually(self._ready, f"the API server is ready; see {folder}/kube-apiserver.log", STARTED_S)
        except BaseException:
            self.stop()  # nobody else can
            raise

    @staticmethod
    def _start(binary: Path, name: str, arguments: list[str], folder: Path) -> subprocess.Popen:
        with (folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen([binary, name, *arguments], stdout=log, stderr=log)

    def _client(self, token: str, **headers: str) -> httpx.Client:
        unverified = ssl.create_default_context()
        # loopback, and a certificate made just now
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        headers |= {"Authorization": f"Bearer {token}"}
        client = httpx.Client(base_url=self.url, verify=unverified, headers=headers, timeout=30)
        self._clients.append(client)
        return client

    def acting_as(self, *, token: str = ADMIN, user: str = "") -> "ApiServer":
        """The same server as somebody else meets it: by a token, or impersonated by the administrator."""
        other = copy.copy(self)
        other.http = self._client(token, **({"Impersonate-User": user} if user else {}))
        return other

    def _ready(self) -> bool:
        for process in self._processes:
            if process.poll() is not None:
                raise RuntimeError(f"{process.args[1]} ended with {process.returncode}; see its log in {self.folder}")
        try:
            return self.http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kubeconfig(self, path: Path, token: str = OPERATOR, url: str = "") -> Path:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": url or self.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        path.write_text(json.dumps(content))
        return path

    def define(self, crd: dict) -> None:
        """Create the ModelVariants' definition and wait until it is served."""
        self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        eventually(lambda: self.get("/apis/assay.dev/v1alpha1/modelvariants"), "the CRD is established")

    # -- objects
    def get(self, path: str, **query) -> dict:
        return self.http.get(path, params=query).raise_for_status().json()

    def create(self, path: str, body: dict) -> dict:
        answer = self.http.post(path, json=body)
        if answer.is_error:
            raise AssertionError(f"{answer.status_code}: {answer.text}")
        return answer.json()

    def merge(self, path: str, body: dict, manager: str = "a-test") -> dict:
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self.http.patch(path, json=body, headers=headers, params={"fieldManager": manager})
        if answer.is_error:
            raise AssertionError(f"{answer.status_code}: {answer.text}")
        return answer.json()

    def delete(self, path: str) -> None:
        self.http.delete(path).raise_for_status()

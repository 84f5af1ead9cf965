"""A real `assay-operator`, as a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from support.apiserver import OPERATOR, STARTED_S, WAIT_S, ApiServer, eventually, free_port
from support.chart import Chart, find_helm
from support.controllers import Namespace

RBAC = "rbac.authorization.k8s.io"


def chart_rules(root: Path) -> list[dict]:
    """The rules of the Role that the chart gives the operator."""
    rendered = Chart(root / "charts" / "assay", find_helm(root)).render()
    roles = [entry for entry in rendered if entry["kind"] == "Role" and entry["metadata"]["name"].endswith("operator")]
    assert len(roles) == 1
    return roles[0]["rules"]


def grant(namespace: Namespace, rules: list[dict]) -> None:
    """Give the operator these rights in the namespace."""
    meta = {"name": "operator"}
    namespace.api.create(
        namespace.path(f"{RBAC}/v1", "roles"),
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": rules},
    )
    namespace.api.create(
        namespace.path(f"{RBAC}/v1", "rolebindings"),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "operator"},
            "subjects": [{"kind": "User", "name": "assay-operator", "apiGroup": RBAC}],
        },
    )


class OperatorProcess:
    """A real `assay-operator`. `namespaces`: as its setting; empty for all. `url`: of a proxy before the API server."""

    def __init__(
        self,
        api: ApiServer,
        namespaces: str,
        folder: Path,
        url: str = "",
        settings: dict[str, object] | None = None,
        token: str = OPERATOR,
    ) -> None:
        self.port = free_port()
        self.log = folder / "operator.log"
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "KUBECONFIG": str(api.kubeconfig(folder / "kubeconfig", token, url)),
            "HOME": str(folder),
            "ASSAY_OPERATOR_NAMESPACES": namespaces,
            "ASSAY_OPERATOR_PORT": str(self.port),
            **{f"ASSAY_OPERATOR_{name.upper()}": str(value) for name, value in (settings or {}).items()},
        }
        self._out = self.log.open("ab")
        self.process = subprocess.Popen(
            [Path(sys.executable).with_name("assay-operator")], env=environment, stderr=self._out, stdout=self._out
        )

    def wait_until(self, path: str, wait_s: float = STARTED_S) -> None:
        """Wait until one of /livez and /readyz answers 200."""
        eventually(lambda: self.answers(path) == 200, f"{path} of the operator answers 200; see {self.log}", wait_s)

    def answers(self, path: str) -> int:
        if self.process.poll() is not None:
            raise RuntimeError(f"the operator ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}{path}").status_code
        except httpx.TransportError:
            return 0

    def metrics(self) -> str:
        return httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=60).text

    def total(self, metric: str, **labels: str) -> float:
        """The sum of the samples of this name that have these labels."""
        return sum(
            sample.value
            for family in text_string_to_metric_families(self.metrics())
            for sample in family.samples
            if sample.name == metric and labels.items() <= sample.labels.items()
        )

    def passes(self) -> float:
        """How often it has looked at a ModelVariant."""
        return self.total("assay_reconcile_duration_seconds_count")

    def end(self, number: int = signal.SIGTERM, wait_s: float = WAIT_S) -> int:
        self.process.send_signal(number)
        code = self.process.wait(wait_s)
        self._out.close()
        return code


def started(api: ApiServer, namespace: str, folder: Path, **settings: object) -> OperatorProcess:
    """An operator that is ready."""
    operator = OperatorProcess(api, namespace, folder, settings=settings)
    try:
        operator.wait_until("/readyz")
    except BaseException:
        operator.end(signal.SIGKILL)  # nobody else can
        raise
    return operator

"""What a Prometheus sees of an operator: one model passes, one is refused, a rollback fails, a right is taken away."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import httpx

from support.apiserver import ApiServer, eventually, free_port
from support.controllers import Namespace
from support.packs import BAD, FAST, GOOD, MODEL, OTHER, spec, template
from support.prometheus import Prometheus

SHORT = {"rollout": {"soakSeconds": 0, "progressDeadlineSeconds": 10}}  # ten is the least that the CRD takes
RIGHTS = "rbac.authorization.k8s.io/v1"


@contextmanager
def operator(api: ApiServer, namespace: str, folder: Path) -> Iterator[str]:
    """A real `assay-operator` for a namespace; the address of its metrics."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KUBECONFIG": str(api.kubeconfig(folder / "kubeconfig")),
        "ASSAY_OPERATOR_NAMESPACES": namespace,
        "ASSAY_OPERATOR_PORT": str(port),
        "ASSAY_OPERATOR_RESYNC_SECONDS": "1",
        # Where the sources under test are not those that are installed.
        **{name: value for name, value in os.environ.items() if name == "PYTHONPATH"},
    }

    def ready() -> bool:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    log = folder / "operator.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("assay-operator")], env=environment, stdout=out, stderr=out
        )
        try:
            eventually(ready, f"the operator is ready; see {log}")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def grant(namespace: Namespace, rules: list[dict]) -> None:
    """Give the operator the chart's rights in a namespace."""
    metadata = {"name": "operator"}
    role = {"apiVersion": RIGHTS, "kind": "Role", "metadata": metadata, "rules": rules}
    namespace.api.create(namespace.path(RIGHTS, "roles"), role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"}
    subject = {"kind": "User", "name": "assay-operator", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"apiVersion": RIGHTS, "kind": "RoleBinding", "metadata": metadata, "roleRef": reference}
    namespace.api.create(namespace.path(RIGHTS, "rolebindings"), {**binding, "subjects": [subject]})


def tell(prometheus: Prometheus, api: ApiServer, rules: list[dict], folder: Path, until: Event) -> None:
    """Let it all happen; the operator runs on until told otherwise."""
    namespace = Namespace(api, "assay")
    grant(namespace, rules)
    namespace.deployment(template())
    with operator(api, "assay", folder) as address:
        prometheus.scrape(address, namespace="assay", release="assay", pod="assay-operator-1")
        seen: set[str] = set()
        namespace.variant(spec(GOOD, **FAST))
        namespace.finish(_next_job(namespace, seen))
        eventually(lambda: namespace.annotations() == MODEL, "the annotations are applied")
        namespace.roll()
        namespace.wait("True Serving")
        _is_told(prometheus, "Ready", "Serving")
        namespace.edit({"model": BAD})
        namespace.finish(_next_job(namespace, seen), "Fail", top3Contained=240, costRatioPermille=1240)
        prometheus.wait_firing("AssayVariantStalled")
        namespace.edit({"model": OTHER, **SHORT})
        namespace.finish(_next_job(namespace, seen))
        eventually(lambda: namespace.annotations()["assay.dev/model-uri"] == OTHER["uri"], "the second one is applied")
        namespace.roll(ready=False, misfit={"code": "CpuFeatureMissing", "message": "no such CPU"})
        eventually(lambda: namespace.annotations() == MODEL, "the first one is applied again")
        namespace.roll(ready=False)
        prometheus.wait_firing("AssayRollbackFailed")
        namespace.api.merge(namespace.path(RIGHTS, "roles", "operator"), {"rules": []})
        # The watch that is open still brings news; what the operator does about it is refused.
        namespace.edit({"retryToken": "again"})
        prometheus.wait_for("assay_reconcile_errors_total > 1", "passes to fail")
        prometheus.wait_firing("AssayOperatorNotReconciling")
        until.wait()


def _next_job(namespace: Namespace, seen: set[str]) -> dict:
    """The check that is not yet among those seen; it is from now on."""

    def new() -> dict | None:
        return next((job for job in namespace.jobs() if job["metadata"]["uid"] not in seen), None)

    job = eventually(new, "a check Job is made")
    seen.add(job["metadata"]["uid"])
    return job


def _is_told(prometheus: Prometheus, kind: str, reason: str) -> None:
    prometheus.wait_for(f'assay_variant_condition{{type="{kind}",reason="{reason}"}}', f"{kind} to be {reason}")

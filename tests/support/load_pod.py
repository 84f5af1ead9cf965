"""k6 in a pod of the cluster: an open-loop run that goes on while a test does something."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.kube import Cluster, wait_for
from support.photos import chelsea_jpeg

K6_IMAGE = "localhost/k6:1.1.0"
MOUNT = "/scripts"


def _config_map(root: Path) -> dict[str, Any]:
    files = {
        path.name: path.read_text() for folder in ("lib", "scenarios") for path in (root / "k6" / folder).glob("*.js")
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "k6-smoke"},
        "data": files,
        "binaryData": {"photo.jpg": base64.b64encode(chelsea_jpeg()).decode()},
    }


def _pod(root: Path, url: str, rate: float, seconds: float) -> dict[str, Any]:
    # The keys of a ConfigMap hold no slash: `items` puts each script back where the others import it from.
    items = [
        {"key": path.name, "path": f"{folder}/{path.name}"}
        for folder in ("lib", "scenarios")
        for path in (root / "k6" / folder).glob("*.js")
    ]
    settings = {"URL": url, "RATE": rate, "SECONDS": seconds, "IMAGES": f"{MOUNT}/photo.jpg"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "k6-smoke"},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "k6",
                    "image": K6_IMAGE,
                    "args": ["run", "--quiet", "--no-usage-report", f"{MOUNT}/scenarios/smoke.js"],
                    "env": [{"name": name, "value": str(value)} for name, value in settings.items()],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    "volumeMounts": [{"name": "scripts", "mountPath": MOUNT}],
                }
            ],
            "volumes": [
                {
                    "name": "scripts",
                    "configMap": {"name": "k6-smoke", "items": [*items, {"key": "photo.jpg", "path": "photo.jpg"}]},
                }
            ],
        },
    }


class Load:
    """A run in the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def finished(self) -> bool:
        """Whether the run has ended by itself."""
        phase = self._cluster.get("pod", "k6-smoke")["status"].get("phase")
        return phase in ("Succeeded", "Failed")

    def summary(self, timeout: float) -> dict[str, Any]:
        """What the run found, once it has ended."""
        wait_for("the end of the load", self.finished, timeout, lambda: self._cluster.kubectl("logs", "k6-smoke"))
        log = self._cluster.kubectl("logs", "k6-smoke")
        summary: dict[str, Any] = json.loads([line for line in log.splitlines() if line.startswith("{")][-1])
        return summary | {"log": log}


@contextmanager
def load(cluster: Cluster, root: Path, *, rate: float, seconds: float) -> Iterator[Load]:
    """Send requests to the Service at Poisson times for so many seconds."""
    cluster.kubectl("delete", "pod,configmap", "k6-smoke", "--ignore-not-found", "--wait")
    cluster.apply(_config_map(root), _pod(root, f"http://assay.{cluster.namespace}.svc", rate, seconds))
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/k6-smoke", "--timeout=60s")
    try:
        yield Load(cluster)
    finally:
        cluster.kubectl("delete", "pod,configmap", "k6-smoke", "--ignore-not-found", "--wait=false")

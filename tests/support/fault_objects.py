"""What stands in the namespace of faults: packs of colours, their source, a quota, limits and a security standard."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from support.bad_packs import PackFile
from support.certificates import Certificates
from support.small_packs import LABELS, colour_dataset, colour_model, colour_pack

NAMESPACE = os.environ.get("FAULTS_NAMESPACE", "assay-faults")
IMAGES = 80  # 80 of 80 prove 963 permille
# Wide enough for the release, and narrow enough for a check to ask for more.
QUOTA_CPU, MAX_MEMORY = 50, "8Gi"
AUTHORITY = "pack-source-authority"  # the ConfigMap with the certificate that the source of packs is known by
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
SAFE = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def build_packs(folder: Path) -> dict[str, PackFile]:
    """Packs of the colour model by name, and the dataset: ``base``; as good; spoilt in ways that must be refused."""
    weight = -np.array([[2, -1, -1], [-1, 2, -1], [-1, -1, 2], [0, 0, 0]], np.float32) / 64
    wrong = colour_model(weight)  # of each two colours the other one
    kinds: dict[str, dict[str, Any]] = {
        "base": {},
        "good": {"name": "good-fp32"},
        "other": {"name": "other-fp32"},
        "rotated": {"labels": [*LABELS[1:], LABELS[0]]},
        "renamed": {"labels": [f"{label}ish" for label in LABELS]},
        "wrong": {"model": wrong},
        "repacked": {"model": wrong, "name": "repacked-fp32"},
        "tomorrow": {"name": "tomorrow-fp32", "requires_cpu": ("avx4096",)},
    }
    packs = {}
    for name, changed in kinds.items():
        path = folder / f"{name}.tar"
        packs[name] = PackFile(path, colour_pack(path, **changed).digest, "FP32")
    data = folder / "colours.tar"
    packs["colours"] = PackFile(data, colour_dataset(data, images=IMAGES, groups=IMAGES), "")
    return packs


def namespace() -> list[Any]:
    """A namespace as several teams share one: with a quota, limits and the strictest security standard."""
    limits = [{"type": "Container", "max": {"memory": MAX_MEMORY}}]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "cpu"},
            "spec": {"hard": {"requests.cpu": str(QUOTA_CPU)}},
        },
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "memory"}, "spec": {"limits": limits}},
    ]


def source(image: str, certificates: Certificates) -> list[Any]:
    """The pod that serves packs, its program and certificates, and its Service."""
    program = Path(__file__).with_name("source_server.py").read_text()
    labels = {"app.kubernetes.io/name": "pack-source"}
    container = {
        "name": "server",
        "image": image,
        "command": ["python", "/program/source_server.py", "/srv", "/tls/tls.crt", "/tls/tls.key"],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
        "securityContext": SAFE,
        "volumeMounts": [
            {"name": name, "mountPath": path}
            for name, path in (("srv", "/srv"), ("program", "/program"), ("tls", "/tls"))
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [
            {"name": "srv", "emptyDir": {"sizeLimit": "256Mi"}},
            {"name": "program", "configMap": {"name": "pack-source"}},
            {"name": "tls", "secret": {"secretName": "pack-source"}},
        ],
    }
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "https", "port": 443, "targetPort": 8443}]
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "pack-source"},
            "data": {"source_server.py": program},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": AUTHORITY},
            "data": {"ca.crt": certificates.authority},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": "pack-source"},
            "stringData": {"tls.crt": certificates.server, "tls.key": certificates.key},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pack-source", "labels": labels}, "spec": pod},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "pack-source"},
            "spec": {"selector": labels, "ports": ports},
        },
    ]

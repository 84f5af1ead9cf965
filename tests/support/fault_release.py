"""The release in the namespace of faults, with the source of its packs."""

import json
from pathlib import Path
from typing import Any

from support.certificates import make_certificates
from support.fault_bench import Bench
from support.fault_objects import NAMESPACE, namespace, source

CHECKS = 40
"""Checks that may run at once: here whole crowds of them begin together, most of them to fail."""


def install(bench: Bench, image: str, folder: Path) -> None:
    """The namespace, the source of packs, and the release, once all of them are up."""
    cluster = bench.cluster
    certificates = make_certificates(folder, f"pack-source.{NAMESPACE}.svc")
    cluster.apply(*namespace())
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")
    cluster.apply(*source(image, certificates))
    cluster.kubectl("wait", "--for=condition=Ready", "pod/pack-source", "--timeout=90s")
    for pack in bench.packs.values():
        cluster.put_file("pack-source", pack.path, f"/srv/{pack.path.name}")
    bench.helm_upgrade("--install", *(f"--set-json={key}={json.dumps(value)}" for key, value in _values(bench)))


def _values(bench: Bench) -> list[tuple[str, Any]]:
    # Where the tests' own S3 server will be; its keys are anybody's.
    access = {
        "AWS_ENDPOINT_URL": f"http://s3.{NAMESPACE}.svc:5000",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
    }
    return [
        ("fullnameOverride", "assay"),
        ("baseModel", {"uri": f"{bench.source}/plain/base.tar", "digest": bench.packs["base"].digest}),
        ("extraEnv", [{"name": name, "value": value} for name, value in access.items()]),
        ("resources.requests", {"cpu": "50m", "memory": "128Mi"}),
        ("resources.limits", {"cpu": "1", "memory": "512Mi"}),
        ("drain.delaySeconds", 2),
        ("drain.timeoutSeconds", 3),
        ("operator.settings.RUNNING_CHECKS", CHECKS),
    ]

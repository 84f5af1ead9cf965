"""What the end-to-end tests share: the cluster with the release installed, packs, and where things stand."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.bad_packs import build_packs
from support.fault_bench import RELEASE, Bench
from support.fault_objects import NAMESPACE as FAULTS
from support.fault_objects import build_packs as build_colour_packs
from support.fault_release import install
from support.kube import Cluster, wait_for
from support.variants import Variants

NAMESPACE = os.environ.get("NAMESPACE", "assay")


def pytest_collection_modifyitems(items):
    """Every test of this folder needs a running cluster."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def cluster(root) -> Cluster:
    kubeconfig = Path(os.environ.get("KUBECONFIG") or root / ".cluster" / "kubeconfig")
    assert kubeconfig.exists(), f"there is no {kubeconfig}: run `make cluster up` first"
    return Cluster(kubeconfig, NAMESPACE, root / ".cluster" / "bin")


@pytest.fixture(scope="session")
def variants(cluster, root) -> Variants:
    assert cluster.exists("deployment", "assay"), "the release is not installed: run `make up` first"
    # A refusal stands until something changes, so what an earlier run was refused would be refused again unseen.
    cluster.kubectl("delete", "modelvariant", "assay", "--ignore-not-found", "--wait")
    return Variants(cluster, root / "k8s" / "samples")


@pytest.fixture
def base_serving(variants):
    """The base serves on every pod, and the variant is Ready with it."""
    variants.apply_sample("base")
    settled = variants.settle()
    assert variants.condition("Ready", settled).get("status") == "True", variants.explain()
    assert {model["precision"] for model in variants.served()} == {"FP32"}
    return settled


@pytest.fixture
def int8_serving(variants):
    """The INT8 sample serves on every pod."""
    variants.apply_sample("int8")
    settled = variants.settle()
    assert variants.condition("Ready", settled).get("status") == "True", variants.explain()
    return settled


@pytest.fixture(scope="session")
def packs(tmp_path_factory):
    """Packs by name, with their digests: good ones, and those that must be refused."""
    return build_packs(tmp_path_factory.mktemp("packs"))


@pytest.fixture(scope="session")
def pack_server(cluster, packs):
    """The URL prefix under which a pod of the cluster serves the packs."""
    image = cluster.get("deployment", "assay")["spec"]["template"]["spec"]["containers"][0]["image"]
    labels = {"app.kubernetes.io/name": "pack-server"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pack-server", "labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "server",
                    "image": image,
                    "command": ["python", "-m", "http.server", "8080", "--directory", "/srv"],
                    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
                    "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volumeMounts": [{"name": "srv", "mountPath": "/srv"}],
                }
            ],
            "volumes": [{"name": "srv", "emptyDir": {"sizeLimit": "256Mi"}}],
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "pack-server"},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    cluster.kubectl("delete", "pod,service", "pack-server", "--ignore-not-found", "--wait")
    cluster.apply(pod, service)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/pack-server", "--timeout=60s")
    for pack in packs.values():
        cluster.put_file("pack-server", pack.path, f"/srv/{pack.path.name}")
    yield f"http://pack-server.{cluster.namespace}.svc"
    cluster.kubectl("delete", "pod,service", "pack-server", "--ignore-not-found", "--wait=false")


@pytest.fixture
def operator_pod(cluster):
    """The name of the running operator pod."""

    def running() -> str | None:
        pods = cluster.items("pods", "--selector=app.kubernetes.io/component=operator")
        names = [
            pod["metadata"]["name"]
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] == "Running"
        ]
        return names[0] if names else None

    return wait_for("an operator pod", running, 60)


@pytest.fixture(scope="session")
def fault_namespace(cluster, root, tmp_path_factory) -> Iterator[Bench]:
    """The namespace where things go wrong, with its release; it goes with everything in it."""
    kubeconfig = Path(os.environ.get("KUBECONFIG") or root / ".cluster" / "kubeconfig")
    there = Cluster(kubeconfig, FAULTS, root / ".cluster" / "bin")
    container = cluster.get("deployment", "assay")["spec"]["template"]["spec"]["containers"][0]
    packs = build_colour_packs(tmp_path_factory.mktemp("colours"))
    bench = Bench(there, root, packs)
    there.kubectl("delete", "namespace", there.namespace, "--ignore-not-found", "--wait")
    install(bench, container["image"], tmp_path_factory.mktemp("certificates"))
    yield bench
    there.helm("uninstall", RELEASE, "--wait")
    there.kubectl("delete", "namespace", there.namespace, "--wait=false")


@pytest.fixture(scope="module")
def crowd(fault_namespace) -> Iterator[Bench]:
    """The same for a module whose tests begin all at once, each on a target of its own."""
    fault_namespace.new_token()
    fault_namespace.serve_base()
    yield fault_namespace
    fault_namespace.reopen()


@pytest.fixture
def bench(fault_namespace) -> Iterator[Bench]:
    """The same, with the base serving, a running operator, and no verdict that could be used again."""
    fault_namespace.new_token()
    fault_namespace.serve_base()
    yield fault_namespace
    fault_namespace.reopen()

"""Prometheus and Grafana in the cluster, for development: images, what they read, and their objects."""

import tempfile
from pathlib import Path

from local_cluster import target as targets
from local_cluster.providers import Image
from local_cluster.target import Target
from local_cluster.tools import ROOT, ToolError, capture, run

NAMESPACE = "monitoring"
IMAGE = Image("localhost/assay-prometheus:dev", "k8s/monitoring/Dockerfile", "")
MANIFESTS = ROOT / "k8s" / "monitoring"
READ = {
    "assay-rules": ROOT / "grafana" / "alerts" / "assay.rules.yaml",
    "assay-dashboards": ROOT / "charts" / "assay" / "files" / "dashboards",
}
"""ConfigMaps, by what is in them: a file, or the files of a folder."""
TIMEOUT = "2m"  # the image is on the node already, and an empty Prometheus is ready within seconds


def monitoring(target: Target) -> None:
    """Build Prometheus's image, apply everything, and wait for Prometheus. Grafana's image is pulled, or is not.

    Raises:
        ToolError: the cluster is one that only a registry can give images to, or a command failed.

    """
    targets.require_answer(target)
    if target.provider is None:
        raise ToolError(f"{target.context} takes images from a registry: k8s/monitoring/README.md has the commands")
    target.provider.build(IMAGE)
    target.provider.load(IMAGE)
    apply = ("apply", "--server-side", "--force-conflicts", "-f")
    run(*target.kubectl(*apply, MANIFESTS / "prometheus.yaml"))
    with tempfile.TemporaryDirectory() as folder:
        for name, path in READ.items():
            made = Path(folder) / f"{name}.yaml"
            create = ("create", "configmap", name, f"--from-file={path}", "--dry-run=client", "--output=yaml")
            made.write_text(capture(*target.kubectl(f"--namespace={NAMESPACE}", *create)))
            run(*target.kubectl(f"--namespace={NAMESPACE}", *apply, made))
    run(*target.kubectl(*apply, MANIFESTS / "grafana.yaml"))
    rollout = ("rollout", "status", "deployment/prometheus", f"--timeout={TIMEOUT}")
    run(*target.kubectl(f"--namespace={NAMESPACE}", *rollout))
    print(
        f"Prometheus is up:  kubectl -n {NAMESPACE} port-forward service/prometheus 9090\n"
        f"Grafana, once its image is pulled:  kubectl -n {NAMESPACE} port-forward service/grafana 3000"
    )

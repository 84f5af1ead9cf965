"""k8s/monitoring: a Prometheus in the cluster that finds the release by itself, with its rules and dashboards."""

import json
import subprocess
import sys
from urllib.parse import quote

import pytest

from support.kube import wait_for

PROXY = "/api/v1/namespaces/monitoring/services/prometheus:http/proxy"


@pytest.fixture(scope="module")
def prometheus(cluster, root):
    """Ask the Prometheus that `make monitoring` brings; it is removed afterwards."""
    assert cluster.exists("deployment", "assay"), "the release is not installed: run `make up` first"
    program = [sys.executable, "-m", "local_cluster", "monitoring"]
    done = subprocess.run(program, cwd=root, env=cluster._env | {"PYTHONPATH": str(root / "k8s")},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr

    def ask(path: str):
        return json.loads(cluster.kubectl("get", "--raw", f"{PROXY}/api/v1/{path}"))["data"]

    yield ask
    cluster.kubectl("delete", "namespace", "monitoring", "--wait=false")
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", "assay-development-prometheus")


def query(prometheus, expr: str):
    return prometheus(f"query?query={quote(expr)}")["result"]


def test_prometheus_finds_every_pod_of_the_release_and_names_it_as_dashboards_do(prometheus, cluster):
    def scraped():
        pods = {
            pod["metadata"]["name"]
            for component in ("classifier", "operator")
            for pod in cluster.items("pods", f"--selector=app.kubernetes.io/component={component}")
            if "deletionTimestamp" not in pod["metadata"]
        }
        up = query(prometheus, f'up{{namespace="{cluster.namespace}",release="assay"}} == 1')
        return len(pods) > 1 and {one["metric"]["pod"] for one in up} >= pods

    wait_for("every pod to be scraped", scraped, 90)
    ready = query(prometheus, f'sum(assay_ready{{namespace="{cluster.namespace}",release="assay"}})')
    assert float(ready[0]["value"][1]) >= 1
    assert query(prometheus, "assay_last_resync_timestamp_seconds > 0")


def test_prometheus_in_the_cluster_has_the_rules_and_could_evaluate_them(prometheus, root):
    wait_for(
        "the rules to be evaluated",
        lambda: {rule["health"] for group in prometheus("rules")["groups"] for rule in group["rules"]} == {"ok"},
        90,
    )
    alerts = [rule for group in prometheus("rules")["groups"] for rule in group["rules"] if rule["type"] == "alerting"]
    assert len(alerts) == 10


def test_dashboards_are_where_grafana_looks_for_them(prometheus, cluster, root):
    made = json.loads(
        cluster.kubectl("get", "configmap", "assay-dashboards", "--namespace=monitoring", "--output=json")
    )
    shipped = {file.name: file.read_text() for file in (root / "charts/assay/files/dashboards").iterdir()}
    assert made["data"] == shipped

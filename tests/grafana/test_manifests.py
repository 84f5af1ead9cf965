"""k8s/monitoring, as far as it can be told without a cluster; tests/e2e/test_monitoring.py runs it in one.

No promtool looks at its configuration here: that of Debian 12 does not know Kubernetes' pods as targets. Debian 13's,
which the image has, does.
"""

import re

import pytest
import yaml


@pytest.fixture(scope="module")
def objects(root):
    files = (root / "k8s" / "monitoring").glob("*.yaml")
    found = [item for file in files for item in yaml.safe_load_all(file.read_text())]
    return {(item["kind"], item["metadata"]["name"]): item for item in found}


def pod(objects, name) -> dict:
    return objects["Deployment", name]["spec"]["template"]["spec"]


@pytest.mark.parametrize("name", ["prometheus", "grafana"])
def test_pods_meet_the_standard_that_their_namespace_enforces(objects, name):
    assert (
        objects["Namespace", "monitoring"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    )
    spec = pod(objects, name)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["image"].endswith(":latest")


def test_grafana_reads_what_is_mounted_and_is_the_version_the_dashboards_are_for(objects, root):
    (container,) = pod(objects, "grafana")["containers"]
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    provisioning = {
        name: yaml.safe_load(text) for name, text in objects["ConfigMap", "grafana-provisioning"]["data"].items()
    }
    (provider,) = provisioning["dashboards.yaml"]["providers"]
    assert mounts[provider["options"]["path"]]["name"] == "dashboards"
    (source,) = provisioning["datasources.yaml"]["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert objects["Service", "prometheus"]["spec"]["ports"][0]["port"] == 9090
    sdk = re.search(r"grafana-foundation-sdk==\d+!(\d+\.\d+)", (root / "requirements" / "test.in").read_text())[1]
    assert container["image"].split(":")[1].startswith(f"{sdk}.")


def test_prometheus_scrapes_at_the_interval_that_grafana_is_told(objects):
    config = yaml.safe_load(objects["ConfigMap", "prometheus"]["data"]["prometheus.yaml"])
    told = yaml.safe_load(objects["ConfigMap", "grafana-provisioning"]["data"]["datasources.yaml"])
    assert config["global"]["scrape_interval"] == told["datasources"][0]["jsonData"]["timeInterval"]

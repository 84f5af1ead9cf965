"""The objects that the real Helm renders, and how they fit together."""

import itertools
import json
import shutil

import pytest
import yaml

from support.chart import CI_VALUES, Chart, RenderError

pytestmark = pytest.mark.system

MONITORING = ("--api-versions", "monitoring.coreos.com/v1/PodMonitor")
GUARD = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


def matches(selector, labels):
    return selector.items() <= labels.items()


def test_every_set_of_ci_values_is_among_the_tested_ones(folder):
    assert {file.name.removesuffix("-values.yaml") for file in (folder / "ci").iterdir()} == set(CI_VALUES)


@pytest.mark.parametrize("name", CI_VALUES)
def test_helm_lint_finds_nothing(chart, folder, name):
    assert "0 chart(s) failed" in chart.lint(folder / "ci" / f"{name}-values.yaml")


def test_default_install_is_these_objects_and_no_others(defaults):
    assert defaults.names() == {
        ("CustomResourceDefinition", "modelvariants.assay.dev"),
        ("Deployment", "assay"),
        ("Deployment", "assay-operator"),
        ("Pod", "assay-test"),
        ("PodDisruptionBudget", "assay"),
        ("Role", "assay-modelvariant-edit"),
        ("Role", "assay-modelvariant-view"),
        ("Role", "assay-operator"),
        ("RoleBinding", "assay-operator"),
        ("Service", "assay"),
        ("ServiceAccount", "assay"),
        ("ServiceAccount", "assay-operator"),
    }


def test_selectors_find_their_own_pods_and_no_others(rendered):
    pods = {name: pod["metadata"]["labels"] for name, pod in rendered.pods().items()}
    selectors = [(d["metadata"]["name"], d["spec"]["selector"]["matchLabels"]) for d in rendered.of("Deployment")]
    (service,) = rendered.of("Service")
    selectors.append((service["metadata"]["name"], service["spec"]["selector"]))
    selectors += [
        (service["metadata"]["name"], budget["spec"]["selector"]["matchLabels"])
        for budget in rendered.of("PodDisruptionBudget")
    ]
    for owner, selector in selectors:
        assert [name for name, labels in pods.items() if matches(selector, labels)] == [owner]


def test_a_check_is_seen_by_no_selector(defaults):
    check = {"app.kubernetes.io/component": "check", "assay.dev/modelvariant": "assay"}
    assert not matches(defaults.get("Service", "assay")["spec"]["selector"], check)
    assert not matches(defaults.get("PodDisruptionBudget", "assay")["spec"]["selector"]["matchLabels"], check)


def test_rollout_never_lowers_the_capacity(defaults):
    strategy = defaults.get("Deployment", "assay")["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def test_autoscaler_leaves_the_number_of_pods_alone_and_counts_absolute_cpu(chart):
    objects = chart.render("--set", "autoscaling.enabled=true")
    assert "replicas" not in objects.get("Deployment", "assay")["spec"]
    spec = objects.get("HorizontalPodAutoscaler", "assay")["spec"]
    assert spec["scaleTargetRef"]["name"] == "assay"
    (metric,) = spec["metrics"]
    assert metric["resource"]["target"] == {"type": "AverageValue", "averageValue": "1400m"}


def test_single_pod_has_no_budget_that_could_only_block(chart):
    assert not chart.render("--set", "replicas=1").of("PodDisruptionBudget")


def test_network_policies_admit_only_named_peers_to_the_named_ports(chart, folder):
    objects = chart.render(values=folder / "ci" / "production-values.yaml")
    for component, port in {"classifier": "http", "operator": "metrics"}.items():
        spec = objects.get("NetworkPolicy", f"assay-{component}")["spec"]
        (rule,) = spec["ingress"]
        assert rule["ports"] == [{"port": port, "protocol": "TCP"}]
        assert len(rule["from"]) == 2
        assert spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == component


def test_pod_monitors_appear_where_the_cluster_knows_them(chart):
    assert not chart.render().of("PodMonitor")
    assert not chart.render("--set", "podMonitor.create=never", *MONITORING).of("PodMonitor")
    assert len(chart.render("--set", "podMonitor.create=always").of("PodMonitor")) == 2
    for monitor in chart.render(*MONITORING).of("PodMonitor"):
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in {"http", "metrics"}


def test_names_and_selectors_of_two_releases_never_meet(chart):
    objects = [
        chart.render("--set", "crd.install=false", release=release, namespace=namespace)
        for release, namespace in (("assay", "one"), ("flowers", "one"), ("assay", "two"))
    ]
    places = [
        {(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in release}
        for release in objects
    ]
    for one, other in itertools.combinations(places, 2):
        assert not one & other
    first, second = objects[0].get("Service", "assay"), objects[1].get("Service", "flowers-assay")
    assert first["spec"]["selector"] != second["spec"]["selector"]


def test_cluster_scoped_names_of_equal_releases_in_two_namespaces_differ(chart, folder):
    values = folder / "ci" / "cluster-values.yaml"
    kinds = {"ClusterRole", "ClusterRoleBinding"} | GUARD
    names = [
        {
            (item["kind"], item["metadata"]["name"])
            for item in chart.render("--set", "guard.enabled=true", values=values, namespace=namespace)
            if item["kind"] in kinds
        }
        for namespace in ("one", "two")
    ]
    assert {kind for kind, _ in names[0]} == kinds
    assert not names[0] & names[1]


def test_names_stay_within_63_characters(chart):
    for item in chart.render(release="a" * 53, namespace="assay"):
        assert len(item["metadata"]["name"]) <= 63


def test_every_namespaced_object_names_the_releases_namespace(rendered):
    cluster_scoped = {"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"} | GUARD
    for item in rendered:
        expected = None if item["kind"] in cluster_scoped else "assay"
        assert item["metadata"].get("namespace") == expected


def test_definition_of_model_variant_is_kept_at_uninstall_and_otherwise_as_written(defaults, folder):
    crd = defaults.get("CustomResourceDefinition", "modelvariants.assay.dev")
    assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    source = yaml.safe_load((folder / "files" / "crd" / "modelvariants.yaml").read_text())
    assert crd["spec"] == source["spec"]
    assert json.dumps(crd["spec"]) == json.dumps(source["spec"])  # 1000000 did not become 1e+06


def test_definition_is_left_out_by_choice(chart):
    assert not chart.render("--set", "crd.install=false").of("CustomResourceDefinition")


def test_chart_without_its_definition_says_so(chart, folder, tmp_path):
    copy = tmp_path / "assay"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("modelvariants.yaml"))
    with pytest.raises(RenderError, match=r"lacks files/crd/modelvariants\.yaml"):
        Chart(copy, chart.helm).render()

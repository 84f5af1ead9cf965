"""Dashboards, rules and scraping, as the chart brings them."""

import json

import pytest
import yaml

ALWAYS = ["--set", "monitoring.dashboards.create=always,monitoring.rules.create=always,podMonitor.create=always"]
KNOWN = [
    "--api-versions",
    "monitoring.coreos.com/v1/PodMonitor",
    "--api-versions",
    "monitoring.coreos.com/v1/PrometheusRule",
]

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def monitored(chart):
    return chart.render(*ALWAYS, namespace="vision", release="flowers")


def boards(objects):
    return [item for item in objects.of("ConfigMap") if "dashboard" in item["metadata"]["name"]]


def rules(objects):
    return [
        rule for item in objects.of("PrometheusRule") for group in item["spec"]["groups"] for rule in group["rules"]
    ]


def test_a_cluster_without_the_prometheus_operator_gets_none_of_it(defaults):
    assert not boards(defaults)
    assert not defaults.of("PrometheusRule")


def test_a_cluster_with_the_prometheus_operator_gets_all_of_it(chart):
    objects = chart.render(*KNOWN)
    assert len(boards(objects)) == 3
    assert len(objects.of("PrometheusRule")) == 2


def test_each_dashboard_is_a_config_map_that_grafanas_sidecar_picks(monitored, folder):
    found = boards(monitored)
    assert {item["metadata"]["labels"]["grafana_dashboard"] for item in found} == {"1"}
    assert {item["metadata"]["annotations"]["grafana_folder"] for item in found} == {"Assay"}
    shipped = {json.loads(file.read_text())["uid"] for file in (folder / "files" / "dashboards").iterdir()}
    assert {json.loads(text)["uid"] for item in found for text in item["data"].values()} == shipped


def test_the_sidecars_label_is_yours_to_choose(chart):
    chosen = "monitoring.dashboards.label=team/board,monitoring.dashboards.labelValue=yes,monitoring.dashboards.folder="
    for item in boards(chart.render(*ALWAYS, "--set-string", chosen)):
        assert item["metadata"]["labels"]["team/board"] == "yes"
        assert "annotations" not in item["metadata"]


def test_no_place_is_left_open_in_the_rules_and_they_are_about_this_release_alone(monitored):
    assert "$(" not in json.dumps(monitored.of("PrometheusRule"))
    for rule in rules(monitored):
        assert 'namespace="vision"' in rule["expr"]
        assert ('release="flowers"' in rule["expr"]) != ("assay_variant_condition" in rule["expr"])


def test_objectives_and_runbooks_are_those_of_the_values(chart):
    chosen = "monitoring.slo.availabilityPercent=99.9,monitoring.slo.p99Milliseconds=100"
    objects = chart.render(*ALWAYS, "--set", f"{chosen},monitoring.rules.runbooks=https://wiki.example/assay")
    found = {rule["alert"]: rule for rule in rules(objects) if "alert" in rule}
    assert "> 14.4 * 0.001 " in found["AssayErrorBudgetBurnsFast"]["expr"]
    assert found["AssayLatencyHigh"]["expr"].endswith("> 0.1")
    for name, rule in found.items():
        assert rule["annotations"]["runbook_url"] == f"https://wiki.example/assay/{name}.md"


def test_default_objectives_are_those_of_the_plain_file(monitored, root):
    plain = yaml.safe_load((root / "grafana" / "alerts" / "assay.rules.yaml").read_text())
    wanted = {rule["alert"]: rule for group in plain["groups"] for rule in group["rules"] if "alert" in rule}
    for rule in rules(monitored):
        if "alert" in rule:
            bare = rule["expr"]
            for scope in ('namespace="vision",release="flowers",', 'namespace="vision",'):
                bare = bare.replace(scope, "")
            assert {**rule, "expr": bare} == wanted[rule["alert"]]


def test_without_the_operator_there_are_no_rules_about_it_and_with_all_namespaces_they_are_about_all(chart):
    without = {rule.get("alert") for rule in rules(chart.render(*ALWAYS, "--set", "operator.enabled=false"))}
    assert "AssayShedding" in without
    assert "AssayVariantStalled" not in without
    found = {rule.get("alert"): rule for rule in rules(chart.render(*ALWAYS, "--set", "operator.scope=cluster"))}
    assert "namespace=" not in found["AssayVariantStalled"]["expr"]
    assert "namespace=" in found["AssayOperatorNotReconciling"]["expr"]


def test_scraped_series_carry_their_release_and_keep_the_namespace_of_variants(monitored):
    endpoints = {
        item["metadata"]["name"]: item["spec"]["podMetricsEndpoints"][0] for item in monitored.of("PodMonitor")
    }
    assert set(endpoints) == {"flowers-assay-classifier", "flowers-assay-operator"}
    for endpoint in endpoints.values():
        assert endpoint["relabelings"][0]["targetLabel"] == "release"
    assert endpoints["flowers-assay-operator"]["honorLabels"] is True

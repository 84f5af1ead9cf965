"""Further releases beside the first, and what an upgrade, a rollback or an uninstall leaves in place."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.kube import Cluster

NAMESPACE = "assay-releases"
DEFINITION = "modelvariants.assay.dev"
SWAPPED = "builtin:as-if-swapped"


@pytest.fixture
def elsewhere(cluster, root):
    """A namespace of its own with the strictest Pod Security Standard, gone afterwards with its releases."""
    kubeconfig = Path(os.environ.get("KUBECONFIG") or root / ".cluster" / "kubeconfig")
    there = Cluster(kubeconfig, NAMESPACE, root / ".cluster" / "bin")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    there.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    yield there
    for release in json.loads(there.helm("list", "--output=json")):
        there.helm("uninstall", release["name"], "--wait")
    there.kubectl("delete", "namespace", NAMESPACE, "--wait")


@pytest.fixture
def install(elsewhere, root):
    """Install or upgrade a release there, without service pods; the arguments are values."""

    def run(release, *values):
        chosen = ",".join(("replicas=0", *values))
        chart = str(root / "charts" / "assay")
        return elsewhere.helm("upgrade", "--install", release, chart, "--set", chosen)

    return run


def template_annotations(cluster):
    return cluster.get("deployment", "assay")["spec"]["template"]["metadata"]["annotations"]


def owner(cluster):
    annotations = cluster.get("crd", DEFINITION)["metadata"]["annotations"]
    return annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"]


def test_second_release_in_another_namespace_leaves_the_definition_with_the_first(cluster, elsewhere, install):
    before = cluster.get("crd", DEFINITION)["metadata"]["uid"], owner(cluster)
    notes = install("assay")
    assert f"belongs to release {before[1][0]} in namespace {before[1][1]}" in notes
    assert "CustomResourceDefinition" not in elsewhere.helm("get", "manifest", "assay")
    elsewhere.helm("uninstall", "assay", "--wait")
    assert (cluster.get("crd", DEFINITION)["metadata"]["uid"], owner(cluster)) == before


def test_second_operator_in_one_namespace_is_refused(install):
    install("assay")
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        install("flowers")
    assert 'release "assay" runs an operator in namespace assay-releases already' in refusal.value.stderr
    install("flowers", "operator.enabled=false")


def test_swapped_model_outlives_upgrades_and_rollbacks_that_add_and_drop_annotations(elsewhere, install):
    # The operator of that namespace has no ModelVariant, so nobody but Helm touches what is applied in its place.
    install("assay")
    template = {"metadata": {"annotations": {"assay.dev/model-uri": SWAPPED}}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "assay"}}
    swap = json.dumps(deployment | {"spec": {"template": template}})
    elsewhere.kubectl("apply", "--server-side", "--field-manager=assay-operator", "-f", "-", stdin=swap)
    install("assay", "podAnnotations.owner=vision")
    assert template_annotations(elsewhere)["assay.dev/model-uri"] == SWAPPED
    elsewhere.helm("rollback", "assay", "1")
    after = template_annotations(elsewhere)
    assert "owner" not in after
    assert after["assay.dev/model-uri"] == SWAPPED


def test_whole_chart_is_accepted_by_the_api_server_with_every_option_on(elsewhere, root):
    values = root / "charts" / "assay" / "ci" / "production-values.yaml"
    # The kinds of the Prometheus operator are not known here; whatever else can be switched on is.
    printed = elsewhere.helm(
        "install", "assay", str(root / "charts" / "assay"), "--dry-run=server", "--hide-notes",
        "--values", str(values), "--set", "podMonitor.create=never,monitoring.rules.create=never", "--output=json",
    )  # fmt: skip
    manifest = json.loads(printed)["manifest"]
    accepted = elsewhere.kubectl("apply", "--dry-run=server", "--server-side", "-f", "-", stdin=manifest)
    for kind in ("deployment", "horizontalpodautoscaler", "networkpolicy", "poddisruptionbudget", "rolebinding"):
        assert kind in accepted


def test_operator_may_do_what_it_needs_in_its_namespace_and_nothing_elsewhere(elsewhere, install):
    install("assay")
    account = f"--as=system:serviceaccount:{NAMESPACE}:assay-operator"

    def allowed(verb, resource, *more):
        try:
            return elsewhere.kubectl("auth", "can-i", verb, resource, account, *more).strip() == "yes"
        except subprocess.CalledProcessError as refused:
            if not refused.stdout.startswith("no"):
                raise  # no answer at all
            return False

    assert allowed("update", "modelvariants.assay.dev", "--subresource=status")
    assert allowed("patch", "deployments.apps")
    assert allowed("create", "jobs.batch")
    assert not allowed("update", "modelvariants.assay.dev")
    assert not allowed("delete", "pods")
    assert not allowed("get", "secrets")
    assert not allowed("get", "modelvariants.assay.dev", "--namespace=default")
    assert not allowed("patch", "deployments.apps", "--namespace=default")

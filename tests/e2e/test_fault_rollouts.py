"""Hands that interfere, and variants that vanish: what serves goes on serving."""

import json

import pytest

from support.kube import wait_for


@pytest.fixture(scope="module")
def good(crowd):
    """The release serves a model that passed."""
    variant = crowd.ask(crowd.model("good"))
    settled = variant.settle()
    assert variant.condition("Ready", settled)["status"] == "True", variant.explain()
    return crowd, variant, crowd.annotations()


def put_back(good, edit):
    """What the operator said about an edit of the annotations, which it undid."""
    bench, variant, before = good
    told = bench.events("DriftCorrected")
    edit()
    assert bench.annotations() != before
    wait_for("the annotations as they were", lambda: bench.annotations() == before, 60, variant.explain)
    more = wait_for("an event", lambda: set(bench.events("DriftCorrected")) - set(told), 30, variant.explain)
    wait_for("Ready", lambda: variant.is_true("Ready"), 120, variant.explain)
    assert bench.served() == {bench.packs["good"].digest}
    return more


def test_fault_29_edited_annotations_are_put_back_and_told(good):
    bench, _, _ = good
    other = bench.model("other")
    forged = {"assay.dev/model-uri": other["uri"], "assay.dev/model-digest": other["digest"]}
    patch = {"spec": {"template": {"metadata": {"annotations": forged}}}}
    put_back(
        good,
        lambda: bench.cluster.kubectl("patch", "deployment", "assay", "--type=merge", "--patch", json.dumps(patch)),
    )


def test_fault_34_deleted_variant_is_gone_at_once_and_what_serves_goes_on(bench):
    for name in ("up-checking", "down-checking"):
        bench.target(name)
        bench.ask(bench.model("good", "slow/90"), name=name, target=name)
    for name in ("up-rolling", "down-rolling"):
        bench.target(name, replicas=1)
        bench.ask(bench.model("good"), name=name, target=name, rollout={"soakSeconds": 600})
    vanish(bench, "up-checking", "up-rolling")
    vanish(bench, "down-checking", "down-rolling", operator=False)


def vanish(bench, checking, rolling, *, operator=True):
    bench.running_job(checking)
    wait_for("a new pod", lambda: bench.candidates(rolling), 120, bench.explain)
    if not operator:
        bench.stop_operator()
    untouched = bench.deployment(checking)["metadata"]["generation"]
    bench.cluster.kubectl("delete", "modelvariant", checking, rolling, "--timeout=5s")
    wait_for("the end of their checks", lambda: not bench.jobs(checking) + bench.jobs(rolling), 60)
    bench.cluster.kubectl("rollout", "status", f"deployment/{rolling}", "--timeout=120s")
    assert bench.deployment(checking)["metadata"]["generation"] == untouched
    assert bench.annotations(checking) == {}
    assert bench.annotations(rolling)["assay.dev/model-digest"] == bench.packs["good"].digest
    assert bench.served(rolling) == {bench.packs["good"].digest}

"""The operator's process against a real API server. Pods, and what controllers do, are played by the test."""

import signal

import pytest

from support.apiserver import eventually
from support.packs import BAD, BASE_URI, BUILTIN, BUILTIN_DIGEST, FAST, GOOD, MODEL, OTHER, spec


def test_good_pack_is_checked_rolled_out_and_ready(target, operator):
    target.variant(spec(GOOD, **FAST))
    job = target.new_job()
    assert job["metadata"]["ownerReferences"][0]["uid"] == target.read()["metadata"]["uid"]
    target.wait("Unknown CheckRunning", "CheckPassed")
    assert target.annotations() == {}
    target.finish(job)
    eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
    target.wait("False RolloutInProgress", "RolledOut")
    target.roll()
    target.wait("True Serving")
    status = target.read()["status"]
    assert status["serving"]["digest"] == GOOD["digest"]
    assert status["lastGood"]["digest"] == GOOD["digest"]
    assert status["lastCheck"]["costRatioPermille"] == 560
    assert status["observedGeneration"] == 1
    told = eventually(lambda: "Serving" in target.events() and target.events(), "the last event is posted")
    assert len(told) == len(set(told))
    assert set(told) == {"CheckRunning", "CheckPassed", "RolloutInProgress", "RolloutComplete", "Serving"}
    assert 'assay_check_verdicts_total{reason="CheckPassed",verdict="Pass"} 1.0' in operator.metrics()


def test_only_the_annotations_are_owned_and_a_helm_upgrade_keeps_them(swapped):
    deployment = swapped.read_deployment()
    entries = [entry for entry in deployment["metadata"]["managedFields"] if entry["manager"] == "assay-operator"]
    assert len(entries) == 1
    fields = {f"f:{name}": {} for name in MODEL}
    assert entries[0]["fieldsV1"] == {"f:spec": {"f:template": {"f:metadata": {"f:annotations": fields}}}}
    upgraded = {"spec": {"replicas": 3, "template": {"spec": {"terminationGracePeriodSeconds": 40}}}}
    swapped.api.merge(swapped.path("apps/v1", "deployments", "assay"), upgraded, manager="helm")
    assert swapped.annotations() == MODEL


def test_way_back_to_base_removes_the_annotations_without_a_check(swapped):
    swapped.edit({"model": {"uri": BASE_URI, "digest": None, "precision": None}})
    eventually(lambda: swapped.annotations() == {}, "the annotations are gone")
    swapped.roll()
    swapped.wait("True Serving")
    assert len(swapped.jobs()) == 1
    assert swapped.read()["status"]["serving"]["uri"] == BASE_URI


def test_measured_digest_is_written_for_a_builtin_pack(target, operator):
    target.variant(spec(BUILTIN, **FAST))
    target.finish(target.new_job())
    eventually(
        lambda: target.annotations().get("assay.dev/model-digest") == BUILTIN_DIGEST, "the measured digest is applied"
    )


def test_fault_20_refusal_leaves_the_deployment_untouched(target, operator):
    before = target.read_deployment()["metadata"]
    target.variant(spec(BAD))
    target.finish(target.new_job(), "Fail")
    target.wait("True AccuracyBelowThreshold", "Stalled")
    after = target.read_deployment()["metadata"]
    assert (after["generation"], after["resourceVersion"]) == (before["generation"], before["resourceVersion"])
    assert target.read()["status"]["rejected"][0]["reason"] == "AccuracyBelowThreshold"
    eventually(lambda: target.events().count("AccuracyBelowThreshold") == 1, "one event tells of it")


def test_fault_1_killed_in_mid_check_makes_one_job_and_the_right_verdict(target, run_operator):
    with run_operator() as first:
        target.variant(spec(GOOD, **FAST))
        job = target.new_job()
        first.end(signal.SIGKILL)
    target.finish(job)
    with run_operator():
        eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
    assert len(target.jobs()) == 1


def test_fault_5_two_operators_make_one_job(target, run_operator, tmp_path):
    with run_operator(), run_operator():
        target.variant(spec(GOOD, **FAST))
        target.finish(target.new_job())
        eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
        target.roll()
        target.wait("True Serving")
    assert len(target.jobs()) == 1
    assert target.read_deployment()["metadata"]["generation"] == 2


def test_fault_16_garbage_is_an_error_and_tried_again(target, operator):
    target.variant(spec(GOOD, check={"maxAttempts": 1}))
    target.finish(target.new_job(), message="not a result")
    target.wait("True CheckResultInvalid", "Stalled")
    assert target.annotations() == {}


def test_fault_18_foreign_job_is_neither_adopted_nor_deleted(target, run_operator, root):
    from assay_operator.cluster import parse
    from assay_operator.plan import plan
    from support.world import World

    made = target.variant(spec(GOOD))
    seen = World(template=target.read_deployment()["spec"]["template"])
    name = plan(parse.variant(made), seen.observe()).steps[0].name
    foreign = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}}},
    }
    uid = target.api.create(target.path("batch/v1", "jobs"), foreign)["metadata"]["uid"]
    with run_operator():
        target.wait("True JobNameConflict", "Stalled")
    assert target.api.get(target.path("batch/v1", "jobs", name))["metadata"]["uid"] == uid


def test_fault_21_spec_change_replaces_the_running_check(target, operator):
    target.variant(spec(GOOD))
    old = target.new_job()
    target.edit({"model": OTHER})
    eventually(
        lambda: [job["metadata"]["uid"] for job in target.jobs()] not in ([], [old["metadata"]["uid"]]),
        "another Job is made",
    )
    eventually(
        lambda: old["metadata"]["uid"] not in [job["metadata"]["uid"] for job in target.jobs()], "the old Job is gone"
    )


MISFITS = {"DigestMismatch": "the bytes have changed", "CpuFeatureMissing": "this CPU has no avx512_vnni"}


@pytest.mark.parametrize(("code", "said"), MISFITS.items(), ids=MISFITS)
def test_fault_23_46_pod_whose_pack_does_not_fit_is_rolled_back(swapped, code, said):
    swapped.edit({"model": OTHER})
    eventually(lambda: len(swapped.jobs()) == 2, "a second check is made")
    unfinished = next(job for job in swapped.jobs() if not job["status"].get("conditions"))
    swapped.finish(unfinished)
    eventually(lambda: swapped.annotations()["assay.dev/model-digest"] == OTHER["digest"], "the new pack is applied")
    swapped.roll(ready=False, misfit={"code": code, "message": said})
    eventually(lambda: swapped.annotations() == MODEL, "it is rolled back")
    swapped.roll()
    swapped.wait("False RolledBack")
    swapped.wait("True RolledBack", "Stalled")
    message = next(entry["message"] for entry in swapped.read()["status"]["conditions"] if entry["type"] == "Ready")
    assert said in message
    assert swapped.read()["status"]["rejected"][0]["reason"] == code


def test_fault_46_pod_on_a_node_without_the_features_is_told_and_the_others_serve(swapped):
    path = swapped.path("apps/v1", "deployments", "assay")
    swapped.api.merge(path, {"spec": {"replicas": 3}}, manager="hpa")
    template = swapped.read_deployment()["spec"]["template"]
    meta = swapped.pods()[0]["metadata"]
    copied = {key: meta[key] for key in ("labels", "annotations", "ownerReferences")} | {"name": "assay-elsewhere"}
    misfit = {"code": "CpuFeatureMissing", "message": MISFITS["CpuFeatureMissing"]}
    swapped.pod({"metadata": copied, "spec": template["spec"]}, ready=False, misfit=misfit)
    swapped.deployment_status("assay", updated=3, current=3, available=2, old=0)
    swapped.wait("False CpuFeatureMissing")
    eventually(lambda: "CpuFeatureMissing" in swapped.events(), "an event tells of it")
    assert swapped.annotations() == MODEL
    assert swapped.read()["status"]["serving"]["readyReplicas"] == 2


def test_fault_29_foreign_edit_is_put_back_and_told(swapped):
    edit = {"spec": {"template": {"metadata": {"annotations": {"assay.dev/model-digest": "sha256:" + "e" * 64}}}}}
    swapped.api.merge(swapped.path("apps/v1", "deployments", "assay"), edit, manager="kubectl-edit")
    eventually(lambda: swapped.annotations() == MODEL, "the annotations are put back")
    eventually(lambda: "DriftCorrected" in swapped.events(), "an event tells of it")


def test_annotations_that_somebody_else_co_owns_are_removed_on_the_way_to_base(swapped):
    path = swapped.path("apps/v1", "deployments", "assay")
    headers = {"Content-Type": "application/apply-patch+yaml"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "assay"},
        "spec": {"template": {"metadata": {"annotations": MODEL}}},
    }
    swapped.api.http.patch(path, json=body, headers=headers, params={"fieldManager": "somebody"}).raise_for_status()
    swapped.edit({"model": {"uri": BASE_URI, "digest": None, "precision": None}})
    eventually(lambda: swapped.annotations() == {}, "the annotations are gone")

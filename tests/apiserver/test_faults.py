"""Faults of rollouts, specs and targets, with a real operator before a real API server.

Names of fault rows are those of the operator's fault table.
"""

import signal

from assay_operator.constants import FIELD_MANAGER
from support.apiserver import eventually
from support.controllers import stamp
from support.fault_proxy import Fault, hang
from support.packs import BAD, FAST, GOOD, MODEL, OTHER, spec

SOON = {"rollout": {"soakSeconds": 0, "progressDeadlineSeconds": 10}}


def deployment_path(target) -> str:
    return target.path("apps/v1", "deployments", "assay")


def digest(target) -> str:
    return target.annotations().get("assay.dev/model-digest", "")


def message(target, kind="Ready") -> str:
    return next(entry["message"] for entry in target.read()["status"]["conditions"] if entry["type"] == kind)


def unfinished(target) -> dict:
    """The one Job that runs."""
    running = eventually(
        lambda: [job for job in target.jobs() if not job.get("status", {}).get("conditions")], "a check is made"
    )
    assert len(running) == 1
    return running[0]


def begin_rollout(target, model=OTHER) -> None:
    """Ask for a model, have it pass, and see it applied; its pods are not made yet."""
    target.edit({"model": model})
    target.finish(unfinished(target))
    eventually(lambda: digest(target) == model["digest"], "the new pack is applied")


def test_fault_2_killed_between_pass_and_apply_applies_once_and_checks_no_second_time(target, proxy, run_operator):
    with (
        run_operator(url=proxy.url) as first,
        proxy.fault(Fault(act=hang, method="PATCH", path="/deployments/")) as cut,
    ):
        target.variant(spec(GOOD, **FAST))
        target.finish(target.new_job())
        eventually(lambda: cut.met, "it is about to apply")
        first.end(signal.SIGKILL)
    assert target.annotations() == {}
    with run_operator():
        eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
        target.roll()
        target.wait("True Serving")
    assert len(target.jobs()) == 1
    assert target.read_deployment()["metadata"]["generation"] == 2


def test_fault_3_killed_in_mid_rollout_and_in_mid_rollback_goes_on(swapped, run_operator, operator):
    begin_rollout(swapped)
    operator.end(signal.SIGKILL)
    swapped.roll(ready=False, misfit={"code": "PackInvalid", "message": "no model"})
    with run_operator() as second:
        eventually(lambda: digest(swapped) == GOOD["digest"], "it is rolled back")
        second.end(signal.SIGKILL)
    swapped.roll()
    with run_operator():
        swapped.wait("False RolledBack")
        assert swapped.condition("Stalled") == "True RolledBack"
    assert len(swapped.jobs()) == 2


def test_fault_3_deadline_of_a_rollout_counts_from_the_apply_and_not_from_a_restart(target, run_operator):
    with run_operator() as first:
        target.variant(spec(GOOD, **SOON))
        target.finish(target.new_job())
        eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
        first.end(signal.SIGKILL)
    target.roll(ready=False)
    applied = next(
        entry["time"] for entry in target.read_deployment()["metadata"]["managedFields"]
        if entry["manager"] == FIELD_MANAGER
    )  # fmt: skip
    eventually(lambda: stamp(SOON["rollout"]["progressDeadlineSeconds"]) > applied, "the deadline goes by")
    with run_operator():
        eventually(lambda: target.annotations() == {}, "it is rolled back to the base")
        target.roll()
        target.wait("False RolledBack")


def test_fault_4_two_spec_changes_while_it_was_down_count_as_the_latest_one(swapped, operator, run_operator):
    operator.end()
    swapped.edit({"model": BAD})
    swapped.edit({"model": OTHER})
    with run_operator():
        arguments = unfinished(swapped)["spec"]["template"]["spec"]["containers"][0]["args"]
        assert f"--candidate-digest={OTHER['digest']}" in arguments
        assert len(swapped.jobs()) == 2


def test_fault_22_verdict_of_the_same_inputs_is_used_again(swapped):
    begin_rollout(swapped)
    swapped.roll()
    swapped.wait("True Serving")
    swapped.edit({"model": GOOD})
    eventually(lambda: swapped.annotations() == MODEL, "what passed before is applied")
    swapped.roll()
    swapped.wait("True Serving")
    assert len(swapped.jobs()) == 2


def test_fault_26_rollout_blocked_by_quota_is_rolled_back_early_and_quoted(swapped):
    begin_rollout(swapped)
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
              "message": 'pods "assay" is forbidden: exceeded quota: few',
              "lastUpdateTime": stamp(), "lastTransitionTime": stamp()}  # fmt: skip
    kept = swapped.read_deployment()["status"]["conditions"]
    status = {
        "status": {
            "conditions": [*kept, failed],
            "observedGeneration": swapped.read_deployment()["metadata"]["generation"],
        }
    }
    swapped.api.merge(f"{deployment_path(swapped)}/status", status)
    eventually(lambda: swapped.annotations() == MODEL, "it is rolled back")
    swapped.roll()
    swapped.wait("False RolledBack")
    assert "exceeded quota: few" in message(swapped)


def test_fault_27_rollback_that_cannot_complete_is_told_kept_and_gone_on_with(swapped):
    swapped.edit(SOON)
    begin_rollout(swapped)
    swapped.roll(ready=False, misfit={"code": "PackInvalid", "message": "no model"})
    eventually(lambda: swapped.annotations() == MODEL, "it is rolled back")
    swapped.roll(ready=False)
    swapped.wait("True RollbackFailed", "Stalled")
    assert "nothing is scaled down" in message(swapped)
    deployment = swapped.read_deployment()
    assert (deployment["spec"]["replicas"], swapped.annotations()) == (2, MODEL)
    for pod in swapped.pods():
        swapped.api.http.request(
            "DELETE", swapped.path("v1", "pods", pod["metadata"]["name"]), json={"gracePeriodSeconds": 0}
        )
    swapped.api.delete(swapped.path("apps/v1", "replicasets", f"assay-h{deployment['metadata']['generation']}"))
    swapped.roll()
    swapped.wait("False RolledBack")


def test_fault_28_spec_reverted_to_the_last_good_in_mid_rollout_needs_no_check(swapped):
    begin_rollout(swapped)
    swapped.edit({"model": GOOD})
    eventually(lambda: swapped.annotations() == MODEL, "the last good is back")
    swapped.roll()
    swapped.wait("True Serving")
    assert len(swapped.jobs()) == 2


def test_fault_32_autoscaler_in_mid_rollout_keeps_its_replicas(swapped):
    begin_rollout(swapped)
    swapped.api.merge(deployment_path(swapped), {"spec": {"replicas": 5}}, manager="hpa")
    swapped.wait("False RolloutInProgress", "RolledOut")
    swapped.roll()
    swapped.wait("True Serving")
    deployment = swapped.read_deployment()
    assert (deployment["spec"]["replicas"], len(swapped.pods())) == (5, 5)
    assert swapped.read()["status"]["serving"]["readyReplicas"] == 5


def test_fault_42_suspended_in_mid_rollout_writes_nothing_and_goes_on_telling(swapped):
    begin_rollout(swapped)
    swapped.edit({"suspend": True})
    swapped.wait("False Suspended")
    foreign = {"spec": {"template": {"metadata": {"annotations": {"assay.dev/variant": "somebody"}}}}}
    edited = swapped.api.merge(deployment_path(swapped), foreign, manager="kubectl-edit")
    swapped.roll()
    eventually(lambda: swapped.read()["status"]["serving"]["digest"] == OTHER["digest"], "it tells what serves")
    assert swapped.read_deployment()["metadata"]["generation"] == edited["metadata"]["generation"]
    swapped.edit({"suspend": False})
    eventually(lambda: swapped.annotations()["assay.dev/variant"] == "assay", "it acts again")


def test_fault_43_candidate_as_its_own_yardstick_is_neither_checked_nor_rolled_out(swapped):
    for yardstick in (OTHER, {"uri": "https://packs.example/repack.tar", "digest": OTHER["digest"]}):
        compare = {"uri": yardstick["uri"], "digest": yardstick["digest"]}
        swapped.edit({"model": OTHER, "check": {"compareWith": compare}})
        swapped.wait("False YardstickNotApproved", "CheckPassed")
        assert (len(swapped.jobs()), swapped.annotations()) == (1, MODEL)


def test_fault_47_image_built_anew_under_the_same_name_is_checked_again(swapped):
    for pod in swapped.pods():
        status = pod["status"]
        status["containerStatuses"][0]["imageID"] = "sha256:rebuilt"
        swapped.api.merge(swapped.path("v1", "pods", pod["metadata"]["name"], "status"), {"status": status})
    swapped.wait("False Unverified", "Available")
    unfinished(swapped)
    assert (len(swapped.jobs()), swapped.annotations()) == (2, MODEL)


def test_fault_48_deployment_changed_between_pass_and_apply_is_planned_and_checked_anew(target, proxy, run_operator):
    def container(workload) -> dict:
        return workload["spec"]["template"]["spec"]["containers"][0]

    async def change_first(passed, request):
        changed = container(target.read_deployment()) | {"image": "x/assay:0.2.0"}
        body = {"spec": {"template": {"spec": {"containers": [changed]}}}}
        target.api.merge(deployment_path(target), body, manager="helm")

    between = Fault(act=change_first, method="PATCH", path="/deployments/", times=1)
    with run_operator(url=proxy.url), proxy.fault(between):
        target.variant(spec(GOOD, **FAST))
        first = target.new_job()
        target.finish(first)
        eventually(lambda: container(target.read_deployment())["image"] == "x/assay:0.2.0", "it is changed in between")
        target.roll()  # a check begins once a pod tells what the new image is
        second = unfinished(target)
        assert container(second)["image"] == "x/assay:0.2.0"
        assert target.annotations() == {}
    assert [one.status for one in proxy.seen if one.method == "PATCH" and "/deployments/" in one.path] == [409]

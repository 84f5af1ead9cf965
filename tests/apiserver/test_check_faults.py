"""Checks that do not start, or lose their pod, with a real operator before a real API server.

Names of fault rows are those of the operator's fault table.
"""

import pytest

from support.apiserver import eventually
from support.controllers import stamp
from support.packs import GOOD, MODEL, result, spec

SOON_S = 10  # the least that the CRD admits
IMPATIENT = {"check": {"startDeadlineSeconds": SOON_S, "maxAttempts": 1}}


def pod_of(target, job, suffix="a") -> dict:
    """A pod as the Job controller makes it: not scheduled yet."""
    uid, template = job["metadata"]["uid"], job["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": uid, "controller": True}
    meta = {
        "name": f"{job['metadata']['name']}-{suffix}",
        "labels": template["metadata"]["labels"],
        "ownerReferences": [owner],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
    return target.api.create(target.path("v1", "pods"), body)


def set_status(target, pod, **status) -> None:
    target.api.merge(target.path("v1", "pods", pod["metadata"]["name"], "status"), {"status": status})


def unschedulable(target, job) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": stamp(),
                 "message": "0/1 nodes are available: 1 Insufficient cpu."}  # fmt: skip
    set_status(target, pod_of(target, job), phase="Pending", conditions=[condition])


def image_not_pulled(target, job) -> None:
    pod = pod_of(target, job)
    waiting = {"reason": "ImagePullBackOff", "message": "no such image: x/assay:0.2.0"}
    container = {"name": pod["spec"]["containers"][0]["name"], "ready": False, "restartCount": 0, "image": "x"}
    container |= {"imageID": "", "state": {"waiting": waiting}}
    set_status(target, pod, phase="Pending", containerStatuses=[container])


def not_created(target, job) -> None:
    """What the Job controller tells where quota, PodSecurity or a LimitRange refuses the pod."""
    involved = {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "namespace": target.name,
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{job['metadata']['name']}.1"},
        "involvedObject": involved,
        "reason": "FailedCreate",
        "type": "Warning",
        "message": 'pods "x" is forbidden: violates PodSecurity "restricted:latest"',
        "firstTimestamp": stamp(),
        "lastTimestamp": stamp(),
        "count": 1,
        "source": {"component": "job-controller"},
    }
    target.api.create(target.path("v1", "events"), event)


@pytest.mark.parametrize(
    ("happens", "reason", "quoted"),
    [
        (image_not_pulled, "CheckImagePullFailed", "no such image: x/assay:0.2.0"),
        (unschedulable, "CheckUnschedulable", "Insufficient cpu"),
        (not_created, "CheckUnschedulable", "violates PodSecurity"),
    ],
)
def test_fault_11_12_check_that_does_not_start_stalls_and_is_quoted(target, operator, happens, reason, quoted):
    target.variant(spec(GOOD, **IMPATIENT))
    happens(target, target.new_job())
    target.wait(f"True {reason}", "Stalled")
    told = next(entry["message"] for entry in target.read()["status"]["conditions"] if entry["type"] == "CheckPassed")
    assert quoted in told
    assert target.annotations() == {}


def test_fault_11_pack_that_cannot_be_fetched_is_an_error_and_never_a_pass(target, operator):
    target.variant(spec(GOOD, check={"maxAttempts": 1}))
    job = target.new_job()
    target.finish(job, "Error", exit_code=3, reason="PackUnavailable")
    target.wait("True PackUnavailable", "Stalled")
    assert target.annotations() == {}


def test_fault_14_drained_check_is_no_attempt_and_its_replacement_counts(target, operator):
    target.variant(spec(GOOD, rollout={"soakSeconds": 0}))
    job = target.new_job()
    drained = pod_of(target, job, "zzzzz")  # if both are of the same second, its name is the later one
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                  "message": "Eviction API: evicting", "lastTransitionTime": stamp()}  # fmt: skip
    set_status(target, drained, phase="Failed", conditions=[disruption])
    # The Job controller makes another pod: the policy ignores failures of this kind.
    rules = job["spec"]["podFailurePolicy"]["rules"]
    assert {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]} in rules
    target.finish(job)
    eventually(lambda: target.annotations() == MODEL, "the verdict of the second pod counts")
    status = target.read()["status"]
    assert (status["target"]["attempt"], len(target.jobs())) == (1, 1)


@pytest.mark.parametrize("lie", ["another Job's", "other inputs'"])
def test_fault_16_result_with_a_wrong_nonce_is_not_believed(target, operator, lie):
    from assay_operator.cluster import parse

    target.variant(spec(GOOD, check={"maxAttempts": 1}))
    job = target.new_job()
    changes = {"jobUID": "0" * 8} if lie == "another Job's" else {"inputsHash": "f" * 64}
    target.finish(job, message=result(parse.check_job(job, (), ""), "Pass", **changes))
    target.wait("True CheckResultInvalid", "Stalled")
    assert target.annotations() == {}

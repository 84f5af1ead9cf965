"""What the operator reads out of API objects."""

import pytest

from assay_operator.cluster import parse
from assay_operator.cluster.observe import label_selector
from support.packs import GOOD, MODEL, spec, template

ANNOTATIONS = {f"f:{name}": {} for name in MODEL}


def managed(manager, fields, operation="Apply", time="2026-01-01T00:00:10Z"):
    nested = {"f:spec": {"f:template": {"f:metadata": {"f:annotations": fields}}}}
    return {"manager": manager, "operation": operation, "time": time, "fieldsV1": nested}


def deployment(annotations=MODEL, entries=(), **status):
    made = template()
    made["metadata"]["annotations"] = dict(annotations)
    meta = {"name": "assay", "uid": "u", "resourceVersion": "7", "generation": 3, "managedFields": list(entries)}
    return {"metadata": meta, "spec": {"template": made}, "status": status}


@pytest.mark.parametrize(
    ("annotations", "entries", "owned"),
    [
        (MODEL, [managed("assay-operator", ANNOTATIONS)], True),
        ({}, [], True),
        (MODEL, [managed("assay-operator", ANNOTATIONS, operation="Update")], False),
        (MODEL, [managed("helm", ANNOTATIONS)], False),
        (MODEL, [managed("assay-operator", ANNOTATIONS), managed("kubectl", ANNOTATIONS)], False),
        (MODEL, [managed("assay-operator", dict(list(ANNOTATIONS.items())[:2]))], False),
        (MODEL, [managed("assay-operator", ANNOTATIONS), managed("helm", {"f:another": {}})], True),
    ],
)
def test_annotations_are_owned_when_nobody_else_has_a_share(annotations, entries, owned):
    assert parse.target(deployment(annotations, entries)).owned is owned


def test_time_of_the_last_apply_is_the_api_servers():
    read = parse.target(
        deployment(entries=[managed("helm", {}, time="2026-01-02T00:00:00Z"), managed("assay-operator", ANNOTATIONS)])
    )
    assert read.applied.isoformat() == "2026-01-01T00:00:10+00:00"
    assert read.model.digest == GOOD["digest"]
    assert read.labelled is False


@pytest.mark.parametrize(
    ("status", "complete", "rolled"),
    [
        ({"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, True, True),
        ({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, False, False),
        ({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}, False, False),
        ({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}, False, True),
        ({}, False, False),
    ],
)
def test_rollout_is_complete_only_when_no_older_pod_is_left(status, complete, rolled):
    available = {"type": "Available", "status": "True", "reason": "", "message": ""}
    read = parse.target(deployment(**status, conditions=[available]))
    assert (read.complete, read.rolled) == (complete, rolled)


def test_pod_tells_how_its_previous_run_ended_and_why_it_waits():
    ended = {
        "exitCode": 78,
        "reason": "Error",
        "message": '{"code":"DigestMismatch"}',
        "finishedAt": "2026-01-01T00:00:00Z",
    }
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s"}
    own = {"name": "classifier", "restartCount": 2, "state": {"waiting": waiting}, "lastState": {"terminated": ended}}
    other = {"name": "sidecar", "restartCount": 9, "state": {"running": {}}}
    meta = {"name": "p", "uid": "u", "annotations": MODEL}
    read = parse.pod(
        {"metadata": meta, "status": {"phase": "Running", "containerStatuses": [other, own]}}, "classifier"
    )
    assert (read.restarts, read.ended.exit_code, read.waiting_reason) == (2, 78, "CrashLoopBackOff")
    assert read.ready is False
    assert read.started is None


@pytest.mark.parametrize(("status", "disrupted"), [("True", True), ("False", False)])
def test_pod_tells_whether_kubernetes_ended_it(status, disrupted):
    conditions = [{"type": "DisruptionTarget", "status": status, "reason": "EvictionByEvictionAPI"}]
    meta = {"name": "p", "uid": "u"}
    read = parse.pod({"metadata": meta, "status": {"phase": "Failed", "conditions": conditions}}, "classifier")
    assert read.disrupted is disrupted


def test_pod_without_a_status_closes_the_gate():
    read = parse.pod({"metadata": {"name": "p", "uid": "u"}}, "classifier")
    assert (read.ready, read.ended, read.model.is_base) == (False, None, True)


def test_variant_with_a_status_of_another_kind_counts_as_new():
    meta = {
        "namespace": "n",
        "name": "assay",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    read = parse.variant({"metadata": meta, "spec": spec(), "status": {"lastGood": "me"}})
    assert read.status.last_good is None
    assert isinstance(parse.variant({"metadata": meta, "spec": {}}).spec, str)


def test_selector_is_written_as_the_api_takes_it():
    selector = {
        "matchLabels": {"app": "assay"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "x", "operator": "Exists"},
            {"key": "y", "operator": "DoesNotExist"},
            {"key": "z", "operator": "NotIn", "values": ["c"]},
        ],
    }
    assert label_selector(selector) == "app=assay,tier in (a,b),x,!y,z notin (c)"

"""The ModelVariant resource on a real API server: what it takes, what it refuses, what it fills in and prints."""

import copy

import pytest

DIGEST = "sha256:" + "a" * 64
GOOD = {
    "targetRef": {"name": "assay"},
    "model": {"uri": "https://x.example/m.tar", "digest": DIGEST, "precision": "INT8"},
}


def changed(path: str, value) -> dict:
    spec = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    where = spec
    for parent in parents:
        where = where.setdefault(parent, {})
    if value is None:
        where.pop(last, None)
    else:
        where[last] = value
    return spec


def post(namespace, spec, name="tried"):
    body = {"apiVersion": "assay.dev/v1alpha1", "kind": "ModelVariant", "metadata": {"name": name}, "spec": spec}
    return namespace.api.http.post(
        namespace.path("assay.dev/v1alpha1", "modelvariants") + "?dryRun=All&fieldValidation=Strict", json=body
    )


@pytest.mark.parametrize(
    "spec",
    [
        GOOD,
        changed("model", {"uri": "builtin:efficientnet-lite0-int8"}),
        changed("model", {"uri": "s3://bucket/key.tar", "digest": DIGEST}),
        changed("model", {"uri": "file:///packs/m.tar", "digest": DIGEST}),
        changed("check", {"compareWith": {"uri": "builtin:x"}, "dataset": {"uri": "builtin:photos"}}),
        changed("check", {"minTop3ContainmentPermille": 0, "minTop1AgreementPermille": 1}),
        changed("check", {"minTop3ContainmentPermille": 0, "maxTop1DropPermille": 0}),
        changed("check", {"cpuRequest": 1}),
        changed("check", {"cpuRequest": "250m"}),
        changed("suspend", True),
    ],
)
def test_good_spec_is_taken(namespace, spec):
    answer = post(namespace, spec)
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (changed("targetRef", None), "targetRef"),
        (changed("model", None), "model"),
        (changed("model.uri", "ftp://x/y"), "uri"),
        (changed("model.uri", "builtin:../etc"), "uri"),
        (changed("model.uri", "https://user:secret@x.example/m.tar"), "uri"),
        (changed("model.uri", "https://x.example/m.tar?token=secret"), "uri"),
        (changed("model.digest", None), "digest is required"),
        (changed("model.digest", "sha256:abc"), "digest"),
        (changed("model.precision", "FP16"), "precision"),
        (changed("check.minTop3ContainmentPermille", 0), "at least one accuracy criterion"),
        (changed("check.minTop3ContainmentPermille", 1001), "minTop3ContainmentPermille"),
        (changed("check.minTop3ContainmentPermille", 98.5), "minTop3ContainmentPermille"),
        (changed("check.confidencePercent", 100), "confidencePercent"),
        (changed("check.maxAttempts", 0), "maxAttempts"),
        (changed("check.timeoutSeconds", 1), "timeoutSeconds"),
        (changed("check.cpuRequest", "lots"), "cpuRequest"),
        (changed("check.compareWith", {"uri": "https://x.example/m.tar"}), "digest is required"),
        (changed("check.dataset", {"uri": "https://x.example/d.tar"}), "digest is required"),
        (changed("rollout.progressDeadlineSeconds", 1), "progressDeadlineSeconds"),
        (changed("container", ""), "container"),
        (changed("unknown", 1), "unknown"),
    ],
)
def test_bad_spec_is_refused_with_its_reason(namespace, spec, why):
    answer = post(namespace, spec)
    assert answer.status_code in (400, 422), answer.text
    assert why in answer.json()["message"]


def test_name_too_long_for_a_label_is_refused(namespace):
    assert "63 characters" in post(namespace, GOOD, "n" * 64).json()["message"]
    assert post(namespace, GOOD, "n" * 63).status_code == 201


def test_target_is_immutable_and_all_else_is_not(namespace):
    namespace.variant(GOOD)
    with pytest.raises(AssertionError, match="targetRef is immutable"):
        namespace.edit({"targetRef": {"name": "another"}})
    assert namespace.edit({"retryToken": "1"})["metadata"]["generation"] == 2


def test_defaults_are_those_the_operator_believes_in(namespace):
    from assay_operator.models.spec import Spec

    filled = namespace.variant(GOOD)["spec"]
    assert Spec.model_validate(filled) == Spec.model_validate(GOOD)
    assert filled["check"]["minTop3ContainmentPermille"] == 980


def test_status_is_a_subresource(namespace):
    made = namespace.variant(GOOD)
    path = namespace.path("assay.dev/v1alpha1", "modelvariants", "assay")
    assert "status" not in namespace.api.merge(path, {"status": {"phase": "Ready"}})
    after = namespace.api.merge(f"{path}/status", {"status": {"phase": "Ready"}, "spec": {"retryToken": "x"}})
    assert after["status"]["phase"] == "Ready"
    assert after["spec"] == made["spec"]
    assert after["metadata"]["generation"] == 1


def test_everything_the_operator_may_write_is_in_the_schema(namespace, crd):
    from assay_operator.models.conditions import Condition
    from assay_operator.models.status import (
        Change,
        LastCheck,
        LastGood,
        Pack,
        Rejected,
        Serving,
        Status,
        TargetStatus,
    )

    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]

    def names(model):
        return {field.serialization_alias or field.alias or name for name, field in model.model_fields.items()}

    assert names(Status) == set(schema)
    for model, field in (
        (Serving, "serving"),
        (LastGood, "lastGood"),
        (Pack, "incumbent"),
        (Pack, "base"),
        (TargetStatus, "target"),
        (LastCheck, "lastCheck"),
    ):
        assert names(model) == set(schema[field]["properties"]), field
    for model, field in ((Rejected, "rejected"), (Change, "history"), (Condition, "conditions")):
        assert names(model) == set(schema[field]["items"]["properties"]), field


def test_printed_columns(namespace):
    namespace.variant(GOOD)
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = namespace.api.http.get(namespace.path("assay.dev/v1alpha1", "modelvariants"), headers=headers).json()
    columns = [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0]
    assert columns == ["Name", "READY", "SERVING", "TARGET", "CHECK", "TOP3", "COST", "REASON", "AGE"]
    assert [column["name"] for column in table["columnDefinitions"] if column["priority"] == 1] == ["MESSAGE"]

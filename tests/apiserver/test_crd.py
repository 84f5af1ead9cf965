"""The ModelVariant resource on a real API server: what it takes, what it refuses, what it fills in and prints."""

import copy
from collections.abc import Iterator

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
        *(changed("model.uri", f"{scheme}://x.example/m.tar") for scheme in ("http", "https", "gs", "az")),
    ],
)
def test_good_spec_is_taken(namespace, spec):
    answer = post(namespace, spec)
    assert answer.status_code == 201, answer.text


BAD = (
    ("targetRef", None, "targetRef"),
    ("targetRef", {}, "targetRef.name"),
    ("targetRef.name", "", "targetRef.name"),
    ("container", "", "container"),
    ("model", None, "model"),
    ("model.uri", None, "model.uri"),
    ("model.uri", "ftp://x/y", "uri"),
    ("model.uri", "builtin:../etc", "uri"),
    ("model.uri", "https://user:secret@x.example/m.tar", "uri"),
    ("model.uri", "https://x.example/m.tar?token=secret", "uri"),
    ("model.digest", None, "digest is required, except for a builtin pack"),
    ("model.digest", "sha256:abc", "digest"),
    ("model.digest", "sha512:" + "a" * 64, "digest"),
    ("model.precision", "FP16", "precision"),
    ("check.minTop3ContainmentPermille", 0, "at least one accuracy criterion must be on"),
    ("check.minTop3ContainmentPermille", 98.5, "minTop3ContainmentPermille"),
    ("check.cpuRequest", "lots", "cpuRequest"),
    ("check.compareWith", {"digest": DIGEST}, "compareWith.uri"),
    ("check.compareWith", {"uri": "https://x.example/m.tar"}, "digest is required, except for a builtin pack"),
    ("check.compareWith.uri", "ftp://x/y", "compareWith.uri"),
    ("check.compareWith", {"uri": "builtin:x", "digest": "abc"}, "compareWith.digest"),
    ("check.dataset", {"digest": DIGEST}, "dataset.uri"),
    ("check.dataset", {"uri": "https://x.example/d.tar"}, "digest is required, except for a builtin dataset"),
    ("check.dataset.uri", "ftp://x/y", "dataset.uri"),
    ("check.dataset", {"uri": "builtin:x", "digest": "abc"}, "dataset.digest"),
    ("suspend", "yes", "suspend"),
    ("unknown", 1, "unknown"),
)
"""Where, what, and a part of the refusal."""


@pytest.mark.parametrize(("path", "value", "why"), BAD)
def test_bad_spec_is_refused_with_its_reason(namespace, path, value, why):
    answer = post(namespace, changed(path, value))
    assert answer.status_code in (400, 422), answer.text
    assert why in answer.json()["message"]


def rules(schema: dict, path: str = "") -> Iterator[tuple[str, str]]:
    """Each rule that is no bound: where it holds, and what its refusal must have in it."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield path, rule["message"]
    for name in schema.get("required", []):
        yield path, f"{path}.{name}".lstrip(".")
    for name, field in schema.get("properties", {}).items():
        inner = f"{path}.{name}".lstrip(".")
        if {"pattern", "enum"} & set(field):
            yield inner, name
        yield from rules(field, inner)


def test_every_rule_of_the_schema_is_tried(crd):
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    tried = [(path, why) for path, _, why in BAD]
    for where, told in rules(schema):
        if "immutable" not in told:  # of a change, and tried as one
            mine = [why for path, why in tried if path.startswith(where) or where.endswith(why)]
            assert any(why in told or told in why for why in mine), (where, told)


def bounds(schema: dict, path: str = "") -> Iterator[tuple[str, object, object]]:
    """Each bound: where it is, the last value within it, and the first beyond."""
    for name, field in schema.get("properties", {}).items():
        inner = f"{path}.{name}".lstrip(".")
        yield from bounds(field, inner)
        for kind, beyond in (("minimum", -1), ("maximum", 1)):
            if kind in field:
                yield inner, field[kind], field[kind] + beyond
        if "maxLength" in field and name != "digest":  # a digest's pattern leaves it but one length
            begin = "https://x.example/" if name == "uri" else ""
            longest = begin + "a" * (field["maxLength"] - len(begin))
            yield inner, longest, longest + "a"


def test_every_bound_is_within_and_one_beyond_is_refused(namespace, crd):
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    found = list(bounds(schema))
    assert ("check.confidencePercent", 80, 79) in found
    assert ("check.confidencePercent", 99, 100) in found
    for path, within, beyond in found:
        for value, taken in ((within, True), (beyond, False)):
            spec = changed(path, value)
            if path.endswith("minTop3ContainmentPermille"):
                spec["check"]["minTop1AgreementPermille"] = 1  # one criterion must be on
            if path.startswith("check.") and path.endswith(".uri"):
                spec["check"][path.split(".")[1]]["digest"] = DIGEST
            answer = post(namespace, spec)
            assert (answer.status_code == 201) is taken, (path, value, answer.text)
            assert taken or path.rpartition(".")[2] in answer.json()["message"]


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
    unseen = {"observedGeneration": -1}  # what is there before anybody has looked
    assert namespace.api.merge(path, {"status": {"phase": "Ready"}})["status"] == unseen
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

"""What the operator and people may do: no more than the reasons beside the rules say."""

import re

import pytest

pytestmark = pytest.mark.system

WRITING = {"create", "update", "patch", "delete", "deletecollection"}


def rights(role):
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture(params=["namespace", "cluster"])
def scoped(request, chart):
    return request.param, chart.render("--set", f"operator.scope={request.param}")


def test_operator_may_write_only_these(scoped):
    scope, objects = scoped
    role = objects.get(
        *(("Role", "assay-operator") if scope == "namespace" else ("ClusterRole", "assay:assay-operator"))
    )
    assert {right for right in rights(role) if right[2] in WRITING} == {
        ("assay.dev", "modelvariants/status", "update"),
        ("apps", "deployments", "patch"),
        ("batch", "jobs", "create"),
        ("batch", "jobs", "delete"),
        ("events.k8s.io", "events", "create"),
    }


def test_nobody_gets_a_wildcard_or_secrets(scoped):
    _, objects = scoped
    for role in objects.of("Role") + objects.of("ClusterRole"):
        for group, resource, verb in rights(role):
            assert "*" not in (group, resource, verb)
            assert resource not in {"secrets", "serviceaccounts", "pods/exec", "roles", "clusterroles"}


def test_every_rule_of_the_operator_has_its_reason_above_it(folder):
    lines = (folder / "templates" / "_rules.tpl").read_text().splitlines()
    rules = [number for number, line in enumerate(lines) if re.match(r"- (apiGroups|nonResourceURLs)", line)]
    assert rules
    assert all(lines[number - 1].startswith("# ") for number in rules)


def test_readme_gives_a_reason_for_each_right_and_lists_no_other(folder, scoped):
    scope, objects = scoped
    kind = "Role" if scope == "namespace" else "ClusterRole"
    (role,) = (item for item in objects.of(kind) if item["metadata"]["name"].endswith("-operator"))
    text = (folder / "README.md").read_text()
    told = re.findall(r"^\| `([a-z]+)\.?([a-z0-9.]*)(/status)?` \| ([a-z]+) \| .+ \|$", text, re.MULTILINE)
    assert len(told) == len(set(told))
    assert {(group, resource + sub, verb) for resource, group, sub, verb in told} == rights(role)


def test_rights_are_bound_to_the_operators_account_alone(scoped):
    scope, objects = scoped
    (binding,) = objects.of("RoleBinding" if scope == "namespace" else "ClusterRoleBinding")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "assay-operator", "namespace": "assay"}]
    account = objects.get("Deployment", "assay-operator")["spec"]["template"]["spec"]["serviceAccountName"]
    assert account == "assay-operator"
    kinds = {item["kind"] for item in objects}
    assert ("ClusterRole" in kinds) == (scope == "cluster")


def test_operator_looks_at_the_namespaces_it_has_rights_in(scoped):
    scope, objects = scoped
    (item,) = objects.get("Deployment", "assay-operator")["spec"]["template"]["spec"]["containers"]
    env = {variable["name"]: variable["value"] for variable in item["env"]}
    assert env["ASSAY_OPERATOR_NAMESPACES"] == ("assay" if scope == "namespace" else "")


def test_people_may_edit_variants_but_never_their_status(scoped):
    scope, objects = scoped
    kind, prefix = ("Role", "assay") if scope == "namespace" else ("ClusterRole", "assay:assay")
    edit, view = (rights(objects.get(kind, f"{prefix}-modelvariant-{role}")) for role in ("edit", "view"))
    assert ("assay.dev", "modelvariants", "patch") in edit
    assert not {right for right in edit if right[1] == "modelvariants/status" and right[2] in WRITING}
    assert not {right for right in view if right[2] in WRITING}


def test_roles_for_people_join_the_built_in_ones_only_with_cluster_scope(scoped):
    scope, objects = scoped
    labels = {key for item in objects for key in item["metadata"].get("labels", {})}
    assert ("rbac.authorization.k8s.io/aggregate-to-edit" in labels) == (scope == "cluster")

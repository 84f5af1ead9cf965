"""The chart's guard on a real API server: whom it stops, from what, and whom it lets through."""

import contextlib
import json
import os
from dataclasses import dataclass

import pytest

from support.apiserver import eventually
from support.chart import Chart, find_helm
from support.controllers import Namespace
from support.operator_process import OperatorProcess
from support.packs import FAST, GOOD, MODEL, OTHER, spec, template
from support.rights import Rendered, token_of

DIGEST = "assay.dev/model-digest"
FOREIGN = "sha256:" + "e" * 64
BINDING = "ValidatingAdmissionPolicyBinding"
CONTROLLER = "system:serviceaccount:kube-system:deployment-controller"
MERGE, JSON_PATCH, APPLY = (
    f"application/{kind}" for kind in ("merge-patch+json", "json-patch+json", "apply-patch+yaml")
)


@dataclass
class Guarded:
    """A namespace behind the guard, as three users meet it: Kubernetes' controllers, an administrator, the operator."""

    controllers: Namespace
    intruder: Namespace
    token: str
    rendered: Rendered

    @property
    def user(self) -> str:
        """The administrator's name."""
        return f"system:serviceaccount:{self.intruder.name}:admin"

    def lift(self) -> None:
        """Delete the guard's bindings, as its refusal says."""
        self.rendered.uninstall(self.intruder.api, self.intruder, BINDING)

    def send(self, method: str, path: str, body: object, kind: str = "application/json", **query) -> tuple[int, str]:
        """What the API server answers the administrator: status and message."""
        headers = {"Content-Type": kind}
        options = {"params": query} if query else {}  # they would replace those of the path
        answer = self.intruder.api.http.request(method, path, content=json.dumps(body), headers=headers, **options)
        return answer.status_code, answer.json().get("message", "")


@pytest.fixture(scope="module")
def guard(root, api, operator_rules):
    """Set the guard up around a new namespace; used as `guard("namespace")`. All are lifted at the end."""
    chart = Chart(root / "charts" / "assay", find_helm(root))
    made = []

    def around(scope: str) -> Guarded:
        name = f"guard-{len(made)}-{os.getpid()}"
        namespace = Namespace(api, name)
        rendered = Rendered(chart, scope, guard=True)
        token = rendered.install(api, namespace)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "admin"}}
        api.create(namespace.path("v1", "serviceaccounts"), account)
        for member in (f"system:serviceaccount:{name}:admin", CONTROLLER):
            api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", _cluster_admin(name, member))
        guarded = Guarded(
            namespace.acting_as(user=CONTROLLER),
            namespace.acting_as(token=token_of(namespace, "admin")),
            token,
            rendered,
        )
        made.append(guarded)
        eventually(lambda: _refused(guarded, "pods") and _refused(guarded, "deployments"), "the guard is up")
        return guarded

    yield around
    for guarded in made:
        with contextlib.suppress(Exception):  # a test may have lifted it
            guarded.lift()
    for guarded in made:
        eventually(lambda one=guarded: not _refused(one, "pods") and not _refused(one, "deployments"), "it is lifted")


def _cluster_admin(namespace: str, user: str) -> dict:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{namespace}:{user}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


def _refused(guarded: Guarded, plural: str) -> bool:
    """Whether creating one with a model is refused; nothing is created."""
    group, body = ("v1", _pod("tried")) if plural == "pods" else ("apps/v1", _owner("Deployment", "tried"))
    status, message = guarded.send("POST", guarded.intruder.path(group, plural), body, dryRun="All")
    assert status in (201, 403), message
    return status == 403


def _pod(name: str, annotations: dict | None = None) -> dict:
    meta = {"name": name, "labels": {"app": "assay"}, "annotations": MODEL if annotations is None else annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template()["spec"]}


def _owner(kind: str, name: str) -> dict:
    """A Deployment or ReplicaSet of pods with a model."""
    pods = _pod(name)
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "assay"}},
            "template": {
                "metadata": {key: pods["metadata"][key] for key in ("labels", "annotations")},
                "spec": pods["spec"],
            },
        },
    }


def _annotate(annotations: dict | None) -> dict:
    return {"spec": {"template": {"metadata": {"annotations": annotations}}}}


@pytest.fixture(scope="module")
def guarded(guard, tmp_path_factory) -> Guarded:
    """The target serves GOOD, which the operator rolled out under the guard; the operator has gone since."""
    made = guard("namespace")
    space = made.controllers
    space.deployment(template())
    with _operator(made, tmp_path_factory.mktemp("operator")):
        space.variant(spec(GOOD, **FAST))
        space.finish(space.new_job())
        eventually(lambda: space.annotations() == MODEL, "the operator is let through")
        space.roll()
        space.wait("True Serving")
    return made


@contextlib.contextmanager
def _operator(guarded: Guarded, folder):
    space = guarded.controllers
    process = OperatorProcess(space.api, space.name, folder, settings={"resync_seconds": 1.0}, token=guarded.token)
    try:
        process.wait_until("/readyz")
        yield process
    finally:
        process.end()


def _replaced(space: Namespace) -> dict:
    body = space.read_deployment()
    body["spec"]["template"]["metadata"]["annotations"][DIGEST] = FOREIGN
    return body


def _applied() -> dict:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "assay"},
        **_annotate(MODEL | {DIGEST: FOREIGN}),
    }


def _replica_set(space: Namespace) -> str:
    return max(entry["metadata"]["name"] for entry in space.api.get(space.path("apps/v1", "replicasets"))["items"])


def _a_pod(space: Namespace) -> str:
    return space.pods()[0]["metadata"]["name"]


HAND_EDITS = {
    "another digest": lambda at, _: (
        "PATCH", at("apps/v1", "deployments", "assay"), _annotate({DIGEST: FOREIGN}), MERGE,
    ),
    "no digest": lambda at, _: ("PATCH", at("apps/v1", "deployments", "assay"), _annotate({DIGEST: None}), MERGE),
    "no annotations": lambda at, _: ("PATCH", at("apps/v1", "deployments", "assay"), _annotate(None), MERGE),
    "no annotations, as a list of steps": lambda at, _: (
        "PATCH", at("apps/v1", "deployments", "assay"),
        [{"op": "remove", "path": "/spec/template/metadata/annotations"}], JSON_PATCH,
    ),
    "another variant": lambda at, _: (
        "PATCH", at("apps/v1", "deployments", "assay"), _annotate({"assay.dev/variant": "mine"}), MERGE,
    ),
    "the whole Deployment": lambda at, space: ("PUT", at("apps/v1", "deployments", "assay"), _replaced(space), None),
    "the operator's field manager": lambda at, _: (
        "PATCH", at("apps/v1", "deployments", "assay") + "?fieldManager=assay-operator&force=true", _applied(), APPLY,
    ),
    "a new Deployment": lambda at, _: ("POST", at("apps/v1", "deployments"), _owner("Deployment", "mine"), None),
    "a new ReplicaSet": lambda at, _: ("POST", at("apps/v1", "replicasets"), _owner("ReplicaSet", "mine"), None),
    "a ReplicaSet": lambda at, space: (
        "PATCH", at("apps/v1", "replicasets", _replica_set(space)), _annotate({DIGEST: FOREIGN}), MERGE,
    ),
    "a new pod": lambda at, _: ("POST", at("v1", "pods"), _pod("mine"), None),
    "a pod": lambda at, space: (
        "PATCH", at("v1", "pods", _a_pod(space)), {"metadata": {"annotations": {DIGEST: FOREIGN}}}, MERGE,
    ),
    "a pod's status": lambda at, space: (
        "PATCH", at("v1", "pods", _a_pod(space), "status"), {"metadata": {"annotations": {DIGEST: FOREIGN}}}, MERGE,
    ),
    "a pod's binding": lambda at, space: ("POST", at("v1", "pods", _unbound(space), "binding"), _binding(space), None),
    "a binding": lambda at, space: ("POST", at("v1", "bindings"), _binding(space), None),
}  # fmt: skip


def _unbound(space: Namespace) -> str:
    """A pod without a model that waits for a node."""
    with contextlib.suppress(AssertionError):  # it is there already
        space.api.create(space.path("v1", "pods"), _pod("unbound", {}))
    return "unbound"


def _binding(space: Namespace) -> dict:
    meta = {"name": _unbound(space), "annotations": MODEL}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": "node"}}


@pytest.mark.parametrize("edit", HAND_EDITS.values(), ids=HAND_EDITS)
def test_administrator_who_is_not_the_operator_is_stopped_and_told_what_to_do(guarded, edit):
    method, path, body, kind = edit(guarded.intruder.path, guarded.controllers)
    status, message = guarded.send(method, path, body, kind or "application/json")
    assert status == 403, message
    assert f"{guarded.user} may not change assay.dev/" in message
    assert f"system:serviceaccount:{guarded.intruder.name}:assay-operator" in message
    assert "Edit spec.model of the ModelVariant instead" in message
    assert "assay.dev/skip-check=<digest>" in message
    assert f"delete the {BINDING} {guarded.intruder.name}.assay.guard-" in message
    space = guarded.controllers
    assert space.annotations() == MODEL
    assert all(pod["metadata"].get("annotations", {}) in (MODEL, {}) for pod in space.pods())


OTHER_EDITS = {
    "replicas": ("apps/v1", "deployments", {"spec": {"replicas": 3}}),
    "scale": ("apps/v1", "deployments/scale", {"spec": {"replicas": 2}}),
    "image": ("apps/v1", "deployments", {"spec": {"template": {"spec": {"containers": [
        template()["spec"]["containers"][0] | {"image": "localhost/assay-service:0.2.0"},
    ]}}}}),
    "restart": ("apps/v1", "deployments", _annotate({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"})),
    "init containers of a check": ("apps/v1", "deployments", _annotate({"assay.dev/check-init-containers": "fetch"})),
    "annotations of the Deployment": ("apps/v1", "deployments", {"metadata": {"annotations": {DIGEST: FOREIGN}}}),
    "spec of the variant": ("assay.dev/v1alpha1", "modelvariants", {"spec": {"retryToken": "again"}}),
}  # fmt: skip


@pytest.mark.parametrize("edit", OTHER_EDITS.values(), ids=OTHER_EDITS)
def test_every_other_edit_passes(guarded, edit):
    group, plural, body = edit
    plural, _, sub = plural.partition("/")
    status, message = guarded.send("PATCH", guarded.intruder.path(group, plural, "assay", sub), body, MERGE)
    assert status == 200, message
    assert guarded.controllers.annotations() | MODEL == guarded.controllers.annotations()


def test_pods_are_still_labelled_evicted_and_bound(guarded):
    space, at = guarded.controllers, guarded.intruder.path
    name = _a_pod(space)
    label = {"metadata": {"labels": {"seen": "yes"}}}
    assert guarded.send("PATCH", at("v1", "pods", name), label, MERGE)[0] == 200
    bare = _binding(space) | {"metadata": {"name": _unbound(space)}}
    assert guarded.send("POST", at("v1", "pods", "unbound", "binding"), bare)[0] == 201
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    assert guarded.send("POST", at("v1", "pods", name, "eviction"), eviction)[0] == 201


def test_broken_glass_is_the_operators_act_and_the_lifted_guard_is_nobodys(guard, tmp_path):
    guarded = guard("namespace")
    space, variant = guarded.controllers, guarded.intruder.path("assay.dev/v1alpha1", "modelvariants", "assay")
    space.deployment(template())
    with _operator(guarded, tmp_path):
        space.variant(spec(OTHER, **FAST))
        annotation = {"metadata": {"annotations": {"assay.dev/skip-check": OTHER["digest"]}}}
        assert guarded.send("PATCH", variant, annotation, MERGE)[0] == 200
        eventually(lambda: space.annotations().get(DIGEST) == OTHER["digest"], "the operator rolls it out")
        space.roll()
        space.wait("False CheckBypassed")
        assert space.read()["status"]["lastGood"].get("digest", "") != OTHER["digest"]
    target = guarded.intruder.path("apps/v1", "deployments", "assay")
    guarded.lift()
    eventually(
        lambda: guarded.send("PATCH", target, _annotate({DIGEST: GOOD["digest"]}), MERGE)[0] == 200,
        "a hand edit passes",
    )


def test_guard_of_a_namespace_ends_there_and_that_of_the_cluster_does_not(api, guard):
    elsewhere = Namespace(api, f"unguarded-{os.getpid()}")
    guard("namespace")
    assert api.create(elsewhere.path("apps/v1", "deployments"), _owner("Deployment", "passes"))
    guard("cluster")
    with pytest.raises(AssertionError, match=r"403: .*admin may not change assay"):
        api.create(elsewhere.path("apps/v1", "deployments"), _owner("Deployment", "stopped"))

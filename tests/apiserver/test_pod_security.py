"""The chart's pods before a real API server that holds their namespace to the strictest Pod Security Standard."""

import copy

import pytest

from support.chart import CI_VALUES, Chart, find_helm

LOOSER = {
    "root": ("pod", {"runAsNonRoot": False, "runAsUser": 0}),
    "a seccomp profile left out": ("pod", {"seccompProfile": {"type": "Unconfined"}}),
    "more privileges": ("container", {"allowPrivilegeEscalation": True}),
    "capabilities": ("container", {"capabilities": {}}),
}


@pytest.fixture(scope="module")
def chart(root) -> Chart:
    return Chart(root / "charts" / "assay", find_helm(root))


@pytest.fixture(scope="module")
def serving_class(api):
    """The PriorityClass of ci/production-values.yaml."""
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {**kind, "metadata": {"name": "serving"}, "value": 1000})


@pytest.fixture
def restricted(api, namespace, serving_class):
    """Create a pod there for nothing; returns status and message."""
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    api.merge(f"/api/v1/namespaces/{namespace.name}", label)

    def create(name: str, template: dict) -> tuple[int, str]:
        pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(template)}
        pod["metadata"] = {**pod["metadata"], "name": name, "namespace": namespace.name}
        path = namespace.path("v1", "pods") + "?dryRun=All&fieldValidation=Strict"
        answer = api.http.post(path, json=pod)
        return answer.status_code, answer.text

    return create


@pytest.mark.parametrize("values", CI_VALUES)
def test_every_pod_of_the_chart_is_admitted(chart, restricted, values):
    pods = chart.render(values=chart.folder / "ci" / f"{values}-values.yaml").pods()
    assert pods
    for name, template in pods.items():
        status, message = restricted(name, template)
        assert status == 201, message
        for container in template["spec"]["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("where", LOOSER.values(), ids=LOOSER)
def test_operators_pod_with_more_than_it_has_would_not_be(chart, restricted, where):
    template = copy.deepcopy(chart.render().pods()["assay-operator"])
    level, changes = where
    holder = template["spec"] if level == "pod" else template["spec"]["containers"][0]
    holder["securityContext"] |= changes
    status, message = restricted("operator", template)
    assert status == 403
    assert "violates PodSecurity" in message

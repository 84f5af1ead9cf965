"""What the builder makes is taken by a real API server as it is, and its pod under the strictest Pod Security."""

import pytest
import yaml


@pytest.fixture(scope="session")
def classes(api):
    api.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "important"},
            "value": 1000,
        },
    )
    api.create(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandboxed"}, "handler": "runc"},
    )


@pytest.mark.parametrize("name", ["plain", "sidecars", "everything-taken"])
def test_rendered_job_and_its_pod_are_taken_under_restricted(api, namespace, classes, root, name):
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    api.merge(f"/api/v1/namespaces/{namespace.name}", label)
    job = yaml.safe_load((root / "tests" / "operator" / "output" / f"{name}.yaml").read_text())
    job["metadata"]["namespace"] = namespace.name
    strict = "?dryRun=All&fieldValidation=Strict"
    answer = api.http.post(namespace.path("batch/v1", "jobs") + strict, json=job)
    assert answer.status_code == 201, answer.text
    stored = answer.json()["spec"]
    assert stored["podReplacementPolicy"] == "Failed"
    pod = {"apiVersion": "v1", "kind": "Pod", **job["spec"]["template"]}
    pod["metadata"] = {**pod["metadata"], "name": "check"}
    answer = api.http.post(namespace.path("v1", "pods") + strict, json=pod)
    assert answer.status_code == 201, answer.text

"""What the builder makes is taken by a real API server as it is, and its pod under the strictest Pod Security."""

import pytest
import yaml

from assay_operator.builders.check_job import same_template
from support.golden import NAMES, output, rendered, written


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


STRICT = "?dryRun=All&fieldValidation=Strict"


@pytest.fixture
def restricted(namespace):
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    namespace.api.merge(f"/api/v1/namespaces/{namespace.name}", label)
    return namespace


def taken(namespace, group, plural, body) -> dict:
    body = {**body, "metadata": {**body["metadata"], "namespace": namespace.name}}
    answer = namespace.api.http.post(namespace.path(group, plural) + STRICT, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.parametrize("name", NAMES)
def test_rendered_job_and_its_pod_are_taken_under_restricted(restricted, classes, name):
    job = yaml.safe_load(output(name).read_text())
    assert taken(restricted, "batch/v1", "jobs", job)["spec"]["podReplacementPolicy"] == "Failed"
    pod = {"apiVersion": "v1", "kind": "Pod", **job["spec"]["template"]}
    pod["metadata"] = {**pod["metadata"], "name": "check"}
    taken(restricted, "v1", "pods", pod)


@pytest.mark.parametrize("name", ["host-network", "mesh-injected"])
def test_pods_of_some_targets_are_refused_there_themselves(restricted, classes, name):
    """So it is the check that leaves out what is forbidden, and the namespace does forbid it."""
    pod = {"apiVersion": "v1", "kind": "Pod", **written(name)["deployment"]}
    pod["metadata"] = {**pod["metadata"], "name": "of-the-target"}
    answer = restricted.api.http.post(restricted.path("v1", "pods") + STRICT, json=pod)
    assert answer.status_code == 403, answer.text
    assert 'violates PodSecurity "restricted' in answer.json()["message"]


@pytest.mark.parametrize("name", NAMES)
def test_job_of_a_target_as_the_api_server_stores_it_is_known_again_as_stored(restricted, classes, name):
    """Both are full of defaults and rewritten quantities, and must not look edited because of it."""
    template = written(name)["deployment"]
    selector = {"matchLabels": template["metadata"]["labels"]}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "assay"}}
    deployment["spec"] = {"selector": selector, "template": template}
    stored = taken(restricted, "apps/v1", "deployments", deployment)["spec"]["template"]
    made = rendered(name, stored)
    job = taken(restricted, "batch/v1", "jobs", made)
    assert same_template(made["spec"]["template"], job["spec"]["template"])
    other = {**made["spec"]["template"]["spec"]["containers"][0], "image": "another"}
    edited = {**made["spec"]["template"], "spec": {**made["spec"]["template"]["spec"], "containers": [other]}}
    assert not same_template(edited, job["spec"]["template"])

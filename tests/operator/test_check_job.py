"""The check's Job, rendered from targets in `input/` and compared with `output/`; GOLDEN=write writes those anew."""

import os
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay_operator.builders.check_job import job_name, same_template
from assay_operator.builders.inputs import Inputs, environment_of, inputs_of
from assay_operator.builders.pod_template import base_model, check_template
from assay_operator.errors import RenderError
from assay_operator.models.spec import Spec
from assay_operator.models.status import Pack
from support.golden import NAMES, output, rendered, written
from support.packs import GOOD, spec, template
from support.world import World

TAKEN_OF_THE_POD = {
    "serviceAccountName",
    "automountServiceAccountToken",
    "securityContext",
    "nodeSelector",
    "tolerations",
    "runtimeClassName",
    "priorityClassName",
    "imagePullSecrets",
    "volumes",
}
TAKEN_OF_THE_CONTAINER = {
    "name",
    "image",
    "imagePullPolicy",
    "workingDir",
    "envFrom",
    "volumeMounts",
    "securityContext",
}
OWN = {"restartPolicy", "enableServiceLinks", "affinity", "initContainers", "containers"}
OWN_OF_THE_CONTAINER = {"command", "args", "env", "resources", "terminationMessagePath", "terminationMessagePolicy"}


@pytest.mark.parametrize("name", NAMES)
def test_job_is_rendered_as_written_down(name):
    made = rendered(name)
    if os.environ.get("GOLDEN") == "write":
        output(name).write_text(yaml.safe_dump(made, sort_keys=False, width=120))
    assert made == yaml.safe_load(output(name).read_text())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_taken_over_is_taken_as_it_is_and_nothing_else_is(name):
    target, pod = written(name)["deployment"]["spec"], rendered(name)["spec"]["template"]["spec"]
    assert set(pod) <= TAKEN_OF_THE_POD | OWN
    for field in TAKEN_OF_THE_POD & set(target):
        assert pod[field] == target[field], field
    assert set(pod.get("affinity", {})) <= {"nodeAffinity"}
    assert pod.get("affinity", {}).get("nodeAffinity") == target.get("affinity", {}).get("nodeAffinity")
    (made,) = pod["containers"]
    source = next(entry for entry in target["containers"] if entry["name"] == made["name"])
    assert made["name"] == written(name)["variant"].get("container", "classifier")
    assert set(made) <= TAKEN_OF_THE_CONTAINER | OWN_OF_THE_CONTAINER
    for field in TAKEN_OF_THE_CONTAINER & set(source):
        assert made[field] == source[field], field
    assert made["resources"].get("limits") == source["resources"].get("limits")
    assert [entry for entry in source["env"] if entry["name"] != "CHECK_JOB_UID"] == made["env"][:-1]
    assert (made["command"], made["terminationMessagePath"]) == (["assay", "check"], "/dev/termination-log")


@pytest.mark.parametrize("name", NAMES)
def test_check_is_no_replica_for_anybody_who_selects_by_labels(name):
    template = rendered(name)["spec"]["template"]
    labels = template["metadata"]["labels"]
    own = {"app.kubernetes.io/component": "check", "assay.dev/modelvariant": "assay"}
    assert labels == own | {"sidecar.istio.io/inject": "false"}
    assert set(template["metadata"]["annotations"].values()) == {"false", "disabled"}
    target = written(name)["deployment"]["metadata"]["labels"]
    assert not set(target.items()) <= set(labels.items())


def test_pairs_are_complete():
    assert sorted(path.stem for path in output("plain").parent.glob("*.yaml")) == NAMES
    assert len(NAMES) >= 10


def test_name_fits_a_label_and_is_the_same_for_the_same_attempt():
    variant = replace(World().variant(), name="a" * 39 + "." + "b" * 20)
    inputs = Inputs("a" * 20, "b" * 20)
    name = job_name(variant, inputs, 1)
    assert name == job_name(variant, inputs, 1)
    assert len(name) <= 63
    assert name.startswith("a" * 39 + "-check-")
    others = [
        job_name(variant, inputs, 2),
        job_name(variant, Inputs("c" * 20, "b" * 20), 1),
        job_name(replace(variant, uid="x"), inputs, 1),
    ]
    assert len({name, *others}) == 4


def test_container_that_is_not_there_and_base_that_is_not_named_are_told():
    with pytest.raises(RenderError, match="no container server"):
        check_template(template(), "server", "assay", [], "100m")
    with pytest.raises(RenderError, match="ASSAY_BASE_MODEL_URI"):
        base_model(template(env=[]), "classifier")
    indirect = [{"name": "ASSAY_BASE_MODEL_URI", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]
    with pytest.raises(RenderError, match="literal"):
        base_model(template(env=indirect), "classifier")


WANTED = Spec.model_validate(spec(GOOD))
PACK = Pack(**GOOD)


@pytest.mark.parametrize(
    ("changes", "request_changes", "environment_changes"),
    [
        ({"retryToken": "x"}, True, False),
        ({"check": {"minTop3ContainmentPermille": 990}}, True, False),
        ({"check": {"dataset": {"uri": "builtin:others"}}}, True, False),
        ({"check": {"compareWith": {"uri": "builtin:others"}}}, True, False),
        ({"check": {"timeoutSeconds": 60, "maxAttempts": 1}}, False, False),
        ({"rollout": {"soakSeconds": 1}}, False, False),
    ],
)
def test_hash_of_inputs_follows_what_is_asked(changes, request_changes, environment_changes):
    before = inputs_of(WANTED, PACK, template())
    after = inputs_of(Spec.model_validate({**spec(GOOD), **changes}), PACK, template())
    assert (before.request != after.request, before.environment != after.environment) == (
        request_changes,
        environment_changes,
    )


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"image": "another"}, True),
        ({"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}, True),
        ({"resources": {"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "1"}}}, False),
        ({"env": [*template()["spec"]["containers"][0]["env"], {"name": "MALLOC_ARENA_MAX", "value": "2"}]}, True),
        ({"env": [*template()["spec"]["containers"][0]["env"], {"name": "ASSAY_CACHE_BYTES", "value": "2"}]}, False),
        ({"ports": [{"containerPort": 1}]}, False),
    ],
)
def test_hash_of_inputs_follows_where_it_runs(changes, changed):
    before = inputs_of(WANTED, PACK, template())
    after = inputs_of(WANTED, PACK, template(**changes))
    assert (before.environment != after.environment) == changed
    assert environment_of(str(after)) == after.environment


@given(cpu=st.integers(1, 8000), limit=st.integers(1, 8000))
def test_cpu_request_never_exceeds_the_limit_and_is_written_as_the_api_server_does(cpu, limit):
    made = check_template(template(resources={"limits": {"cpu": f"{limit}m"}}), "classifier", "assay", [], f"{cpu}m")
    request = made["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    millicores = int(request[:-1]) if request.endswith("m") else int(request) * 1000
    assert millicores == min(cpu, limit)
    assert request.endswith("m") == bool(millicores % 1000)


def test_defaults_of_the_api_server_do_not_make_another_template():
    made = rendered("plain")["spec"]["template"]
    stored = yaml.safe_load(yaml.safe_dump(made))
    stored["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] = "x"
    stored["spec"].update(dnsPolicy="ClusterFirst", schedulerName="default-scheduler")
    stored["spec"]["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    assert same_template(made, stored)
    stored["spec"]["containers"][0]["args"].append("--min-top3-containment-permille=0")
    assert not same_template(made, stored)
    assert same_template(made, stored, arguments=False)

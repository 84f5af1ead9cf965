"""The check's Job, rendered from targets in `input/` and compared with `output/`; GOLDEN=write writes those anew."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay_operator.builders.check_job import check_job, job_name, same_template
from assay_operator.builders.inputs import Inputs, environment_of, inputs_of
from assay_operator.builders.pod_template import base_model, check_template
from assay_operator.errors import RenderError
from assay_operator.models.observed import ServedModel, Target, Variant
from assay_operator.models.spec import Spec
from assay_operator.models.status import Pack, Status
from support.packs import GOOD, spec, template
from support.world import World

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in (HERE / "input").glob("*.yaml"))


def rendered(name: str) -> dict:
    given_ = yaml.safe_load((HERE / "input" / f"{name}.yaml").read_text())
    wanted = Spec.model_validate(given_["variant"])
    variant = Variant("shop", "assay", "uid-1", 1, "1", datetime(2026, 1, 1, tzinfo=UTC), wanted, Status())
    target = Target("assay", "uid-2", "1", 1, True, given_["deployment"], ServedModel(), True, 1, 2, 2, 2, 2, 2)
    pack = Pack(uri=wanted.model.uri, digest=wanted.model.digest or "", precision=wanted.model.precision or "")
    return check_job(variant, wanted, target, pack, inputs_of(wanted, pack, target.template), 1)


@pytest.mark.parametrize("name", NAMES)
def test_job_is_rendered_as_written_down(name):
    path = HERE / "output" / f"{name}.yaml"
    made = rendered(name)
    if os.environ.get("GOLDEN") == "write":
        path.write_text(yaml.safe_dump(made, sort_keys=False, width=120))
    assert made == yaml.safe_load(path.read_text())


def test_pairs_are_complete():
    assert sorted(path.stem for path in (HERE / "output").glob("*.yaml")) == NAMES
    assert len(NAMES) >= 3


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

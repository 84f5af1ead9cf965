"""Every field of a ModelVariant's spec has its effect: on the check as its command line understands it, or on the plan.

`REQUESTED` and `EFFECTS` together name each field that the CRD has, so a new field comes with its behaviour.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

import assay.cli.check
from assay.check.report import CheckResult
from assay.errors import PackUnavailableError
from assay.measurement.run import CheckRequest, failed
from assay_operator.models.spec import Spec
from assay_operator.plan import CreateJob
from support.journeys import pending, rolling, swapped
from support.packs import BAD, BASE_DIGEST, BASE_URI, BUILTIN, GOOD, OTHER, spec, template
from support.world import World

OTHERS = {"uri": "https://packs.example/others.tar", "digest": "sha256:" + "6" * 64}
BASE_NAMED = [
    {"name": "ASSAY_BASE_MODEL_URI", "value": BASE_URI},
    {"name": "ASSAY_BASE_MODEL_DIGEST", "value": BASE_DIGEST},
]

REQUESTED = {
    "model.uri": ({"model": OTHER}, "candidate.uri", OTHER["uri"]),
    "model.digest": ({"model": OTHER}, "candidate.digest", OTHER["digest"]),
    "model.precision": ({"model": BUILTIN | {"precision": "INT8"}}, "candidate.precision", "INT8"),
    "check.compareWith.uri": ({"check": {"compareWith": {"uri": BASE_URI}}}, "yardstick.uri", BASE_URI),
    "check.compareWith.digest": (
        {"check": {"compareWith": {"uri": BASE_URI, "digest": BASE_DIGEST}}},
        "yardstick.digest",
        BASE_DIGEST,
    ),
    "check.dataset.uri": ({"check": {"dataset": OTHERS}}, "dataset.uri", OTHERS["uri"]),
    "check.dataset.digest": ({"check": {"dataset": OTHERS}}, "dataset.digest", OTHERS["digest"]),
    "check.maxImages": ({"check": {"maxImages": 77}}, "max_images", 77),
    "check.confidencePercent": ({"check": {"confidencePercent": 99}}, "criteria.confidence_percent", 99),
    "check.minTop3ContainmentPermille": (
        {"check": {"minTop3ContainmentPermille": 900}},
        "criteria.min_top3_containment",
        900,
    ),
    "check.minTop1AgreementPermille": ({"check": {"minTop1AgreementPermille": 7}}, "criteria.min_top1_agreement", 7),
    "check.maxTop1DropPermille": ({"check": {"maxTop1DropPermille": 0}}, "criteria.max_top1_drop", 0),
    "check.maxCostRatioPermille": ({"check": {"maxCostRatioPermille": 800}}, "criteria.max_cost_ratio", 800),
    "check.maxNoisePermille": ({"check": {"maxNoisePermille": 50}}, "criteria.max_noise", 50),
}
"""Field -> a spec with it, where the check has it, and as what. Without it the check has something else there."""


def started(**changes) -> World:
    world = World(spec=spec(**changes), template=template(env=BASE_NAMED))
    world.reconcile()
    return world


@pytest.fixture
def requested(monkeypatch, tmp_path):
    """What the check's own command line makes of the Job's arguments."""

    def read(world: World) -> CheckRequest:
        seen: list[CheckRequest] = []

        def run(request: CheckRequest, _progress: object) -> CheckResult:
            seen.append(request)
            return failed(request, PackUnavailableError("not measured here"))

        monkeypatch.setattr(assay.cli.check, "run_check", run)
        arguments = world.job().template["spec"]["containers"][0]["args"]
        mine = [argument for argument in arguments if not argument.startswith("--result-file")]
        with pytest.raises(SystemExit):
            assay.cli.check.check([*mine, f"--result-file={tmp_path}/result"])
        return seen[0]

    return read


@pytest.mark.parametrize("field", REQUESTED)
def test_field_reaches_the_check(requested, field):
    changes, where, value = REQUESTED[field]
    without = {"model": BUILTIN} if field == "model.precision" else {}
    assert attrgetter(where)(requested(started(**changes))) == value
    assert attrgetter(where)(requested(started(**without))) != value or field.startswith("check.compareWith")


def test_yardstick_is_the_base_unless_it_is_named(requested):
    named = {"uri": GOOD["uri"], "digest": GOOD["digest"]}
    world = swapped()
    world.edit(model=dict(OTHER))
    world.reconcile()
    assert requested(world).yardstick.uri == BASE_URI
    world.edit(check={"compareWith": named})
    world.reconcile()
    assert requested(world).yardstick.uri == GOOD["uri"]


def target_ref() -> None:
    world = World(spec=spec(targetRef={"name": "another"}), exists=False)
    world.reconcile()
    assert "no Deployment another" in world.message()


def container() -> None:
    made = template()
    made["spec"]["containers"].append({**made["spec"]["containers"][0], "name": "second", "image": "of-the-second"})
    images = []
    for name in ("classifier", "second"):
        world = World(spec=spec(container=name), template=made)
        world.reconcile()
        images.append(world.job().template["spec"]["containers"][0]["image"])
    assert images == ["localhost/assay-service:0.1.0", "of-the-second"]


def cpu_request() -> None:
    (made,) = started(check={"cpuRequest": "350m"}).job().template["spec"]["containers"]
    assert made["resources"]["requests"]["cpu"] == "350m"
    assert made["resources"]["limits"]["cpu"] == "2"


def job_body(**check) -> dict[str, Any]:
    world = World(spec=spec(check=check))
    (step,) = [step for step in world.reconcile().steps if isinstance(step, CreateJob)]
    return step.body["spec"]


def start_deadline() -> None:
    assert job_body(startDeadlineSeconds=20, timeoutSeconds=100)["activeDeadlineSeconds"] == 120
    world = pending(spec(check={"startDeadlineSeconds": 20}), unschedulable="no node")()
    assert world.ready() == "False CheckUnschedulable"
    assert "within 20 s: no node" in world.message()


def timeout() -> None:
    assert job_body(timeoutSeconds=60)["activeDeadlineSeconds"] == 360
    world = started(check={"timeoutSeconds": 60, "maxAttempts": 1})
    world.finish(pod=False, failed="DeadlineExceeded")
    world.settle()
    assert "had not ended after 360 s" in world.message()


def attempts() -> None:
    for wanted in (1, 2):
        world = World(spec=spec(check={"maxAttempts": wanted}))
        world.settle(passes=60, verdicts={GOOD["digest"]: "Error"})
        assert (world.created, world.ready()) == (wanted, "False PackUnavailable")


def progress_deadline() -> None:
    world = rolling(OTHER, rollout={"progressDeadlineSeconds": 20, "soakSeconds": 0})
    world.roll(ready=False, waiting="CrashLoopBackOff")
    world.pass_time(19)
    world.reconcile()
    assert world.ready() == "False RolloutInProgress"
    world.pass_time(1)
    world.reconcile()
    assert world.ready() == "False ProgressDeadlineExceeded"


def soak() -> None:
    world = rolling(OTHER, rollout={"soakSeconds": 45})
    world.roll()
    for waited, ready in ((0, "False Soaking"), (44, "False Soaking"), (1, "True Serving")):
        world.pass_time(waited)
        world.reconcile()
        assert world.ready() == ready


def retry_token() -> None:
    world = World(spec=spec(BAD))
    world.settle(verdicts={BAD["digest"]: "Fail"})
    assert world.created == 1
    world.edit(retryToken="again")
    world.settle(verdicts={BAD["digest"]: "Fail"})
    assert (world.created, world.ready()) == (2, "False AccuracyBelowThreshold")


def suspend() -> None:
    world = World(spec=spec(suspend=True))
    world.settle()
    assert (world.created, world.written, world.ready()) == (0, [], "False Suspended")
    world.edit(suspend=False)
    world.settle()
    assert (world.created, world.ready()) == (1, "True Serving")


EFFECTS = {
    "targetRef.name": target_ref,
    "container": container,
    "check.cpuRequest": cpu_request,
    "check.startDeadlineSeconds": start_deadline,
    "check.timeoutSeconds": timeout,
    "check.maxAttempts": attempts,
    "rollout.progressDeadlineSeconds": progress_deadline,
    "rollout.soakSeconds": soak,
    "retryToken": retry_token,
    "suspend": suspend,
}


@pytest.mark.parametrize("field", EFFECTS)
def test_field_has_its_effect_on_the_plan(field):
    EFFECTS[field]()


def of_the_model(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        inner = [kind for kind in (field.annotation, *getattr(field.annotation, "__args__", ())) if is_model(kind)]
        yield from of_the_model(inner[0], f"{path}.") if inner else [path]


def is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def of_the_crd(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, field in schema["properties"].items():
        yield from of_the_crd(field, f"{prefix}{name}.") if "properties" in field else [f"{prefix}{name}"]


def test_every_field_of_the_crd_and_of_the_operators_model_is_shown(root):
    crd = yaml.safe_load((root / "charts" / "assay" / "files" / "crd" / "modelvariants.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert sorted(of_the_crd(schema)) == sorted(of_the_model(Spec)) == sorted([*REQUESTED, *EFFECTS])

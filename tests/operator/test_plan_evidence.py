"""What makes a serving pack Unverified, what does not, and what becomes of it: the table of operator/README.md."""

import re

import pytest

from assay_operator.models.status import LastGood, Status
from support.packs import BASE, BASE_URI, GOOD, GOOD_MODEL, OTHER, OTHER_MODEL, served, template

ENVIRONMENT = template()["spec"]["containers"][0]["env"]


def redo(world, made, **fields):
    """The chart's owner changes the target's template."""
    made["spec"].update(fields)
    world.template = made
    world.deployment_version += 1
    world.roll()


def container(**changes):
    return lambda world: redo(world, template(**changes))


def pod(**fields):
    return lambda world: redo(world, template(), **fields)


def variable(name, value):
    kept = [entry for entry in ENVIRONMENT if entry["name"] != name]
    return container(env=[*kept, {"name": name, "value": value}])


def limits(cpu, memory):
    return container(resources={"limits": {"cpu": cpu, "memory": memory}})


def scale(world):
    world.replicas = 5
    world.roll()


def rebuild(world):
    world.image_id = "sha256:rebuilt"
    world.roll()


def lose_status(world):
    world.status = Status()
    world.jobs.clear()


def forge_status(world):
    forged = LastGood(uri=OTHER["uri"], digest=OTHER["digest"], precision="INT8", inputs_hash="x-y")
    world.status = Status(last_good=forged)
    world.jobs.clear()


def forge_inputs(world):
    forged = world.status.last_good.model_copy(update={"inputs_hash": "x-y"})
    world.status = Status(last_good=forged)
    world.jobs.clear()


def make_anew(world):
    world.status, world.uid = Status(), "uid-2"


UNVERIFIED = {
    "the image, by name": container(image="localhost/assay-service:0.2.0"),
    "the image behind its name (`imageID`)": rebuild,
    "the CPU limit": limits("1", "2Gi"),
    "the memory limit": limits("2", "1Gi"),
    "the base, by URI": variable("ASSAY_BASE_MODEL_URI", "builtin:another"),
    "the base, by digest": variable("ASSAY_BASE_MODEL_DIGEST", "sha256:" + "7" * 64),
    "variables of threads, allocator and runtime": variable("OMP_NUM_THREADS", "1"),
    "node selector": pod(nodeSelector={"cpu": "old"}),
    "node affinity": pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
    "tolerations": pod(tolerations=[{"operator": "Exists"}]),
    "runtime class": pod(runtimeClassName="sandboxed"),
    "priority class": pod(priorityClassName="low"),
    "the status, lost with its Jobs": lose_status,
    "the status, forged to name another pack": forge_status,
    "the status, forged to name other inputs": forge_inputs,
    "the ModelVariant, deleted and made anew": make_anew,
}

VERIFIED = {
    "requests": container(resources={"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "1"}}),
    "variables of the service's other settings": variable("ASSAY_LOG_LEVEL", "DEBUG"),
    "ports, probes, lifecycle": container(ports=[{"containerPort": 1}], readinessProbe={"httpGet": {"port": 1}}),
    "pod affinity, topology spread": pod(topologySpreadConstraints=[{"maxSkew": 1}], affinity={"podAffinity": {}}),
    "replicas": scale,
    "criteria": lambda world: world.edit(check={"confidencePercent": 90}),
    "dataset": lambda world: world.edit(check={"dataset": {"uri": "builtin:others"}}),
    "`retryToken`": lambda world: world.edit(retryToken="again"),
    "the status, lost while its Jobs are there": lambda world: setattr(world, "status", Status()),
}


@pytest.mark.parametrize("change", UNVERIFIED.values(), ids=UNVERIFIED)
@pytest.mark.parametrize(("verdict", "then"), [("Pass", GOOD_MODEL), ("Fail", BASE)])
def test_fault_39_45_47_pack_whose_evidence_is_gone_serves_on_unverified_until_a_verdict(
    swapped, change, verdict, then
):
    written = len(swapped.written)
    change(swapped)
    swapped.reconcile()
    swapped.reconcile()  # what is adopted is noted before anything acts on it
    assert swapped.reason("Available") == "False Unverified"
    assert swapped.status.serving.verified is False
    assert (swapped.created, served(swapped.model)) == (2, served(GOOD_MODEL))
    swapped.settle(verdicts={GOOD["digest"]: verdict})
    assert served(swapped.model) == served(then)
    assert swapped.reason("Available") == "True MinimumReplicasAvailable"
    # What passed in place is not rolled out again.
    assert len(swapped.written) == written + (verdict == "Fail")
    assert swapped.ready() == ("True Serving" if verdict == "Pass" else "False AccuracyBelowThreshold")


@pytest.mark.parametrize("change", VERIFIED.values(), ids=VERIFIED)
def test_pack_whose_evidence_holds_stays_verified(swapped, change):
    written = len(swapped.written)
    change(swapped)
    for _ in range(3):
        swapped.reconcile()
        assert not swapped.reason("Available").endswith("Unverified")
        assert swapped.status.serving.verified is True
    swapped.settle()
    assert (swapped.ready(), len(swapped.written)) == ("True Serving", written)


def test_readme_has_these_rows_and_no_others(root):
    text = (root / "operator" / "README.md").read_text().partition("## What makes a pack Unverified")[2]
    rows = re.findall(r"^\| (.+?) \| (yes|no) \|", text.partition("\n## ")[0], re.MULTILINE)
    assert dict(rows) == dict.fromkeys(UNVERIFIED, "yes") | dict.fromkeys(VERIFIED, "no")


def test_history_and_refusals_say_from_what_to_what_and_why(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.settle(verdicts={OTHER["digest"]: "Fail"})
    swapped.edit(model=dict(OTHER), retryToken="again")
    swapped.settle()
    swapped.edit(model={"uri": BASE_URI})
    swapped.settle()
    told = [(change.from_, change.to, change.reason) for change in swapped.status.history]
    good, other = (f"{pack['uri']}@{pack['digest']}" for pack in (GOOD, OTHER))
    assert told == [(other, BASE_URI, "BaseModel"), (good, other, "CheckPassed"), (BASE_URI, good, "CheckPassed")]
    (refusal,) = swapped.status.rejected
    assert (refusal.stage, refusal.reason) == ("Check", "AccuracyBelowThreshold")


def test_fault_22_pack_that_was_left_and_is_asked_for_again_needs_no_second_check(swapped):
    for model in (OTHER, GOOD, OTHER, GOOD):
        swapped.edit(model=dict(model))
        swapped.settle()
        assert served(swapped.model) == (model["uri"], model["digest"], model["precision"])
    assert swapped.created == 2


def test_retry_token_checks_what_serves_again_in_place(swapped):
    swapped.edit(retryToken="again")
    swapped.settle()
    assert (swapped.created, swapped.ready()) == (2, "True Serving")
    assert swapped.written == [GOOD_MODEL]


def test_fault_42_suspended_variant_puts_back_nothing_until_it_is_freed(swapped):
    swapped.edit(suspend=True)
    swapped.set_model(OTHER_MODEL, owned=False)
    swapped.roll()
    swapped.settle()
    assert swapped.written == [GOOD_MODEL]
    assert swapped.status.serving.verified is False
    swapped.edit(suspend=False)
    swapped.settle()
    assert swapped.written == [GOOD_MODEL, GOOD_MODEL]

"""The way of a good pack, and refusals.

Names of fault rows are those of the operator's fault table.
"""

from dataclasses import replace

import pytest

from assay_operator.models.observed import ServedModel
from assay_operator.plan import CreateJob
from support.packs import (
    BAD,
    BASE,
    BASE_DIGEST,
    BASE_URI,
    BUILTIN,
    BUILTIN_DIGEST,
    GOOD,
    GOOD_MODEL,
    OTHER,
    OTHER_MODEL,
    served,
    spec,
)
from support.world import World


def test_base_needs_no_check_and_no_write():
    world = World(spec=spec({"uri": BASE_URI}))
    world.settle()
    assert (world.ready(), world.reason("CheckPassed")) == ("True Serving", "True BaseModel")
    assert world.created == 0
    assert world.written == []


def test_candidate_is_checked_before_anything_is_written():
    world = World()
    made = world.reconcile()
    assert [type(step) for step in made.steps] == [CreateJob]
    assert world.reason("CheckPassed") == "Unknown CheckRunning"
    assert world.written == []


def test_pass_is_rolled_out_soaked_and_becomes_the_last_good():
    world = World()
    world.reconcile()
    world.finish("Pass")
    world.reconcile()
    assert world.written == [GOOD_MODEL]
    assert world.status.last_good.uri == BASE_URI
    world.roll()
    world.reconcile()
    assert world.reason("RolledOut") == "False Soaking"
    assert world.ready() == "False Soaking"
    world.pass_time(31)
    world.reconcile()
    world.reconcile()
    assert world.ready() == "True Serving"
    assert served(world.status.last_good) == served(GOOD_MODEL)
    assert (world.status.serving.digest, world.status.serving.verified, world.status.serving.ready_replicas) == (
        GOOD["digest"],
        True,
        2,
    )


def test_measured_digest_is_written_for_a_builtin_pack():
    world = World(spec=spec(BUILTIN))
    world.settle()
    assert world.written == [ServedModel(BUILTIN["uri"], BUILTIN_DIGEST, "INT8", "assay")]


def test_base_digest_is_learned_from_the_yardstick():
    world = World()
    world.reconcile()
    assert world.status.base.digest == ""
    world.finish("Pass")
    world.reconcile()
    assert world.status.base.digest == BASE_DIGEST


def test_base_with_a_digest_that_cannot_be_confirmed_is_checked():
    world = World(spec=spec({"uri": BASE_URI, "digest": BASE_DIGEST}))
    world.reconcile()
    assert world.created == 1


def test_back_to_base_without_a_check(swapped):
    swapped.edit(model={"uri": BASE_URI})
    swapped.settle()
    assert swapped.written[-1] == BASE
    assert swapped.ready() == "True Serving"
    assert swapped.created == 1


def test_settled_variant_causes_no_writes(swapped):
    before, version = list(swapped.written), swapped.version
    for _ in range(5):
        swapped.pass_time(60)
        assert swapped.reconcile().steps == ()
    assert (swapped.written, swapped.version) == (before, version)


def test_scaling_by_an_autoscaler_is_no_rollout(swapped):
    swapped.replicas = 3
    swapped.pods.append(replace(swapped.pod(2), ready=False, ready_since=None))
    made = swapped.reconcile()
    assert made.steps == ()
    assert swapped.reason("RolledOut") == "True RolloutComplete" or swapped.reason("Available").startswith("False")
    swapped.roll()
    swapped.settle()
    assert swapped.ready() == "True Serving"


@pytest.mark.parametrize(
    "reason", ["AccuracyBelowThreshold", "AccuracyNotProven", "CostAboveThreshold", "LabelsDiffer"]
)
def test_fault_20_44_failed_check_is_final_and_leaves_the_deployment_alone(reason):
    world = World(spec=spec(BAD))
    world.reconcile()
    world.finish("Fail", reason=reason)
    version = world.deployment_version
    world.settle()
    assert world.ready() == f"False {reason}"
    assert world.reason("Stalled") == f"True {reason}"
    assert (world.created, world.deployment_version) == (1, version)
    assert BASE_URI in world.message()
    assert sum(event.reason == reason for event in world.events) == 1


def test_refusal_is_sticky_even_when_its_job_is_gone_and_retry_token_ends_it():
    world = World(spec=spec(BAD))
    world.settle(verdicts={BAD["digest"]: "Fail"})
    world.jobs.clear()
    world.settle()
    assert (world.ready(), world.created) == ("False AccuracyBelowThreshold", 1)
    world.edit(retryToken="again")
    world.reconcile()
    assert world.created == 2


def test_fault_22_verdict_of_the_same_inputs_is_used_again(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.settle()
    swapped.edit(model=dict(GOOD))
    swapped.settle()
    assert swapped.created == 2
    assert swapped.ready() == "True Serving"
    assert swapped.written == [GOOD_MODEL, OTHER_MODEL, GOOD_MODEL]


def test_figures_stand_only_beside_the_pack_that_they_are_of():
    world = World()
    world.reconcile()
    world.finish("Fail")
    world.settle()
    assert world.status.target.verdict == "Fail"
    assert world.status.target.cost_ratio_permille == world.status.last_check.cost_ratio_permille
    world.edit(model={"uri": BASE_URI})
    world.settle()
    assert world.reason("Ready") == "True Serving"
    assert world.status.last_check.verdict == "Fail"
    assert world.status.target.verdict is None
    assert world.status.target.containment_lower_permille is None
    assert "verdict" not in world.status.to_json()["target"]

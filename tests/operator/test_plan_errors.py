"""Errors of a check that no other attempt would change, and those that one may; what overrules them."""

import pytest

from assay_operator.models.status import HISTORY_KEPT, REJECTED_KEPT, Status
from support.packs import BUILTIN, DEAD, GOOD, GOOD_MODEL, OTHER, OTHER_MODEL, result, served, spec
from support.world import World

MEASURED = {"digest": "sha256:" + "6" * 64, "precision": "INT8", "costMicros": None}


def fail_once(world, reason, **changes):
    world.reconcile()
    world.finish("Error", reason=reason, **changes)
    return world.reconcile()


@pytest.mark.parametrize("reason", ["DigestMismatch", "PrecisionMismatch", "PackInvalid", "DatasetInvalid"])
def test_error_that_lies_in_the_bytes_is_final_at_once(reason):
    world = World()
    fail_once(world, reason)
    world.settle()
    assert world.created == 1
    assert world.reason("Stalled") == f"True {reason}"
    assert world.reason("CheckPassed") == f"False {reason}"
    assert "Another attempt would end in the same way" in world.message()
    assert "spec.retryToken" in world.message()
    assert world.written == []


@pytest.mark.parametrize("reason", ["PackUnavailable", "CpuFeatureMissing", "CheckCrashed"])
def test_error_of_the_world_around_is_tried_again(reason):
    world = World()
    made = fail_once(world, reason)
    assert world.reason("Stalled").startswith("False")
    world.pass_time(made.again_s + 1)
    world.reconcile()
    assert world.created == 2


@pytest.mark.parametrize(("known", "final"), [((), True), (("candidate",), False), (("candidate", "yardstick"), True)])
def test_missing_built_in_is_final_and_a_missing_pack_from_afar_is_not(known, final):
    """The candidate and the dataset are built in, the yardstick is from afar."""
    world = World(spec=spec(BUILTIN))
    world.template["spec"]["containers"][0]["env"][0]["value"] = "https://packs.example/base.tar"
    world.reconcile()
    job = world.job()
    uris = {"candidate": BUILTIN["uri"], "yardstick": "https://packs.example/base.tar"}
    measured = {role: MEASURED | {"uri": uris[role]} for role in known}
    world.finish(message=result(job, "Error", reason="PackUnavailable", **measured), exit_code=3)
    world.reconcile()
    world.reconcile()
    assert world.reason("CheckPassed") == "False PackUnavailable"
    assert world.reason("Stalled") == f"{final} PackUnavailable"


def test_final_error_is_kept_when_its_job_is_gone_and_a_retry_token_begins_anew():
    world = World()
    fail_once(world, "DigestMismatch")
    world.jobs.clear()
    world.settle()
    assert (world.created, world.reason("Stalled")) == (1, "True DigestMismatch")
    world.edit(retryToken="again")
    world.settle()
    assert (world.created, world.ready()) == (2, "True Serving")


def test_incumbent_whose_check_ends_in_a_final_error_stands_unverified(swapped):
    swapped.status = Status()
    swapped.jobs.clear()
    swapped.reconcile()
    fail_once(swapped, "DigestMismatch")
    swapped.settle()
    assert served(swapped.model) == served(GOOD_MODEL)
    assert swapped.reason("Available") == "False Unverified"


@pytest.mark.parametrize(("verdict", "reason"), [("Fail", "AccuracyBelowThreshold"), ("Error", "PackInvalid")])
def test_broken_glass_overrules_a_check_that_has_refused(swapped, verdict, reason):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish(verdict, reason=reason)
    swapped.settle()
    assert swapped.reason("Stalled") == f"True {reason}"
    swapped.skip_check = OTHER["digest"]
    swapped.settle()
    assert served(swapped.model) == served(OTHER_MODEL)
    assert swapped.ready() == "False CheckBypassed"
    assert served(swapped.status.last_good) == served(GOOD_MODEL)
    swapped.skip_check = ""
    swapped.settle()
    assert served(swapped.model) == served(GOOD_MODEL)


def test_broken_glass_does_not_repeat_a_rollout_that_has_failed(swapped):
    swapped.edit(model=dict(DEAD))
    swapped.skip_check = DEAD["digest"]
    swapped.settle(passes=80, alive={DEAD["digest"]: False})
    assert [model.digest for model in swapped.written] == [GOOD["digest"], DEAD["digest"], GOOD["digest"]]
    assert swapped.created == 1


def test_lists_of_changes_and_refusals_are_bounded(swapped):
    for number in range(HISTORY_KEPT + 2):
        swapped.edit(model=dict(OTHER if number % 2 else GOOD))
        swapped.settle()
    assert len(swapped.status.history) == HISTORY_KEPT
    for number in range(REJECTED_KEPT + 2):
        swapped.edit(model=dict(OTHER), retryToken=str(number))
        swapped.settle(verdicts={OTHER["digest"]: "Fail"})
    assert len(swapped.status.rejected) == REJECTED_KEPT
    assert swapped.status.rejected[0].time > swapped.status.rejected[-1].time

"""What a plan does when the rollout goes wrong.

Names of fault rows are those of the operator's fault table.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from assay_operator.models.observed import Termination
from assay_operator.plan import SetModel
from support.packs import BAD, DEAD, GOOD, GOOD_MODEL, OTHER, served, spec, template
from support.world import ConflictError, World


def test_fault_24_pods_that_never_come_up_are_rolled_back_at_the_deadline(swapped):
    swapped.edit(model=dict(DEAD))
    swapped.settle(passes=80, alive={DEAD["digest"]: False})
    assert [model.digest for model in swapped.written] == [GOOD["digest"], DEAD["digest"], GOOD["digest"]]
    assert swapped.ready() == "False RolledBack"
    assert swapped.reason("Stalled") == "True RolledBack"
    assert swapped.reason("RolledOut") == "False RolledBack"
    assert swapped.reason("Available") == "True MinimumReplicasAvailable"
    assert swapped.reason("CheckPassed") == "True CheckPassed"
    assert "ProgressDeadlineExceeded" in swapped.message()
    assert served(swapped.status.last_good) == served(GOOD_MODEL)
    assert swapped.created == 2


def test_fault_24_rollback_goes_to_base_when_nothing_passed_before():
    world = World(spec=spec(DEAD))
    world.settle(passes=80, alive={DEAD["digest"]: False})
    assert [model.digest for model in world.written] == [DEAD["digest"], ""]
    assert world.ready() == "False RolledBack"


@pytest.mark.parametrize("code", ["DigestMismatch", "CpuFeatureMissing", "PackInvalid"])
def test_fault_23_46_pod_whose_pack_does_not_fit_is_rolled_back_early(swapped, code):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.reconcile()
    swapped.misfit = Termination(78, "Error", f'{{"code":"{code}","message":"it does not fit"}}', finished=swapped.now)
    swapped.roll(ready=False, waiting="CrashLoopBackOff")
    swapped.misfit = None
    swapped.reconcile()
    assert swapped.reason("RolledOut") == f"False {code}"
    swapped.settle()
    assert served(swapped.written[-1]) == served(GOOD_MODEL)
    assert swapped.now - swapped.applied < timedelta(seconds=300)
    assert "it does not fit" in swapped.message()


def test_fault_46_pack_whose_check_was_skipped_is_rolled_back_with_one_event(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.skip_check = OTHER["digest"]
    swapped.reconcile()
    swapped.misfit = Termination(78, "Error", '{"code":"CpuFeatureMissing","message":"no vnni"}', finished=swapped.now)
    swapped.roll(ready=False, waiting="CrashLoopBackOff")
    swapped.misfit = None
    swapped.settle()
    assert swapped.reason("CheckPassed") == "False CpuFeatureMissing"
    assert served(swapped.written[-1]) == served(GOOD_MODEL)
    assert [event.reason for event in swapped.events].count("CpuFeatureMissing") == 1


def test_fault_46_pod_on_a_node_without_the_features_is_told_and_the_others_serve(swapped):
    swapped.misfit = Termination(78, "Error", '{"code":"CpuFeatureMissing","message":"no vnni"}', finished=swapped.now)
    swapped.pods.append(swapped.pod(9, ready=False, waiting="CrashLoopBackOff"))
    swapped.misfit, swapped.replicas = None, 3
    swapped.events.clear()
    swapped.reconcile()
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False CpuFeatureMissing"
    assert swapped.ready() == "False CpuFeatureMissing"
    assert swapped.reason("Stalled") == "True CpuFeatureMissing"
    assert "2 of 3 replicas serve" in swapped.message()
    assert "no vnni" in swapped.message()
    assert [(event.reason, event.warning) for event in swapped.events] == [("CpuFeatureMissing", True)]
    assert served(swapped.model) == served(GOOD_MODEL)
    swapped.pods[-1] = swapped.pod(10)
    swapped.settle()
    assert swapped.ready() == "True Serving"


def test_pack_that_a_pod_cannot_fetch_has_until_the_deadline(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.reconcile()
    swapped.misfit = Termination(78, "Error", '{"code":"PackUnavailable","message":"503"}', finished=swapped.now)
    swapped.roll(ready=False)
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False RolloutInProgress"


def soak(world):
    """Bring a swap to OTHER to where its pods are ready and have yet to stay so."""
    world.edit(model=dict(OTHER))
    world.reconcile()
    world.finish("Pass")
    world.reconcile()
    world.roll()
    world.reconcile()
    assert world.reason("RolledOut") == "False Soaking"


def test_fault_25_pod_that_ends_in_the_soak_is_rolled_back(swapped):
    soak(swapped)
    swapped.pods[0] = swapped.pod(0, ready=False, restarts=1, waiting="CrashLoopBackOff")
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False SoakFailed"
    swapped.settle()
    assert swapped.ready() == "False RolledBack"
    assert served(swapped.written[-1]) == served(GOOD_MODEL)


def test_fault_25_pod_that_drains_before_it_ends_in_the_soak_is_rolled_back(swapped):
    soak(swapped)
    swapped.pods[0] = swapped.pod(0, ready=False)
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False Soaking"
    swapped.pods[0] = swapped.pod(0, ready=False, restarts=1)
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False SoakFailed"


def test_fault_25_pod_that_has_ended_in_the_soak_is_noticed_before_it_is_started_again(swapped):
    soak(swapped)
    ended = Termination(0, "Completed", "", finished=swapped.now)
    swapped.pods[0] = replace(swapped.pod(0, ready=False), ended=ended)
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False SoakFailed"


def test_fault_26_rollout_blocked_by_quota_is_rolled_back_early_and_quoted(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.reconcile()
    swapped.replica_failure = "exceeded quota: few"
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False ReplicaFailure"
    assert "exceeded quota" in swapped.message()
    swapped.replica_failure = ""
    swapped.settle()
    assert served(swapped.written[-1]) == served(GOOD_MODEL)


def test_fault_27_rollback_that_cannot_complete_is_told_and_kept(swapped):
    swapped.edit(model=dict(DEAD))
    for _ in range(120):
        made = swapped.reconcile()
        swapped.live({}, {DEAD["digest"]: False, GOOD["digest"]: False})
        swapped.pass_time(max(10, made.again_s or 0))
    assert swapped.reason("Stalled") == "True RollbackFailed"
    assert served(swapped.written[-1]) == served(GOOD_MODEL)
    assert "nothing is scaled down" in swapped.message()
    swapped.roll()
    swapped.settle()
    assert swapped.ready() == "False RolledBack"


def test_rolled_back_inputs_are_not_rolled_out_again_without_a_change(swapped):
    swapped.edit(model=dict(DEAD))
    swapped.settle(passes=80, alive={DEAD["digest"]: False})
    written = list(swapped.written)
    swapped.settle()
    assert swapped.written == written
    swapped.edit(retryToken="again")
    swapped.settle()
    assert swapped.written[-1].digest == DEAD["digest"]
    assert swapped.ready() == "True Serving"


def test_fault_28_spec_reverted_to_the_last_good_needs_no_check(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.reconcile()
    swapped.edit(model=dict(GOOD))
    made = swapped.reconcile()
    assert [type(step) for step in made.steps] == [SetModel]
    assert served(swapped.written[-1]) == served(GOOD_MODEL)
    swapped.settle()
    assert (swapped.ready(), swapped.created) == ("True Serving", 2)


def test_spec_change_while_rolling_goes_to_the_last_good_first(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.reconcile()
    swapped.edit(model=dict(BAD))
    made = swapped.reconcile()
    assert [type(step) for step in made.steps] == [SetModel]
    assert served(made.steps[0].model) == served(GOOD_MODEL)
    swapped.reconcile()
    assert swapped.created == 3


def test_fault_48_deployment_changed_between_pass_and_apply_is_not_written():
    world = World()
    world.reconcile()
    world.finish("Pass")
    seen = world.observe()
    world.template = template(image="localhost/assay-service:0.2.0")
    world.deployment_version += 1
    with pytest.raises(ConflictError):
        world.reconcile(observed=seen)
    assert world.written == []
    world.reconcile()
    assert (world.created, world.written) == (2, [])

"""What a plan does when the check goes wrong.

Names of fault rows are those of the operator's fault table.
"""

from dataclasses import replace

import pytest

from assay_operator.models.status import Status
from assay_operator.plan import CreateJob, DeleteJob, Limits, plan
from assay_operator.plan.judgement import newest_pod
from support.packs import GOOD, GOOD_MODEL, OTHER, result, spec
from support.world import World


def test_fault_1_crash_after_the_job_was_made_makes_no_second_one():
    world = World()
    world.reconcile(steps=1)
    assert world.status == Status()
    world.reconcile()
    world.reconcile()
    assert world.created == 1
    assert world.status.target.attempt == 1


def test_fault_2_crash_between_pass_and_apply_needs_no_second_check():
    world = World()
    world.reconcile()
    world.finish("Pass")
    world.reconcile(steps=0)
    world.reconcile()
    assert (world.created, world.written) == (1, [GOOD_MODEL])


def test_fault_13_killed_check_is_tried_again_and_then_stalls():
    world = World()
    for attempt in range(1, 4):
        world.reconcile()
        assert world.created == attempt
        world.finish(message="", exit_code=137)
        made = world.reconcile()
        world.pass_time((made.again_s or 0) + 1)
    world.settle()
    assert world.created == 3
    assert world.reason("Stalled") == "True CheckCrashed"
    assert "OOMKilled" in world.message()
    assert world.written == []


def test_fault_13_signal_is_named():
    world = World()
    world.reconcile()
    world.finish(message="", exit_code=132)
    world.reconcile()
    assert "signal 4" in world.message("CheckPassed")


def test_fault_15_check_that_hangs_timed_out():
    world = World()
    world.reconcile()
    world.finish(pod=False, failed="DeadlineExceeded")
    world.reconcile()
    assert world.reason("CheckPassed") == "False CheckTimedOut"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("missing", ""),
        ("garbage", "Traceback (most recent call last):"),
        ("truncated", None),
        ("not a number", None),
        ("wrong job", None),
        ("wrong inputs", None),
        ("wrong pack", None),
        ("figures deny it", None),
        ("no digest", None),
        ("format of the future", None),
    ],
)
def test_fault_16_result_that_is_not_believed_never_opens_the_gate(case, message):
    world = World()
    world.reconcile()
    job = world.job()
    made = {
        "truncated": result(job)[:500],
        "not a number": result(job).replace('"top3Contained": 398', '"top3Contained": NaN'),
        "wrong job": result(job, jobUID="another"),
        "wrong inputs": result(job, inputsHash="0" * 20 + "-" + "0" * 20),
        "wrong pack": result(
            job, candidate={"uri": GOOD["uri"], "digest": OTHER["digest"], "precision": "INT8", "costMicros": 1}
        ),
        "figures deny it": result(job, containmentLowerPermille=979),
        "no digest": result(job, candidate={"uri": GOOD["uri"], "digest": None, "precision": "INT8", "costMicros": 1}),
        "format of the future": result(job, format=2),
    }.get(case, message)
    world.finish(message=made)
    world.reconcile()
    assert world.reason("CheckPassed") == "False CheckResultInvalid"
    assert world.written == []


def test_error_that_the_check_reports_keeps_its_reason():
    world = World()
    world.reconcile()
    world.finish("Error", reason="DigestMismatch")
    world.reconcile()
    assert world.reason("CheckPassed") == "False DigestMismatch"


def test_pass_written_by_a_container_that_failed_is_not_believed():
    world = World()
    world.reconcile()
    world.finish("Pass", exit_code=1)
    world.reconcile()
    assert world.written == []
    assert world.reason("CheckPassed") == "False CheckCrashed"


def test_fault_19_inconclusive_is_repeated_and_never_a_pass():
    world = World()
    world.reconcile()
    world.finish("Inconclusive")
    made = world.reconcile()
    assert world.reason("CheckPassed") == "False CheckInconclusive"
    assert 10 <= made.again_s <= 13
    world.pass_time(made.again_s)
    world.reconcile()
    assert (world.created, world.written) == (2, [])


@pytest.mark.parametrize(
    ("waiting", "unschedulable", "reason"),
    [
        ("ImagePullBackOff", "", "CheckImagePullFailed"),
        ("", "0/1 nodes are available: 1 Insufficient cpu.", "CheckUnschedulable"),
    ],
)
def test_fault_11_12_check_that_does_not_start_is_given_up_and_quoted(waiting, unschedulable, reason):
    world = World()
    world.reconcile()
    job = world.job()
    pod = replace(
        world.check_pod(job),
        started=None,
        phase="Pending",
        waiting_reason=waiting,
        waiting_message="said",
        unschedulable=unschedulable,
    )
    world.jobs[job.name] = replace(job, pods=(pod,))
    world.reconcile()
    assert world.reason("CheckPassed") == "Unknown CheckRunning"
    world.pass_time(301)
    world.reconcile()
    assert world.reason("CheckPassed") == f"False {reason}" or world.status.last_check.reason == reason
    made = world.reconcile()
    assert [type(step) for step in made.steps] == [DeleteJob]
    made = world.reconcile()
    assert world.reason("CheckPassed") == f"False {reason}"
    assert (unschedulable or "said") in world.message("CheckPassed")
    world.pass_time(30)
    world.reconcile()
    assert world.created == 2


def test_fault_12_quota_is_quoted():
    world = World()
    world.reconcile()
    job = world.job()
    world.jobs[job.name] = replace(job, refused_pods="pods is forbidden: exceeded quota: few")
    world.pass_time(301)
    world.reconcile()
    assert world.status.last_check.reason == "CheckUnschedulable"
    assert "exceeded quota" in world.status.last_check.message


def test_fault_14_pod_that_replaces_a_drained_one_has_its_own_time_to_start():
    world = World()
    world.reconcile()
    job = world.job()
    world.pass_time(290)
    pod = replace(world.check_pod(job), started=None, phase="Pending")
    world.jobs[job.name] = replace(job, pods=(pod,))
    world.pass_time(20)
    world.reconcile()
    assert world.reason("CheckPassed") == "Unknown CheckRunning"
    assert world.status.target.attempt == 1


@pytest.mark.parametrize("name", ["a", "z"])
@pytest.mark.parametrize(("phase", "verdict"), [("Succeeded", "Pass"), ("Failed", "Error")])
def test_fault_14_pod_that_was_drained_in_the_second_of_its_replacement_does_not_count(name, phase, verdict):
    world = World()
    world.reconcile()
    job = world.finish(verdict)
    measured = replace(job.pods[0], phase=phase)
    drained = replace(world.check_pod(job), name=f"{job.name}-{name}", phase="Failed", disrupted=True)
    for pods in ((drained, measured), (measured, drained)):
        world.jobs[job.name] = replace(job, pods=pods)
        assert newest_pod(world.job()) == measured
    world.reconcile()
    assert world.status.last_check.verdict == verdict
    assert world.status.last_check.reason == {"Pass": "CheckPassed", "Error": "PackUnavailable"}[verdict]


def test_fault_17_job_deleted_before_its_result_was_read_costs_an_attempt():
    world = World()
    world.reconcile()
    world.jobs.clear()
    world.reconcile()
    assert "deleted before" in world.message("CheckPassed")
    world.pass_time(30)
    world.settle()
    assert (world.created, world.ready()) == (2, "True Serving")


def test_fault_17_job_deleted_after_the_rollout_began_changes_nothing():
    world = World()
    world.reconcile()
    world.finish("Pass")
    world.reconcile()
    world.jobs.clear()
    world.settle()
    assert (world.created, world.written, world.ready()) == (1, [GOOD_MODEL], "True Serving")


def test_fault_17_job_deleted_between_verdict_and_apply_is_checked_again():
    world = World(spec=spec(suspend=True))
    world.edit(suspend=False)
    world.reconcile()
    world.finish("Pass")
    world.edit(suspend=True)
    world.reconcile()
    assert world.status.last_check.verdict == "Pass"
    world.jobs.clear()
    world.edit(suspend=False)
    world.reconcile()
    assert (world.created, world.written) == (2, [])


def test_fault_18_foreign_job_with_our_name_is_neither_used_nor_deleted():
    world = World()
    name = plan(world.variant(), world.observe()).steps[0].name
    world.taken.add(name)
    world.settle()
    assert world.reason("Stalled") == "True JobNameConflict"
    assert name in world.message()
    assert world.jobs == {}


def test_fault_18_edited_job_is_not_believed():
    world = World()
    world.reconcile()
    done = world.finish("Pass")
    other = {
        **done.template,
        "spec": {**done.template["spec"], "containers": [{**done.template["spec"]["containers"][0], "image": "evil"}]},
    }
    world.jobs[done.name] = replace(done, template=other)
    world.reconcile()
    assert world.reason("CheckPassed") == "False JobNameConflict"
    assert world.written == []


def test_job_owned_by_another_uid_is_no_evidence():
    world = World()
    world.reconcile()
    done = world.finish("Pass")
    world.jobs[done.name] = replace(done, owner_uid="uid-of-an-older-one")
    world.reconcile()
    assert world.reason("CheckPassed").startswith("False")
    assert world.written == []


def test_fault_21_spec_change_deletes_the_running_check_and_ignores_its_result():
    world = World()
    world.reconcile()
    old = world.job()
    world.edit(model=dict(OTHER))
    made = world.reconcile()
    assert {type(step) for step in made.steps} == {DeleteJob, CreateJob}
    assert old.name not in world.jobs
    assert world.written == []


def test_fault_41_check_waits_while_others_run():
    world = World(others_running=2)
    made = world.reconcile(limits=Limits(running_checks=2))
    assert world.reason("CheckPassed") == "Unknown CheckQueued"
    assert made.again_s is not None
    world.others_running = 1
    world.reconcile(limits=Limits(running_checks=2))
    assert world.created == 1

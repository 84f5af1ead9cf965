"""What a plan does in each situation. Names of fault rows are those of the operator's fault table."""

from dataclasses import replace
from datetime import timedelta

import pytest

from assay_operator.models.observed import ServedModel, Termination
from assay_operator.models.status import LastGood, Status
from assay_operator.plan import CreateJob, DeleteJob, Limits, SetModel, plan
from support.world import (
    BAD,
    BASE_DIGEST,
    BASE_URI,
    BUILTIN,
    BUILTIN_DIGEST,
    DEAD,
    GOOD,
    OTHER,
    START,
    ConflictError,
    World,
    result,
    spec,
    template,
)

GOOD_MODEL = ServedModel(GOOD["uri"], GOOD["digest"], "INT8", "assay")
OTHER_MODEL = ServedModel(OTHER["uri"], OTHER["digest"], "INT8", "assay")
BASE = ServedModel()


def served(pack):
    return (pack.uri, pack.digest, pack.precision)


@pytest.fixture
def swapped() -> World:
    """A target that serves GOOD, which passed and soaked."""
    world = World()
    world.settle()
    assert world.ready() == "True Serving"
    return world


# --- the way of a good pack ------------------------------------------------------------------------------------------


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


# --- refusals ---------------------------------------------------------------------------------------------------------


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


# --- the check goes wrong ---------------------------------------------------------------------------------------------


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


# --- the rollout goes wrong -------------------------------------------------------------------------------------------


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


def test_pack_that_a_pod_cannot_fetch_has_until_the_deadline(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.reconcile()
    swapped.misfit = Termination(78, "Error", '{"code":"PackUnavailable","message":"503"}', finished=swapped.now)
    swapped.roll(ready=False)
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False RolloutInProgress"


def test_fault_25_pod_that_ends_in_the_soak_is_rolled_back(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.reconcile()
    swapped.roll()
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False Soaking"
    swapped.pods[0] = swapped.pod(0, ready=False, restarts=1, waiting="CrashLoopBackOff")
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False SoakFailed"
    swapped.settle()
    assert swapped.ready() == "False RolledBack"
    assert served(swapped.written[-1]) == served(GOOD_MODEL)


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


# --- what others change -----------------------------------------------------------------------------------------------


def test_fault_29_36_foreign_edit_of_the_annotations_is_put_back_and_told(swapped):
    swapped.pass_time(60)
    swapped.set_model(ServedModel("https://packs.example/evil.tar", "sha256:" + "e" * 64, "INT8", ""), owned=False)
    swapped.reconcile()
    assert served(swapped.written[-1]) == served(GOOD_MODEL)
    assert [event.reason for event in swapped.events].count("DriftCorrected") == 1
    swapped.set_model(BASE, owned=True)
    made = swapped.reconcile()
    assert made.steps == ()
    assert 0 < made.again_s <= 10
    swapped.pass_time(11)
    swapped.reconcile()
    assert served(swapped.model) == served(GOOD_MODEL)


def test_fault_29_foreign_edit_is_put_back_while_the_pack_asked_for_is_refused(swapped):
    swapped.edit(model=dict(BAD))
    swapped.settle(verdicts={BAD["digest"]: "Fail"})
    swapped.set_model(ServedModel("https://packs.example/evil.tar", "sha256:" + "e" * 64, "INT8", ""), owned=False)
    swapped.pass_time(60)
    swapped.reconcile()
    assert served(swapped.model) == served(GOOD_MODEL)


def test_fault_30_target_deleted_and_made_anew_gets_the_passed_model_only_with_evidence(swapped):
    swapped.exists = False
    swapped.reconcile()
    assert (swapped.ready(), swapped.reason("Available")) == ("False TargetNotFound", "False TargetNotFound")
    swapped.exists = True
    swapped.model, swapped.revisions, swapped.applied = BASE, [BASE], None
    swapped.deployment_version += 1
    swapped.roll()
    swapped.settle()
    assert (swapped.ready(), swapped.created) == ("True Serving", 1)
    swapped.model, swapped.revisions = BASE, [BASE]
    swapped.jobs.clear()
    swapped.roll()
    swapped.reconcile()
    assert swapped.created == 2
    assert swapped.model == BASE


def test_fault_31_older_variant_of_one_target_wins():
    world = World(rivals=((START - timedelta(hours=1), "uid-0", "older"),))
    made = world.reconcile()
    assert made.steps == ()
    assert world.reason("Stalled") == "True TargetConflict"
    assert "older" in world.message()
    world.rivals = ()
    world.settle()
    assert world.ready() == "True Serving"


def test_fault_37_invalid_spec_stalls():
    world = World(spec={"targetRef": {"name": "assay"}, "model": {"uri": "ftp://x"}})
    made = world.reconcile()
    assert made.steps == ()
    assert world.reason("Stalled") == "True InvalidSpec"


def test_target_without_the_label_is_left_alone():
    world = World(labelled=False)
    assert world.reconcile().steps == ()
    assert world.reason("Stalled") == "True TargetNotFound"
    assert "assay.dev/target" in world.message()


def test_container_that_is_not_there_is_named():
    world = World(spec=spec(container="server"))
    assert world.reconcile().steps == ()
    assert world.reason("Stalled") == "True InvalidSpec"
    assert "classifier" in world.message()


def test_fault_39_45_incumbent_is_adopted_unverified_and_checked_in_place(swapped):
    swapped.status = Status()
    swapped.jobs.clear()
    swapped.uid = "uid-2"
    written = list(swapped.written)
    swapped.reconcile()
    assert swapped.reason("Available") == "False Unverified"
    swapped.settle()
    assert swapped.written == written
    assert (swapped.ready(), swapped.created) == ("True Serving", 2)
    assert served(swapped.status.last_good) == served(GOOD_MODEL)


def test_incumbent_that_is_refused_goes_to_base(swapped):
    swapped.status = Status()
    swapped.jobs.clear()
    swapped.settle(verdicts={GOOD["digest"]: "Fail"})
    assert swapped.model == BASE
    assert swapped.ready() == "False AccuracyBelowThreshold"


def test_incumbent_stands_unverified_when_its_attempts_are_used_up(swapped):
    swapped.status = Status()
    swapped.jobs.clear()
    swapped.settle(passes=60, verdicts={GOOD["digest"]: "Error"})
    assert swapped.model == GOOD_MODEL
    assert swapped.reason("Available") == "False Unverified"
    assert swapped.reason("Stalled") == "True PackUnavailable"


def test_incumbent_is_checked_after_the_pack_asked_for_was_refused(swapped):
    swapped.status = Status()
    swapped.jobs.clear()
    swapped.edit(model=dict(BAD))
    swapped.settle(passes=60, verdicts={BAD["digest"]: "Fail"})
    assert swapped.model == GOOD_MODEL
    assert served(swapped.status.last_good) == served(GOOD_MODEL)
    assert swapped.ready() == "False AccuracyBelowThreshold"
    assert swapped.reason("Available") == "True MinimumReplicasAvailable"
    assert swapped.created == 3


def test_fault_39_forged_last_good_is_never_rolled_out():
    world = World(spec=spec(DEAD))
    forged = LastGood(uri=BAD["uri"], digest=BAD["digest"], precision="INT8", inputs_hash="x-y")
    world.status = Status(last_good=forged)
    world.settle(passes=80, alive={DEAD["digest"]: False})
    assert BAD["digest"] not in [model.digest for model in world.written]
    assert world.model == BASE


def test_fault_39_forged_pass_in_status_opens_nothing():
    world = World()
    world.reconcile()
    done = world.finish("Pass")
    world.reconcile(steps=0)
    forged = plan(world.variant(), world.observe()).status
    world.jobs.clear()
    world.status = forged
    world.reconcile()
    assert world.written == []
    assert done.name not in world.jobs or not world.jobs[done.name].finished


@pytest.mark.parametrize("change", ["image", "limit", "threads", "base"])
def test_changed_environment_leaves_it_serving_unverified_until_a_check(swapped, change):
    environment = {
        "image": template(image="localhost/assay-service:0.2.0"),
        "limit": template(resources={"limits": {"cpu": "1", "memory": "2Gi"}}),
        "threads": template(
            env=[*template()["spec"]["containers"][0]["env"], {"name": "OMP_NUM_THREADS", "value": "1"}]
        ),
        "base": template(env=[{"name": "ASSAY_BASE_MODEL_URI", "value": "builtin:another"}]),
    }[change]
    swapped.template = environment
    swapped.deployment_version += 1
    swapped.reconcile()
    assert swapped.reason("Available") == "False Unverified"
    assert swapped.model == GOOD_MODEL
    assert swapped.created == 2
    swapped.settle()
    assert swapped.ready() == "True Serving"
    assert swapped.written == [GOOD_MODEL]


def test_fault_47_image_built_anew_under_the_same_name_is_checked_again(swapped):
    swapped.image_id = "sha256:rebuilt"
    swapped.pods[0] = swapped.pod(0)
    swapped.reconcile()
    assert swapped.reason("Available") == "True MinimumReplicasAvailable"  # while the pods differ nothing is known yet
    swapped.roll()
    swapped.reconcile()
    assert swapped.reason("Available") == "False Unverified"
    assert (swapped.created, swapped.model) == (2, GOOD_MODEL)
    swapped.settle()
    assert swapped.ready() == "True Serving"
    assert swapped.written == [GOOD_MODEL]


def test_fault_47_image_built_anew_gives_a_pack_that_was_rolled_back_another_chance():
    world = World(spec=spec(DEAD))
    world.settle(passes=80, alive={DEAD["digest"]: False})
    assert world.ready() == "False RolledBack"
    world.image_id = "sha256:rebuilt"
    world.roll()
    world.settle()
    assert world.ready() == "True Serving"


def test_refusal_is_told_even_when_the_base_does_not_come_up():
    world = World(spec=spec(BAD))
    world.roll(ready=False, waiting="ImagePullBackOff")
    world.pass_time(301)
    world.reconcile()
    assert world.ready() == "False CheckRunning"
    world.finish("Fail")
    world.reconcile()
    world.pass_time(301)
    world.reconcile()
    assert world.ready() == "False AccuracyBelowThreshold"
    assert world.reason("Stalled") == "True AccuracyBelowThreshold"
    assert world.reason("RolledOut") == "False ProgressDeadlineExceeded"


def test_check_waits_until_a_pod_tells_what_the_image_is_but_not_for_ever():
    world = World()
    world.roll(ready=False)
    world.reconcile()
    assert (world.created, world.reason("CheckPassed")) == (0, "Unknown CheckQueued")
    world.pass_time(301)
    world.reconcile()
    assert world.created == 1


def test_changed_environment_in_which_the_pack_fails_goes_to_base(swapped):
    swapped.template = template(image="localhost/assay-service:0.2.0")
    swapped.deployment_version += 1
    swapped.settle(verdicts={GOOD["digest"]: "Fail"})
    assert swapped.model == BASE
    assert swapped.status.serving.uri == BASE_URI


def test_log_level_of_the_service_is_no_reason_to_check_again(swapped):
    swapped.template = template(
        env=[{"name": "ASSAY_BASE_MODEL_URI", "value": BASE_URI}, {"name": "ASSAY_LOG_LEVEL", "value": "DEBUG"}]
    )
    swapped.deployment_version += 1
    swapped.settle()
    assert (swapped.created, swapped.ready()) == (1, "True Serving")


def test_stricter_criteria_do_not_take_down_what_has_passed(swapped):
    swapped.edit(check={"minTop3ContainmentPermille": 1000})
    swapped.settle(verdicts={GOOD["digest"]: "Fail"})
    assert swapped.model == GOOD_MODEL
    assert swapped.ready() == "False AccuracyBelowThreshold"
    assert swapped.reason("Available") == "True MinimumReplicasAvailable"


# --- the yardstick ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "yardstick", [{"uri": GOOD["uri"], "digest": GOOD["digest"]}, {"uri": BAD["uri"], "digest": BAD["digest"]}]
)
def test_fault_43_unapproved_yardstick_means_no_check_and_no_rollout(yardstick):
    world = World(spec=spec(check={"compareWith": yardstick}))
    world.settle()
    assert world.reason("Stalled") == "True YardstickNotApproved"
    assert (world.created, world.written) == (0, [])


def test_fault_43_repack_of_the_candidate_is_no_yardstick(swapped):
    swapped.edit(
        model=dict(OTHER),
        check={"compareWith": {"uri": "https://packs.example/repack.tar", "digest": "sha256:" + "9" * 64}},
    )
    swapped.settle()
    assert swapped.reason("Stalled") == "True YardstickNotApproved"


def test_last_good_and_the_base_may_be_the_yardstick(swapped):
    swapped.edit(model=dict(OTHER), check={"compareWith": {"uri": GOOD["uri"], "digest": GOOD["digest"]}})
    swapped.settle()
    assert swapped.ready() == "True Serving"
    swapped.edit(model=dict(GOOD), check={"compareWith": {"uri": BASE_URI}})
    swapped.settle()
    assert swapped.ready() == "True Serving"


# --- suspend and break glass ------------------------------------------------------------------------------------------


def test_fault_42_suspended_variant_writes_nothing_and_goes_on_telling():
    world = World()
    world.reconcile()
    world.finish("Pass")
    world.edit(suspend=True)
    world.settle()
    assert world.written == []
    assert world.ready() == "False Suspended"
    assert world.reason("CheckPassed") == "True CheckPassed"
    world.edit(suspend=False)
    world.settle()
    assert world.ready() == "True Serving"


def test_broken_glass_rolls_out_but_never_becomes_last_good(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.skip_check = OTHER["digest"]
    swapped.settle()
    assert served(swapped.model) == served(OTHER_MODEL)
    assert swapped.reason("CheckPassed") == "False CheckBypassed"
    assert swapped.ready() == "False CheckBypassed"
    assert served(swapped.status.last_good) == served(GOOD_MODEL)
    assert swapped.created == 1


def test_deleted_variant_is_left_alone(swapped):
    gone = replace(swapped.variant(), deleting=True)
    assert plan(gone, swapped.observe()).steps == ()

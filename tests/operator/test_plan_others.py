"""What a plan does about what others change: annotations, images, limits, status, the target.

Names of fault rows are those of the operator's fault table.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from assay_operator.models.observed import ServedModel
from assay_operator.models.status import LastGood, Status
from assay_operator.plan import plan
from support.packs import BAD, BASE, BASE_URI, DEAD, GOOD, GOOD_MODEL, START, served, spec, template
from support.world import World


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


@pytest.mark.parametrize("name", ["somebody", ""])
@pytest.mark.parametrize("asked", [GOOD, BAD])
def test_fault_29_name_of_who_asked_is_put_back_where_somebody_else_edited_it(swapped, name, asked):
    swapped.edit(model=dict(asked))
    swapped.settle(verdicts={BAD["digest"]: "Fail"})
    swapped.set_model(replace(swapped.model, variant=name), owned=name == "")  # of what is gone nobody is an owner
    swapped.roll()
    swapped.pass_time(60)
    swapped.settle()
    assert swapped.model == GOOD_MODEL
    assert [event.reason for event in swapped.events].count("DriftCorrected") == 1
    assert swapped.created == (1 if asked == GOOD else 2)


def test_fault_45_renamed_variant_is_no_rollout(swapped):
    swapped.set_model(replace(swapped.model, variant="former"), owned=True)
    swapped.roll()
    swapped.status, swapped.uid = Status(), "uid-2"
    written = list(swapped.written)
    swapped.settle()
    assert (swapped.ready(), swapped.written) == ("True Serving", written)


def test_annotations_that_came_with_the_target_are_no_drift():
    world = World()
    world.set_model(replace(GOOD_MODEL, variant="somebody"), owned=False)
    world.roll()
    world.settle()
    assert (world.ready(), world.written) == ("True Serving", [])


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
    assert "which has not been proved" in swapped.message()


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

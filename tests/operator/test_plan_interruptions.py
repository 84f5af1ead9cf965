"""What a plan does when operators are killed, away, two at once, or look at something old, and when clocks differ.

Names of fault rows are those of the operator's fault table.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from assay_operator.plan import CreateJob, SetModel
from support.packs import BAD, BUILTIN, DEAD, GOOD, GOOD_MODEL, OTHER, OTHER_MODEL, served, spec, template
from support.world import ConflictError, World

DEADLINE = timedelta(seconds=300)


def rolling(world: World, pack: dict) -> World:
    """Bring it to where the pack has passed and its annotations have just been applied."""
    world.edit(model=dict(pack))
    world.reconcile()
    world.finish("Pass")
    world.reconcile()
    return world


def lost(world: World, observed) -> None:
    """A pass whose write must not get through, or must be without effect."""
    try:
        world.reconcile(observed=observed)
    except ConflictError:
        return


@pytest.mark.parametrize("away_s", [60, 299])
def test_fault_3_killed_in_mid_rollout_the_deadline_still_counts_from_the_apply(swapped, away_s):
    rolling(swapped, DEAD)
    began = swapped.applied
    swapped.roll(ready=False)
    swapped.pass_time(away_s)  # nobody was there
    assert swapped.reconcile().steps == ()
    assert swapped.reason("RolledOut") == "False RolloutInProgress"
    swapped.pass_time(300 - away_s)
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False ProgressDeadlineExceeded"
    assert swapped.now - began == DEADLINE


def test_fault_3_killed_between_the_apply_and_its_status_goes_on_without_a_second_write(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.reconcile(steps=1)  # applied, and then killed
    assert swapped.model == OTHER_MODEL
    swapped.settle()
    assert [model.digest for model in swapped.written] == [GOOD["digest"], OTHER["digest"]]
    assert (swapped.ready(), swapped.created) == ("True Serving", 2)


@pytest.mark.parametrize("steps", [0, 1])
def test_fault_3_killed_in_mid_rollback_goes_on_to_the_last_good(swapped, steps):
    rolling(swapped, DEAD)
    swapped.roll(ready=False)
    swapped.pass_time(301)
    swapped.reconcile()  # the refusal is written down
    swapped.reconcile(steps=steps)  # killed before, or after, the annotations go back
    assert (swapped.model == GOOD_MODEL) == bool(steps)
    swapped.settle()
    assert [model.digest for model in swapped.written] == [GOOD["digest"], DEAD["digest"], GOOD["digest"]]
    assert swapped.ready() == "False RolledBack"


def test_fault_4_only_the_latest_of_two_specs_counts_after_hours_away(swapped):
    swapped.edit(model=dict(BAD))
    swapped.edit(model=dict(OTHER))
    swapped.pass_time(4 * 3600)
    swapped.settle(verdicts={BAD["digest"]: "Fail"})
    arguments = [" ".join(job.template["spec"]["containers"][0]["args"]) for job in swapped.jobs.values()]
    assert not any(BAD["digest"] in line for line in arguments)
    assert [model.digest for model in swapped.written] == [GOOD["digest"], OTHER["digest"]]
    assert swapped.ready() == "True Serving"
    assert swapped.status.observed_generation == swapped.generation


def test_fault_4_check_that_passed_meanwhile_does_not_roll_out_what_nobody_asks_for_any_more(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.reconcile()
    swapped.finish("Pass")
    swapped.edit(model=dict(BUILTIN))
    swapped.edit(model=dict(GOOD))
    swapped.pass_time(4 * 3600)
    swapped.settle()
    assert swapped.written == [GOOD_MODEL]
    assert (swapped.ready(), swapped.created) == ("True Serving", 2)


def test_fault_5_two_operators_with_the_same_view_make_one_job_and_one_apply():
    world = World()
    variant, observed = world.variant(), world.observe()
    world.reconcile(variant=variant, observed=observed)
    with pytest.raises(ConflictError):
        world.reconcile(variant=variant, observed=observed)  # the name of the same attempt is taken
    world.finish("Pass")
    variant, observed = world.variant(), world.observe()
    world.reconcile(variant=variant, observed=observed)
    with pytest.raises(ConflictError):
        world.reconcile(variant=variant, observed=observed)  # the Deployment has another resourceVersion
    assert (world.created, world.written) == (1, [GOOD_MODEL])


def test_fault_5_two_operators_in_turn_do_not_flap():
    world, other = World(), None
    for _ in range(40):
        mine = (world.variant(), world.observe())
        for variant, observed in (mine, other or mine):  # the other one always looks a pass late
            try:
                world.reconcile(variant=variant, observed=observed)
            except ConflictError:
                continue
        other = mine
        world.live({}, {})
        world.pass_time(10)
    assert (world.created, world.written, world.ready()) == (1, [GOOD_MODEL], "True Serving")


def test_fault_7_doubled_and_reordered_news_at_rest_writes_nothing(swapped):
    views = [(swapped.variant(), swapped.observe())]
    version, written, told = swapped.version, list(swapped.written), len(swapped.events)
    for _ in range(50):  # an initial list of fifty, all of the same object
        made = swapped.reconcile()
        assert (made.steps, made.again_s) == ((), None)
    for variant, observed in views * 3:
        swapped.reconcile(variant=variant, observed=observed)
    assert (swapped.version, swapped.written, len(swapped.events)) == (version, written, told)


def test_fault_7_doubled_news_in_mid_check_and_mid_rollout_writes_once():
    world = World()
    for _ in range(5):
        world.reconcile()
    world.finish("Pass")
    for _ in range(5):
        world.reconcile()
    version = world.version
    for _ in range(5):
        assert world.reconcile().steps == ()
    assert (world.created, world.written, world.version) == (1, [GOOD_MODEL], version)
    assert len({event.key for event in world.events}) == len(world.events)


def test_fault_8_stale_view_of_the_target_can_apply_nothing():
    world = World()
    world.reconcile()
    world.finish("Pass")
    stale = world.observe()
    world.template = template(resources={"limits": {"cpu": "1", "memory": "2Gi"}})
    world.deployment_version += 1
    with pytest.raises(ConflictError):
        world.reconcile(observed=stale)
    assert world.written == []


def test_fault_8_stale_view_of_a_job_deletes_nothing_that_was_made_since():
    world = World()
    world.reconcile()
    stale = world.observe()
    old = world.job()
    world.jobs[old.name] = replace(old, uid="job-made-since")
    world.edit(model=dict(OTHER))
    world.reconcile(observed=stale)
    assert world.jobs[old.name].uid == "job-made-since"


def test_fault_8_stale_view_after_a_rollback_does_not_roll_out_again(swapped):
    rolling(swapped, DEAD)
    stale = swapped.observe()
    swapped.settle(passes=80, alive={DEAD["digest"]: False})
    written = list(swapped.written)
    lost(swapped, stale)
    assert swapped.written == written


@pytest.mark.parametrize("skew", [timedelta(hours=-6), timedelta(hours=6)])
def test_fault_38_clock_of_the_checks_node_moves_no_deadline(skew):
    world, plain = World(), World()
    for one, shift in ((world, skew), (plain, timedelta())):
        one.reconcile()
        moment = (one.now + shift).strftime("%Y-%m-%dT%H:%M:%SZ")
        one.finish("Inconclusive", startedAt=moment, completedAt=moment)
    made, without = world.reconcile(), plain.reconcile()
    assert made.again_s == without.again_s
    assert world.status.target.next_attempt_time == plain.status.target.next_attempt_time
    assert world.status.last_check.completed_at == world.now


@pytest.mark.parametrize("skew", [timedelta(hours=-6), timedelta(hours=6)])
def test_fault_38_clock_of_the_checks_node_neither_shortens_nor_lengthens_a_rollout(swapped, skew):
    swapped.edit(model=dict(DEAD))
    swapped.reconcile()
    moment = (swapped.now + skew).strftime("%Y-%m-%dT%H:%M:%SZ")
    swapped.finish("Pass", startedAt=moment, completedAt=moment)
    made = swapped.reconcile()
    assert any(isinstance(step, SetModel) for step in made.steps)
    swapped.roll(ready=False)
    swapped.pass_time(299)
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False RolloutInProgress"
    swapped.pass_time(1)
    swapped.reconcile()
    assert swapped.reason("RolledOut") == "False ProgressDeadlineExceeded"


def test_fault_38_clock_that_is_set_back_starts_nothing_twice_and_comes_to_rest(swapped):
    swapped.edit(model=dict(OTHER))
    made = swapped.reconcile()
    assert [type(step) for step in made.steps] == [CreateJob]
    swapped.pass_time(-3600)  # another API server answers, an hour behind
    assert swapped.reconcile().steps == ()
    swapped.finish("Pass")
    swapped.reconcile()
    swapped.pass_time(-3600)
    swapped.settle(passes=60)
    assert served(swapped.written[-1]) == served(OTHER_MODEL)
    assert (swapped.created, swapped.ready()) == (2, "True Serving")


def test_fault_38_wait_until_the_next_attempt_is_a_duration_of_bounded_length():
    world = World(spec=spec(check={"maxAttempts": 10}))
    waits = []
    for _ in range(9):
        world.reconcile()
        world.finish("Inconclusive")
        made = world.reconcile()
        waits.append(made.again_s)
        world.pass_time(made.again_s)
    assert all(10 <= wait <= 300 * 1.25 for wait in waits)
    assert waits[-1] >= 300

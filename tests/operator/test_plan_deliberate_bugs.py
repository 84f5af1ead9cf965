"""Bugs put into the plan on purpose: those that would make the operator worse than none. The tests must notice each.

Each is looked for twice: by tests that are named here, which pass without it, and by the stateful machine.
"""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from assay_operator.models.observed import ServedModel
from assay_operator.models.status import Pack
from assay_operator.plan import approval, checking, judgement, planner, reasons
from assay_operator.plan.facts import Facts
from support.packs import BAD, GOOD
from support.plan_machine import PlanMachine
from support.world import World


def fail_open_on_a_missing_result(patch):
    """A check that left nothing to believe counts as passed."""
    judge, final = checking.judge, checking._final

    def credulous(job, spec, candidate, yardstick):
        outcome = judge(job, spec, candidate, yardstick)
        missing = outcome.result is None
        return replace(outcome, check=outcome.check.model_copy(update={"verdict": "Pass"})) if missing else outcome

    def opening(outcome, inputs, job, uri):
        finding = final(outcome, inputs, job, uri)

        pack = Pack(uri=uri, digest=_argument(job, "--candidate-digest"), precision="INT8")
        return replace(finding, state="Passed", passed=pack) if outcome.result is None else finding

    patch.setattr(checking, "judge", credulous)
    patch.setattr(checking, "_final", opening)


def _argument(job, name):
    given = dict(one.split("=", 1) for one in job.template["spec"]["containers"][0]["args"] if "=" in one)
    return given.get(name, "")


def acting_on_a_stale_job(patch):
    """A Job counts for the present inputs, whatever inputs it was made for."""
    find = checking.find

    def careless(facts, pack):
        inputs = str(facts.inputs_for(pack))
        jobs = tuple(replace(job, inputs_hash=inputs) for job in facts.observed.jobs)
        return find(replace(facts, observed=replace(facts.observed, jobs=jobs)), pack)

    patch.setattr(approval, "find", careless)
    patch.setattr(checking, "same_template", lambda *_templates, **_how: True)
    patch.setattr(judgement, "contradiction", lambda *_facts: None)


def forgetting_the_last_good(patch):
    """A rollback always goes to the base."""
    patch.setattr(approval, "fallback", lambda _facts: ServedModel())


def trusting_a_forged_status(patch):
    """The last good pack is believed though nothing in the cluster carries it."""
    patch.setattr(Facts, "good", property(lambda facts: facts.status.last_good))


def letting_compare_with_approve(patch):
    """Whoever names a yardstick has named what may serve."""
    approve = planner.approve

    def obliging(facts):
        if facts.spec.check.compare_with is None:
            return approve(facts)
        return approval.Approval("Passed", reasons.CHECK_PASSED, "its author says so", facts.served(facts.asked))

    patch.setattr(planner, "approve", obliging)


def letting_anything_be_the_yardstick(patch):
    """A pack may be compared with one that never passed."""
    patch.setattr(approval, "_yardstick_problem", lambda _facts: None)


def swapped():
    world = World()
    world.settle()
    return world


NOTICED = [
    (
        fail_open_on_a_missing_result,
        "test_plan_check",
        "test_fault_16_result_that_is_not_believed_never_opens_the_gate",
        {"case": "missing", "message": ""},
    ),
    (
        acting_on_a_stale_job,
        "test_plan_others",
        "test_changed_environment_leaves_it_serving_unverified_until_a_check",
        {"swapped": swapped, "change": "image"},
    ),
    (
        acting_on_a_stale_job,
        "test_plan_rollout",
        "test_fault_48_deployment_changed_between_pass_and_apply_is_not_written",
        {},
    ),
    (
        forgetting_the_last_good,
        "test_plan_rollout",
        "test_fault_24_pods_that_never_come_up_are_rolled_back_at_the_deadline",
        {"swapped": swapped},
    ),
    (
        trusting_a_forged_status,
        "test_plan_others",
        "test_fault_39_forged_last_good_is_never_rolled_out",
        {},
    ),
    (
        letting_compare_with_approve,
        "test_plan_yardstick",
        "test_fault_43_unapproved_yardstick_means_no_check_and_no_rollout",
        {"yardstick": {"uri": GOOD["uri"], "digest": GOOD["digest"]}},
    ),
    (
        letting_anything_be_the_yardstick,
        "test_plan_yardstick",
        "test_fault_43_unapproved_yardstick_means_no_check_and_no_rollout",
        {"yardstick": {"uri": BAD["uri"], "digest": BAD["digest"]}},
    ),
]


@pytest.mark.parametrize(("bug", "file", "test", "arguments"), NOTICED)
def test_deliberate_bug_is_noticed_by_the_test_of_its_fault(bug, file, test, arguments, monkeypatch):
    place = importlib.util.spec_from_file_location(f"bugs_{file}", Path(__file__).with_name(f"{file}.py"))
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    sound = {name: value() if callable(value) else value for name, value in arguments.items()}
    getattr(module, test)(**sound)
    made = {name: value() if callable(value) else value for name, value in arguments.items()}
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        getattr(module, test)(**made)


@pytest.mark.parametrize(
    "bug",
    [
        fail_open_on_a_missing_result,
        acting_on_a_stale_job,
        forgetting_the_last_good,
        trusting_a_forged_status,
        letting_compare_with_approve,
    ],
)
def test_deliberate_bug_is_noticed_by_the_stateful_machine(bug, monkeypatch):
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            PlanMachine,
            settings=settings(
                max_examples=500,
                stateful_step_count=30,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )

"""What everybody can rely on in each state: kstatus, the condition's reason, and a message that helps.

And that every reason there is occurs: one that nobody sets would be a promise that nobody keeps.
"""

from functools import cache

import pytest

from assay_operator.models.conditions import AVAILABLE, CHECK_PASSED, READY, RECONCILING, ROLLED_OUT, STALLED
from assay_operator.plan import reasons
from support.end_states import END_STATES, PASSING_STATES
from support.kstatus import kstatus
from support.world import World

ALL = END_STATES | PASSING_STATES

BEFORE_A_SERVER = {reasons.INSUFFICIENT_PERMISSIONS, reasons.API_REFUSED}
"""Only the API server gives cause for these; tests/apiserver shows them."""

FROM_ELSEWHERE = {
    "PackUnavailable",
    "DigestMismatch",
    "PackInvalid",
    "CpuFeatureMissing",
    "PrecisionMismatch",
    "DatasetInvalid",
}
"""Reasons that a check or a pod gives, and that are handed on."""

PROMISED = {
    READY: "Serving CheckRunning AccuracyBelowThreshold AccuracyNotProven CostAboveThreshold LabelsDiffer RolledBack"
    " CheckBypassed Suspended",
    AVAILABLE: "MinimumReplicasAvailable Unverified TargetNotFound NoReadyPods",
    CHECK_PASSED: "CheckQueued CheckRunning CheckPassed BaseModel AccuracyBelowThreshold AccuracyNotProven"
    " CostAboveThreshold LabelsDiffer CheckInconclusive CheckTimedOut CheckImagePullFailed CheckUnschedulable"
    " CheckCrashed CheckResultInvalid PackUnavailable DigestMismatch YardstickNotApproved CheckBypassed",
    ROLLED_OUT: "RolloutInProgress Soaking RolloutComplete ProgressDeadlineExceeded ReplicaFailure SoakFailed"
    " CpuFeatureMissing RolledBack RollbackFailed",
    RECONCILING: "CheckRunning RolloutInProgress",
    STALLED: "InvalidSpec TargetNotFound TargetConflict JobNameConflict RolledBack RollbackFailed Suspended",
}


@cache
def world(name: str) -> World:
    return ALL[name].make()


def as_json(made: World) -> dict:
    return {"metadata": {"generation": made.generation}, "status": made.status.to_json()}


@pytest.mark.parametrize("name", ALL)
def test_reason_and_kstatus_are_what_tools_wait_for(name):
    made = world(name)
    assert made.ready() == ALL[name].ready, made.message()
    assert kstatus(as_json(made)) == ALL[name].kstatus
    assert (made.reason(RECONCILING)[:4], made.reason(STALLED)[:4]) == {
        "Current": ("Fals", "Fals"),
        "Failed": ("Fals", "True"),
        "InProgress": ("True", "Fals"),
    }[ALL[name].kstatus]


@pytest.mark.parametrize("name", ALL)
def test_message_tells_what_was_seen_what_serves_and_what_to_do(name):
    said, at = world(name).message(), 0
    for part in (*ALL[name].says, *([ALL[name].step] if ALL[name].step else [])):
        assert part in said[at:], f"{part!r} is not in {said[at:]!r} of {said!r}"
        at = said.index(part, at) + len(part)
    if ALL[name].step:
        assert ". " not in said[at:], f"the next step is not the last sentence of {said!r}"


@pytest.mark.parametrize("name", ALL)
def test_every_condition_is_of_this_generation_and_stands_once(name):
    made = world(name)
    kinds = [condition.type for condition in made.status.conditions]
    assert len(kinds) == len(set(kinds))
    assert {READY, RECONCILING, STALLED} <= set(kinds)
    for condition in made.status.conditions:
        assert condition.reason
        assert condition.message
    assert made.status.condition(READY).observed_generation == made.generation
    assert made.status.observed_generation == made.generation


@pytest.mark.parametrize("name", END_STATES)
def test_end_state_stays_as_it_is_however_often_it_is_looked_at(name):
    made = world(name)
    version, written, created = made.version, len(made.written), made.created
    for _ in range(3):
        made.pass_time(60)
        assert made.reconcile().steps == ()
    assert (made.version, len(made.written), made.created) == (version, written, created)


def test_every_reason_is_given_by_somebody_and_no_other_is():
    defined = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}
    defined |= reasons.REFUSALS
    seen = {reason for name in ALL for _, _, reason in world(name).told}
    seen |= {event.reason for name in ALL for event in world(name).events}
    assert defined - BEFORE_A_SERVER <= seen, f"nobody gives {sorted(defined - BEFORE_A_SERVER - seen)}"
    assert seen <= defined | FROM_ELSEWHERE, f"not among the reasons: {sorted(seen - defined - FROM_ELSEWHERE)}"


@pytest.mark.parametrize("reason", sorted(BEFORE_A_SERVER))
def test_reason_that_only_an_api_server_gives_cause_for_is_shown_there(root, reason):
    tests = "".join(path.read_text() for path in (root / "tests" / "apiserver").glob("test_*.py"))
    assert f"True {reason}" in tests


@pytest.mark.parametrize("kind", PROMISED)
def test_condition_has_every_reason_that_its_users_are_promised(kind):
    seen = {reason for name in ALL for type_, _, reason in world(name).told if type_ == kind}
    assert set(PROMISED[kind].split()) <= seen


@pytest.mark.parametrize(
    ("kind", "states"), [(READY, "TF"), (AVAILABLE, "TF"), (CHECK_PASSED, "TFU"), (ROLLED_OUT, "TFU")]
)
def test_condition_has_every_status_it_may_have(kind, states):
    seen = {status[0] for name in ALL for type_, status, _ in world(name).told if type_ == kind}
    assert seen == set(states)


def test_runbook_of_stalled_variants_knows_every_reason_they_have(root):
    text = (root / "grafana" / "runbooks" / "AssayVariantStalled.md").read_text()
    stalled = {world(name).reason(STALLED).partition(" ")[2] for name in END_STATES if ALL[name].kstatus == "Failed"}
    stalled.remove("Suspended")  # no alert: it is somebody's wish
    assert {reason for reason in stalled | BEFORE_A_SERVER if f"`{reason}`" not in text} == set()

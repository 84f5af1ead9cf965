"""Say what is so: conditions, phase, what serves, history, events."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assay_operator.models.conditions import (
    AVAILABLE,
    CHECK_PASSED,
    READY,
    RECONCILING,
    ROLLED_OUT,
    STALLED,
    Condition,
    State,
)
from assay_operator.models.observed import Observed, ServedModel, Variant
from assay_operator.models.status import HISTORY_KEPT, Change, Pack, Serving, Status
from assay_operator.plan import reasons
from assay_operator.plan.advice import LET_PODS_COME_UP, SCALE_UP, after_refusal
from assay_operator.plan.approval import Approval, verified
from assay_operator.plan.checking import Finding
from assay_operator.plan.events import events_of
from assay_operator.plan.facts import Facts, same_pack
from assay_operator.plan.rollout import Progress, live
from assay_operator.plan.steps import Plan, Step
from assay_operator.plan.wording import sentences


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing can be done for a variant until somebody changes something; step: what that somebody can do."""

    reason: str
    message: str
    step: str


Telling = dict[str, tuple[State, str, str]]
"""Condition type -> status, reason, message."""


def trouble(variant: Variant, observed: Observed, problem: Trouble) -> Plan:
    """A plan without steps that says what is wrong. What was known about checks and rollouts stays as it is."""
    lost = problem.reason == reasons.TARGET_NOT_FOUND
    known = None if lost else variant.status.serving
    seen = f"When last seen, {known.ready_replicas} ready pods served {known.uri}" if known is not None else ""
    message = sentences(problem.message, seen, problem.step)
    told: Telling = dict.fromkeys((READY, RECONCILING), ("False", problem.reason, message))
    told[STALLED] = ("True", problem.reason, message)
    update: dict[str, Any] = {"observed_generation": variant.generation, "phase": "Stalled"}
    if lost:
        told[AVAILABLE] = told[ROLLED_OUT] = ("False", problem.reason, message)
        update["serving"] = None
    status = variant.status.model_copy(update=update)
    status = _with_conditions(status, told, observed.now, variant.generation)
    return Plan(status, events=events_of(variant, status, ()))


def telling(
    facts: Facts,
    approval: Approval,
    background: Finding | None,
    done: Progress | None,
    status: Status,
    *,
    steps: tuple[Step, ...] = (),
    again_s: float | None = None,
    undoing: bool = False,
    moved: ServedModel | None = None,
) -> Plan:
    """The plan with everything that is to be said about it."""
    serving = _serving(facts, approval, status)
    told = _conditions(facts, approval, background, done, serving, undoing=undoing, moved=moved)
    phase = _phase(told, done)
    target = status.target.model_copy(update=_figures(facts, status))
    status = status.model_copy(update={"serving": serving, "phase": phase, "target": target})
    status = _with_conditions(status, told, facts.now, facts.variant.generation)
    return Plan(status, steps, events_of(facts.variant, status, steps), again_s)


def _figures(facts: Facts, status: Status) -> dict[str, Any]:
    """What the columns of a table show: the newest check's figures, but only beside the pack that they are of."""
    check = status.last_check
    shown = check if check is not None and check.inputs_hash == str(facts.inputs) else None
    return {
        "verdict": shown and shown.verdict,
        "containment_lower_permille": shown and shown.containment_lower_permille,
        "cost_ratio_permille": shown and shown.cost_ratio_permille,
    }


def described(facts: Facts, model: ServedModel) -> str:
    """A model as the history names it."""
    return facts.base.uri if model.is_base else f"{model.uri}@{model.digest}"


def is_drift(facts: Facts, model: ServedModel) -> bool:
    """Whether the target was already told to serve this, and somebody else has changed it."""
    history = facts.status.history
    return bool(history) and history[0].to == described(facts, model) and not facts.carries(model)


def remembering(facts: Facts, status: Status, model: ServedModel, why: str) -> Status:
    """The status with one more change in its history."""
    change = Change(time=facts.now, from_=described(facts, facts.target.model), to=described(facts, model), reason=why)
    return status.model_copy(update={"history": (change, *status.history)[:HISTORY_KEPT]})


def _serving(facts: Facts, approval: Approval, status: Status) -> Serving | None:
    ready = [pod for pod in live(facts) if pod.ready]
    if not ready:
        return None
    # In a rollout the pods differ: the newer revision counts as serving once it is the larger part.
    models = {pod.model for pod in ready}
    model = max(
        models, key=lambda one: (sum(pod.model == one for pod in ready), same_pack(one, facts.target.model), one.digest)
    )
    count = sum(pod.model == model for pod in ready)
    pack = Pack(uri=model.uri, digest=model.digest, precision=model.precision)
    if model.is_base:
        pack = status.base or facts.base
    previous = facts.status.serving
    same = previous is not None and (previous.uri, previous.digest) == (pack.uri, pack.digest)
    return Serving(
        uri=pack.uri,
        digest=pack.digest,
        precision=pack.precision,
        verified=verified(facts, approval, model),
        ready_replicas=count,
        since=previous.since if previous is not None and same else facts.now.replace(microsecond=0),
    )


def _conditions(
    facts: Facts,
    approval: Approval,
    background: Finding | None,
    done: Progress | None,
    serving: Serving | None,
    *,
    undoing: bool,
    moved: ServedModel | None,
) -> Telling:
    told: Telling = {AVAILABLE: _available(facts, serving), CHECK_PASSED: _check_passed(approval)}
    told[ROLLED_OUT] = _rolled_out(facts, approval, done, undoing=undoing, moved=moved)
    told[READY] = _ready(facts, approval, done, serving, told, undoing=undoing)
    checking = background is not None and background.state not in ("Refused", "Exhausted", "Blocked")
    stuck = _stuck(approval, done, undoing=undoing)
    settled = done is not None and done.state in ("Complete", "Idle", "Stuck")
    # At rest and not Ready, with nothing more to do: an annotation must be removed, or replicas be asked for.
    waits = settled and approval.wanted is not None and (approval.bypassed or facts.target.replicas == 0)
    stalled = stuck or (settled and not checking and (approval.refused or (waits and told[READY][0] != "True")))
    working = not stalled and not (settled and told[READY][0] == "True")
    _, reason, message = told[READY]
    if facts.spec.suspend:
        stalled, working = True, False
    elif checking and background is not None:
        reason, message = background.reason, f"what the target serves has not been proved; {background.message}"
    told[RECONCILING] = ("True" if working else "False", reason, message)
    told[STALLED] = ("True" if stalled else "False", reason, message)
    return told


def _stuck(approval: Approval, done: Progress | None, *, undoing: bool) -> bool:
    """Whether the rollout holds everything up. While a check is under way, or has refused, that comes first."""
    return done is not None and done.state == "Stuck" and (approval.wanted is not None or undoing)


def _serves_on(serving: Serving | None) -> str:
    if serving is None:
        return "No pod is ready"
    unproved = "" if serving.verified else ", which has not been proved"
    return f"{serving.ready_replicas} ready pods serve {serving.uri}{unproved}"


def _available(facts: Facts, serving: Serving | None) -> tuple[State, str, str]:
    if serving is None:
        return "False", reasons.NO_READY_PODS, f"no pod of Deployment {facts.target.name} is ready"
    if not serving.verified:
        return "False", reasons.UNVERIFIED, f"{serving.uri} serves and has not been proved in the present environment"
    if not facts.target.minimum_available:
        said = (
            facts.target.availability.message
            if facts.target.availability
            else "the Deployment does not say that it is available"
        )
        return "False", reasons.NO_READY_PODS, f"{_serves_on(serving)}, fewer than needed: {said}"
    return "True", reasons.MINIMUM_REPLICAS_AVAILABLE, _serves_on(serving)


def _check_passed(approval: Approval) -> tuple[State, str, str]:
    if approval.bypassed:
        return "False", approval.reason, approval.message
    finding = approval.finding
    if approval.state == "Refused" and finding is not None and finding.state == "Passed":
        return "True", finding.reason, finding.message  # refused by its rollout, not by its check
    if approval.state == "Passed":
        return "True", approval.reason, approval.message
    running = approval.state in ("Running", "Due", "Queued", "Late")
    return ("Unknown" if running else "False"), approval.reason, approval.message


def _rolled_out(
    facts: Facts, approval: Approval, done: Progress | None, *, undoing: bool, moved: ServedModel | None
) -> tuple[State, str, str]:
    if done is None:
        name = moved.uri or facts.base.uri if moved is not None else facts.target.model.uri or facts.base.uri
        if moved is None:
            previous = facts.status.condition(ROLLED_OUT)
            if previous is not None:
                return previous.status, previous.reason, previous.message
            return "Unknown", reasons.ROLLOUT_IN_PROGRESS, f"the target is told to serve {name}"
        return "False", reasons.ROLLOUT_IN_PROGRESS, f"the target is being told to serve {name}"
    if undoing and done.state == "Complete":
        return "False", reasons.ROLLED_BACK, sentences(approval.message, f"rolled back: {done.message}")
    if done.state == "Complete":
        return "True", done.reason, done.message
    return "False", done.reason, done.message


def _ready(
    facts: Facts, approval: Approval, done: Progress | None, serving: Serving | None, told: Telling, *, undoing: bool
) -> tuple[State, str, str]:
    on = _serves_on(serving)
    if done is not None and _stuck(approval, done, undoing=undoing):
        return "False", done.reason, sentences(done.message, on, LET_PODS_COME_UP)
    if done is not None and done.state == "Failed":
        return "False", done.reason, sentences(done.message, "It is being rolled back", on)
    if facts.spec.suspend:
        return (
            "False",
            reasons.SUSPENDED,
            sentences("spec.suspend is set: nothing is written to the workload", on, "Unset it to go on"),
        )
    if approval.refused:
        if undoing and done is not None and done.state == "Complete":
            return (
                "False",
                reasons.ROLLED_BACK,
                sentences(
                    f"{approval.reason}: {approval.message}", on, "Change spec.model, or spec.retryToken to try again"
                ),
            )
        stuck = done.message if done is not None and done.state == "Stuck" else ""
        return "False", approval.reason, sentences(approval.message, on, stuck, after_refusal(approval))
    if approval.wanted is None:
        return "False", approval.reason, sentences(approval.message, on)
    scale = SCALE_UP if facts.target.replicas == 0 else ""
    if done is None or done.state != "Complete":
        reason, message = told[ROLLED_OUT][1:]
        return "False", reason, sentences(message, on, scale)
    if approval.bypassed:
        return "False", approval.reason, sentences(approval.message, on, "Remove the annotation to have it checked")
    if told[AVAILABLE][0] != "True":
        return "False", told[AVAILABLE][1], sentences(told[AVAILABLE][2], scale)
    return "True", reasons.SERVING, sentences(on, approval.message)


def _phase(told: Telling, done: Progress | None) -> str:
    _, reason, _ = told[READY]
    if told[READY][0] == "True":
        return "Ready"
    if told[STALLED][0] == "True":
        return reason if reason in (reasons.ROLLED_BACK, reasons.ROLLBACK_FAILED, reasons.SUSPENDED) else "Stalled"
    if told[CHECK_PASSED][0] == "Unknown":
        return "Checking"
    return (
        {"Soaking": "Soaking", "Failed": "RollingBack"}.get(done.state if done else "", "RollingOut")
        if told[CHECK_PASSED][0] == "True"
        else "Waiting"
    )


def _with_conditions(status: Status, told: Telling, now: datetime, generation: int) -> Status:
    kept = {condition.type: condition for condition in status.conditions}
    for kind, (state, reason, message) in told.items():
        before = kept.get(kind)
        since = (
            before.last_transition_time if before is not None and before.status == state else now.replace(microsecond=0)
        )
        kept[kind] = Condition(
            type=kind,
            status=state,
            reason=reason,
            message=sentences(message),
            last_transition_time=since,
            observed_generation=generation,
        )
    order = (READY, AVAILABLE, CHECK_PASSED, ROLLED_OUT, RECONCILING, STALLED)
    return status.model_copy(update={"conditions": tuple(kept[kind] for kind in order if kind in kept)})

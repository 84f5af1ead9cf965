"""How far the rollout of what the target is told to serve has come."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from assay_operator.constants import MISFIT_EXIT_CODE
from assay_operator.models.conditions import ROLLED_OUT
from assay_operator.models.observed import Pod, ServedModel
from assay_operator.plan import reasons
from assay_operator.plan.approval import Approval
from assay_operator.plan.facts import Facts, same_pack
from assay_operator.plan.misfit import misfit_code
from assay_operator.plan.wording import sentences

CRASHES_TOLERATED = 2  # a pod may lose a race at its start once or twice; a third end is a loop
FLAPPING_ALLOWED_S = 60  # beyond deadline and soak: time for pods that were ready late to soak

State = Literal["Moving", "Soaking", "Complete", "Idle", "Failed", "Stuck"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is.

    Moving: pods are being replaced. Idle: complete, and no pod to prove it. Failed: a trial that must be undone.
    Stuck: what ought to work does not come up, or not on every node, and there is nothing better to go back to.
    """

    state: State
    reason: str
    message: str
    until: datetime | None = None


def progress(facts: Facts, approval: Approval, model: ServedModel, *, undoing: bool) -> Progress:
    """The progress of `model`, which the target's template already carries.

    undoing: whether it is there because something else was rolled back.
    """
    target = facts.target
    name = model.uri or facts.base.uri
    if not is_trial(facts, approval, model):
        unready = [pod for pod in live(facts) if not pod.ready]
        if not undoing and (wrong := _misfit(unready, model)):
            # A node without the pack's CPU features, or other bytes behind its URI: the pods that were there serve on.
            return Progress("Stuck", wrong[0], f"{_count(facts, model)} serve {name}; {wrong[1]}")
        if target.rolled:
            return Progress("Complete", reasons.ROLLOUT_COMPLETE, f"all {target.updated} replicas serve {name}")
        # What is proved is not on trial: it may take its time as long as Kubernetes sees progress.
        limit = facts.spec.rollout.progress_deadline_seconds
        moved = target.progressing.updated if target.progressing is not None else None
        deadline = max(_start(facts), moved or _start(facts)) + timedelta(seconds=limit)
        message = f"{_count(facts, model)} serve {name}"
        if facts.now < deadline:
            return Progress("Moving", reasons.ROLLOUT_IN_PROGRESS, message, deadline)
        reason = reasons.ROLLBACK_FAILED if undoing else reasons.PROGRESS_DEADLINE_EXCEEDED
        message += f" after {limit} s without progress; nothing is scaled down"
        return Progress("Stuck", reason, sentences(message, _trouble(facts, model)))
    return _trial(facts, model, name)


def is_trial(facts: Facts, approval: Approval, model: ServedModel) -> bool:
    """Whether this model has yet to show that its pods come up and stay up."""
    wanted = approval.wanted
    return wanted is not None and not model.is_base and same_pack(wanted, model) and not facts.asks_good


def _trial(facts: Facts, model: ServedModel, name: str) -> Progress:
    rollout, target, now = facts.spec.rollout, facts.target, facts.now
    start = _start(facts)
    deadline = start + timedelta(seconds=rollout.progress_deadline_seconds)
    if failure := _early_failure(facts, model, start):
        return failure
    if target.replicas == 0 and target.complete:
        return Progress(
            "Idle", reasons.NO_READY_PODS, "the target is scaled to zero: nothing shows that the model serves"
        )
    pods = [pod for pod in live(facts) if same_pack(pod.model, model)]
    ready = [pod for pod in pods if pod.ready]
    if target.complete and len(ready) >= target.replicas:
        soaked = max((pod.ready_since or now for pod in ready), default=now) + timedelta(seconds=rollout.soak_seconds)
        if now >= soaked:
            return Progress(
                "Complete", reasons.ROLLOUT_COMPLETE, f"all {target.replicas} replicas serve {name}, and held"
            )
        if now < deadline + timedelta(seconds=rollout.soak_seconds + FLAPPING_ALLOWED_S):
            message = f"all {target.replicas} replicas serve {name}; they must hold for {rollout.soak_seconds} s"
            return Progress("Soaking", reasons.SOAKING, message, soaked)
        return Progress(
            "Failed", reasons.SOAK_FAILED, sentences(f"the pods of {name} do not stay ready", _trouble(facts, model))
        )
    previous = facts.status.condition(ROLLED_OUT)
    held = previous is not None and previous.reason == reasons.SOAKING
    if held and any(pod.restarts or (pod.ended is not None and not pod.ready) for pod in pods):
        return Progress(
            "Failed",
            reasons.SOAK_FAILED,
            sentences(f"a pod of {name} was ready and then ended", _trouble(facts, model)),
        )
    gave_up = (
        target.progressing is not None and not target.progressing.status and _since(target.progressing.updated, start)
    )
    if now >= deadline or gave_up:
        limit = rollout.progress_deadline_seconds
        message = sentences(f"{_count(facts, model)} serve {name} after {limit} s", _trouble(facts, model))
        return Progress("Failed", reasons.PROGRESS_DEADLINE_EXCEEDED, message)
    # A pod that drains is first not ready, and ends a moment later: that its model was soaking is not to be forgotten.
    reason = reasons.SOAKING if held else reasons.ROLLOUT_IN_PROGRESS
    return Progress("Moving", reason, f"{_count(facts, model)} serve {name}", deadline)


def _early_failure(facts: Facts, model: ServedModel, start: datetime) -> Progress | None:
    if wrong := _misfit(live(facts), model):
        return Progress("Failed", *wrong)
    for pod in live(facts):
        crashed = same_pack(pod.model, model) and pod.ended is not None and not pod.ready
        if crashed and pod.restarts > CRASHES_TOLERATED:
            return Progress("Failed", reasons.SOAK_FAILED, sentences("the pods do not stay up", _trouble(facts, model)))
    blocked = facts.target.replica_failure
    if blocked is not None and blocked.status and _since(blocked.updated or blocked.since, start):
        return Progress(
            "Failed", reasons.REPLICA_FAILURE, f"Kubernetes does not create the pods: {blocked.message[:300]}"
        )
    return None


def _misfit(pods: list[Pod], model: ServedModel) -> tuple[str, str] | None:
    """Why one of the pods does not serve the model and never will: its code, and a sentence."""
    for pod in pods:
        if not same_pack(pod.model, model) or pod.ended is None or pod.ended.exit_code != MISFIT_EXIT_CODE:
            continue
        code, said = misfit_code(pod.ended)
        # A pack that cannot be fetched may be there a moment later: that one has until the deadline.
        if code and code != reasons.PACK_UNAVAILABLE:
            return code, f"pod {pod.name} ended with exit code {MISFIT_EXIT_CODE}: {said}"
    return None


def _start(facts: Facts) -> datetime:
    """When the present rollout began: our own last change of the template, or (in place) a later verdict."""
    check, condition = facts.status.last_check, facts.status.condition(ROLLED_OUT)
    moments = [facts.target.applied or (condition.last_transition_time if condition else facts.now)]
    if check is not None and check.verdict == "Pass" and check.completed_at is not None:
        moments.append(check.completed_at)
    return max(moments)


def _since(moment: datetime | None, start: datetime) -> bool:
    return moment is not None and moment >= start


def live(facts: Facts) -> list[Pod]:
    """The target's pods that are not on their way out."""
    return [pod for pod in facts.observed.pods if not pod.deleting]


def _count(facts: Facts, model: ServedModel) -> str:
    ready = sum(pod.ready and same_pack(pod.model, model) for pod in live(facts))
    return f"{ready} of {facts.target.replicas} replicas"


def _trouble(facts: Facts, model: ServedModel) -> str:
    """What the newest pod that is not ready has to say."""
    unready = [pod for pod in live(facts) if not pod.ready and same_pack(pod.model, model)]
    if not unready:
        return ""
    pod = max(unready, key=lambda one: (one.created, one.name))
    if pod.ended is not None:
        _, said = misfit_code(pod.ended)
        return f"Pod {pod.name} ended with exit code {pod.ended.exit_code}{': ' + said if said else ''}"
    said = pod.unschedulable or " ".join(part for part in (pod.waiting_reason, pod.waiting_message) if part)
    return f"Pod {pod.name}: {said[:300] or 'it runs and is not ready'}"

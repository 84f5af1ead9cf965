"""The plan: record what closes the gate, else act, else wait; and tell the truth in either case."""

from datetime import datetime, timedelta

from assay_operator.constants import TARGET_LABEL
from assay_operator.errors import RenderError
from assay_operator.models.observed import CheckJob, Observed, ServedModel, Target, Variant
from assay_operator.models.spec import Spec
from assay_operator.models.status import LastGood, Pack, Rejected, Status, TargetStatus
from assay_operator.plan import reasons, report
from assay_operator.plan.approval import Approval, approve, desired, second
from assay_operator.plan.checking import Finding, backoff
from assay_operator.plan.facts import Facts, facts_of, pack_of, same_pack
from assay_operator.plan.rollout import Progress, is_trial, live, progress
from assay_operator.plan.steps import CreateJob, DeleteJob, Limits, Plan, SetModel, Step

LOOK_AGAIN_S = 10.0  # while something is under way that no watched object announces (a pod that cannot be scheduled)
DRIFT_PAUSE_S = 10.0  # between two corrections of the same annotations: another controller may be writing them too


def plan(variant: Variant, observed: Observed, limits: Limits = Limits()) -> Plan:  # noqa: B008 - frozen
    """What to do now for this variant, given what was observed."""
    if variant.deleting:
        return Plan(variant.status)  # its Jobs are garbage-collected; what serves goes on
    problem = _unworkable(variant, observed)
    if isinstance(problem, report.Trouble):
        return report.trouble(variant, observed, problem)
    spec, target = problem
    try:
        facts = facts_of(variant, spec, observed, target, limits)
    except RenderError as error:
        return report.trouble(variant, observed, report.Trouble(reasons.INVALID_SPEC, str(error), error.step))
    return _plan(facts)


def _unworkable(variant: Variant, observed: Observed) -> "report.Trouble | tuple[Spec, Target]":
    spec, target = variant.spec, observed.target
    if isinstance(spec, str):
        return report.Trouble(reasons.INVALID_SPEC, spec, "Correct the spec")
    older = [name for created, uid, name in observed.rivals if (created, uid) < (variant.created, variant.uid)]
    if older:
        message = f"ModelVariant {older[0]} is older and has the same target {spec.target_ref.name}"
        return report.Trouble(reasons.TARGET_CONFLICT, message, "Delete one of them")
    if target is None:
        message = f"there is no Deployment {spec.target_ref.name} in namespace {variant.namespace}"
        return report.Trouble(reasons.TARGET_NOT_FOUND, message, "Create it")
    if not target.labelled:
        message = f"Deployment {target.name} does not have the label by which its owner lets its model be changed"
        step = f'Set {TARGET_LABEL}: "true" on it and on its pod template'
        return report.Trouble(reasons.TARGET_NOT_FOUND, message, step)
    return spec, target


def _plan(facts: Facts) -> Plan:
    approval = approve(facts)
    background = second(facts, approval)
    active = background or approval.finding
    status = _noted(facts, approval, active)
    if recorded := _recorded(facts, approval, active, status):
        # Written before anything acts on it; the next pass, at once, does.
        return report.telling(facts, approval, background, None, recorded, again_s=0.0)
    model, why = desired(facts, approval)
    moving = not facts.carries(model)
    undoing = _undoing(facts, approval, model)
    done = None if moving else progress(facts, approval, model, undoing=undoing)
    if done is not None and done.state == "Failed":
        status = _failed(facts, status, done)
        return report.telling(facts, approval, background, done, status, again_s=0.0)
    if done is not None and done.state == "Complete":
        status = _settled(facts, approval, background, model, status)
    steps, status = _steps(facts, active, model, why, status, moving=moving)
    again_s = 0.0 if status.last_good != facts.status.last_good else _again(facts, active, done, steps)
    return report.telling(
        facts, approval, background, done, status, steps=steps, again_s=again_s, undoing=undoing, moved=model
    )


def _noted(facts: Facts, approval: Approval, active: Finding | None) -> Status:
    """The status with what was looked up: the base, the newest check, the attempt."""
    status = facts.status
    update: dict[str, object] = {"observed_generation": facts.variant.generation}
    known = status.base.digest if status.base is not None and status.base.uri == facts.base.uri else ""
    if approval.finding is not None and facts.spec.check.compare_with is None and approval.finding.check is not None:
        known = approval.finding.check.yardstick_digest or known
    update["base"] = Pack(uri=facts.base.uri, digest=facts.base.digest or known)
    if active is not None and active.check is not None and active.check != status.last_check:
        update["last_check"] = active.check
    update["target"] = _progress_of_check(facts, active)
    if not facts.adopted and facts.target.model.is_base:
        update["last_good"] = LastGood(uri=facts.base.uri, digest=facts.base.digest)
    return status.model_copy(update=update)


def _progress_of_check(facts: Facts, active: Finding | None) -> TargetStatus:
    known = facts.status.target
    noted: dict[str, object] = {"image": facts.image, "image_id": facts.image_id}
    if active is None:
        same = known.inputs_hash == str(facts.inputs)
        noted |= {"inputs_hash": str(facts.inputs), "attempt": known.attempt if same else 0, "next_attempt_time": None}
    elif active.state not in ("Blocked", "Refused", "Exhausted"):
        again = None
        if active.state == "Waiting":
            again = active.until
        elif active.state == "Late" and active.check is not None:
            again = (active.check.completed_at or facts.now) + backoff(active.inputs, active.attempt)
        again = again and again.replace(microsecond=0)
        noted |= {"inputs_hash": str(active.inputs), "attempt": active.attempt, "next_attempt_time": again}
    return known.model_copy(update=noted)


def _recorded(facts: Facts, approval: Approval, active: Finding | None, status: Status) -> Status | None:
    """The status with a new refusal, a judged-late Job or an adoption in it; None when there is nothing new."""
    if not facts.adopted and not facts.target.model.is_base:
        return status.model_copy(update={"incumbent": pack_of(facts.target.model)})
    for finding in (active, approval.finding):
        if finding is None or finding.state not in ("Refused", "Exhausted"):
            continue
        if facts.status.rejection(str(finding.inputs)) is None:
            stage = "Check" if finding.state == "Refused" else "Attempts"
            entry = Rejected(
                inputs_hash=str(finding.inputs),
                reason=finding.reason,
                message=finding.message,
                time=facts.now,
                stage=stage,
            )
            return status.rejecting(entry)
    if active is not None and active.state == "Running" and active.check is not None:
        return status
    return None


def _failed(facts: Facts, status: Status, done: Progress) -> Status:
    entry = Rejected(
        inputs_hash=str(facts.inputs), reason=done.reason, message=done.message, time=facts.now, stage="Rollout"
    )
    return status.rejecting(entry)


def _undoing(facts: Facts, approval: Approval, model: ServedModel) -> bool:
    """Whether what the target carries is there because the rollout of what was asked was undone."""
    rejection = facts.status.rejection(str(facts.inputs))
    return (
        approval.wanted is None
        and rejection is not None
        and rejection.stage == "Rollout"
        and not facts.asks_for(pack_of(model))
    )


def _settled(
    facts: Facts, approval: Approval, background: Finding | None, model: ServedModel, status: Status
) -> Status:
    """The status once the target serves this model everywhere: it is the new last good one, if it was proved."""
    proved = ""
    if is_trial(facts, approval, model) and not approval.bypassed:
        proved = str(facts.inputs)
    elif background is not None and background.passed is not None and same_pack(background.passed, model):
        proved = str(background.inputs)
    if proved:
        image = next((pod.image_id for pod in live(facts) if pod.ready and same_pack(pod.model, model)), "")
        good = LastGood(
            uri=model.uri, digest=model.digest, precision=model.precision, inputs_hash=proved, image_id=image
        )
    elif model.is_base and approval.wanted is not None:
        good = LastGood(uri=facts.base.uri, digest=facts.base.digest)
    else:
        return status
    return status.model_copy(update={"last_good": good, "incumbent": None})


def _steps(
    facts: Facts, active: Finding | None, model: ServedModel, why: str, status: Status, *, moving: bool
) -> tuple[tuple[Step, ...], Status]:
    if facts.spec.suspend:
        return (), status
    steps: list[Step] = [
        DeleteJob(job.name, job.uid, why="the spec has changed since") for job in _stale(facts, active)
    ]
    if active is not None and active.state == "Late" and active.job is not None and not active.job.deleting:
        steps.append(DeleteJob(active.job.name, active.job.uid, why=active.message))
    if moving and not _pausing(facts, model):
        drift = report.is_drift(facts, model)
        why = reasons.DRIFT_CORRECTED if drift else why
        steps.append(SetModel(facts.target.name, facts.target.resource_version, model, why))
        status = report.remembering(facts, status, model, why)
    elif not moving and active is not None and active.state == "Due" and active.body is not None:
        steps.append(CreateJob(active.name, active.body))
        attempt = int(active.body["metadata"]["annotations"]["assay.dev/attempt"])
        noted = {"inputs_hash": str(active.inputs), "attempt": attempt, "next_attempt_time": None}
        status = status.model_copy(update={"target": status.target.model_copy(update=noted)})
    return tuple(steps), status


def _pausing(facts: Facts, model: ServedModel) -> bool:
    applied = facts.target.applied
    recent = applied is not None and facts.now - applied < timedelta(seconds=DRIFT_PAUSE_S)
    return recent and report.is_drift(facts, model)


def _stale(facts: Facts, active: Finding | None) -> list[CheckJob]:
    """Running Jobs of this variant that check what nobody asks for any more."""
    wanted = {str(facts.inputs)} | ({str(active.inputs)} if active is not None else set())
    own = [job for job in facts.observed.jobs if job.owner_uid == facts.variant.uid and not job.finished]
    newest = {job.inputs_hash: job.attempt for job in sorted(own, key=lambda job: job.attempt)}
    # An operator with an outdated view may have made an earlier attempt once more.
    return [
        job
        for job in own
        if not job.deleting and (job.inputs_hash not in wanted or job.attempt < newest[job.inputs_hash])
    ]


def _again(facts: Facts, active: Finding | None, done: Progress | None, steps: tuple[Step, ...]) -> float | None:
    """Seconds until something is due; None where only an event or the resync can bring news."""
    moments: list[datetime] = []
    if done is not None and done.until is not None:
        moments.append(done.until)
    if active is not None and active.until is not None:
        moments.append(active.until)
    waits = [max(0.5, (moment - facts.now).total_seconds()) for moment in moments]
    # While suspended nothing is started or deleted, so only what runs has news. Who waits for others is called.
    under_way = {"Running"} if facts.spec.suspend else {"Running", "Late", "Queued", "Due"}
    if facts.crowded:
        under_way.discard("Queued")
    if (
        steps
        or (done is not None and done.state in ("Moving", "Stuck"))
        or (active is not None and active.state in under_way)
    ):
        waits.append(LOOK_AGAIN_S)
    if done is None and not steps and not facts.spec.suspend:
        waits.append(DRIFT_PAUSE_S)
    return min(waits) if waits else None

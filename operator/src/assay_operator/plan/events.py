"""One Event per transition: what a condition says now and did not say before."""

import hashlib

from assay_operator.models.conditions import CHECK_PASSED, READY, ROLLED_OUT, STALLED
from assay_operator.models.observed import Variant
from assay_operator.models.status import Status
from assay_operator.plan import reasons
from assay_operator.plan.steps import Event, SetModel, Step

LONGEST_NOTE = 1000  # events.k8s.io/v1 allows 1024 bytes; the rest is for characters of several bytes

GOOD_NEWS = frozenset(
    {
        reasons.BASE_MODEL,
        reasons.CHECK_PASSED,
        reasons.CHECK_QUEUED,
        reasons.CHECK_RUNNING,
        reasons.ROLLOUT_IN_PROGRESS,
        reasons.SOAKING,
        reasons.ROLLOUT_COMPLETE,
        reasons.SERVING,
        reasons.SUSPENDED,
    }
)


def events_of(variant: Variant, after: Status, steps: tuple[Step, ...]) -> tuple[Event, ...]:
    """The events of going from the variant's status to `after`: each reason once, however many conditions say it."""
    told: dict[str, Event] = {}
    for kind in (CHECK_PASSED, ROLLED_OUT, READY, STALLED):
        before, now = variant.status.condition(kind), after.condition(kind)
        if now is None or (kind == STALLED and now.status != "True"):
            continue
        if before is not None and (before.reason, before.status) == (now.reason, now.status):
            continue
        if before is None and now.reason == reasons.ROLLOUT_COMPLETE:
            continue  # nothing was rolled out: it is what the target came with
        known = {
            condition.reason
            for condition in variant.status.conditions
            # What refuses a rollout is told once, though a check that was skipped is then refused for it too.
            if kind in (READY, STALLED) or (kind == CHECK_PASSED and condition.type != kind)
        }
        if now.reason in told or now.reason in known:
            continue
        moment = f"{after.target.inputs_hash}/{after.target.attempt}/{len(after.history)}/{_last_change(after)}"
        told[now.reason] = _event(variant, now.reason, now.message, moment)
    for step in steps:
        if isinstance(step, SetModel) and step.why == reasons.DRIFT_CORRECTED:
            note = (
                f"somebody else changed the model annotations of Deployment {step.deployment}; they are put back to "
                f"{step.model.uri or 'the base'}. Change the ModelVariant instead (kubectl rollout undo does not)"
            )
            told[step.why] = _event(variant, step.why, note, step.resource_version)
    return tuple(told.values())


def _last_change(status: Status) -> str:
    return status.history[0].time.isoformat() if status.history else ""


def _event(variant: Variant, reason: str, note: str, moment: str) -> Event:
    key = hashlib.sha256(f"{variant.uid}/{variant.generation}/{reason}/{moment}".encode()).hexdigest()[:16]
    return Event(reason=reason, note=note[:LONGEST_NOTE], warning=reason not in GOOD_NEWS, key=key)

"""Turn API objects into what a plan looks at. What an object lacks becomes a value that closes the gate."""

from datetime import UTC, datetime
from typing import Any

from assay_operator.builders.annotations import served_model
from assay_operator.constants import (
    ATTEMPT_ANNOTATION,
    FIELD_MANAGER,
    INPUTS_HASH_ANNOTATION,
    MODEL_ANNOTATIONS,
    SKIP_CHECK_ANNOTATION,
    TARGET_LABEL,
)
from assay_operator.models.observed import CheckJob, Notice, Pod, ServedModel, Target, Termination, Variant
from assay_operator.models.spec import parse_spec
from assay_operator.models.status import parse_status

Json = dict[str, Any]

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # for an object without a time; everything is late by then


def moment(text: str | None) -> datetime | None:
    """A Kubernetes time (RFC 3339, with or without fractions)."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def variant(raw: Json) -> Variant:
    """A ModelVariant."""
    meta = raw["metadata"]
    return Variant(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        generation=meta.get("generation", 0),
        resource_version=meta["resourceVersion"],
        created=moment(meta.get("creationTimestamp")) or LONG_AGO,
        spec=parse_spec(raw.get("spec")),
        status=parse_status(raw.get("status")),
        skip_check=(meta.get("annotations") or {}).get(SKIP_CHECK_ANNOTATION, ""),
        deleting="deletionTimestamp" in meta,
    )


def target(raw: Json) -> Target:
    """A Deployment."""
    meta, spec, status = raw["metadata"], raw["spec"], raw.get("status", {})
    template = spec["template"]
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    notices = {entry.get("type"): _notice(entry) for entry in status.get("conditions", [])}
    return Target(
        name=meta["name"],
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        generation=meta.get("generation", 0),
        labelled=(meta.get("labels") or {}).get(TARGET_LABEL) == "true",
        template=template,
        model=served_model(annotations),
        owned=_owned(meta.get("managedFields", []), annotations),
        observed_generation=status.get("observedGeneration", 0),
        replicas=spec.get("replicas", 1),
        current=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available=status.get("availableReplicas", 0),
        paused=bool(spec.get("paused", False)),
        applied=max(
            (when for entry in meta.get("managedFields", []) if _ours(entry) and (when := moment(entry.get("time")))),
            default=None,
        ),
        progressing=notices.get("Progressing"),
        availability=notices.get("Available"),
        replica_failure=notices.get("ReplicaFailure"),
    )


def _ours(entry: Json) -> bool:
    return entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply"


def _owned(managed: list[Json], annotations: dict[str, str]) -> bool:
    """Whether the operator's manager, and no other, owns each model annotation that is there."""
    present = {name for name in MODEL_ANNOTATIONS if name in annotations}
    ours: set[str] = set()
    for entry in managed:
        fields: Any = entry.get("fieldsV1", {})
        for part in ("f:spec", "f:template", "f:metadata", "f:annotations"):
            fields = fields.get(part, {})
        held = {name for name in present if f"f:{name}" in fields}
        if _ours(entry):
            ours |= held
        elif held:
            return False
    return ours == present


def _notice(raw: Json) -> Notice:
    return Notice(
        status=raw.get("status") == "True",
        reason=raw.get("reason", ""),
        message=raw.get("message", ""),
        since=moment(raw.get("lastTransitionTime")),
        updated=moment(raw.get("lastUpdateTime") or raw.get("lastTransitionTime")),
    )


def revision(raw: Json) -> ServedModel:
    """The model of a ReplicaSet's template."""
    return served_model((raw["spec"]["template"].get("metadata") or {}).get("annotations"))


def pod(raw: Json, container: str) -> Pod:
    """A pod, with the state of its container of that name."""
    meta, status = raw["metadata"], raw.get("status", {})
    conditions = {entry["type"]: entry for entry in status.get("conditions", [])}
    ready, scheduled = conditions.get("Ready", {}), conditions.get("PodScheduled", {})
    containers = status.get("containerStatuses", [])
    own: Json = next((entry for entry in containers if entry.get("name") == container), {})
    state, last = own.get("state", {}), own.get("lastState", {})
    waiting = state.get("waiting") or _init_waiting(status)
    return Pod(
        name=meta["name"],
        uid=meta["uid"],
        created=moment(meta.get("creationTimestamp")) or LONG_AGO,
        model=served_model(meta.get("annotations")),
        phase=status.get("phase", ""),
        ready=ready.get("status") == "True",
        deleting="deletionTimestamp" in meta,
        disrupted=conditions.get("DisruptionTarget", {}).get("status") == "True",
        ready_since=moment(ready.get("lastTransitionTime")) if ready.get("status") == "True" else None,
        restarts=own.get("restartCount", 0),
        image=next((str(entry.get("image", "")) for entry in _containers(raw) if entry.get("name") == container), ""),
        image_id=own.get("imageID", ""),
        ended=_termination(state.get("terminated") or last.get("terminated")),
        waiting_reason=waiting.get("reason", ""),
        waiting_message=waiting.get("message", ""),
        unschedulable=scheduled.get("message", "") if scheduled.get("status") == "False" else "",
        started=moment((state.get("running") or {}).get("startedAt")),
    )


def _containers(raw: Json) -> list[Json]:
    return list(raw.get("spec", {}).get("containers", []))


def _init_waiting(status: Json) -> Json:
    for entry in status.get("initContainerStatuses", []):
        if waiting := entry.get("state", {}).get("waiting"):
            return dict(waiting)
    return {}


def _termination(raw: Json | None) -> Termination | None:
    if raw is None:
        return None
    return Termination(
        exit_code=raw.get("exitCode", -1),
        reason=raw.get("reason", ""),
        message=raw.get("message", ""),
        signal=raw.get("signal", 0),
        finished=moment(raw.get("finishedAt")),
    )


def check_job(raw: Json, pods: tuple[Pod, ...], refused_pods: str) -> CheckJob:
    """A check's Job."""
    meta, status = raw["metadata"], raw.get("status", {})
    annotations = meta.get("annotations") or {}
    notices = {
        entry.get("type"): _notice(entry) for entry in status.get("conditions", []) if entry.get("status") == "True"
    }
    complete, failed = notices.get("Complete"), notices.get("Failed")
    attempt = annotations.get(ATTEMPT_ANNOTATION, "")
    return CheckJob(
        name=meta["name"],
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        owner_uid=controller_uid(raw),
        inputs_hash=annotations.get(INPUTS_HASH_ANNOTATION, ""),
        attempt=int(attempt) if attempt.isdigit() else 1,
        template=raw["spec"]["template"],
        created=moment(meta.get("creationTimestamp")) or LONG_AGO,
        complete=complete is not None,
        failed=failed,
        finished_at=(complete or failed).since if complete or failed else None,  # type: ignore[union-attr]
        deleting="deletionTimestamp" in meta,
        pods=pods,
        refused_pods=refused_pods,
    )


def controller_uid(raw: Json) -> str:
    """The uid of the object that controls this one; empty if none does."""
    owners = raw["metadata"].get("ownerReferences") or []
    return next((str(owner.get("uid", "")) for owner in owners if owner.get("controller")), "")

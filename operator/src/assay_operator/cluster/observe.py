"""Read, freshly, all that one pass of one ModelVariant needs."""

from assay_operator.cluster import parse, paths
from assay_operator.cluster.api import Api, Json
from assay_operator.cluster.rivals import Roster
from assay_operator.constants import CHECK_COMPONENT, COMPONENT_LABEL, CONTROLLER_UID_LABEL, VARIANT_LABEL
from assay_operator.errors import NotFoundError
from assay_operator.models.observed import CheckJob, Observed, Pod, ServedModel, Target, Variant
from assay_operator.models.spec import Spec

_CHECKS = f"{COMPONENT_LABEL}={CHECK_COMPONENT},{VARIANT_LABEL}"


async def read_variant(api: Api, namespace: str, name: str) -> Variant | None:
    """The ModelVariant, or None if it is gone."""
    try:
        return parse.variant(await api.get(paths.variant(namespace, name), "modelvariants.assay.dev"))
    except NotFoundError:
        return None


async def observe(api: Api, roster: Roster, variant: Variant, *, name_taken: bool = False) -> Observed:
    """What is there for this ModelVariant. ApiError where it cannot be read: half an observation is none."""
    spec = variant.spec
    if isinstance(spec, str):
        return Observed(now=api.now)
    namespace = variant.namespace
    older = await roster.older(variant, spec.target_ref.name)
    rivals = tuple((other.created, other.uid, other.name) for other in older)
    target_raw = await _deployment(api, namespace, spec.target_ref.name)
    if target_raw is None:
        return Observed(now=api.now, rivals=rivals)
    target = parse.target(target_raw)
    pods, revisions = await _revisions(api, namespace, target_raw, target, spec)
    jobs = await _jobs(api, variant, spec)
    return Observed(
        now=api.now,
        target=target,
        pods=pods,
        revisions=revisions,
        jobs=jobs,
        name_taken=name_taken,
        rivals=rivals,
    )


async def _deployment(api: Api, namespace: str, name: str) -> Json | None:
    try:
        return await api.get(paths.deployment(namespace, name), "deployments.apps")
    except NotFoundError:
        return None


async def _revisions(
    api: Api, namespace: str, deployment: Json, target: Target, spec: Spec
) -> tuple[tuple[Pod, ...], tuple[ServedModel, ...]]:
    """The target's pods, and the models of its ReplicaSets."""
    selector = label_selector(deployment["spec"]["selector"])
    sets = await api.get(paths.replica_sets(namespace), "replicasets.apps", labelSelector=selector)
    own = [raw for raw in sets["items"] if parse.controller_uid(raw) == target.uid]
    pods = await api.get(paths.pods(namespace), "pods", labelSelector=selector)
    uids = {raw["metadata"]["uid"] for raw in own}
    return (
        tuple(parse.pod(raw, spec.container) for raw in pods["items"] if parse.controller_uid(raw) in uids),
        tuple(parse.revision(raw) for raw in own),
    )


async def running_checks(api: Api, variant: Variant) -> int:
    """How many checks of other variants of its namespace are running.

    Those that succeeded are left out by the API server: they stay for a day, so that there may be hundreds.
    """
    unfinished = await api.get(
        paths.jobs(variant.namespace), "jobs.batch", labelSelector=_CHECKS, fieldSelector="status.successful=0"
    )
    others = [raw for raw in unfinished["items"] if parse.controller_uid(raw) != variant.uid]
    return sum(not parse.check_job(raw, (), "").finished for raw in others)


async def _jobs(api: Api, variant: Variant, spec: Spec) -> tuple[CheckJob, ...]:
    """This variant's check Jobs."""
    labels = f"{_CHECKS}={variant.name}"
    answer = await api.get(paths.jobs(variant.namespace), "jobs.batch", labelSelector=labels)
    own: list[CheckJob] = []
    pods = await api.get(paths.pods(variant.namespace), "pods", labelSelector=labels)
    for raw in answer["items"]:
        uid = raw["metadata"]["uid"]
        if parse.controller_uid(raw) != variant.uid:
            continue
        its = tuple(
            parse.pod(entry, spec.container)
            for entry in pods["items"]
            if entry["metadata"].get("labels", {}).get(CONTROLLER_UID_LABEL) == uid
            and parse.controller_uid(entry) == uid
        )
        job = parse.check_job(raw, its, "")
        if not its and not job.finished:
            job = parse.check_job(raw, its, await _why_no_pod(api, variant.namespace, uid))
        own.append(job)
    return tuple(own)


async def _why_no_pod(api: Api, namespace: str, job_uid: str) -> str:
    fields = f"involvedObject.uid={job_uid},reason=FailedCreate"
    answer = await api.get(paths.core_events(namespace), "events", fieldSelector=fields)
    messages = [str(raw.get("message", "")) for raw in answer["items"]]
    return messages[-1] if messages else ""


def label_selector(selector: Json) -> str:
    """A Deployment's selector as a query parameter."""
    parts = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    for entry in selector.get("matchExpressions", []):
        key, values = entry["key"], ",".join(entry.get("values", []))
        parts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[entry["operator"]]
        )
    return ",".join(parts)

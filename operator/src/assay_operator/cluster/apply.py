"""Write what a plan asks for. Each write fails, rather than hits something else, where the world has moved on."""

from assay_operator.builders.annotations import deployment_patch, template_annotations
from assay_operator.cluster import parse, paths
from assay_operator.cluster.api import APPLY_PATCH, MERGE_PATCH, Api
from assay_operator.constants import API_VERSION, FIELD_MANAGER, KIND, MODEL_ANNOTATIONS
from assay_operator.errors import ConflictError, NotFoundError, OperatorError
from assay_operator.models.observed import Variant
from assay_operator.models.status import Status
from assay_operator.plan import CreateJob, DeleteJob, SetModel, Step


class NameTakenError(OperatorError):
    """A Job that is not this variant's has the name that the check's Job needs."""


async def take(api: Api, variant: Variant, step: Step) -> None:
    """Take one step. ConflictError where what it rests upon has changed; NameTakenError as above."""
    if isinstance(step, CreateJob):
        await _create(api, variant, step)
    elif isinstance(step, DeleteJob):
        await _delete(api, variant, step)
    else:
        await _set_model(api, variant, step)


async def _create(api: Api, variant: Variant, step: CreateJob) -> None:
    try:
        await api.create(paths.jobs(variant.namespace), step.body, "jobs.batch")
    except ConflictError as conflict:
        existing = await api.get(paths.job(variant.namespace, step.name), "jobs.batch")
        if parse.controller_uid(existing) != variant.uid:
            raise NameTakenError(f"Job {step.name} is not of ModelVariant {variant.name}") from conflict
        raise  # ours, from before a crash or from another operator: observe it


async def _delete(api: Api, variant: Variant, step: DeleteJob) -> None:
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Background",
        "preconditions": {"uid": step.uid},
    }
    try:
        await api.delete(paths.job(variant.namespace, step.name), options, "jobs.batch")
    except NotFoundError:
        return  # that is what was wanted


async def _set_model(api: Api, variant: Variant, step: SetModel) -> None:
    path = paths.deployment(variant.namespace, step.deployment)
    body = deployment_patch(step.deployment, step.resource_version, step.model)
    answer = await api.patch(path, body, "deployments.apps", APPLY_PATCH, fieldManager=FIELD_MANAGER, force="true")
    wanted = template_annotations(step.model)
    present = (answer["spec"]["template"].get("metadata") or {}).get("annotations") or {}
    foreign = {name: None for name in MODEL_ANNOTATIONS if name in present and name not in wanted}
    if foreign:
        # Somebody else owns them too, so giving up our share did not remove them.
        version = answer["metadata"]["resourceVersion"]
        removal = {
            "metadata": {"resourceVersion": version},
            "spec": {"template": {"metadata": {"annotations": foreign}}},
        }
        await api.patch(path, removal, "deployments.apps", MERGE_PATCH, fieldManager=FIELD_MANAGER)


async def write_status(api: Api, variant: Variant, status: Status) -> Variant:
    """Write the status of the variant as it was read. ConflictError if it has changed since."""
    body = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": variant.name,
            "namespace": variant.namespace,
            "uid": variant.uid,
            "resourceVersion": variant.resource_version,
        },
        "status": status.to_json(),
    }
    path = f"{paths.variant(variant.namespace, variant.name)}/status"
    return parse.variant(await api.replace(path, body, "modelvariants.assay.dev/status"))

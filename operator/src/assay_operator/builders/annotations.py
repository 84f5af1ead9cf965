"""The four pod-template annotations, which are all the operator writes to a workload."""

from typing import Any

from assay_operator.constants import (
    DIGEST_ANNOTATION,
    PRECISION_ANNOTATION,
    URI_ANNOTATION,
    VARIANT_ANNOTATION,
)
from assay_operator.models.observed import ServedModel


def template_annotations(model: ServedModel) -> dict[str, str]:
    """The annotations that make a pod serve the model; none for the base."""
    if model.is_base:
        return {}
    return {
        URI_ANNOTATION: model.uri,
        DIGEST_ANNOTATION: model.digest,
        PRECISION_ANNOTATION: model.precision,
        VARIANT_ANNOTATION: model.variant,
    }


def served_model(annotations: dict[str, str] | None) -> ServedModel:
    """The model that a pod with these annotations serves."""
    present = annotations or {}
    return ServedModel(
        uri=present.get(URI_ANNOTATION, ""),
        digest=present.get(DIGEST_ANNOTATION, ""),
        precision=present.get(PRECISION_ANNOTATION, ""),
        variant=present.get(VARIANT_ANNOTATION, ""),
    )


def deployment_patch(name: str, resource_version: str, model: ServedModel) -> dict[str, Any]:
    """A server-side apply of the annotations and nothing else.

    Without annotations it gives up those applied before, which removes them: the way back to the base. The
    resourceVersion makes it fail if the Deployment has changed since it was observed.
    """
    patch: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "resourceVersion": resource_version},
    }
    if annotations := template_annotations(model):
        patch["spec"] = {"template": {"metadata": {"annotations": annotations}}}
    return patch

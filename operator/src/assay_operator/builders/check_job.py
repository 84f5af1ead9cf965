"""The Job that checks a pack, rendered from the target's own pod template."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from assay_operator.builders.inputs import Inputs, measured
from assay_operator.builders.pod_template import JOB_UID_ENV, base_model, check_template
from assay_operator.constants import (
    API_VERSION,
    ATTEMPT_ANNOTATION,
    CHECK_COMPONENT,
    COMPONENT_LABEL,
    INPUTS_HASH_ANNOTATION,
    KIND,
    VARIANT_LABEL,
)
from assay_operator.models.observed import Target, Variant
from assay_operator.models.spec import Spec
from assay_operator.models.status import Pack

FINISHED_JOB_KEPT_SECONDS: Final = 24 * 3600  # a Pass is evidence while its Job is there; a day covers a slow rollout
LONGEST_VARIANT_IN_NAME: Final = 40  # with "-check-" and ten digits a Job's name stays below the 63 of a pod's label


def job_name(variant: Variant, inputs: Inputs, attempt: int) -> str:
    """The same name for the same attempt: a second create of it fails, so there is never a second Job."""
    suffix = hashlib.sha256(f"{variant.uid}/{inputs}/{attempt}".encode()).hexdigest()[:10]
    return f"{variant.name[:LONGEST_VARIANT_IN_NAME].rstrip('.-')}-check-{suffix}"


def check_job(
    variant: Variant, spec: Spec, target: Target, model: Pack, inputs: Inputs, attempt: int
) -> dict[str, Any]:
    """The Job of one attempt. RenderError where the target's template does not give what is needed."""
    check = spec.check
    template = check_template(
        target.template, spec.container, variant.name, _arguments(spec, target, model, inputs), str(check.cpu_request)
    )
    labels = {
        COMPONENT_LABEL: CHECK_COMPONENT,
        VARIANT_LABEL: variant.name,
        "app.kubernetes.io/managed-by": "assay-operator",
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(variant, inputs, attempt),
            "namespace": variant.namespace,
            "labels": labels,
            "annotations": {INPUTS_HASH_ANNOTATION: str(inputs), ATTEMPT_ANNOTATION: str(attempt)},
            # Without blockOwnerDeletion: that would need the right to set finalizers on ModelVariants.
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": KIND,
                    "name": variant.name,
                    "uid": variant.uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "backoffLimit": 0,  # attempts are the operator's
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": check.start_deadline_seconds + check.timeout_seconds,
            "ttlSecondsAfterFinished": FINISHED_JOB_KEPT_SECONDS,
            # A drained node is not the pack's fault: the pod is replaced, and no attempt is counted.
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "podReplacementPolicy": "Failed",
            "template": template,
        },
    }


def same_template(rendered: Mapping[str, Any], observed: Mapping[str, Any], *, arguments: bool = True) -> bool:
    """Whether an observed pod template is the rendered one in all that a measurement depends on.

    The API server fills in defaults, so the observed one may say more wherever the rendered one says nothing.
    arguments: whether the check's arguments must be the same too.
    """
    if arguments and _arguments_of(rendered) != _arguments_of(observed):
        return False
    return _within(measured(rendered), measured(observed))


def _arguments_of(template: Mapping[str, Any]) -> list[str]:
    return list(template.get("spec", {}).get("containers", [{}])[0].get("args", []))


def _within(asked: object, given: object) -> bool:
    if asked is None or asked in ({}, []):
        return True
    if isinstance(asked, Mapping):
        return isinstance(given, Mapping) and all(_within(value, given.get(key)) for key, value in asked.items())
    if isinstance(asked, list):
        return isinstance(given, list) and len(asked) == len(given) and all(map(_within, asked, given))
    return str(asked) == str(given)


def _arguments(spec: Spec, target: Target, model: Pack, inputs: Inputs) -> list[str]:
    check = spec.check
    base = base_model(target.template, spec.container)
    yardstick = Pack(uri=check.compare_with.uri, digest=check.compare_with.digest or "") if check.compare_with else base
    optional: list[tuple[str, object]] = [
        ("--candidate-digest", model.digest),
        ("--candidate-precision", model.precision),
        ("--compare-with-digest", yardstick.digest),
        ("--dataset-digest", check.dataset.digest),
        ("--max-top1-drop-permille", check.max_top1_drop_permille),
        ("--max-cost-ratio-permille", check.max_cost_ratio_permille),
    ]
    always: list[tuple[str, object]] = [
        ("--candidate", model.uri),
        ("--compare-with", yardstick.uri),
        ("--dataset", check.dataset.uri),
        ("--max-images", check.max_images),
        ("--confidence-percent", check.confidence_percent),
        ("--min-top3-containment-permille", check.min_top3_containment_permille),
        ("--min-top1-agreement-permille", check.min_top1_agreement_permille),
        ("--max-noise-permille", check.max_noise_permille),
        ("--result-file", "/dev/termination-log"),
        ("--job-uid", f"$({JOB_UID_ENV})"),
        ("--inputs-hash", inputs),
    ]
    given = [*always, *((name, value) for name, value in optional if value not in (None, ""))]
    # name=value: a value that begins with a dash stays a value.
    # $$ is Kubernetes' way to write a dollar that expands nothing.
    return ["--json", *(f"{name}={_literal(name, value)}" for name, value in given)]


def _literal(name: str, value: object) -> str:
    return str(value) if name == "--job-uid" else str(value).replace("$", "$$")

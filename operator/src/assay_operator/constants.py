"""Names that the operator, the chart and the service agree upon."""

from typing import Final

GROUP: Final = "assay.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "modelvariants"
KIND: Final = "ModelVariant"
API_VERSION: Final = f"{GROUP}/{VERSION}"

FIELD_MANAGER: Final = "assay-operator"
"""Owner of the four annotations below in a Deployment's managedFields."""

URI_ANNOTATION: Final = "assay.dev/model-uri"
DIGEST_ANNOTATION: Final = "assay.dev/model-digest"
PRECISION_ANNOTATION: Final = "assay.dev/model-precision"
VARIANT_ANNOTATION: Final = "assay.dev/variant"
MODEL_ANNOTATIONS: Final = (URI_ANNOTATION, DIGEST_ANNOTATION, PRECISION_ANNOTATION, VARIANT_ANNOTATION)
"""All that the operator ever writes to a workload."""

TARGET_LABEL: Final = "assay.dev/target"
"""Set to "true" by whoever owns the Deployment, on it and on its pods: permission to change its model."""

VARIANT_LABEL: Final = "assay.dev/modelvariant"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
CHECK_COMPONENT: Final = "check"

INPUTS_HASH_ANNOTATION: Final = "assay.dev/inputs-hash"
ATTEMPT_ANNOTATION: Final = "assay.dev/attempt"
SKIP_CHECK_ANNOTATION: Final = "assay.dev/skip-check"
"""On a ModelVariant, with the digest to roll out unproved: breaks the glass."""

INIT_CONTAINERS_ANNOTATION: Final = "assay.dev/check-init-containers"
"""On a target's pod template: names, separated by commas, of the init containers that a check needs too."""

CONTROLLER_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
"""Set by Kubernetes on a Job's pods: the Job's uid."""

BASE_URI_ENV: Final = "ASSAY_BASE_MODEL_URI"
BASE_DIGEST_ENV: Final = "ASSAY_BASE_MODEL_DIGEST"

MISFIT_EXIT_CODE: Final = 78
"""The service ends with it (EX_CONFIG of sysexits.h) when its pack does not fit; the reason is in its message."""

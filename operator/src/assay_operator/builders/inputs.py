"""The hash of everything a verdict depends on.

It has two halves: what is asked (model, yardstick, dataset, criteria, retry token) and where (image, base, resources,
thread environment, place). A pack whose second half still holds is verified though the criteria have changed since.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from assay_operator.builders.pod_template import Json, base_model, check_template
from assay_operator.models.spec import Spec
from assay_operator.models.status import Pack

HALF_LENGTH: Final = 20  # hex digits; 80 bits are beyond an author who would look for a collision

MEASURED_ENVIRONMENT: Final = re.compile(
    r"^(ASSAY_(BUILTIN_DIR|CPU_LIMIT_MILLICORES|MEMORY_LIMIT_BYTES|THREADS|BASE_MODEL_.*)"
    r"|OMP_.*|GOMP_.*|KMP_.*|MKL_.*|OPENBLAS_.*|ORT_.*|MALLOC_.*|LD_.*|PYTHON.*|.*_NUM_THREADS)$"
)
"""Variables that change what is computed or what it costs. A changed log level is no reason to check again."""

NOT_JUDGED: Final = {"compare_with", "dataset", "start_deadline_seconds", "timeout_seconds", "max_attempts"}
"""Fields of the check that are hashed elsewhere, or say only how long to try."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The two halves of an inputs hash."""

    request: str
    environment: str

    def __str__(self) -> str:
        return f"{self.request}-{self.environment}"


def environment_of(inputs_hash: str) -> str:
    """The second half of an inputs hash; empty if it has none."""
    return inputs_hash.partition("-")[2]


def digest_of(value: object) -> str:
    """A canonical hash of JSON data."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:HALF_LENGTH]


def measured(template: Json) -> dict[str, Any]:
    """The part of a check's pod template that a measurement depends on."""
    pod = template.get("spec", {})
    container = pod.get("containers", [{}])[0]
    return {
        "image": container.get("image"),
        "command": container.get("command"),
        "limits": container.get("resources", {}).get("limits"),
        "env": sorted(
            (entry for entry in container.get("env", []) if MEASURED_ENVIRONMENT.match(entry.get("name", ""))),
            key=lambda entry: str(entry["name"]),
        ),
        "envFrom": container.get("envFrom"),
        "initContainers": [entry.get("image") for entry in pod.get("initContainers", [])],
        **{
            field: pod.get(field)
            for field in ("nodeSelector", "affinity", "tolerations", "runtimeClassName", "priorityClassName")
        },
    }


def inputs_of(spec: Spec, model: Pack, target_template: Json, image_id: str = "") -> Inputs:
    """The hash for a check of `model` under `spec` on this target. RenderError as `check_template`.

    image_id: what the target's pods really run, since an image may be built anew under the same name.
    """
    base = base_model(target_template, spec.container)
    criteria = spec.check.model_dump(mode="json", exclude=NOT_JUDGED)
    yardstick = spec.check.compare_with
    asked: Mapping[str, Any] = {
        "model": model.model_dump(),
        "yardstick": yardstick.model_dump() if yardstick else base.model_dump(include={"uri", "digest"}),
        "dataset": spec.check.dataset.model_dump(),
        "criteria": criteria,
        "retryToken": spec.retry_token,
    }
    template = check_template(target_template, spec.container, "", [], str(spec.check.cpu_request))
    where = {"base": base.model_dump(include={"uri", "digest"}), "imageID": image_id, **measured(template)}
    return Inputs(request=digest_of(asked), environment=digest_of(where))

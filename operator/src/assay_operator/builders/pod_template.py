"""What a check's pod takes over from its target's pod template, and what it leaves behind.

It must cost and compute what the service costs and computes, so it takes the image, limits, environment, place and
rights. It must not be mistaken for a replica, so it takes no labels, probes, ports or lifecycle.
"""

from collections.abc import Mapping
from typing import Any, Final

from assay_operator.constants import (
    BASE_DIGEST_ENV,
    BASE_URI_ENV,
    CHECK_COMPONENT,
    COMPONENT_LABEL,
    CONTROLLER_UID_LABEL,
    INIT_CONTAINERS_ANNOTATION,
    VARIANT_LABEL,
)
from assay_operator.errors import RenderError
from assay_operator.models.status import Pack

Json = Mapping[str, Any]

POD_FIELDS: Final = (
    "serviceAccountName",
    "automountServiceAccountToken",
    "securityContext",
    "nodeSelector",
    "tolerations",
    "runtimeClassName",
    "priorityClassName",
    "imagePullSecrets",
    "volumes",
)
CONTAINER_FIELDS: Final = ("image", "imagePullPolicy", "workingDir", "envFrom", "volumeMounts", "securityContext")
JOB_UID_ENV: Final = "CHECK_JOB_UID"  # not ASSAY_…: the service refuses settings it does not know

NO_MESH: Final = {
    "sidecar.istio.io/inject": "false",
    "linkerd.io/inject": "disabled",
    "kuma.io/sidecar-injection": "disabled",
}


def serving_container(template: Json, name: str) -> Json:
    """The target's container of that name. RenderError if there is none."""
    containers = template.get("spec", {}).get("containers", [])
    for container in containers:
        if container.get("name") == name:
            return dict(container)
    names = ", ".join(str(container.get("name")) for container in containers) or "none"
    raise RenderError(
        f"the target has no container {name} (it has {names})", "Name the one that serves in spec.container"
    )


def base_model(template: Json, container: str) -> Pack:
    """The base that the target's container names. Its digest is empty where it is not given.

    RenderError if it is not there as a literal value: the operator reads no ConfigMap or Secret.
    """
    values = {entry.get("name"): entry.get("value") for entry in serving_container(template, container).get("env", [])}
    uri = values.get(BASE_URI_ENV)
    if not uri:
        raise RenderError(
            f"container {container} of the target has no literal value for {BASE_URI_ENV}", "Set it to the base's URI"
        )
    return Pack(uri=uri, digest=values.get(BASE_DIGEST_ENV) or "")


def check_template(
    template: Json, container: str, variant: str, arguments: list[str], cpu_request: str
) -> dict[str, Any]:
    """The pod template of a check. RenderError where the target does not give what is needed."""
    source = template.get("spec", {})
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        **{field: source[field] for field in POD_FIELDS if source.get(field)},
    }
    if "automountServiceAccountToken" in source:
        pod["automountServiceAccountToken"] = source["automountServiceAccountToken"]  # false is a value too
    if node_affinity := source.get("affinity", {}).get("nodeAffinity"):
        pod["affinity"] = {"nodeAffinity": node_affinity}
    if initial := _initial_containers(template):
        pod["initContainers"] = initial
    pod["containers"] = [_container(serving_container(template, container), arguments, cpu_request)]
    return {
        "metadata": {
            # Istio prefers the label over the annotation.
            "labels": {
                COMPONENT_LABEL: CHECK_COMPONENT,
                VARIANT_LABEL: variant,
                "sidecar.istio.io/inject": "false",
            },
            "annotations": dict(NO_MESH),
        },
        "spec": pod,
    }


def _container(source: Json, arguments: list[str], cpu_request: str) -> dict[str, Any]:
    job_uid = {
        "name": JOB_UID_ENV,
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{CONTROLLER_UID_LABEL}']"}},
    }
    environment = [entry for entry in source.get("env", []) if entry.get("name") != JOB_UID_ENV]
    return {
        "name": source["name"],  # resourceFieldRef entries may name their container
        **{field: source[field] for field in CONTAINER_FIELDS if source.get(field)},
        "command": ["assay", "check"],
        "args": arguments,
        "env": [*environment, job_uid],
        "resources": _resources(source.get("resources", {}), cpu_request),
        # Where the result is read from; the target may have moved its own.
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def _resources(source: Json, cpu_request: str) -> dict[str, Any]:
    requests = dict(source.get("requests", {}))
    limit = source.get("limits", {}).get("cpu")
    # A request above the limit is not admitted.
    lower = limit is not None and _millicores(limit) < _millicores(cpu_request)
    requests["cpu"] = _canonical(limit if lower else cpu_request)
    kept = {key: value for key, value in source.items() if key not in ("requests", "claims")}
    return {**kept, "requests": requests}


def _millicores(quantity: str | int | float) -> float:
    """A CPU quantity in millicores: "250m", "2", 2, "0.5"."""
    text = str(quantity)
    return float(text[:-1]) if text.endswith("m") else float(text) * 1000


def _canonical(cpu: str | int | float) -> str:
    """As the API server writes it, so that what was rendered compares equal to what was stored."""
    millicores = round(_millicores(cpu))
    return f"{millicores}m" if millicores % 1000 else str(millicores // 1000)


def _initial_containers(template: Json) -> list[Any]:
    """The init containers that the target's owner has named for checks. Sidecars and unnamed ones stay behind."""
    named = template.get("metadata", {}).get("annotations", {}).get(INIT_CONTAINERS_ANNOTATION, "")
    wanted = {name.strip() for name in named.split(",") if name.strip()}
    return [
        {
            key: value
            for key, value in entry.items()
            if key not in ("ports", "lifecycle", "livenessProbe", "startupProbe", "readinessProbe")
        }
        for entry in template.get("spec", {}).get("initContainers", [])
        if entry.get("name") in wanted and entry.get("restartPolicy") != "Always"
    ]

"""Post Kubernetes Events about a ModelVariant. A lost event harms nobody, so failures are only logged by the caller."""

import socket
from datetime import UTC, datetime

from assay_operator.cluster import paths
from assay_operator.cluster.api import Api
from assay_operator.constants import API_VERSION, KIND
from assay_operator.errors import ConflictError
from assay_operator.models.observed import Variant
from assay_operator.plan import Event


async def post(api: Api, variant: Variant, event: Event) -> None:
    """Post the event, unless it is there already: its name follows from the transition it tells of."""
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{variant.name}.{event.key}", "namespace": variant.namespace},
        "eventTime": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "action": "Reconcile",
        "note": event.note,
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": variant.name,
            "namespace": variant.namespace,
            "uid": variant.uid,
            "resourceVersion": variant.resource_version,
        },
        "reportingController": "assay.dev/operator",
        "reportingInstance": socket.gethostname()[:128],
    }
    try:
        await api.create(paths.events(variant.namespace), body, "events.events.k8s.io")
    except ConflictError:
        return

"""kstatus of an object: what `kubectl`-like tools and Helm wait for.

The rules are those that the library `sigs.k8s.io/cli-utils/pkg/kstatus` publishes for custom resources, in its order:
deletion, the generation, the two conditions that are about the work itself, then Ready.
"""

from collections.abc import Mapping
from typing import Any, Literal

KStatus = Literal["Terminating", "InProgress", "Failed", "Current"]


def kstatus(resource: Mapping[str, Any]) -> KStatus:
    """The status of an object as JSON. Current where it has no condition that says otherwise."""
    metadata, status = resource["metadata"], resource.get("status", {})
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if status.get("observedGeneration", metadata["generation"]) != metadata["generation"]:
        return "InProgress"
    for condition in status.get("conditions", []):
        if condition["type"] == "Reconciling" and condition["status"] == "True":
            return "InProgress"
        if condition["type"] == "Stalled" and condition["status"] == "True":
            return "Failed"
    ready = [condition["status"] for condition in status.get("conditions", []) if condition["type"] == "Ready"]
    return "Current" if ready in ([], ["True"]) else "InProgress"

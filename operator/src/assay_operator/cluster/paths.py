"""Where objects are."""

from assay_operator.constants import GROUP, PLURAL, VERSION


def variants(namespace: str | None) -> str:
    """ModelVariants of a namespace, or of all."""
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/{VERSION}{scope}/{PLURAL}"


def variant(namespace: str, name: str) -> str:
    """One ModelVariant."""
    return f"{variants(namespace)}/{name}"


def deployment(namespace: str, name: str) -> str:
    """One Deployment."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def replica_sets(namespace: str) -> str:
    """ReplicaSets of a namespace."""
    return f"/apis/apps/v1/namespaces/{namespace}/replicasets"


def pods(namespace: str) -> str:
    """Pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


def jobs(namespace: str) -> str:
    """Jobs of a namespace."""
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def job(namespace: str, name: str) -> str:
    """One Job."""
    return f"{jobs(namespace)}/{name}"


def core_events(namespace: str) -> str:
    """Events of a namespace, as Kubernetes' own controllers write them."""
    return f"/api/v1/namespaces/{namespace}/events"


def events(namespace: str) -> str:
    """Events of a namespace, as the operator writes them."""
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"

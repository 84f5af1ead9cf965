"""Turn news about any object into keys to look at. News may be lost, doubled or late; the resync makes up for it."""

import kopf

from assay_operator.constants import GROUP, PLURAL, VARIANT_LABEL
from assay_operator.turns import Turns
from assay_operator.workqueue import Key, WorkQueue


class Interest:
    """Which ModelVariants care for which Deployment. A hint only: built from what was listed and heard of."""

    def __init__(self) -> None:
        self._targets: dict[Key, str] = {}

    def note(self, key: Key, target: str) -> None:
        """The ModelVariant has this target."""
        self._targets[key] = target

    def forget(self, key: Key) -> None:
        """The ModelVariant is gone."""
        self._targets.pop(key, None)

    def in_deployment(self, namespace: str, deployment: str) -> list[Key]:
        """The ModelVariants with this target."""
        return [key for key, target in self._targets.items() if key[0] == namespace and target == deployment]

    def in_pod(self, namespace: str, pod: str) -> list[Key]:
        """The ModelVariants whose target may have made this pod: its name begins with the Deployment's."""
        return [key for key, target in self._targets.items() if key[0] == namespace and pod.startswith(f"{target}-")]


def register(registry: kopf.OperatorRegistry, queue: WorkQueue, interest: Interest, turns: Turns) -> None:
    """Register the handlers of the four watches."""

    @kopf.on.event(GROUP, PLURAL, registry=registry)
    async def variant_news(namespace: str | None, name: str, body: kopf.Body, type: str, **_: object) -> None:  # noqa: A002 - kopf's name
        key = (namespace or "", name)
        target = body.get("spec", {}).get("targetRef", {}).get("name", "")
        if type == "DELETED":
            interest.forget(key)
            # Another one may have waited for this target.
            for waiting in interest.in_deployment(key[0], target):
                queue.add(waiting)
        else:
            interest.note(key, target)
        queue.add(key)

    @kopf.on.event("apps", "deployments", registry=registry)
    async def deployment_news(namespace: str | None, name: str, **_: object) -> None:
        for key in interest.in_deployment(namespace or "", name):
            queue.add(key)

    @kopf.on.event("", "v1", "pods", registry=registry)
    async def pod_news(namespace: str | None, name: str, **_: object) -> None:
        for key in interest.in_pod(namespace or "", name):
            queue.add(key)

    @kopf.on.event("batch", "jobs", registry=registry)
    async def job_news(namespace: str | None, labels: kopf.Labels, body: kopf.Body, type: str, **_: object) -> None:  # noqa: A002 - kopf's name
        if name := labels.get(VARIANT_LABEL):
            queue.add((namespace or "", name))
        ended = any(entry["type"] in ("Complete", "Failed") for entry in body.get("status", {}).get("conditions", ()))
        if (ended or type == "DELETED") and (waiting := turns.call(namespace or "")):
            queue.add(waiting)

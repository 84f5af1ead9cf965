"""The Deployment and Job controllers' part, and the kubelet's, played through the API of a server that has none."""

import copy
import json
from datetime import UTC, datetime, timedelta

from assay_operator.cluster import parse
from support.apiserver import ADMIN, ApiServer, eventually
from support.packs import result as result_line

VARIANTS = "/apis/assay.dev/v1alpha1"


def stamp(ago_s: float = 0) -> str:
    return (datetime.now(UTC) - timedelta(seconds=ago_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Namespace:
    """One namespace with a Deployment and whatever a test needs there."""

    def __init__(self, api: ApiServer, name: str) -> None:
        self.api, self.name = api, name
        api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def acting_as(self, *, token: str = ADMIN, user: str = "") -> "Namespace":
        """The same namespace as somebody else meets it."""
        other = copy.copy(self)
        other.api = self.api.acting_as(token=token, user=user)
        return other

    def path(self, group: str, plural: str, name: str = "", sub: str = "") -> str:
        root = "/api/v1" if group == "v1" else f"/apis/{group}"
        return "/".join(part for part in (f"{root}/namespaces/{self.name}/{plural}", name, sub) if part)

    # -- the Deployment and its pods
    def deployment(self, template: dict, name="assay", replicas=2) -> dict:
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": {"assay.dev/target": "true"}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
        }
        made = self.api.create(self.path("apps/v1", "deployments") + "?fieldManager=helm", body)
        self.roll(name)
        return made

    def read_deployment(self, name="assay") -> dict:
        return self.api.get(self.path("apps/v1", "deployments", name))

    def roll(self, name="assay", *, ready=True, misfit: dict | None = None) -> None:
        """Make the pods of the Deployment's present template, as its controller and a kubelet would."""
        deployment = self.read_deployment(name)
        replicas, generation = deployment["spec"]["replicas"], deployment["metadata"]["generation"]
        owner = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": name,
            "uid": deployment["metadata"]["uid"],
            "controller": True,
        }
        template = deployment["spec"]["template"]
        labels = {**template["metadata"]["labels"], "pod-template-hash": f"h{generation}"}
        full = {"metadata": {**template["metadata"], "labels": labels}, "spec": template["spec"]}
        body = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": f"{name}-h{generation}", "labels": labels, "ownerReferences": [owner]},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": full},
        }
        body["metadata"].pop("creationTimestamp", None)
        replica_set = self.api.create(self.path("apps/v1", "replicasets"), body)
        old = [pod for pod in self.pods(name) if pod["metadata"]["labels"].get("pod-template-hash") != f"h{generation}"]
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": body["metadata"]["name"],
            "uid": replica_set["metadata"]["uid"],
            "controller": True,
        }
        made = replicas if ready else 1
        for number in range(made):
            meta = {
                "name": f"{name}-h{generation}-{number}",
                "labels": labels,
                "annotations": full["metadata"].get("annotations", {}),
                "ownerReferences": [owner],
            }
            self.pod({"metadata": meta, "spec": full["spec"]}, ready=ready, misfit=misfit)
        if ready:
            for pod in old:
                self.api.http.request(
                    "DELETE", self.path("v1", "pods", pod["metadata"]["name"]), json={"gracePeriodSeconds": 0}
                ).raise_for_status()
        self.deployment_status(
            name,
            generation=generation,
            updated=made,
            current=made + (0 if ready else len(old)),
            available=made if ready else 0,
            old=0 if ready else len(old),
        )

    def deployment_status(
        self, name: str, *, updated: int, current: int, available: int, old: int, generation: int | None = None
    ) -> None:
        """Without a generation: of the present one."""
        if generation is None:
            generation = self.read_deployment(name)["metadata"]["generation"]
        total = available + old
        conditions = [
            {
                "type": "Available",
                "status": "True" if total else "False",
                "reason": "MinimumReplicasAvailable",
                "message": "",
                "lastUpdateTime": stamp(),
                "lastTransitionTime": stamp(),
            },
            {
                "type": "Progressing",
                "status": "True",
                "reason": "ReplicaSetUpdated",
                "message": "",
                "lastUpdateTime": stamp(),
                "lastTransitionTime": stamp(),
            },
        ]
        status = {
            "observedGeneration": generation,
            "replicas": current,
            "updatedReplicas": updated,
            "readyReplicas": total,
            "availableReplicas": total,
            "unavailableReplicas": current - total,
            "conditions": conditions,
        }
        self.api.merge(self.path("apps/v1", "deployments", name, "status"), {"status": status})

    def pods(self, name="assay") -> list[dict]:
        return self.api.get(self.path("v1", "pods"), labelSelector=f"app={name}")["items"]

    def pod(self, body: dict, *, ready: bool, misfit: dict | None = None) -> dict:
        pod = self.api.create(self.path("v1", "pods"), {"apiVersion": "v1", "kind": "Pod", **body})
        container = pod["spec"]["containers"][0]["name"]
        state = {"running": {"startedAt": stamp()}}
        last = {}
        if misfit is not None:
            last = {
                "terminated": {
                    "exitCode": 78,
                    "reason": "Error",
                    "message": json.dumps(misfit),
                    "startedAt": stamp(),
                    "finishedAt": stamp(),
                    "containerID": "x://1",
                }
            }
            state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        status = {
            "phase": "Running",
            "startTime": stamp(),
            "conditions": [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": stamp()}],
            "containerStatuses": [
                {
                    "name": container,
                    "ready": ready,
                    "restartCount": 0 if misfit is None else 1,
                    "image": "x",
                    "imageID": "sha256:image",
                    "state": state,
                    "lastState": last,
                }
            ],
        }
        return self.api.merge(self.path("v1", "pods", pod["metadata"]["name"], "status"), {"status": status})

    # -- checks
    def jobs(self) -> list[dict]:
        return self.api.get(self.path("batch/v1", "jobs"), labelSelector="app.kubernetes.io/component=check")["items"]

    def new_job(self, beyond=0) -> dict:
        return eventually(
            lambda: max(self.jobs()[beyond:], key=lambda job: job["metadata"]["creationTimestamp"], default=None),
            "a check Job is made",
        )

    def finish(self, job: dict, verdict="Pass", *, message: str | None = None, exit_code=0, **changes) -> None:
        """Run the Job's pod to its end."""
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        template = job["spec"]["template"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
        meta = {
            "name": f"{name}-{uid[:5]}",
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"].get("annotations", {}),
            "ownerReferences": [owner],
        }
        pod = self.pod({"metadata": meta, "spec": template["spec"]}, ready=False)
        text = message if message is not None else result_line(parse.check_job(job, (), ""), verdict, **changes)
        container = pod["spec"]["containers"][0]["name"]
        ended = {
            "exitCode": exit_code,
            "reason": "Completed",
            "message": text,
            "startedAt": stamp(),
            "finishedAt": stamp(),
            "containerID": "x://1",
        }
        status = {
            "phase": "Failed" if exit_code else "Succeeded",
            "containerStatuses": [
                {
                    "name": container,
                    "ready": False,
                    "restartCount": 0,
                    "image": "x",
                    "imageID": "sha256:image",
                    "state": {"terminated": ended},
                }
            ],
        }
        self.api.merge(self.path("v1", "pods", pod["metadata"]["name"], "status"), {"status": status})
        self.job_status(job, failed=bool(exit_code))

    def job_status(self, job: dict, *, failed: bool) -> None:
        def condition(kind: str, reason: str) -> dict:
            return {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": "",
                "lastProbeTime": stamp(),
                "lastTransitionTime": stamp(),
            }

        if failed:
            status = {
                "startTime": stamp(),
                "failed": 1,
                "ready": 0,
                "active": 0,
                "terminating": 0,
                "conditions": [
                    condition("FailureTarget", "BackoffLimitExceeded"),
                    condition("Failed", "BackoffLimitExceeded"),
                ],
            }
        else:
            status = {
                "startTime": stamp(),
                "completionTime": stamp(),
                "succeeded": 1,
                "ready": 0,
                "active": 0,
                "terminating": 0,
                "uncountedTerminatedPods": {},
                "conditions": [
                    condition("SuccessCriteriaMet", "CompletionsReached"),
                    condition("Complete", "CompletionsReached"),
                ],
            }
        self.api.merge(self.path("batch/v1", "jobs", job["metadata"]["name"], "status"), {"status": status})

    # -- ModelVariants
    def variant(self, spec: dict, name="assay") -> dict:
        return self.api.create(
            self.path("assay.dev/v1alpha1", "modelvariants"),
            {"apiVersion": "assay.dev/v1alpha1", "kind": "ModelVariant", "metadata": {"name": name}, "spec": spec},
        )

    def read(self, name="assay") -> dict:
        return self.api.get(self.path("assay.dev/v1alpha1", "modelvariants", name))

    def edit(self, spec: dict, name="assay") -> dict:
        return self.api.merge(self.path("assay.dev/v1alpha1", "modelvariants", name), {"spec": spec})

    def condition(self, kind="Ready", name="assay") -> str:
        conditions = self.read(name).get("status", {}).get("conditions", [])
        found = next(
            entry for entry in [*conditions, {"type": kind, "status": "absent", "reason": ""}] if entry["type"] == kind
        )
        return f"{found['status']} {found['reason']}"

    def message(self, kind="Ready", name="assay") -> str:
        return next(entry["message"] for entry in self.read(name)["status"]["conditions"] if entry["type"] == kind)

    def wait(self, told: str, kind="Ready", name="assay") -> None:
        try:
            eventually(lambda: self.condition(kind, name) == told, f"{kind} is {told}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.read(name).get('status')}") from error

    def annotations(self, name="assay") -> dict:
        found = self.read_deployment(name)["spec"]["template"]["metadata"].get("annotations", {})
        return {key: value for key, value in found.items() if key.startswith("assay.dev/")}

    def events(self) -> list[str]:
        return [entry["reason"] for entry in self.api.get(self.path("events.k8s.io/v1", "events"))["items"]]

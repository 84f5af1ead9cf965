"""A ModelVariant's life in steps, each of which needs rights of its own. The first that does not come about is told."""

from collections.abc import Callable

from assay_operator.builders.check_job import job_name
from assay_operator.builders.inputs import inputs_of
from assay_operator.cluster import parse
from assay_operator.models.status import Pack
from support.apiserver import STARTED_S, eventually
from support.controllers import Namespace, stamp
from support.operator_process import OperatorProcess
from support.packs import BASE_URI, FAST, GOOD, MODEL, OTHER, spec, template

UNSEEN_S = 6  # for what cannot come about: watches would bring it in a second, and the resync is far off
QUIET_S = 1  # longer than news of the operator's own writes take to come back to it
SEEN_S = STARTED_S  # for what must: several operators at once may be slow, and a step that fails ends the life
RESYNC_S = 10 * SEEN_S


class StepFailedError(Exception):
    """What did not come about. `step` is its name, the message what the operator says."""

    def __init__(self, step: str, message: str) -> None:
        super().__init__(f"{step}: {message}")
        self.step = step
        self.message = message


class Episode:
    """The steps, in order, in a namespace of its own. `fails`: the one that is expected to fail without a word."""

    def __init__(self, namespace: Namespace, operator: OperatorProcess, fails: str = "") -> None:
        self._space, self._operator, self._fails = namespace, operator, fails
        self._step = ""

    def live(self) -> None:
        """Go through all of them. StepFailedError at the first that fails."""
        steps = (
            self.ready, self.check, self.waiting_check_is_told, self.running_check_is_dropped, self.applied,
            self.serving, self.events, self.scaled, self.pod_lost, self.name_taken, self.name_free,
            self.drift, self.back_to_base,
        )  # fmt: skip
        for step in steps:
            self._step = step.__name__
            step()

    def _see(self, condition: Callable, what: str) -> object:
        def or_denied() -> object:
            if self._space.condition("Stalled") == "True InsufficientPermissions":
                raise StepFailedError(self._step, self._message("Stalled"))
            return condition()

        try:
            return eventually(or_denied, what, UNSEEN_S if self._step == self._fails else SEEN_S)
        except AssertionError as error:
            raise StepFailedError(self._step, str(error)) from error

    def _message(self, kind: str) -> str:
        conditions = self._space.read().get("status", {}).get("conditions", [])
        return next((entry["message"] for entry in conditions if entry["type"] == kind), "")

    def _quiet(self) -> None:
        """Wait until no pass comes from what has happened so far."""
        seen = [self._operator.passes()]

        def still() -> bool:
            end = stamp(-QUIET_S)
            eventually(lambda: stamp() > end, "a moment goes by")
            seen.append(self._operator.passes())
            return seen[-1] == seen[-2]

        eventually(still, "the operator has come to rest")

    def _running(self) -> list[dict]:
        return [job for job in self._space.jobs() if not job.get("status", {}).get("conditions")]

    # -- the steps
    def ready(self) -> None:
        self._operator.wait_until("/livez")
        try:
            self._operator.wait_until("/readyz", UNSEEN_S if self._step == self._fails else SEEN_S)
        except AssertionError as error:
            raise StepFailedError(self._step, str(error)) from error

    def check(self) -> None:
        self._space.deployment(template())
        self._quiet()
        self._space.variant(spec(GOOD, **FAST))
        self._see(self._running, "a check is made")

    def waiting_check_is_told(self) -> None:
        (job,) = self._running()
        meta = job["metadata"]
        event = {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{meta['name']}.1"}, "reason": "FailedCreate",
            "involvedObject": {"kind": "Job", "apiVersion": "batch/v1", "namespace": self._space.name,
                               "name": meta["name"], "uid": meta["uid"]},
            "type": "Warning", "message": "exceeded quota: few", "firstTimestamp": stamp(), "lastTimestamp": stamp(),
        }  # fmt: skip
        self._space.api.create(self._space.path("v1", "events"), event)
        seen = {"metadata": {"annotations": {"seen": "by the Job controller"}}}
        self._space.api.merge(self._space.path("batch/v1", "jobs", meta["name"]), seen)
        self._see(lambda: "exceeded quota: few" in self._message("CheckPassed"), "it is told why it has no pod")

    def running_check_is_dropped(self) -> None:
        (old,) = self._running()
        self._space.edit({"model": OTHER})
        self._see(
            lambda: (
                [job["metadata"]["uid"] for job in self._running()] not in ([], [old["metadata"]["uid"]])
                and len(self._running()) == 1
            ),
            "the running check makes place for another",
        )

    def applied(self) -> None:
        self._space.finish(self._running()[0])
        wanted = {"assay.dev/model-uri": OTHER["uri"], "assay.dev/model-digest": OTHER["digest"]}
        self._see(lambda: self._space.annotations() == MODEL | wanted, "the annotations are applied")

    def serving(self) -> None:
        self._space.roll()
        self._see(lambda: self._space.condition() == "True Serving", "it serves")

    def events(self) -> None:
        self._see(lambda: "Serving" in self._space.events(), "an event tells that it serves")

    def scaled(self) -> None:
        self._quiet()
        path = self._space.path("apps/v1", "deployments", "assay")
        self._space.api.merge(path, {"spec": {"replicas": 3}}, manager="hpa")
        self._see(
            lambda: self._space.condition("RolledOut") == "False RolloutInProgress", "it is told that a pod is missing"
        )
        self._space.api.merge(path, {"spec": {"replicas": 2}}, manager="hpa")
        self._space.deployment_status("assay", updated=2, current=2, available=2, old=0)
        self._see(lambda: self._space.condition() == "True Serving", "it serves again")

    def pod_lost(self) -> None:
        self._quiet()
        pod = self._space.pods()[0]
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": stamp()}
        path = self._space.path("v1", "pods", pod["metadata"]["name"], "status")
        self._space.api.merge(path, {"status": {"conditions": [condition]}})
        self._see(
            lambda: self._space.read()["status"]["serving"]["readyReplicas"] == 1, "it is told that one pod serves"
        )

    def name_taken(self) -> None:
        """Somebody else's Job has the very name that the next check needs."""
        token = {"retryToken": "again"}
        variant = parse.variant(self._space.read() | {"spec": self._space.read()["spec"] | token})
        target = self._space.read_deployment()["spec"]["template"]
        pack = Pack(uri=GOOD["uri"], digest=GOOD["digest"], precision=GOOD["precision"])
        assert not isinstance(variant.spec, str)
        name = job_name(variant, inputs_of(variant.spec, pack, target, "sha256:image"), 1)
        labels = {"app.kubernetes.io/component": "check", "assay.dev/modelvariant": "assay"}
        body = {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}}},
        }  # fmt: skip
        self._foreign = self._space.api.create(self._space.path("batch/v1", "jobs"), body)["metadata"]
        self._space.edit({"model": GOOD, **token})
        self._see(lambda: self._space.condition("Stalled") == "True JobNameConflict", "the taken name is told")

    def name_free(self) -> None:
        self._quiet()
        self._space.api.http.request(
            "DELETE",
            self._space.path("batch/v1", "jobs", self._foreign["name"]),
            json={"propagationPolicy": "Background"},
        ).raise_for_status()
        others = {self._foreign["uid"]}
        self._see(
            lambda: [job for job in self._running() if job["metadata"]["uid"] not in others],
            "the check is made once its name is free",
        )

    def drift(self) -> None:
        before = self._space.annotations()
        edit = {"spec": {"template": {"metadata": {"annotations": {"assay.dev/model-digest": "sha256:" + "e" * 64}}}}}
        self._space.api.merge(self._space.path("apps/v1", "deployments", "assay"), edit, manager="kubectl-edit")
        self._see(lambda: self._space.annotations() == before, "the annotations are put back")

    def back_to_base(self) -> None:
        self._space.edit({"model": {"uri": BASE_URI, "digest": None, "precision": None}})
        self._see(lambda: self._space.annotations() == {}, "the annotations are gone")
        self._see(lambda: not self._running(), "its check is gone")
        self._space.roll()
        self._see(lambda: self._space.condition() == "True Serving", "the base serves")

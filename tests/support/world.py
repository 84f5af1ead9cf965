"""A small cluster in memory, to drive plans through: one Deployment, one ModelVariant, Jobs, and a clock.

It keeps the rules the operator leans on: names are unique, writes have preconditions, a changed template makes a new
revision, a Job is what was created. What packs are worth (good, bad, dead on arrival) is a property of the world.
"""

import copy
import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from assay_operator.builders.annotations import template_annotations
from assay_operator.models.observed import CheckJob, Notice, Observed, Pod, ServedModel, Target, Termination, Variant
from assay_operator.models.spec import parse_spec
from assay_operator.models.status import Status
from assay_operator.plan import CreateJob, DeleteJob, Limits, Plan, SetModel, plan
from support.packs import START, result, spec, template


class ConflictError(Exception):
    """A precondition failed."""


@dataclass
class World:
    spec: dict = field(default_factory=spec)
    now: datetime = START
    template: dict = field(default_factory=template)
    replicas: int = 2
    model: ServedModel = field(default_factory=ServedModel)
    owned: bool = True
    labelled: bool = True
    exists: bool = True
    status: Status = field(default_factory=Status)
    generation: int = 1
    jobs: dict = field(default_factory=dict)
    revisions: list = field(default_factory=lambda: [ServedModel()])
    applied: datetime | None = None
    progressed: datetime = START
    replica_failure: str = ""
    version: int = 1
    deployment_version: int = 1
    rivals: tuple = ()
    others_running: int = 0
    taken: set = field(default_factory=set)
    pods: list = field(default_factory=list)
    written: list = field(default_factory=list)
    created: int = 0
    events: list = field(default_factory=list)
    told: set = field(default_factory=set)
    """Every (condition, status, reason) there has been."""
    skip_check: str = ""
    uid: str = "uid-1"
    image_id: str = "sha256:image"
    misfit: Termination | None = None

    def __post_init__(self):
        if not self.pods:
            self.roll()

    # -- what is seen
    def variant(self) -> Variant:
        return Variant(
            "assay",
            "assay",
            self.uid,
            self.generation,
            str(self.version),
            START,
            parse_spec(self.spec),
            self.status,
            self.skip_check,
        )

    def target(self) -> Target | None:
        if not self.exists:
            return None
        current = [pod for pod in self.pods if pod.model == self.model]
        ready = [pod for pod in self.pods if pod.ready]
        full = copy.deepcopy(self.template)
        full["metadata"]["annotations"] = template_annotations(self.model)
        return Target(
            name="assay",
            uid="dep-1",
            resource_version=str(self.deployment_version),
            generation=1,
            labelled=self.labelled,
            template=full,
            model=self.model,
            owned=self.owned,
            observed_generation=1,
            replicas=self.replicas,
            current=len(self.pods),
            updated=len(current),
            ready=len(ready),
            available=sum(pod.ready for pod in current),
            applied=self.applied,
            progressing=Notice(True, "ReplicaSetUpdated", "", self.progressed, self.progressed),
            availability=Notice(len(ready) >= self.replicas, "MinimumReplicasAvailable", "", START, START),
            replica_failure=Notice(True, "FailedCreate", self.replica_failure, self.now, self.now)
            if self.replica_failure
            else None,
        )

    def observe(self, *, name_taken=False) -> Observed:
        return Observed(
            now=self.now,
            target=self.target(),
            pods=tuple(self.pods),
            revisions=tuple(self.revisions),
            jobs=tuple(self.jobs.values()),
            name_taken=name_taken,
            running_checks=self.others_running,
            rivals=self.rivals,
        )

    # -- what the operator does
    def take(self, step) -> None:
        if isinstance(step, CreateJob):
            if step.name in self.jobs or step.name in self.taken:
                raise ConflictError(step.name)
            self.created += 1
            body = step.body
            self.jobs[step.name] = CheckJob(
                name=step.name,
                uid=f"job-{self.created}",
                resource_version="1",
                owner_uid=body["metadata"]["ownerReferences"][0]["uid"],
                inputs_hash=body["metadata"]["annotations"]["assay.dev/inputs-hash"],
                attempt=int(body["metadata"]["annotations"]["assay.dev/attempt"]),
                template=body["spec"]["template"],
                created=self.now,
            )
        elif isinstance(step, DeleteJob):
            job = self.jobs.get(step.name)
            if job is not None and job.uid == step.uid:
                del self.jobs[step.name]
        elif isinstance(step, SetModel):
            if not self.exists or step.resource_version != str(self.deployment_version):
                raise ConflictError("deployment")
            self.written.append(step.model)
            self.set_model(step.model, owned=True)
            self.applied = self.now

    def set_model(self, model: ServedModel, *, owned: bool) -> None:
        self.model, self.owned = model, owned
        self.deployment_version += 1
        self.progressed = self.now
        if model not in self.revisions:
            self.revisions.append(model)

    def write(self, seen: Variant, status: Status) -> None:
        if seen.resource_version != str(self.version):
            raise ConflictError("status")
        self.status = Status.model_validate(json.loads(json.dumps(status.to_json())))
        self.version += 1

    def reconcile(self, *, steps: int | None = None, observed=None, variant=None, limits: Limits | None = None) -> Plan:
        """One pass. `steps` cuts it off after so many writes, the status being the last one."""
        limits = limits or Limits()
        variant, observed = variant or self.variant(), observed or self.observe()
        made = plan(variant, observed, limits)
        for number, step in enumerate(made.steps):
            if steps is not None and number >= steps:
                return made
            if isinstance(step, CreateJob) and step.name in self.taken:
                made = plan(variant, self.observe(name_taken=True), limits)
                break
            self.take(step)
        if steps is not None and steps <= len(made.steps):
            return made
        if made.status.to_json() != variant.status.to_json():
            self.write(variant, made.status)
        self.events += made.events
        self.told |= {(one.type, one.status, one.reason) for one in self.status.conditions}
        return made

    # -- what others do
    def edit(self, **changes) -> None:
        self.spec = {**self.spec, **changes}
        self.generation += 1
        self.version += 1

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def roll(self, *, ready: bool = True, restarts: int = 0, waiting: str = "") -> None:
        """Replace all pods by pods of the present template; those that do not come up leave the old ones running."""
        old = [pod for pod in self.pods if pod.model != self.model and pod.ready]
        fresh = [self.pod(number, ready=ready, restarts=restarts, waiting=waiting) for number in range(self.replicas)]
        self.progressed = self.now if ready else self.progressed
        self.pods = fresh if ready else [*old, *fresh[:1]]

    def pod(self, number=0, *, ready=True, restarts=0, waiting="") -> Pod:
        ended = self.misfit or (Termination(1, "Error", "it broke", finished=self.now) if restarts else None)
        return Pod(
            name=f"assay-{self.deployment_version}-{number}",
            uid=f"pod-{self.deployment_version}-{number}",
            created=self.now,
            model=self.model,
            phase="Running",
            ready=ready,
            ready_since=self.now if ready else None,
            restarts=restarts,
            image=self.template["spec"]["containers"][0]["image"],
            image_id=self.image_id,
            ended=ended,
            waiting_reason=waiting,
            started=self.now if ready else None,
        )

    def job(self) -> CheckJob:
        """The newest Job."""
        return max(self.jobs.values(), key=lambda job: int(job.uid.split("-")[1]))

    def finish(
        self, verdict="Pass", *, job=None, message=None, exit_code=0, pod=True, failed="", **changes
    ) -> CheckJob:
        """End the newest (or that) Job as its container and the Job controller would."""
        job = job or self.job()
        text = message if message is not None else result(job, verdict, **changes)
        code = exit_code or (3 if verdict == "Error" else 0)
        ended = Termination(code, "OOMKilled" if code == 137 else "Completed", text, finished=self.now)
        pods = (replace(self.check_pod(job), ended=ended, phase="Succeeded"),) if pod else ()
        notice = Notice(True, failed or "BackoffLimitExceeded", "it failed", self.now, self.now)
        done = replace(
            job,
            pods=pods,
            complete=not (code or failed),
            failed=notice if code or failed else None,
            finished_at=self.now,
        )
        self.jobs[job.name] = done
        return done

    def check_pod(self, job: CheckJob, **changes) -> Pod:
        return Pod(
            f"{job.name}-x",
            f"{job.uid}-pod",
            self.now,
            ServedModel(),
            "Running",
            False,
            started=self.now,
            image_id="sha256:image",
            **changes,
        )

    def ready(self) -> str:
        condition = self.status.condition("Ready")
        return f"{condition.status} {condition.reason}" if condition else "absent"

    def reason(self, kind: str) -> str:
        condition = self.status.condition(kind)
        return f"{condition.status} {condition.reason}" if condition else "absent"

    def message(self, kind="Ready") -> str:
        return self.status.condition(kind).message

    def settle(self, passes=30, verdicts=None, alive=None) -> int:
        """Reconcile, with checks, pods and clock doing what they would, until nothing is left to do."""
        for number in range(passes):
            made = self.reconcile()
            moved = self.live(verdicts or {}, alive or {})
            if not made.steps and made.again_s is None and not moved:
                return number
            self.pass_time(max(1.0, made.again_s or 0.0))
        raise AssertionError(f"not settled after {passes} passes: {self.ready()} {self.message()}")

    def live(self, verdicts: dict, alive: dict) -> bool:
        """Let checks end and pods come up. Verdicts and life go by digest; packs are good and alive unless told."""
        moved = False
        for job in list(self.jobs.values()):
            if not job.finished:
                arguments = " ".join(job.template["spec"]["containers"][0]["args"])
                verdict = next((verdict for digest, verdict in verdicts.items() if digest in arguments), "Pass")
                self.finish(verdict, job=job)
                moved = True
        settled = all(pod.model == self.model and pod.ready for pod in self.pods)
        if not settled and alive.get(self.model.digest, True):
            self.roll()
            moved = True
        elif not alive.get(self.model.digest, True) and not any(pod.model == self.model for pod in self.pods):
            self.roll(ready=False, waiting="CrashLoopBackOff")
            moved = True
        return moved

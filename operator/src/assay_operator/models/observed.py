"""What was seen in the cluster in one pass, cut down to what a plan needs. All times are the API server's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from assay_operator.models.spec import Spec
from assay_operator.models.status import Status


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The four annotations of a pod template or pod. Base when there are none."""

    uri: str = ""
    digest: str = ""
    precision: str = ""
    variant: str = ""

    @property
    def is_base(self) -> bool:
        """Whether a container with these annotations serves its base model."""
        return not self.uri


@dataclass(frozen=True, slots=True)
class Variant:
    """A ModelVariant. `spec` is one sentence where it is not valid."""

    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    created: datetime
    spec: Spec | str
    status: Status
    skip_check: str = ""
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A condition of a Deployment or Job."""

    status: bool
    reason: str
    message: str
    since: datetime | None = None
    updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The Deployment. `applied` is the time of the operator's own last change of its annotations."""

    name: str
    uid: str
    resource_version: str
    generation: int
    labelled: bool
    template: Mapping[str, Any]
    model: ServedModel
    owned: bool
    """Whether the operator's field manager owns all the model annotations that are there."""
    observed_generation: int
    replicas: int
    current: int
    updated: int
    ready: int
    available: int
    paused: bool = False
    applied: datetime | None = None
    progressing: Notice | None = None
    availability: Notice | None = None
    replica_failure: Notice | None = None

    @property
    def complete(self) -> bool:
        """Whether every replica is of the newest revision, and available."""
        return (
            self.observed_generation >= self.generation
            and self.updated == self.replicas == self.current
            and self.available >= self.replicas
        )

    @property
    def rolled(self) -> bool:
        """Whether no pod of an older revision is left, and enough of the new are available (an autoscaler may add)."""
        return (
            self.observed_generation >= self.generation
            and self.updated >= self.current
            and (self.replicas == 0 or (self.updated > 0 and self.minimum_available))
        )

    @property
    def minimum_available(self) -> bool:
        """Whether Kubernetes says that enough replicas are available."""
        return self.availability is not None and self.availability.status


@dataclass(frozen=True, slots=True)
class Termination:
    """How a container ended. `signal` is 0 when it ended by itself."""

    exit_code: int
    reason: str
    message: str
    signal: int = 0
    finished: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the target or of a check, with the state of its one container that matters."""

    name: str
    uid: str
    created: datetime
    model: ServedModel
    phase: str
    ready: bool
    deleting: bool = False
    disrupted: bool = False
    """Whether Kubernetes, and not its container, ended it or is about to: a drain, an eviction, a preemption."""
    ready_since: datetime | None = None
    restarts: int = 0
    image: str = ""
    """As its spec names it; `image_id` is what was really started."""
    image_id: str = ""
    ended: Termination | None = None
    """Of the present or else the previous run."""
    waiting_reason: str = ""
    waiting_message: str = ""
    unschedulable: str = ""
    started: datetime | None = None


@dataclass(frozen=True, slots=True)
class CheckJob:
    """A check Job that names this variant in its label, with its pods."""

    name: str
    uid: str
    resource_version: str
    owner_uid: str
    inputs_hash: str
    attempt: int
    template: Mapping[str, Any]
    created: datetime
    complete: bool = False
    failed: Notice | None = None
    finished_at: datetime | None = None
    deleting: bool = False
    pods: tuple[Pod, ...] = ()
    refused_pods: str = ""
    """What Kubernetes said when it would not create the Job's pod (quota, Pod Security, LimitRange)."""

    @property
    def finished(self) -> bool:
        """Whether it has ended, well or badly."""
        return self.complete or self.failed is not None


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything of one pass. `now` is the API server's clock."""

    now: datetime
    target: Target | None = None
    pods: tuple[Pod, ...] = ()
    revisions: tuple[ServedModel, ...] = ()
    """The models of the Deployment's ReplicaSets."""
    jobs: tuple[CheckJob, ...] = ()
    name_taken: bool = False
    """A Job that is not this variant's has the name that the check's Job needs."""
    running_checks: int = 0
    """Unfinished check Jobs of other variants in the namespace: counted where a check is about to begin, else 0."""
    rivals: tuple[tuple[datetime, str, str], ...] = field(default=())
    """Creation time, uid and name of other ModelVariants with this target; the oldest one alone will do."""

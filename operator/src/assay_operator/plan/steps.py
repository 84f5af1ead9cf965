"""What a plan consists of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay_operator.models.observed import ServedModel
from assay_operator.models.status import Status


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Create the Job of an attempt. It fails where the name is taken."""

    name: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a running Job, if it still has this uid."""

    name: str
    uid: str
    why: str


@dataclass(frozen=True, slots=True)
class SetModel:
    """Apply the four annotations, if the Deployment still has this resourceVersion."""

    deployment: str
    resource_version: str
    model: ServedModel
    why: str


Step = CreateJob | DeleteJob | SetModel


@dataclass(frozen=True, slots=True)
class Event:
    """One Kubernetes Event. `key` makes its name: the same transition is told once."""

    reason: str
    note: str
    warning: bool
    key: str


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the operator may have going on.

    running_checks: unfinished checks in one namespace. Two, because checks measure CPU time and share nodes with
    live traffic, so more at once would only slow each other down.
    """

    running_checks: int = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps, in order; the status that holds once they are done; the events of this transition.

    again_s: when to look again even if nothing happens; None leaves it to the resync.
    """

    status: Status
    steps: tuple[Step, ...] = ()
    events: tuple[Event, ...] = field(default=())
    again_s: float | None = None

"""The status of a ModelVariant. It says what to look up; of itself it opens nothing (`rejected` can only close)."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from assay_operator.models.conditions import Condition

REJECTED_KEPT = 5  # enough for A -> B -> A and a few tries; more is history
HISTORY_KEPT = 10  # what `kubectl get -o yaml` shows without scrolling


def rfc3339(moment: datetime) -> str:
    """The moment as Kubernetes writes it, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Time = Annotated[datetime, PlainSerializer(rfc3339, return_type=str)]


class Part(BaseModel):
    """A part of the status: camelCase in JSON, frozen; what an older or newer operator wrote besides is ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", protected_namespaces=()
    )


class Pack(Part):
    """A pack as a status names it. The digest is empty while it has not been measured."""

    uri: str
    digest: str = ""
    precision: str = ""


class Serving(Pack):
    """What the ready pods serve, from their annotations: a pod with another pack is never ready."""

    verified: bool
    ready_replicas: int
    since: Time | None = None


class LastGood(Pack):
    """The pack that passed, was rolled out and soaked."""

    inputs_hash: str = ""
    image_id: str = ""

    # Kubernetes writes ID in capitals.
    model_config = ConfigDict(alias_generator=lambda name: to_camel(name).replace("Id", "ID"))


class TargetStatus(Part):
    """How far the check of the present inputs has come. An attempt is noted once its Job exists.

    image and image_id: what the target's pods were last seen to run, for times at which they do not agree.
    verdict and the two figures: of the newest check of what the spec asks for, for eyes; unset where there is none.
    """

    # Kubernetes writes ID in capitals.
    model_config = ConfigDict(alias_generator=lambda name: to_camel(name).replace("Id", "ID"))

    image: str = ""
    image_id: str = ""
    inputs_hash: str = ""
    attempt: int = 0
    next_attempt_time: Time | None = None
    verdict: str | None = None
    containment_lower_permille: int | None = None
    cost_ratio_permille: int | None = None


class LastCheck(Part):
    """The newest check that ended."""

    model_config = ConfigDict(
        alias_generator=lambda name: to_camel(name).replace("Uid", "UID").replace("imageId", "imageID")
    )

    verdict: str
    reason: str
    job_name: str
    job_uid: str
    inputs_hash: str
    attempt: int = 1
    message: str = ""
    images: int | None = None
    groups: int | None = None
    top3_contained: int | None = None
    top1_agreed: int | None = None
    containment_lower_permille: int | None = None
    top1_drop_upper_permille: int | None = None
    cost_ratio_permille: int | None = None
    cost_ratio_lower_permille: int | None = None
    cost_ratio_upper_permille: int | None = None
    noise_permille: int | None = None
    candidate_cost_micros: int | None = None
    yardstick_cost_micros: int | None = None
    model_digest: str = ""
    model_precision: str = ""
    yardstick_digest: str = ""
    image_id: str = ""
    cpu_model: str = ""
    started_at: Time | None = None
    completed_at: Time | None = None


class Rejected(Part):
    """Inputs that must not be rolled out (again). The stage tells what they failed at."""

    inputs_hash: str
    reason: str
    time: Time
    stage: Literal["Check", "Attempts", "Rollout"] = "Check"
    message: str = ""


class Change(Part):
    """One change of what the target is told to serve."""

    time: Time
    to: str
    reason: str
    from_: str = ""

    model_config = ConfigDict(alias_generator=lambda name: to_camel(name.rstrip("_")))


class Status(Part):
    """The whole of it."""

    observed_generation: int = 0
    phase: str = ""
    base: Pack | None = None
    serving: Serving | None = None
    last_good: LastGood | None = None
    incumbent: Pack | None = None
    target: TargetStatus = TargetStatus()
    last_check: LastCheck | None = None
    rejected: tuple[Rejected, ...] = ()
    history: tuple[Change, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type, if there is one."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def rejection(self, inputs_hash: str) -> Rejected | None:
        """Why those inputs are rejected, if they are."""
        return next((entry for entry in self.rejected if entry.inputs_hash == inputs_hash), None)

    def rejecting(self, entry: Rejected) -> "Status":
        """This status with one more rejection, once per inputs."""
        others = tuple(one for one in self.rejected if one.inputs_hash != entry.inputs_hash)
        return self.model_copy(update={"rejected": (entry, *others)[:REJECTED_KEPT]})

    def to_json(self) -> dict[str, Any]:
        """As the API takes it: without what is not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def parse_status(raw: object) -> Status:
    """The status of an object. One that cannot be read counts as lost: everything is looked up anew."""
    try:
        return Status.model_validate(raw or {})
    except ValidationError:
        return Status()

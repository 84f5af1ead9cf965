"""The spec of a ModelVariant, as the CRD defines it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic.alias_generators import to_camel

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Uri = Annotated[
    str,
    StringConstraints(
        max_length=1024, pattern=r"^(builtin:[a-z0-9][a-z0-9._-]*|(https?|s3|gs|az|file)://[^\s/@?#]*/[^\s?#]+)$"
    ),
]
Precision = Literal["FP32", "INT8"]


class Part(BaseModel):
    """A part of the spec: camelCase in JSON, frozen, unknown fields ignored (the API server has pruned them)."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")


class Reference(Part):
    """A pack or dataset by its URI. Without a digest only when it is builtin."""

    uri: Uri
    digest: Digest | None = None

    @model_validator(mode="after")
    def _is_pinned(self) -> "Reference":
        if self.digest is None and not self.uri.startswith("builtin:"):
            raise ValueError(f"{self.uri} needs a digest, because it is not builtin")
        return self


class Model(Reference):
    """The pack that shall serve."""

    precision: Precision | None = None


class TargetRef(Part):
    """A Deployment of the ModelVariant's namespace."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]


class Check(Part):
    """What the model has to prove. Shares are in permille. The defaults are the CRD's."""

    compare_with: Reference | None = None
    dataset: Reference = Reference(uri="builtin:photos")
    max_images: Annotated[int, Field(ge=1, le=1_000_000)] = 2000
    confidence_percent: Annotated[int, Field(ge=80, le=99)] = 95
    min_top3_containment_permille: Annotated[int, Field(ge=0, le=1000, alias="minTop3ContainmentPermille")] = 980
    min_top1_agreement_permille: Annotated[int, Field(ge=0, le=1000, alias="minTop1AgreementPermille")] = 0
    max_top1_drop_permille: Annotated[int | None, Field(ge=0, le=1000, alias="maxTop1DropPermille")] = None
    max_cost_ratio_permille: Annotated[int | None, Field(ge=1, le=100_000)] = None
    max_noise_permille: Annotated[int, Field(ge=1, le=10_000)] = 100
    cpu_request: str | int = "100m"
    start_deadline_seconds: Annotated[int, Field(ge=10, le=3600)] = 300
    timeout_seconds: Annotated[int, Field(ge=10, le=86_400)] = 900
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3

    @model_validator(mode="after")
    def _judges_accuracy(self) -> "Check":
        criteria = (self.min_top3_containment_permille, self.min_top1_agreement_permille)
        if not any(criteria) and self.max_top1_drop_permille is None:
            raise ValueError("at least one accuracy criterion must be on")
        return self


class Rollout(Part):
    """How long a rollout may take, and how long it must then hold."""

    progress_deadline_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300
    soak_seconds: Annotated[int, Field(ge=0, le=3600)] = 30


class Spec(Part):
    """The whole of it."""

    target_ref: TargetRef
    container: str = "classifier"
    model: Model
    check: Check = Check()
    rollout: Rollout = Rollout()
    retry_token: str = ""
    suspend: bool = False


def parse_spec(raw: object) -> Spec | str:
    """The spec of an object, or one sentence that says why it is none."""
    try:
        return Spec.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        return f"spec.{where}: {first['msg']}"

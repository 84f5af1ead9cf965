"""What a check reports: one line of JSON in the container's termination message.

The contract is `docs/contracts/check-result.schema.json`; the service writes it, the operator reads it, and neither
imports the other. The result is believed only if it names the Job and the inputs it was asked about.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError
from pydantic.alias_generators import to_camel

LARGEST_MESSAGE_BYTES = 4096  # Kubernetes cuts a termination message there
Verdict = Literal["Pass", "Fail", "Inconclusive", "Error"]
Count = Annotated[StrictInt, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid")


class MeasuredPack(_Part):
    """A pack that was measured: its digest is computed from its bytes, its precision is what the pack says."""

    uri: str
    digest: str | None
    precision: str | None
    cost_micros: Count | None


class MeasuredDataset(_Part):
    """The images that were used."""

    uri: str
    digest: str | None
    images: Count | None
    groups: Count | None
    left_out: Count | None
    labelled: StrictBool | None


class CheckResult(_Part):
    """The whole report. Figures of an Error may be unknown."""

    format: Literal[1]
    verdict: Verdict
    reason: Annotated[str, Field(min_length=1, max_length=64)]
    message: str
    job_uid: Annotated[str, Field(alias="jobUID")]
    inputs_hash: str
    candidate: MeasuredPack
    yardstick: MeasuredPack
    dataset: MeasuredDataset
    top3_contained: Annotated[Count | None, Field(alias="top3Contained")]
    top1_agreed: Annotated[Count | None, Field(alias="top1Agreed")]
    containment_lower_permille: Count | None
    containment_upper_permille: Count | None
    agreement_lower_permille: Count | None
    top1_drop_upper_permille: Annotated[StrictInt | None, Field(alias="top1DropUpperPermille")]
    cost_ratio_permille: Count | None
    cost_ratio_lower_permille: Count | None
    cost_ratio_upper_permille: Count | None
    noise_permille: Count | None
    cpu_model: str
    cpu_features: tuple[str, ...]
    cpu_limit_millicores: Count | None
    started_at: datetime
    completed_at: datetime


def parse_result(message: str) -> CheckResult | str:
    """The report in a termination message, or one sentence that says why there is none."""
    if not message.strip():
        return "the check left no result"
    if len(message.encode()) > LARGEST_MESSAGE_BYTES:
        return f"the check's result is larger than {LARGEST_MESSAGE_BYTES} bytes"
    try:
        return CheckResult.model_validate_json(message)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        return f"the check's result is not understood ({where}: {first['msg']}); it begins with {message[:80]!r}"

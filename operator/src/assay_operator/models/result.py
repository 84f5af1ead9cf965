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
Permille = Annotated[StrictInt, Field(ge=0, le=1000)]
Reason = Literal[
    "CheckPassed",
    "LabelsDiffer",
    "AccuracyBelowThreshold",
    "AccuracyNotProven",
    "CostAboveThreshold",
    "CheckInconclusive",
    "PackUnavailable",
    "DigestMismatch",
    "PackInvalid",
    "CpuFeatureMissing",
    "PrecisionMismatch",
    "DatasetInvalid",
    "CheckCrashed",
]


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid")


class MeasuredPack(_Part):
    """A pack that was measured: its digest is computed from its bytes, its precision is what the pack says."""

    uri: str
    digest: str | None = None
    precision: Literal["FP32", "INT8"] | None = None
    cost_micros: Count | None = None


class MeasuredDataset(_Part):
    """The images that were used."""

    uri: str
    digest: str | None = None
    images: Count | None = None
    groups: Count | None = None
    left_out: Count | None = None
    labelled: StrictBool | None = None


class CheckResult(_Part):
    """The whole report. Figures of an Error may be unknown."""

    format: Literal[1] = 1
    verdict: Verdict
    reason: Reason
    message: str
    job_uid: Annotated[str, Field(alias="jobUID")] = ""
    inputs_hash: str = ""
    candidate: MeasuredPack
    yardstick: MeasuredPack
    dataset: MeasuredDataset
    top3_contained: Annotated[Count | None, Field(alias="top3Contained")] = None
    top1_agreed: Annotated[Count | None, Field(alias="top1Agreed")] = None
    containment_lower_permille: Permille | None = None
    containment_upper_permille: Permille | None = None
    agreement_lower_permille: Permille | None = None
    top1_drop_upper_permille: Annotated[
        Annotated[StrictInt, Field(ge=-1000, le=1000)] | None, Field(alias="top1DropUpperPermille")
    ] = None
    cost_ratio_permille: Count | None = None
    cost_ratio_lower_permille: Count | None = None
    cost_ratio_upper_permille: Count | None = None
    noise_permille: Count | None = None
    cpu_model: str = ""
    cpu_features: tuple[str, ...] = ()
    cpu_limit_millicores: Count | None = None
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


def same_uri(told: str, asked: str) -> bool:
    """Whether a result's URI is the one asked about; too long a line makes the check shorten it with `…`."""
    return told == asked or (told.endswith("…") and len(told) > 1 and asked.startswith(told[:-1]))

"""The result of a check as JSON: what the operator reads from the Job's termination message.

One line, at most 4096 bytes, integers only. This model and ``docs/contracts/check-result.schema.json`` are the whole
contract; ``python -m assay.check.report`` writes the schema.
"""

import json
import math
import sys
from typing import Annotated, Final, Literal

from pydantic import AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from assay.check.agreement import Accuracy
from assay.check.cost import Cost
from assay.check.verdict import Reason, VerdictName
from assay.constants import TERMINATION_LOG_BYTES

FORMAT: Final = 1
"""Version of this JSON. A reader refuses every other."""

RELEVANT_FEATURES: Final = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "vnni", "amx_int8", "asimddp", "i8mm")
"""CPU features that change what an INT8 or FP32 convolution costs; the rest of /proc/cpuinfo stays out of 4 KiB."""

_SHORT_URI: Final = 200
"""Characters of a URI that are kept when the whole would not fit: enough to recognise it."""

_ELLIPSIS: Final = "…"

Permille = Annotated[int, Field(ge=0, le=1000)]
Count = Annotated[int, Field(ge=0)]


class _Json(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=AliasGenerator(alias=to_camel),
        serialize_by_alias=True,
    )


class PackResult(_Json):
    """A pack as it was measured. ``digest`` and ``precision`` are its own, not what was asked for."""

    uri: str
    digest: str | None = None
    precision: Literal["FP32", "INT8"] | None = None
    cost_micros: Count | None = Field(None, description="median CPU time of one inference, in microseconds")


class DatasetResult(_Json):
    """The photos it was measured on."""

    uri: str
    digest: str | None = None
    images: Count | None = Field(None, description="images judged")
    groups: Count | None = Field(None, description="source photos they come from")
    left_out: Count | None = Field(None, description="images left out because their group calibrated a pack")
    labelled: bool | None = None


class CheckResult(_Json):
    """Everything a check found. Figures that an Error left unknown are null."""

    format: Literal[1] = FORMAT
    verdict: VerdictName
    reason: Reason
    message: str
    job_uid: str = Field("", alias="jobUID")
    inputs_hash: str = ""
    candidate: PackResult
    yardstick: PackResult
    dataset: DatasetResult
    top3_contained: Count | None = None
    top1_agreed: Count | None = None
    containment_lower_permille: Permille | None = None
    containment_upper_permille: Permille | None = None
    agreement_lower_permille: Permille | None = None
    top1_drop_upper_permille: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    cost_ratio_permille: Count | None = None
    cost_ratio_lower_permille: Count | None = None
    cost_ratio_upper_permille: Count | None = None
    noise_permille: Count | None = None
    cpu_model: str = ""
    cpu_features: tuple[str, ...] = ()
    cpu_limit_millicores: Count | None = None
    started_at: str = Field(description="RFC 3339, UTC")
    completed_at: str = Field(description="RFC 3339, UTC")


def figures(accuracy: Accuracy, cost: Cost) -> dict[str, int | None]:
    """Return the figures of a result by field name, each rounded to the side that claims less."""
    return {
        "top3_contained": accuracy.contained.count,
        "top1_agreed": accuracy.agreed.count,
        "containment_lower_permille": math.floor(accuracy.contained.lower * 1000),
        "containment_upper_permille": math.ceil(accuracy.contained.upper * 1000),
        "agreement_lower_permille": math.floor(accuracy.agreed.lower * 1000),
        "top1_drop_upper_permille": math.ceil(accuracy.drop.upper * 1000) if accuracy.drop else None,
        "cost_ratio_permille": round(cost.ratio * 1000),
        "cost_ratio_lower_permille": math.floor(cost.lower * 1000),
        "cost_ratio_upper_permille": math.ceil(cost.upper * 1000),
        "noise_permille": math.ceil(cost.noise * 1000),
    }


def render(result: CheckResult) -> bytes:
    """Return the result as one line of JSON of at most 4096 bytes, line feed included.

    Too long, and in this order: the message is shortened, CPU features are dropped, then URIs and names. The verdict,
    the digests and the figures are never touched. Raises ``ValueError`` if even that is too long, which only a job uid
    or inputs hash of kilobytes can do.
    """
    line = _dump(result)
    if (excess := len(line) - TERMINATION_LOG_BYTES) > 0:
        line = _dump(result := result.model_copy(update={"message": _shorten(result.message, excess)}))
    if len(line) > TERMINATION_LOG_BYTES:
        short = {
            "cpu_features": (),
            "cpu_model": result.cpu_model[:_SHORT_URI],
            "candidate": result.candidate.model_copy(update={"uri": result.candidate.uri[:_SHORT_URI]}),
            "yardstick": result.yardstick.model_copy(update={"uri": result.yardstick.uri[:_SHORT_URI]}),
            "dataset": result.dataset.model_copy(update={"uri": result.dataset.uri[:_SHORT_URI]}),
        }
        line = _dump(result.model_copy(update=short))
    if len(line) > TERMINATION_LOG_BYTES:
        raise ValueError(f"a result of {len(line)} bytes does not fit {TERMINATION_LOG_BYTES}")
    return line


def schema() -> str:
    """Return the JSON schema as the text of its file."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **CheckResult.model_json_schema()}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _dump(result: CheckResult) -> bytes:
    return result.model_dump_json().encode() + b"\n"


def _shorten(message: str, excess: int) -> str:
    """Cut as many JSON bytes off a message as are too many, and mark the cut."""
    keep = len(message)
    target = len(json.dumps(message, ensure_ascii=False).encode()) - excess
    while keep and len(json.dumps(message[:keep] + _ELLIPSIS, ensure_ascii=False).encode()) > target:
        keep -= 1
    return message[:keep] + _ELLIPSIS


if __name__ == "__main__":
    sys.stdout.write(schema())

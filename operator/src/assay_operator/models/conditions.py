"""Conditions, as kstatus and `kubectl wait` read them."""

from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel

READY: Final = "Ready"
AVAILABLE: Final = "Available"
CHECK_PASSED: Final = "CheckPassed"
ROLLED_OUT: Final = "RolledOut"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"

State = Literal["True", "False", "Unknown"]


def _whole_seconds(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Condition(BaseModel):
    """One condition (metav1.Condition)."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")

    type: str
    status: State
    reason: str
    message: str
    last_transition_time: Annotated[datetime, PlainSerializer(_whole_seconds, return_type=str)]
    observed_generation: int = 0

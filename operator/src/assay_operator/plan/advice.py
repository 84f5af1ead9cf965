"""The next step: what somebody can do about an end state. It is the last sentence of a message."""

from typing import Final

from assay_operator.plan import reasons
from assay_operator.plan.approval import Approval

LET_PODS_COME_UP: Final = "See why the Deployment's pods do not come up, or change spec.model"
SCALE_UP: Final = "Scale the Deployment up to have it serve"


def after_refusal(approval: Approval) -> str:
    """What helps where the spec's model may not serve."""
    if approval.reason in reasons.REFUSALS:
        return "Change spec.model or the criteria of spec.check"
    if approval.reason == reasons.YARDSTICK_NOT_APPROVED:
        return "Change spec.check.compareWith"
    return "Change spec, or spec.retryToken to try again"

"""Decide what to do next, from what was observed, and say so.

`plan()` is a pure function: no I/O, no clock, no kopf, no Kubernetes client. It remembers nothing between passes and
may be called with the same or an older observation any number of times. Two rules make a crash at any point harmless:
what closes the gate is recorded in status before anything acts on it, and every write carries a precondition.
"""

from assay_operator.plan.planner import plan
from assay_operator.plan.steps import CreateJob, DeleteJob, Event, Limits, Plan, SetModel, Step

__all__ = ["CreateJob", "DeleteJob", "Event", "Limits", "Plan", "SetModel", "Step", "plan"]

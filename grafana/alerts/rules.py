"""What a rule is, and what is left open in it until it is written: objectives, place, and how long a minute lasts.

Places left open are written `$(name)`: nothing that Prometheus or Helm would read in its own way. The chart fills them
from its values, the plain file has the defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SCOPE = "$(scope)"
"""In a selector of the service's or the operator's own series: the release whose rules these are, with a comma."""
VARIANTS = "$(variants)"
"""In a selector of variants' series: the namespace that the operator looks after, with a comma; empty for all."""
BUDGET = "$(errorBudget)"
"""Share of requests that may fail."""
P99_S = "$(p99Seconds)"
"""What 99 of 100 answered requests should stay under."""
RUNBOOKS = "$(runbooks)"
"""Where the runbooks are, without a slash at the end."""

DEFAULTS: Mapping[str, str] = {
    SCOPE: "",
    VARIANTS: "",
    BUDGET: "0.005",  # 99.5 %: two pods on shared nodes hold it; three and a half hours a month
    P99_S: "0.25",  # a bucket's bound, three to five times the work of one request
    RUNBOOKS: "grafana/runbooks",
}


@dataclass(frozen=True)
class Timing:
    """How long a minute of the rules lasts. Tests shorten it, to see every alert fire within theirs."""

    minute_s: float = 60

    def window(self, minutes: float) -> str:
        """A duration as Prometheus writes it, in the largest unit that is whole."""
        seconds = minutes * self.minute_s
        for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
            if seconds >= size and seconds % size == 0:
                return f"{seconds / size:.0f}{unit}"
        return f"{max(1, round(seconds))}s"

    def seconds(self, minutes: float) -> str:
        """The same as a number of seconds, for comparisons."""
        return f"{minutes * self.minute_s:g}"


@dataclass(frozen=True)
class Record:
    """A recording rule."""

    name: str
    expr: str

    def to_yaml(self, _timing: Timing) -> dict[str, Any]:
        """As Prometheus reads it."""
        return {"record": self.name, "expr": self.expr}


@dataclass(frozen=True)
class Alert:
    """An alert. `minutes`: how long it must hold. Severity: `critical` wakes somebody, `warning` waits for the day."""

    name: str
    expr: str
    minutes: float
    severity: str
    summary: str
    description: str

    def to_yaml(self, timing: Timing) -> dict[str, Any]:
        """As Prometheus reads it."""
        held = {"for": timing.window(self.minutes)} if self.minutes else {}
        return {
            "alert": self.name,
            "expr": self.expr,
            **held,
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{RUNBOOKS}/{self.name}.md",
            },
        }


@dataclass(frozen=True)
class Group:
    """Rules that are evaluated one after the other."""

    name: str
    rules: Sequence[Record | Alert]

    def to_yaml(self, timing: Timing) -> dict[str, Any]:
        """As Prometheus reads it."""
        return {"name": self.name, "rules": [rule.to_yaml(timing) for rule in self.rules]}


def filled(text: str, places: Mapping[str, str] | None = None) -> str:
    """The text with its open places filled; those not given have their defaults."""
    for place, value in {**DEFAULTS, **(places or {})}.items():
        text = text.replace(place, value)
    return text

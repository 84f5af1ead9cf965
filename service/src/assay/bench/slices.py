"""What many requests together show: percentiles, and whether the load was what it was meant to be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.bench.sender import Outcome

LATE_S: Final = 0.02
"""A request sent this long after it was due did not keep the schedule; the same bound as in ``k6/lib/openloop.js``."""

MAX_LATE: Final = 0.001
"""Share of late requests that a run may have and still show what it says; likewise."""


@dataclass(frozen=True)
class Load:
    """What one side of a comparison met. Latencies: milliseconds from when a request was due, of those answered."""

    requests: int
    answered: int
    late: int
    rate: float
    """Answers of 200 a second, from the first request to the last answer."""
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None

    @property
    def flaw(self) -> str:
        """What makes it show something else than it says; empty where nothing does."""
        late = f"{self.late} of {self.requests} requests were sent late" if self.late > MAX_LATE * self.requests else ""
        lost = self.requests - self.answered
        refused = f"{lost} of {self.requests} requests were refused or lost" if lost else ""
        return "; ".join(part for part in (late, refused) if part)


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value that ``share`` of the values do not exceed (nearest rank); of no values, there is none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def load(runs: Sequence[Sequence[Outcome]]) -> Load:
    """Sum up the runs of one side."""
    outcomes = [outcome for run in runs for outcome in run]
    fine = [outcome for outcome in outcomes if outcome.fine]
    took = [outcome.seconds * 1000 for outcome in fine]
    seconds = sum(max(each.ended for each in run) - min(each.due for each in run) for run in runs if run)
    return Load(
        requests=len(outcomes),
        answered=len(fine),
        late=sum(outcome.sent - outcome.due > LATE_S for outcome in outcomes),
        rate=len(fine) / seconds if seconds > 0 else 0.0,
        p50_ms=percentile(took, 0.5),
        p95_ms=percentile(took, 0.95),
        p99_ms=percentile(took, 0.99),
    )

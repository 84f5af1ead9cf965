"""The objective for availability, by the burn rate of its error budget over several windows.

Method and numbers: Google, The Site Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts". The short
window of each pair ends the alert soon after the failures end.
"""

from alerts.rules import BUDGET, SCOPE, Alert, Group, Record, Timing

BY = "namespace, release"
# Refusals for want of capacity count: the caller did nothing wrong. Other 4xx are the caller's.
NOT_ANSWERED = 'code=~"5..|429"'
WINDOWS_MINUTES = {"5m": 5, "30m": 30, "1h": 60, "2h": 120, "6h": 360, "1d": 1440, "3d": 4320}
# Factor of the budget's even use, long window, short window. 14.4 uses 2 % of a month's budget within the hour,
# 6 uses 5 % in six hours, 3 uses 10 % in a day, 1 uses it up.
FAST = ((14.4, "1h", "5m"), (6, "6h", "30m"))
SLOW = ((3, "1d", "2h"), (1, "3d", "6h"))


def share(window: str) -> str:
    """The recorded share of requests that were not answered."""
    return f"assay:requests_not_answered:ratio_rate{window}"


def _recorded(name: str, minutes: float, timing: Timing) -> Record:
    window = timing.window(minutes)
    failed = f"sum by ({BY}) (rate(assay_requests_total{{{SCOPE}{NOT_ANSWERED}}}[{window}]))"
    every = f"sum by ({BY}) (rate(assay_requests_total{{{SCOPE}}}[{window}]))"
    # While nothing has failed there is no series of failures, and the share is 0, not unknown.
    return Record(share(name), f"({failed} or 0 * {every}) / {every}")


def _burning(pairs: tuple[tuple[float, str, str], ...]) -> str:
    # The recorded series are those of this scope only where the rules are, but a Prometheus may hold other releases'.
    return " or ".join(
        f"({share(long)}{{{SCOPE}}} > {factor} * {BUDGET} and {share(short)}{{{SCOPE}}} > {factor} * {BUDGET})"
        for factor, long, short in pairs
    )


def groups(timing: Timing) -> list[Group]:
    """The rules."""
    told = (
        "{{ $value | humanizePercentage }} of the requests to {{ $labels.namespace }}/{{ $labels.release }} were not "
        "answered (429 or 5xx), "
    )
    return [
        Group("assay-availability-recorded", [_recorded(*window, timing) for window in WINDOWS_MINUTES.items()]),
        Group(
            "assay-availability",
            [
                Alert(
                    "AssayErrorBudgetBurnsFast",
                    _burning(FAST),
                    2,
                    "critical",
                    "Many requests to {{ $labels.namespace }}/{{ $labels.release }} are not answered",
                    told + "over the last hour or six: at this rate the month's error budget is gone within days.",
                ),
                Alert(
                    "AssayErrorBudgetBurnsSlowly",
                    _burning(SLOW),
                    60,
                    "warning",
                    "Some requests to {{ $labels.namespace }}/{{ $labels.release }} are not answered, for long",
                    told + "over the last day or three: at this rate the month's error budget will not last.",
                ),
            ],
        ),
    ]

"""Alerts on the service: latency, throttling, shedding, the store, and whether anybody serves."""

from alerts.rules import P99_S, SCOPE, Alert, Group, Timing

BY = "namespace, release"
POD = "namespace, release, pod"
THROTTLED_SHARE = 0.25  # at 0.1 a busy pod is merely near its limit; at a quarter p99 has moved
SHED_SHARE = 0.01  # below one in a hundred, shedding does what it is for
CAPACITY = 'reason=~"Overloaded|DeadlineExceeded"'  # refusals for want of CPU time; the other reasons are the caller's
GONE_MINUTES = 60  # a release that was there an hour ago and left no word: longer, and an uninstalled one would page


def groups(timing: Timing) -> list[Group]:
    """The rules."""
    five, ten = timing.window(5), timing.window(10)
    where = "{{ $labels.namespace }}/{{ $labels.release }}"
    rejected = f"sum by ({BY}) (rate(assay_rejected_total{{{SCOPE}{CAPACITY}}}[{five}]))"
    requests = f"sum by ({BY}) (rate(assay_requests_total{{{SCOPE}}}[{five}]))"
    throttled = f"sum by ({POD}) (rate(assay_cfs_throttled_periods_total{{{SCOPE}}}[{five}]))"
    periods = f"sum by ({POD}) (rate(assay_cfs_periods_total{{{SCOPE}}}[{five}]))"
    answered = f'sum by ({BY}, le) (rate(assay_request_duration_seconds_bucket{{{SCOPE}code="200"}}[{five}]))'
    ready = f"sum by ({BY}) (assay_ready{{{SCOPE}}})"
    ready_before = f"sum by ({BY}) (max_over_time(assay_ready{{{SCOPE}}}[{timing.window(GONE_MINUTES)}]))"
    return [
        Group(
            "assay-service",
            [
                Alert(
                    "AssayLatencyHigh",
                    f"histogram_quantile(0.99, {answered}) > {P99_S}",
                    10,
                    "warning",
                    f"p99 of {where} is too high",
                    "99 of 100 answered requests took up to {{ $value | humanizeDuration }}, in the pod.",
                ),
                Alert(
                    "AssayThrottled",
                    f"{throttled} / {periods} > {THROTTLED_SHARE}",
                    10,
                    "warning",
                    "Pod {{ $labels.pod }} runs into its CPU limit",
                    "In {{ $value | humanizePercentage }} of the scheduler's periods the CPU quota of pod "
                    "{{ $labels.namespace }}/{{ $labels.pod }} ran out, and its threads waited for the next one.",
                ),
                Alert(
                    "AssayShedding",
                    f"{rejected} / {requests} > {SHED_SHARE}",
                    5,
                    "warning",
                    f"{where} refuses requests for want of capacity",
                    "{{ $value | humanizePercentage }} of the requests were refused or dropped because the work that "
                    "waits is worth more CPU time than may wait.",
                ),
                Alert(
                    "AssayStoreDrops",
                    f"sum by ({BY}, reason) (increase(assay_store_dropped_total{{{SCOPE}}}[{ten}])) > 0",
                    0,
                    "warning",
                    f"{where} loses answers it should store",
                    "{{ $value | humanize }} answers were not stored within ten minutes ({{ $labels.reason }}). No "
                    "request failed for it.",
                ),
                Alert(
                    "AssayNoReadyPods",
                    # Without any pod there is no series to compare: then it is told by what was there before.
                    f"{ready} == 0 or (0 * ({ready_before} > 0) unless {ready})",
                    2,
                    "critical",
                    f"No pod of {where} takes traffic",
                    f"Every request to {where} fails now; the share of failed requests cannot tell, for no pod is "
                    "there to count them.",
                ),
            ],
        )
    ]

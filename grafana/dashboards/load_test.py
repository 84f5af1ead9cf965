"""The dashboard of a load test: what k6 saw from outside beside what the service says of itself.

k6 writes by Prometheus remote write (`--out experimental-prometheus-rw`), with the trend statistics p(50), p(95), p(99)
and max; its own metrics carry the prefix `k6_`, and the test's name as the label `testid`.
"""

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import service
from dashboards.panels import Board, Query, graph, number

TEST = 'testid=~"$test"'
RATE = "$__rate_interval"
LATE = (0.001,)  # more than 0.1 % of the requests late by over 20 ms: the run is invalid


def k6(metric: str, how: str = "max", by: str = "") -> str:
    """A metric of k6, over its scenarios and tags."""
    return f"{how}{f' by ({by})' if by else ''} (k6_{metric}{{{TEST}}})"


def requests(by: str = "") -> str:
    """Requests that k6 has sent, per second."""
    return f"sum{f' by ({by})' if by else ''} (rate(k6_http_reqs_total{{{TEST}}}[{RATE}]))"


def counted(metric: str) -> str:
    """What k6 has counted in all that is shown: it tells of a counter only as it rises, and that is soon forgotten."""
    return f"sum(max_over_time(k6_{metric}_total{{{TEST}}}[$__range]))"


# Scripts of k6/scenarios count `sent` and `not_right`; others have k6's checks.
RIGHT = f"1 - ({counted('not_right')} or vector(0)) / {counted('sent')} or {k6('checks_rate', 'min')}"


def build() -> Dashboard:
    """The dashboard."""
    board = Board("assay-load-test", "Assay / Load test", "An open-loop load test, from outside and from inside.")
    board.variable("test", "Test", "Runs of k6, by their testid.", "label_values(k6_vus, testid)")
    board.variable(
        "namespace", "Namespace", "Namespaces with a release of Assay.", "label_values(assay_ready, namespace)"
    )
    board.variable(
        "release", "Release", "Releases there.", 'label_values(assay_ready{namespace=~"$namespace"}, release)'
    )
    board.annotation("Model swapped", service.swaps(), "purple")
    _verdict(board)
    _outside(board)
    _inside(board)
    return board.build()


def _verdict(board: Board) -> None:
    board.row(
        "Is the run valid?",
        number("Late requests", "Share of requests sent more than 20 ms after they were due. Above 0.1 % the run is "
               "invalid: the generator did not keep its schedule.", "percentunit",
               Query(k6("late_arrivals_rate"), "late"), thresholds=LATE, decimals=2),
        number("Dropped iterations", "Requests that were due and never sent: any makes the run invalid.", "short",
               Query(f"{counted('dropped_iterations')} or vector(0)", "dropped"), thresholds=(1,), decimals=0),
        number("Right answers", "Share of requests with the right answer in time; by k6's checks where a script has no "
               "count of its own.", "percentunit", Query(RIGHT, "right"), thresholds=(0.999, 1), falling=True,
               decimals=2),
        number("Sent", "Requests per second that k6 sends.", "reqps", Query(requests(), "sent"), decimals=1),
        number("p99 from due time", "Latency from the time a request was due, whenever it was sent.", "s",
               Query(k6("latency_from_intended_p99"), "p99"), thresholds=(service.P99_S, 2 * service.P99_S)),
        number("Senders", "Virtual users that k6 has started; an open loop needs a free one whenever a request is due.",
               "short", Query(k6("vus", "sum"), "senders"), decimals=0),
    )  # fmt: skip


def _outside(board: Board) -> None:
    board.row(
        "From outside: k6",
        graph("Latency from due time", "The latency users would see: it includes the wait of a request that was sent "
              "late. k6 computes it over the whole run so far.", "s",
              *(Query(k6(f"latency_from_intended_{q}"), q) for q in ("p50", "p95", "p99", "max")),
              thresholds=(service.P99_S,)),
        graph("Time of HTTP requests", "k6's own timing, from sending to the last byte: without lateness and without "
              "connecting.", "s", *(Query(k6(f"http_req_duration_{q}"), q) for q in ("p50", "p95", "p99"))),
        graph("Requests by status", "What k6 was answered; 0 is no answer. k6 has no series before a status' first "
              "answer, so one that comes once is in `Right answers` only.", "reqps",
              Query(requests("status"), "{{status}}"), stacked=True),
    )  # fmt: skip


def _inside(board: Board) -> None:
    duration = "assay_request_duration_seconds"
    board.row(
        "From inside: the service",
        graph("Latency of answered requests", "The service's own histogram. What k6 sees beyond it lies on the way, or "
              "in k6.", "s", *service.quantiles(duration, service.OK), thresholds=(service.P99_S,)),
        graph("Load against ceiling", "Requests that k6 sends and that the service answers, against what the pods' CPU "
              "limits allow at the present cost of a request.", "reqps",
              Query(requests(), "sent by k6"), Query(service.rate("assay_requests_total", service.OK), "answered"),
              Query(service.CEILING, "ceiling"), total="ceiling"),
        graph("Mean time of a request, by stage", "Where the service spends it.", "s",
              Query(f"{service.rate(f'{service.STAGE}_sum', by='stage')} / ignoring (stage) group_left () "
                    f"{service.ANSWERED}", "{{stage}}"),
              Query(service.TOTAL, "total"), stacked=True, total="total"),
        graph("Ceiling used", "CPU time spent on requests, over the CPU time that the limits allow.", "percentunit",
              Query(service.USE, "used"), thresholds=service.USED),
        graph("Throttled periods", "Share of scheduler periods in which a pod's CPU quota ran out.", "percentunit",
              Query(service.throttled("pod"), "{{pod}}"), thresholds=service.THROTTLED),
        graph("Refused, by reason", "What the service refused, and why.", "reqps",
              Query(service.occurred("assay_rejected_total", "reason"), "{{reason}}"), stacked=True),
    )  # fmt: skip

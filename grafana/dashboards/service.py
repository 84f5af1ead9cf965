"""The dashboard of whoever is on call: which stage is slow, is the pod throttled, how far is the ceiling."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import COLUMNS, Board, Query, graph, listing, number

WHERE = 'namespace=~"$namespace",release=~"$release"'
RATE = "$__rate_interval"
P99_S = 0.25  # the default of the chart's monitoring.slo.p99Milliseconds
FAILED = (0.005, 0.01)  # the budget of the default objective of 99.5 %, and twice that
THROTTLED = (0.1, 0.25)  # the alert's threshold is the second
USED = (0.7, 0.9)  # queues grow steeply beyond: at 90 % of one server the mean wait is nine times the mean work


def series(metric: str, extra: str = "") -> str:
    """A selector of the service's series."""
    return f"{metric}{{{WHERE}{',' if extra else ''}{extra}}}"


def rate(metric: str, extra: str = "", by: str = "") -> str:
    """The sum of a counter's rates."""
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({series(metric, extra)}[{RATE}]))"


def occurred(metric: str, by: str) -> str:
    """A counter's rates by a label, of those values that have occurred: of the others there is a series, too, at 0."""
    return f"{rate(metric, by=by)} and sum by ({by}) ({series(metric)}) > 0"


def quantile(q: float, metric: str, extra: str = "", by: str = "") -> str:
    """A quantile of a histogram, over all pods."""
    grouped = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, {rate(f'{metric}_bucket', extra, grouped)})"


def mean(metric: str, extra: str = "") -> str:
    """The mean of a histogram."""
    return f"{rate(f'{metric}_sum', extra)} / {rate(f'{metric}_count', extra)}"


def quantiles(metric: str, extra: str = "", *, exemplars: bool = False) -> list[Query]:
    """The three quantiles that latency is told by; exemplars, which are the same for all of them, with the last."""
    return [Query(quantile(q, metric, extra), f"p{q * 100:.0f}", exemplars and q == 0.99) for q in (0.5, 0.95, 0.99)]


OK = 'code="200"'
STAGE = "assay_stage_duration_seconds"
# "respond" ends every answered request, whatever stages its settings add.
ANSWERED = rate(f"{STAGE}_count", 'stage="respond"')
# Over the answers, not over all requests with status 200: those that only ask for the model's name have no stages.
TOTAL = f"{rate('assay_request_duration_seconds_sum', OK)} / {ANSWERED}"
OFFERED = rate("assay_requests_total")
NOT_ANSWERED = 'code=~"5..|429"'
FAILED_SHARE = f"({rate('assay_requests_total', NOT_ANSWERED)} or vector(0)) / ({OFFERED} > 0)"
CEILING = f"sum({series('assay_ceiling_requests_per_second')} >= 0)"  # NaN until something was measured
USE = f"{rate('assay_request_cost_seconds_sum')} / sum({series('assay_cpu_limit_cores')})"
MODELS = f"{series('assay_model_info')} * ignoring (name, precision, digest) group_left () {series('assay_ready')}"


def throttled(by: str) -> str:
    """The share of scheduler periods in which the quota ran out."""
    return f"{rate('assay_cfs_throttled_periods_total', by=by)} / ({rate('assay_cfs_periods_total', by=by)} > 0)"


def build() -> Dashboard:
    """The dashboard."""
    board = Board("assay-service", "Assay / Service", "Requests, stages, cost and ceiling of the image classifier.")
    board.variable(
        "namespace", "Namespace", "Namespaces with a release of Assay.", "label_values(assay_ready, namespace)"
    )
    board.variable(
        "release", "Release", "Releases there.", 'label_values(assay_ready{namespace=~"$namespace"}, release)'
    )
    board.annotation("Model swapped", swaps(), "purple")
    _glance(board)
    _latency(board)
    _stages(board)
    _objective(board)
    _load(board)
    _queue(board)
    _options(board)
    _model(board)
    return board.build()


def swaps() -> str:
    """A model that pods serve and did not serve before; where nothing was served before, nothing was swapped."""
    served = f"count by (namespace, release, name, precision, digest) ({MODELS} == 1)"
    before = served.replace("}", f"}} offset {RATE}")
    anything = f"count by (namespace, release) ({series('assay_model_info')} offset {RATE})"
    return f"({served} unless {before}) and on (namespace, release) {anything}"


def _of_service(expr: str) -> str:
    """Only pods of the service: what every process tells is told by the operator, too."""
    return f"sum by (pod) ({expr}) and sum by (pod) ({series('assay_ready')})"


def _glance(board: Board) -> None:
    board.row(
        "At a glance",
        number("Answered", "Requests answered with labels, per second.", "reqps",
               Query(rate("assay_requests_total", OK), "answered"), decimals=1),
        number("Not answered", "Share of requests refused for want of capacity (429) or failed (5xx).", "percentunit",
               Query(FAILED_SHARE, "not answered"), thresholds=FAILED, decimals=2),
        number("p99", "Latency that 99 of 100 answered requests stay under.", "s",
               Query(quantile(0.99, "assay_request_duration_seconds", OK), "p99"), thresholds=(P99_S, 2 * P99_S)),
        number("Ceiling used", "CPU time spent on requests, over the CPU time that the limits allow.", "percentunit",
               Query(USE, "used"), thresholds=USED, decimals=0),
        number("Throttled", "Share of scheduler periods in which a pod's CPU quota ran out.", "percentunit",
               Query(throttled(""), "throttled"), thresholds=THROTTLED, decimals=1),
        number("Ready pods", "Pods that take traffic.", "short", Query(f"sum({series('assay_ready')})", "ready"),
               thresholds=(1, 2), falling=True, decimals=0),
    )  # fmt: skip


def _latency(board: Board) -> None:
    duration = "assay_request_duration_seconds"
    board.row(
        "Latency",
        graph("Latency of answered requests", "From the first byte read to the last byte handed over, in the pod: "
              "what lies between pod and caller is not in it. Dots are requests that were traced.", "s",
              *quantiles(duration, OK, exemplars=True), thresholds=(P99_S,)),
        graph("p99 by pod", "One pod that stands out has a busy neighbour, a smaller limit or another model.", "s",
              Query(quantile(0.99, duration, OK, "pod"), "{{pod}}"), thresholds=(P99_S,)),
        graph("Mean latency by status", "Refusals should be quick: a slow 429 costs what it was meant to save.", "s",
              Query(f"{rate(f'{duration}_sum', by='code')} / ({rate(f'{duration}_count', by='code')} > 0)",
                    "{{code}}")),
    )  # fmt: skip


def _stages(board: Board) -> None:
    stacked = f"{rate(f'{STAGE}_sum', by='stage')} / ignoring (stage) group_left () {ANSWERED}"
    board.row(
        "Where did the time go?",
        graph("Mean time of a request, by stage", "The stages' means, stacked; they reach the dashed total. What grows "
              "under load is the queue; what grows with the pictures is decode.", "s",
              Query(stacked, "{{stage}}"), Query(TOTAL, "total"), span=12, stacked=True, total="total"),
        graph("Share of stages", "The same as shares of all stages together.", "percentunit",
              Query(f"{rate(f'{STAGE}_sum', by='stage')} / ignoring (stage) group_left () {rate(f'{STAGE}_sum')}",
                    "{{stage}}"), span=12, stacked=True, top=1),
        *(graph(f"Stages, p{q * 100:.0f}", f"{said} of each stage's times. Quantiles do not add up to the total's; "
                "the means on the left do.", "s", Query(quantile(q, STAGE, by="stage"), "{{stage}}"))
          for q, said in ((0.5, "The middle"), (0.95, "The 95th percentile"), (0.99, "The 99th percentile"))),
    )  # fmt: skip


def _objective(board: Board) -> None:
    windows = ("5m", "1h", "6h", "3d")
    board.row(
        "Objective",
        graph("Not answered, over windows", "Share of requests refused for want of capacity (429) or failed (5xx), as "
              "the recording rules keep it; alerts compare it with the error budget of `monitoring.slo`. Thresholds: "
              "the default budget, and twice that. Without the rules there is nothing here.", "percentunit",
              *(Query(f"max(assay:requests_not_answered:ratio_rate{window}{{{WHERE}}})", window) for window in windows),
              span=COLUMNS, thresholds=FAILED),
    )  # fmt: skip


def _load(board: Board) -> None:
    cost = "assay_request_cost_seconds"
    board.row(
        "Load, ceiling and cost",
        graph("Requests by status", "All requests, by the status they were answered with.", "reqps",
              Query(occurred("assay_requests_total", "code"), "{{code}}"), stacked=True),
        graph("Load against ceiling", "The ceiling is the pods' CPU limits over the mean cost of late requests: no "
              "setting gets beyond it, only cheaper requests or more pods do.", "reqps",
              Query(OFFERED, "arriving"), Query(rate("assay_requests_total", OK), "answered"),
              Query(CEILING, "ceiling"), total="ceiling"),
        graph("Cost of a request", "CPU time, not wall time, of an answered request.", "s",
              Query(mean(cost), "mean"), *quantiles(cost)),
        graph("CPU used against limit", "CPU time of whole processes per second, as a share of the limit. It is above "
              "'Ceiling used' by what requests do not account for.", "percentunit",
              Query(f"{rate('process_cpu_seconds_total', by='pod')} / sum by (pod) ({series('assay_cpu_limit_cores')})",
                    "{{pod}}"), thresholds=USED),
        graph("Throttled periods", "Share of scheduler periods in which a pod's CPU quota ran out; its threads wait "
              "for the rest of the period then.", "percentunit",
              Query(throttled("pod"), "{{pod}}"), thresholds=THROTTLED),
        graph("Time throttled", "Thread-seconds per second spent waiting for quota.", "s",
              Query(rate("assay_cfs_throttled_seconds_total", by="pod"), "{{pod}}")),
    )  # fmt: skip


def _queue(board: Board) -> None:
    board.row(
        "Queue and memory",
        graph("Work that waits", "Estimated CPU time of admitted requests that wait for a worker. The service refuses "
              "what would wait beyond its budget.", "s", Query(f"sum by (pod) ({series('assay_queue_cost_seconds')})",
                                                              "{{pod}}")),
        graph("Requests in flight", "Being received, waiting or worked on.", "short",
              Query(f"sum by (pod) ({series('assay_inflight_requests')})", "{{pod}}")),
        graph("Refused, by reason", "Overloaded and DeadlineExceeded are about capacity; the others about what was "
              "sent.", "reqps", Query(occurred("assay_rejected_total", "reason"), "{{reason}}"), stacked=True),
        graph("Size of pictures", "Pixels, by header: the biggest lever on cost that a caller has.", "Mpixel",
              *(Query(f"{quantile(q, 'assay_image_pixels')} / 1e6", f"p{q * 100:.0f}") for q in (0.5, 0.95, 0.99))),
        graph("Memory", "Resident memory of the service's processes.", "bytes",
              Query(_of_service(series("process_resident_memory_bytes")), "{{pod}}")),
    )  # fmt: skip


def _options(board: Board) -> None:
    hits, misses = rate("assay_cache_hits_total"), rate("assay_cache_misses_total")
    board.row(
        "Cache, batching, store, traces (what is switched off stays at nothing)",
        graph("Cache: share of hits", "Requests answered from the cache, or by an equal one under way.", "percentunit",
              Query(f"{hits} / ({hits} + {misses} > 0)", "hits"), span=6, top=1),
        graph("Cache: memory", "Bytes that cached answers take.", "bytes",
              Query(f"sum by (pod) ({series('assay_cache_bytes')})", "{{pod}}"), span=6),
        graph("Cache: evictions", "Answers dropped to make room, per second.", "ops",
              Query(rate("assay_cache_evictions_total"), "evicted"), span=6),
        graph("Images in a batch", "1 means that batching waits for nobody, or is off.", "short",
              Query(mean("assay_batch_size"), "mean"), Query(quantile(0.99, "assay_batch_size"), "p99"), span=6),
        graph("Store: written", "Answers stored per second, image and result.", "ops",
              Query(rate("assay_store_written_total"), "written"), span=6),
        graph("Store: dropped", "Answers that are lost to the store; no request fails for it.", "ops",
              Query(rate("assay_store_dropped_total", by="reason"), "{{reason}}"), span=6, stacked=True),
        graph("Store: waiting", "Bytes of answers that wait to be stored; what comes on top of a full queue is "
              "dropped.", "bytes", Query(f"sum by (pod) ({series('assay_store_queue_bytes')})", "{{pod}}"), span=6),
        graph("Traces: sent and dropped", "Requests whose trace the collector took, and those that it will not see; no "
              "request fails for it.", "ops", Query(rate("assay_traces_sent_total"), "sent"),
              Query(rate("assay_traces_dropped_total", by="reason"), "{{reason}}"), span=6, stacked=True),
    )  # fmt: skip


def _model(board: Board) -> None:
    board.row(
        "Model",
        graph("Ready pods by model", "A swap is one colour giving way to another, without a gap.", "short",
              Query(f"sum by (name, precision) ({MODELS})", "{{name}} {{precision}}"), span=12, stacked=True),
        listing("Pods", "What each pod serves now.", "namespace", "release", "pod", "name", "precision", "digest",
                query=Query(series("assay_model_info"))),
    )  # fmt: skip

"""The service's metrics. Their names are API; service.md of the design lists them.

One `Telemetry` per process, with its own registry. Whatever is observed for every request is a child made here, once:
looking a child up by its labels costs more than observing it. Counters whose labels are known in advance have all their
children from the start, at 0: for Prometheus a series that is born at 5 has never risen, and an alert on its rise would
miss the first burst.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.exposition import ALLOWUTF8
from prometheus_client.registry import Collector

from assay.platform.cpu import CfsReader

disable_created_metrics()  # type: ignore[no-untyped-call] # a second series per counter that nothing here asks for

STAGES = ("receive", "cache", "queue", "decode", "preprocess", "batch_wait", "infer", "postprocess", "respond")
"""The timed parts of a request, in order; each begins where the one before ends."""

OPTIONAL_STAGES = frozenset({"cache", "batch_wait"})
"""Those that only settings bring about: the look-up of an answer, and the wait for the model when batching. Without
these settings they have no series."""

SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075,
           0.1, 0.15, 0.25, 0.5, 1.0, 2.5)  # fmt: skip
"""Bucket bounds. From the shortest stage worth telling apart to twice the deadline; steps of about 1.5 where requests
of a MobileNet-class model lie (5 to 150 ms)."""

PIXELS = (50e3, 100e3, 200e3, 500e3, 1e6, 2e6, 4e6, 8e6, 12e6, 16e6, 32e6)
"""Bucket bounds for image sizes: thumbnails, the 0.2 to 1.1 MP an upload should have, phone photos, the limit."""

BATCH_SIZES = (1, 2, 4, 8, 16, 32)
"""Bucket bounds for batches, up to the largest that may be set."""

_OK = 200

STORE_DROPS = ("QueueFull", "SinkFailed", "DrainDeadline")
"""Why an answer is not stored: no room in the queue, refused by a sink that takes others, or too late in the drain."""

TRACE_DROPS = ("QueueFull", "CollectorFailed", "DrainDeadline")
"""Why a request's trace is not sent: no room in the queue, not taken by the collector, or too late in the drain."""

_SMOOTHING = 0.02  # weight of one request in the mean cost: the last 50 or so, a second at full load


class CfsCollector(Collector):
    """Throttling by the CPU quota, read from the control group when somebody asks."""

    def __init__(self) -> None:
        self._reader = CfsReader()

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The three counters; none where the kernel counts none."""
        counted = self._reader.read()
        if counted is None:
            return
        family = CounterMetricFamily
        yield family("assay_cfs_periods", "Scheduler periods with a CPU quota.", value=counted.periods)
        yield family(
            "assay_cfs_throttled_periods", "Periods in which the quota ran out.", value=counted.throttled_periods
        )
        yield family(
            "assay_cfs_throttled_seconds",
            "Time runnable threads waited for the next period.",
            value=counted.throttled_seconds,
        )


class Telemetry:
    """Every metric of one process. ``stages``: those of `OPTIONAL_STAGES` that its settings bring about."""

    def __init__(self, stages: Collection[str] = ()) -> None:
        self.registry = CollectorRegistry()
        histogram = partial(Histogram, registry=self.registry, buckets=SECONDS)
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        stage = histogram("assay_stage_duration_seconds", "Wall time of each part of an answered request.", ["stage"])
        self._stage = stage
        self._stages = {name: stage.labels(name) for name in STAGES if name in stages or name not in OPTIONAL_STAGES}
        self._duration = histogram("assay_request_duration_seconds", "Wall time of a request, by status.", ["code"])
        self._requests = counter("assay_requests", "Requests, by status.", ["code"])
        self._rejected = counter("assay_rejected", "Requests refused, by the code of their problem.", ["reason"])
        self._by_code: dict[int, tuple[Histogram, Counter]] = {}
        self._children(_OK)
        self._cost = histogram("assay_request_cost_seconds", "CPU time spent on an answered request.")
        self._pixels = Histogram(
            "assay_image_pixels", "Pixels of images, by header.", registry=self.registry, buckets=PIXELS
        )
        self.cache_hits = counter("assay_cache_hits", "Requests answered by the cache or an equal one under way.")
        self.cache_misses = counter("assay_cache_misses", "Requests that were computed although there is a cache.")
        self.cache_evictions = counter("assay_cache_evictions", "Answers dropped to make room for others.")
        self.cache_bytes = gauge("assay_cache_bytes", "Memory that the cached answers take.")
        self.batch_size = Histogram(
            "assay_batch_size",
            "Images that went through the model together.",
            registry=self.registry,
            buckets=BATCH_SIZES,
        )
        self.inflight = gauge("assay_inflight_requests", "Requests being received, waiting or worked on.")
        self.queue_cost = gauge("assay_queue_cost_seconds", "Estimated CPU time of the requests that wait.")
        self._ceiling = gauge(
            "assay_ceiling_requests_per_second", "CPU limit divided by the mean cost of late requests."
        )
        self._cores = gauge("assay_cpu_limit_cores", "CPU limit this process goes by.")
        self._disagreement = gauge("assay_cpu_limit_disagreement_cores", "Declared CPU limit less the control groups'.")
        self._threads = gauge("assay_worker_threads", "Threads that decode and infer.")
        self._model = gauge("assay_model_info", "The pack that is served.", ["name", "precision", "digest"])
        self.ready = gauge("assay_ready", "1 while this process takes traffic.")
        self.store_written = counter("assay_store_written", "Answers stored, image and result.")
        dropped = counter("assay_store_dropped", "Answers not stored, by reason.", ["reason"])
        self.store_dropped = {reason: dropped.labels(reason) for reason in STORE_DROPS}
        self.store_queue_bytes = gauge("assay_store_queue_bytes", "Bytes of the answers that wait to be stored.")
        self.traces_sent = counter("assay_traces_sent", "Requests whose trace the collector has taken.")
        lost = counter("assay_traces_dropped", "Requests whose trace was not sent, by reason.", ["reason"])
        self.traces_dropped = {reason: lost.labels(reason) for reason in TRACE_DROPS}
        self.mean_cost_s = math.nan
        self._ceiling.set(math.nan)  # unknown until something was measured
        self._limit_cores = math.nan
        self.registry.register(CfsCollector())
        ProcessCollector(registry=self.registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """Every metric as text, in the format that an ``Accept`` header asks for; and its media type."""
        encode, media_type = choose_encoder(accept)
        if isinstance(encode, partial) and "escaping" not in accept:
            # The library's default goes over each name letter by letter to replace what old Prometheus cannot read.
            # No name here has such a letter, so leaving that out gives the same bytes in two thirds of the time.
            encode = partial(encode, escaping=ALLOWUTF8)
        return encode(self.registry), media_type

    def set_limits(self, cores: float, threads: int, disagreement_cores: float) -> None:
        """Tell the CPU limit, the threads, and by how much two sources of the limit differ."""
        self._limit_cores = cores
        self._cores.set(cores)
        self._threads.set(threads)
        self._disagreement.set(disagreement_cores)

    def set_model(self, name: str, precision: str, digest: str) -> None:
        """Tell which pack is served."""
        self._model.labels(name, precision, digest).set(1)

    def observe_answer(self, stages: Mapping[str, float], cost_s: float) -> None:
        """Count an answered request: seconds per stage, and CPU seconds in all."""
        for name, seconds in stages.items():
            if name not in self._stages:
                self._stages[name] = self._stage.labels(name)
            self._stages[name].observe(seconds)
        self._cost.observe(cost_s)
        known = not math.isnan(self.mean_cost_s)
        self.mean_cost_s = self.mean_cost_s + _SMOOTHING * (cost_s - self.mean_cost_s) if known else cost_s
        self._ceiling.set(self._limit_cores / self.mean_cost_s if self.mean_cost_s > 0 else math.nan)

    def observe_pixels(self, pixels: int) -> None:
        """Count an image by its size."""
        self._pixels.observe(pixels)

    def observe_request(self, code: int, seconds: float, exemplar: dict[str, str] | None = None) -> None:
        """Count a finished request by its status. ``exemplar``: labels of its trace, told in OpenMetrics only."""
        duration, requests = self._children(code)
        duration.observe(seconds, exemplar)
        requests.inc()

    def _children(self, code: int) -> tuple[Histogram, Counter]:
        if code not in self._by_code:
            self._by_code[code] = (self._duration.labels(str(code)), self._requests.labels(str(code)))
        return self._by_code[code]

    def expect(self, refusals: Mapping[str, int]) -> None:
        """Begin the counts of these refusals at 0: the codes of their problems, each with its status.

        Not their histograms, which are twenty series each: of refusals only the mean time is shown, which does not
        depend on how many there were.
        """
        for reason, status in refusals.items():
            self._rejected.labels(reason)
            self._requests.labels(str(status))

    def count_rejected(self, reason: str) -> None:
        """Count a refusal by its stable code."""
        self._rejected.labels(reason).inc()

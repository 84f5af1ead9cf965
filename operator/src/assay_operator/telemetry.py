"""The operator's metrics, in a registry of their own."""

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from assay_operator.models.observed import Variant
from assay_operator.models.status import Status

# A check of some hundred images takes seconds to minutes; an hour is beyond the default time-out.
CHECK_SECONDS = (5, 10, 20, 40, 60, 120, 240, 480, 900, 1800, 3600)
# A pass is seven small requests: milliseconds on an idle API server, seconds on a struggling one.
RECONCILE_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


@dataclass(frozen=True)
class Telemetry:
    """Every metric, by its name without the prefix `assay_`."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    variant_condition: Gauge = field(init=False)
    check_verdicts: Counter = field(init=False)
    check_duration: Histogram = field(init=False)
    reconcile_duration: Histogram = field(init=False)
    reconcile_errors: Counter = field(init=False)
    last_resync: Gauge = field(init=False)
    api_requests: Counter = field(init=False)

    def __post_init__(self) -> None:
        """Make the metrics."""
        made = {
            "variant_condition": Gauge(
                "assay_variant_condition",
                "1 for the present status of each condition of a ModelVariant.",
                ("namespace", "name", "type", "status", "reason"),
                registry=self.registry,
            ),
            "check_verdicts": Counter(
                "assay_check_verdicts",
                "Checks that ended, by verdict and reason.",
                ("verdict", "reason"),
                registry=self.registry,
            ),
            "check_duration": Histogram(
                "assay_check_duration_seconds",
                "From the creation of a check's Job to its end, of those that ended with a result.",
                buckets=CHECK_SECONDS,
                registry=self.registry,
            ),
            "reconcile_duration": Histogram(
                "assay_reconcile_duration_seconds",
                "One pass over one ModelVariant.",
                buckets=RECONCILE_SECONDS,
                registry=self.registry,
            ),
            "reconcile_errors": Counter(
                "assay_reconcile_errors", "Passes that failed, by kind of error.", ("kind",), registry=self.registry
            ),
            "last_resync": Gauge(
                "assay_last_resync_timestamp_seconds",
                "When all ModelVariants were last listed successfully.",
                registry=self.registry,
            ),
            "api_requests": Counter(
                "assay_api_requests",
                "Requests to the Kubernetes API (watches aside); code 0 is no answer.",
                ("method", "code"),
                registry=self.registry,
            ),
        }
        for name, metric in made.items():
            object.__setattr__(self, name, metric)
        ProcessCollector(registry=self.registry)

    def count_request(self, method: str, status: int) -> None:
        """Count a request to the API server."""
        self.api_requests.labels(method, str(status)).inc()

    def tell(self, variant: Variant, after: Status) -> None:
        """Tell of what a pass has written: conditions, and a check that ended since."""
        self.forget(variant.namespace, variant.name, variant.status)
        for condition in after.conditions:
            labels = (variant.namespace, variant.name, condition.type, condition.status, condition.reason)
            self.variant_condition.labels(*labels).set(1)
        check, before = after.last_check, variant.status.last_check
        if check is None or (before is not None and (before.job_uid, before.verdict) == (check.job_uid, check.verdict)):
            return
        self.check_verdicts.labels(check.verdict, check.reason).inc()
        if check.started_at is not None and check.completed_at is not None:
            self.check_duration.observe((check.completed_at - check.started_at).total_seconds())

    def forget(self, namespace: str, name: str, status: Status) -> None:
        """Take back the conditions of an older status."""
        for condition in status.conditions:
            try:
                self.variant_condition.remove(namespace, name, condition.type, condition.status, condition.reason)
            except KeyError:
                continue

"""The operator's metrics, in a registry of their own."""

from dataclasses import dataclass, field
from itertools import product
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from assay_operator.errors import ApiError
from assay_operator.models.conditions import ROLLED_OUT
from assay_operator.models.observed import Variant
from assay_operator.models.result import Reason
from assay_operator.models.spec import Spec
from assay_operator.models.status import Status
from assay_operator.plan import reasons

# A check of some hundred images takes seconds to minutes; an hour is beyond the default time-out.
CHECK_SECONDS = (5, 10, 20, 40, 60, 120, 240, 480, 900, 1800, 3600)
# A pass is seven small requests: milliseconds on an idle API server, seconds on a struggling one.
RECONCILE_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
# What follows is there from the start, at 0: a counter that is born at 1 has never risen for Prometheus.
# What a check may say: what it writes itself, and what becomes of one that writes nothing to be believed.
JUDGED = {
    reasons.CHECK_PASSED: "Pass",
    **dict.fromkeys(sorted(reasons.REFUSALS), "Fail"),
    reasons.CHECK_INCONCLUSIVE: "Inconclusive",
}
UNTOLD = (
    reasons.CHECK_TIMED_OUT,
    reasons.CHECK_IMAGE_PULL_FAILED,
    reasons.CHECK_UNSCHEDULABLE,
    reasons.CHECK_RESULT_INVALID,
)
VERDICTS = tuple((JUDGED.get(reason, "Error"), reason) for reason in (*get_args(Reason), *UNTOLD))
# How a rollout ends.
ROLLOUT_ENDS = (reasons.ROLLOUT_COMPLETE, reasons.ROLLED_BACK, reasons.ROLLBACK_FAILED)
# What the API server may answer: well, as `cluster.api` tells errors apart, or that it cannot just now. A proxy before
# it may say something else.
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
STATUSES = (0, 200, 201, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504)
PERMILLE = 1000  # a status counts in permille, Prometheus in ratios


@dataclass(frozen=True)
class Telemetry:
    """Every metric, by its name without the prefix `assay_`."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    _told: dict[tuple[str, str], list[tuple[Gauge, tuple[str, ...]]]] = field(default_factory=dict, repr=False)
    variant_condition: Gauge = field(init=False)
    variant_containment: Gauge = field(init=False)
    variant_containment_lower: Gauge = field(init=False)
    variant_containment_wanted: Gauge = field(init=False)
    variant_cost: Gauge = field(init=False)
    rollouts: Counter = field(init=False)
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
            "variant_containment": Gauge(
                "assay_variant_containment_ratio",
                "Top-3 containment that the newest check of the present spec counted.",
                ("namespace", "name"),
                registry=self.registry,
            ),
            "variant_containment_lower": Gauge(
                "assay_variant_containment_lower_ratio",
                "Lower confidence bound of that containment: what the check decides by.",
                ("namespace", "name"),
                registry=self.registry,
            ),
            "variant_containment_wanted": Gauge(
                "assay_variant_containment_wanted_ratio",
                "The least lower bound that the spec takes.",
                ("namespace", "name"),
                registry=self.registry,
            ),
            "variant_cost": Gauge(
                "assay_variant_cost_ratio",
                "CPU time per image of the newest check of the present spec, over the yardstick's.",
                ("namespace", "name"),
                registry=self.registry,
            ),
            "rollouts": Counter("assay_rollouts", "Rollouts that ended, by how.", ("result",), registry=self.registry),
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
        for verdict, reason in VERDICTS:
            self.check_verdicts.labels(verdict, reason)
        for result in ROLLOUT_ENDS:
            self.rollouts.labels(result)
        kinds: list[type[ApiError]] = [ApiError, *ApiError.__subclasses__()]
        for kind in kinds:
            self.reconcile_errors.labels(kind.__name__)
        for method, status in product(METHODS, STATUSES):
            self.api_requests.labels(method, str(status))
        ProcessCollector(registry=self.registry)

    def count_request(self, method: str, status: int) -> None:
        """Count a request to the API server."""
        self.api_requests.labels(method, str(status)).inc()

    def tell(self, variant: Variant, after: Status) -> None:
        """Tell of what a pass has written: conditions and figures, and a check or rollout that ended since."""
        self._tell_present(variant, after)
        before = variant.status.condition(ROLLED_OUT)
        ended = after.condition(ROLLED_OUT)
        if before is not None and ended is not None and ended.reason in ROLLOUT_ENDS and ended.reason != before.reason:
            self.rollouts.labels(ended.reason).inc()
        check, known = after.last_check, variant.status.last_check
        if check is None or (known is not None and (known.job_uid, known.verdict) == (check.job_uid, check.verdict)):
            return
        self.check_verdicts.labels(check.verdict, check.reason).inc()
        if check.started_at is not None and check.completed_at is not None:
            self.check_duration.observe((check.completed_at - check.started_at).total_seconds())

    def forget(self, namespace: str, name: str) -> None:
        """Take back all that was told of a variant's present."""
        for gauge, labels in self._told.pop((namespace, name), ()):
            gauge.remove(*labels)

    def _tell_present(self, variant: Variant, after: Status) -> None:
        """Replace what this process told before; the old status does not count, it may have been wiped or forged.

        New series come before old ones go: a scrape in between must not find nothing.
        """
        key = (variant.namespace, variant.name)
        values: list[tuple[Gauge, tuple[str, ...], float]] = [
            (self.variant_condition, (*key, condition.type, condition.status, condition.reason), 1)
            for condition in after.conditions
        ]
        target, check = after.target, after.last_check
        if isinstance(variant.spec, Spec):
            wanted = variant.spec.check.min_top3_containment_permille
            values.append((self.variant_containment_wanted, key, wanted / PERMILLE))
        if target.containment_lower_permille is not None:
            values.append((self.variant_containment_lower, key, target.containment_lower_permille / PERMILLE))
        if target.cost_ratio_permille is not None:
            values.append((self.variant_cost, key, target.cost_ratio_permille / PERMILLE))
        if target.verdict is not None and check is not None and check.images and check.top3_contained is not None:
            values.append((self.variant_containment, key, check.top3_contained / check.images))
        for gauge, labels, value in values:
            gauge.labels(*labels).set(value)
        told = [(gauge, labels) for gauge, labels, _ in values]
        for gauge, labels in self._told.get(key, ()):
            if (gauge, labels) not in told:
                gauge.remove(*labels)
        self._told[key] = told

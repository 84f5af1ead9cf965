"""What /metrics and /livez tell, by a real operator before a real API server."""

import os
import time
from datetime import datetime
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from support.apiserver import eventually
from support.fault_proxy import WRITES, Fault, hang, refuse
from support.packs import BAD, FAST, GOOD, MODEL, OTHER, spec

LIVENESS_S = 3


def series(operator, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Values of one sample name, by those of its labels in the order asked for."""
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in text_string_to_metric_families(operator.metrics())
        for sample in family.samples
        if sample.name == name
    }


def value(operator, name: str) -> float:
    return series(operator, name)[()]


def passes_go_by(operator) -> None:
    """Let everything be looked at a few times more: what happened once must not be counted again."""
    name = "assay_reconcile_duration_seconds_count"
    before = value(operator, name)
    eventually(lambda: value(operator, name) >= before + 3, "three more passes were made")


def told_as_in_status(target, operator, condition: tuple[str, str, str]) -> None:
    """Wait until the status has the condition, and the metric is the status: no series too many, none too few."""

    def agree() -> bool:
        status = {
            (target.name, "assay", entry["type"], entry["status"], entry["reason"]): 1.0
            for entry in target.read()["status"]["conditions"]
        }
        told = series(operator, "assay_variant_condition", "namespace", "name", "type", "status", "reason")
        return (target.name, "assay", *condition) in status and told == status

    eventually(agree, f"{condition} is in the status, and the metric is as the status")


def figures(target, operator) -> list[float]:
    name = {"namespace": target.name, "name": "assay"}
    told = [
        series(operator, f"assay_variant_{kind}_ratio", *name)
        for kind in ("containment", "containment_lower", "containment_wanted", "cost")
    ]
    return [one[tuple(name.values())] for one in told]


def check_and_see(target, model, verdict: str, **how) -> dict:
    """Ask for a model, end its check, and read what the status says of that check."""
    known = {job["metadata"]["uid"] for job in target.jobs()}
    target.edit({"model": model})
    job = eventually(lambda: [one for one in target.jobs() if one["metadata"]["uid"] not in known], "it is checked")[0]
    target.finish(job, verdict, **how)
    uid = job["metadata"]["uid"]
    return eventually(
        lambda: (check := target.read()["status"]["lastCheck"])["jobUID"] == uid and check, "the verdict is read"
    )


def duration_s(check: dict) -> float:
    began, ended = (datetime.fromisoformat(check[name]) for name in ("startedAt", "completedAt"))
    return (ended - began).total_seconds()


def test_metric_of_conditions_is_the_status_until_the_variant_is_deleted(swapped, operator):
    told_as_in_status(swapped, operator, ("Ready", "True", "Serving"))
    assert figures(swapped, operator) == [398 / 400, 0.985, 0.98, 0.56]
    check_and_see(swapped, BAD, "Fail")
    told_as_in_status(swapped, operator, ("Stalled", "True", "AccuracyBelowThreshold"))
    assert figures(swapped, operator) == [398 / 400, 0.612, 0.98, 0.56]
    swapped.api.delete(swapped.path("assay.dev/v1alpha1", "modelvariants", "assay"))
    eventually(lambda: series(operator, "assay_variant_condition", "name") == {}, "its series are gone")
    assert series(operator, "assay_variant_cost_ratio", "name") == {}


def test_checks_and_rollouts_are_counted_once_by_how_they_ended(swapped, operator, run_operator):
    swapped.edit({"check": {"maxAttempts": 1}})
    checks = [swapped.read()["status"]["lastCheck"]]
    checks.append(check_and_see(swapped, BAD, "Fail"))
    checks.append(check_and_see(swapped, {**BAD, "digest": "sha256:" + "8" * 64}, "Inconclusive"))
    checks.append(check_and_see(swapped, {**BAD, "digest": "sha256:" + "9" * 64}, "Error", exit_code=3))
    checks.append(check_and_see(swapped, OTHER, "Pass"))
    eventually(lambda: swapped.annotations() != MODEL, "it is applied")
    swapped.roll(ready=False, misfit={"code": "PackInvalid", "message": "no model"})
    eventually(lambda: swapped.annotations() == MODEL, "it is rolled back")
    swapped.roll()
    swapped.wait("False RolledBack")
    passes_go_by(operator)
    verdicts = series(operator, "assay_check_verdicts_total", "verdict", "reason")
    assert {how: count for how, count in verdicts.items() if count} == {
        ("Pass", "CheckPassed"): 2,
        ("Fail", "AccuracyBelowThreshold"): 1,
        ("Inconclusive", "CheckInconclusive"): 1,
        ("Error", "PackUnavailable"): 1,
    }
    assert value(operator, "assay_check_duration_seconds_count") == len(checks)
    assert value(operator, "assay_check_duration_seconds_sum") == sum(duration_s(check) for check in checks)
    ended = series(operator, "assay_rollouts_total", "result")
    assert ended == {("RolloutComplete",): 1, ("RolledBack",): 1, ("RollbackFailed",): 0}
    operator.end()
    with run_operator() as second:
        told_as_in_status(swapped, second, ("Stalled", "True", "RolledBack"))
        passes_go_by(second)
        assert not any(series(second, "assay_check_verdicts_total", "verdict", "reason").values())
        assert not any(series(second, "assay_rollouts_total", "result").values())


def test_requests_passes_and_errors_are_counted_as_a_proxy_sees_them(target, proxy, run_operator):
    began = time.time()
    # Paths that kopf, whose requests are not counted, does not ask for.
    unanswered = Fault(act=hang, method="GET", path="/modelvariants/assay$", watch=False, times=1)
    unavailable = Fault(act=refuse(503), method="GET", path="/deployments/assay$", times=2)
    conflict = Fault(act=refuse(409), method="PATCH", path="/deployments/assay$", times=1)
    with (
        run_operator(url=proxy.url, request_timeout_seconds=1) as operator,
        proxy.fault(unanswered),
        proxy.fault(unavailable),
        proxy.fault(conflict),
    ):
        target.variant(spec(GOOD, **FAST))
        target.finish(target.new_job())
        eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
        target.roll()
        target.wait("True Serving")
        passes_go_by(operator)  # at rest: nothing is written while the two are compared
        counted = series(operator, "assay_api_requests_total", "method", "code")
        seen: dict[tuple[str, str], int] = {}
        for one in proxy.seen:
            if one.method in WRITES:
                seen[one.method, str(one.status)] = seen.get((one.method, str(one.status)), 0) + 1
        assert {how: count for how, count in counted.items() if how[0] in WRITES and count} == seen
        assert (counted["GET", "0"], counted["GET", "503"], counted["PATCH", "409"]) == (1, 2, 1)
        errors = series(operator, "assay_reconcile_errors_total", "kind")
        assert {how: count for how, count in errors.items() if count} == {("ApiError",): 3, ("ConflictError",): 1}
        buckets = series(operator, "assay_reconcile_duration_seconds_bucket", "le")
        assert buckets["0.5",] < buckets["+Inf",]  # the pass that waited for its time-out of a second
        assert began <= value(operator, "assay_last_resync_timestamp_seconds") <= time.time()


def test_liveness_fails_while_the_loop_is_blocked_and_comes_back(target, proxy, run_operator):
    """A pipe in place of its kubeconfig, which nobody writes to, holds up the very thread that the loop runs on."""
    with run_operator(url=proxy.url, liveness_seconds=LIVENESS_S) as operator:
        target.variant(spec(GOOD, **FAST))
        job = target.new_job()
        kubeconfig = operator.log.with_name("kubeconfig")
        content = kubeconfig.read_text()
        kubeconfig.unlink()
        os.mkfifo(kubeconfig)
        # A path that kopf, which logs in on a thread of its own, does not ask for.
        refused = Fault(act=refuse(401), method="GET", path="/modelvariants/assay$", times=1)
        with proxy.fault(refused):
            writer = eventually(lambda: _opened_by_a_reader(kubeconfig), "it logs in anew")
        eventually(lambda: operator.answers("/livez") == 503, "liveness fails")
        seen, resync = len(proxy.seen), value(operator, "assay_last_resync_timestamp_seconds")
        eventually(lambda: time.time() > resync + 2 * LIVENESS_S, "several resyncs would have gone by")
        assert proxy.seen[seen:] == []
        assert operator.answers("/livez") == 503
        assert value(operator, "assay_last_resync_timestamp_seconds") == resync
        kubeconfig.unlink()
        kubeconfig.write_text(content)
        with os.fdopen(writer, "w") as pipe:
            pipe.write(content)
        eventually(lambda: operator.answers("/livez") == 200, "liveness is back")
        target.finish(job)
        eventually(lambda: target.annotations() == MODEL, "it works on")


def _opened_by_a_reader(pipe: Path) -> int | None:
    """A descriptor to write with, once somebody waits to read."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None

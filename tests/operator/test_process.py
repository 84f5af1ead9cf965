"""Settings, probes and which news concerns whom."""

import httpx
import pytest
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

from assay_operator.handlers.probe import Heartbeat, ProbeServer
from assay_operator.handlers.watch import Interest
from assay_operator.models.status import Status
from assay_operator.settings import Settings
from assay_operator.telemetry import Telemetry
from support.packs import OTHER
from support.world import World


def test_settings_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("ASSAY_OPERATOR_NAMESPACES", "a, b,")
    monkeypatch.setenv("ASSAY_OPERATOR_METRICS_PORT", "9000")
    made = Settings()
    assert (made.namespaces, made.port, made.resync_seconds) == (("a", "b"), 9000, 60.0)


def test_settings_are_bounded(monkeypatch):
    monkeypatch.setenv("ASSAY_OPERATOR_WORKERS", "0")
    with pytest.raises(ValidationError):
        Settings()


def test_liveness_fails_when_no_resync_has_succeeded_for_too_long():
    now = [0.0]
    heartbeat = Heartbeat(300, clock=lambda: now[0])
    with ProbeServer(0, heartbeat, CollectorRegistry()) as server:
        base = f"http://127.0.0.1:{server.port}"
        assert httpx.get(f"{base}/livez").status_code == 200
        assert httpx.get(f"{base}/readyz").status_code == 503
        heartbeat.beat()
        assert httpx.get(f"{base}/readyz").status_code == 200
        now[0] = 301
        answer = httpx.get(f"{base}/livez")
        assert (answer.status_code, answer.text) == (503, "last successful resync 301 s ago\n")
        heartbeat.beat()
        assert httpx.get(f"{base}/livez").status_code == 200


def test_news_of_a_deployment_or_pod_concerns_the_variants_of_that_target():
    interest = Interest()
    interest.note(("ns", "one"), "assay")
    interest.note(("other", "two"), "assay")
    interest.note(("ns", "three"), "assay-big")
    assert interest.in_deployment("ns", "assay") == [("ns", "one")]
    assert set(interest.in_pod("ns", "assay-big-5b4f-x")) == {("ns", "one"), ("ns", "three")}  # a hint may be too wide
    interest.forget(("ns", "one"))
    assert interest.in_pod("ns", "assay-5b4f-x") == []


def test_metrics_tell_of_conditions_and_verdicts_once():
    telemetry, world = Telemetry(), World()
    for _ in range(3):
        before = world.variant()
        world.reconcile()
        telemetry.tell(before, world.status)
    world.finish("Pass")
    for _ in range(3):
        before = world.variant()
        world.reconcile()
        telemetry.tell(before, world.status)

    def value(metric, **labels):
        return telemetry.registry.get_sample_value(metric, labels)

    assert value("assay_check_verdicts_total", verdict="Pass", reason="CheckPassed") == 1
    ready = {"namespace": "assay", "name": "assay", "type": "CheckPassed"}
    assert value("assay_variant_condition", **ready, status="True", reason="CheckPassed") == 1
    assert value("assay_variant_condition", **ready, status="Unknown", reason="CheckRunning") is None
    figures = {"namespace": "assay", "name": "assay"}
    assert value("assay_variant_containment_ratio", **figures) == 398 / 400
    assert value("assay_variant_containment_lower_ratio", **figures) == 0.985
    assert value("assay_variant_containment_wanted_ratio", **figures) == 0.98
    assert value("assay_variant_cost_ratio", **figures) == 0.56
    telemetry.forget("assay", "assay")
    assert value("assay_variant_condition", **ready, status="True", reason="CheckPassed") is None
    assert value("assay_variant_cost_ratio", **figures) is None


def test_counters_with_labels_are_there_at_zero_before_the_first_time():
    # Beside each count stands the time of its creation, where nobody has switched that off.
    told = {
        family.name: [sample for sample in family.samples if sample.name.endswith("_total")]
        for family in Telemetry().registry.collect()
        if family.type == "counter"
    }
    labelled = ("assay_rollouts", "assay_check_verdicts", "assay_reconcile_errors", "assay_api_requests")
    assert [name for name, samples in told.items() if not samples] == []  # a counter that was forgotten here
    assert {sample.value for name in labelled for sample in told[name]} == {0}
    verdicts = [(sample.labels["verdict"], sample.labels["reason"]) for sample in told["assay_check_verdicts"]]
    assert len(verdicts) == len({reason for _, reason in verdicts})
    assert {verdict: sum(1 for said, _ in verdicts if said == verdict) for verdict, _ in verdicts} == {
        "Pass": 1,
        "Fail": 4,
        "Inconclusive": 1,
        "Error": 11,
    }
    kinds = {sample.labels["kind"] for sample in told["assay_reconcile_errors"]}
    assert kinds == {"ApiError", "NotFoundError", "ConflictError", "DeniedError", "InvalidError"}


def test_metrics_count_a_rollout_once_when_it_ends(swapped):
    telemetry, world = Telemetry(), swapped
    assert telemetry.registry.get_sample_value("assay_rollouts_total", {"result": "RolloutComplete"}) == 0
    world.edit(model=dict(OTHER))
    world.reconcile()
    world.finish("Pass")
    for _ in range(12):
        before = world.variant()
        world.reconcile()
        world.roll()
        world.pass_time(60)
        telemetry.tell(before, world.status)
    assert world.ready() == "True Serving"
    assert telemetry.registry.get_sample_value("assay_rollouts_total", {"result": "RolloutComplete"}) == 1


def test_metrics_of_a_wiped_status_are_taken_back():
    telemetry, world = Telemetry(), World()
    before = world.variant()
    world.reconcile()
    telemetry.tell(before, world.status)
    series = {
        "namespace": "assay",
        "name": "assay",
        "type": "CheckPassed",
        "status": "Unknown",
        "reason": "CheckRunning",
    }
    assert telemetry.registry.get_sample_value("assay_variant_condition", series) == 1
    world.status = Status()
    telemetry.tell(world.variant(), Status())
    assert telemetry.registry.get_sample_value("assay_variant_condition", series) is None

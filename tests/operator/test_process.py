"""Settings, probes and which news concerns whom."""

import httpx
import pytest
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

from assay_operator.handlers.probe import Heartbeat, ProbeServer
from assay_operator.handlers.watch import Interest
from assay_operator.settings import Settings
from assay_operator.telemetry import Telemetry
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
    telemetry.forget("assay", "assay", world.status)
    assert value("assay_variant_condition", **ready, status="True", reason="CheckPassed") is None

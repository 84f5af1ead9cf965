"""Metric names are API: dashboards and alerts are written against them."""

import math
import re

import pytest
from prometheus_client import generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families

from assay.http import problems
from assay.telemetry import OPTIONAL_STAGES, STAGES, Telemetry


def scraped(telemetry: Telemetry) -> dict[str, float]:
    text = generate_latest(telemetry.registry).decode()
    return {
        f"{sample.name}{sorted(sample.labels.values()) or ''}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize(
    "accept",
    ["", "text/plain", "application/openmetrics-text;version=1.0.0", "application/openmetrics-text; version=0.0.1"],
)
def test_metrics_are_rendered_as_the_library_would(accept):
    telemetry = Telemetry()
    telemetry.observe_request(200, 0.02)
    telemetry.count_rejected("Overloaded")
    telemetry.observe_answer(dict.fromkeys(STAGES, 0.003), 0.014)
    encode, media_type = choose_encoder(accept)

    def settled(text):  # what the process has used meanwhile
        return [line for line in text.decode().splitlines() if not line.startswith("process_")]

    text, told = telemetry.render(accept)
    assert (settled(text), told) == (settled(encode(telemetry.registry)), media_type)


def test_names_are_those_promised():
    telemetry = Telemetry()
    telemetry.set_model("m", "INT8", "sha256:0")
    telemetry.observe_request(200, 0.02)
    telemetry.count_rejected("Overloaded")
    telemetry.observe_answer(dict.fromkeys(STAGES, 0.003), 0.014)
    names = {re.sub(r"_(bucket|count|sum)$", "", name.partition("[")[0]) for name in scraped(telemetry)}
    assert {
        "assay_stage_duration_seconds",
        "assay_request_duration_seconds",
        "assay_request_cost_seconds",
        "assay_requests_total",
        "assay_rejected_total",
        "assay_inflight_requests",
        "assay_queue_cost_seconds",
        "assay_ceiling_requests_per_second",
        "assay_cpu_limit_cores",
        "assay_worker_threads",
        "assay_image_pixels",
        "assay_cache_hits_total",
        "assay_cache_misses_total",
        "assay_cache_evictions_total",
        "assay_cache_bytes",
        "assay_batch_size",
        "assay_model_info",
        "assay_ready",
    } <= names


def test_counters_with_labels_are_there_at_zero_before_the_first_time():
    telemetry = Telemetry()
    telemetry.expect(problems.refusals())
    labelled = {"assay_requests", "assay_rejected", "assay_store_dropped", "assay_traces_dropped"}
    counters = [family for family in telemetry.registry.collect() if family.type == "counter"]
    told = {family.name: [sample for sample in family.samples if sample.name.endswith("_total")] for family in counters}
    assert labelled <= set(told)
    assert [name for name, samples in told.items() if not samples] == []  # a counter that was forgotten here
    assert {sample.value for name in labelled for sample in told[name]} == {0}
    assert {sample.labels["code"] for sample in told["assay_requests"]} == {
        "200", "400", "404", "405", "408", "413", "415", "422", "429", "499", "500", "503", "504",
    }  # fmt: skip
    assert {sample.labels["reason"] for sample in told["assay_rejected"]} == {
        "BodyTimeout", "BodyTooLarge", "ClientDisconnect", "ContentEncodingUnsupported", "DeadlineExceeded", "Draining",
        "ImageBroken", "InferenceInvalid", "InternalError", "InvalidParameter", "MethodNotAllowed", "ModelNotFound",
        "MultipartInvalid", "NotFound", "NotReady", "Overloaded", "TooManyImages", "TooManyPixels",
        "UnsupportedMediaType",
    }  # fmt: skip
    # By this one an alert judges the latency.
    assert scraped(telemetry)["assay_request_duration_seconds_count['200']"] == 0


def test_stages_of_settings_that_are_off_have_no_series():
    telemetry = Telemetry()
    telemetry.observe_answer(dict.fromkeys(set(STAGES) - OPTIONAL_STAGES, 0.003), 0.014)
    name = "assay_stage_duration_seconds_count['{}']".format
    assert {stage for stage in STAGES if name(stage) in scraped(telemetry)} == set(STAGES) - OPTIONAL_STAGES
    assert scraped(Telemetry(["cache"]))[name("cache")] == 0


def test_stage_buckets_reach_from_half_a_millisecond_to_two_and_a_half_seconds():
    telemetry = Telemetry()
    telemetry.observe_answer(dict.fromkeys(STAGES, 0.003), 0.014)
    lines = [line for line in generate_latest(telemetry.registry).decode().splitlines() if 'stage="infer"' in line]
    bounds = [float(bound) for line in lines for bound in re.findall(r'le="([0-9.]+)"', line)]
    assert min(bounds) == 0.0005
    assert max(bounds) == 2.5


def test_ceiling_is_unknown_at_first_and_then_the_limit_over_the_mean_cost():
    telemetry = Telemetry()
    telemetry.set_limits(2.0, 2, 0.0)
    assert math.isnan(scraped(telemetry)["assay_ceiling_requests_per_second"])
    for _ in range(300):
        telemetry.observe_answer({}, 0.0145)
    assert scraped(telemetry)["assay_ceiling_requests_per_second"] == pytest.approx(138, rel=0.01)

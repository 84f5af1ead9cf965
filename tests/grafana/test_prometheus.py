"""Every query of every panel and alert, to a real Prometheus that scraped a service and an operator in all states."""

import json
import math
import re
from pathlib import Path

import pytest
import yaml

from pictures.source import QueryError, Series
from support.story import LOADED_S, RATE, SECOND

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
BOARDS = {
    name: json.loads((ROOT / "charts" / "assay" / "files" / "dashboards" / f"{name}.json").read_text())
    for name in ("service", "variants", "load-test")
}
PANELS = [
    pytest.param(name, panel, id=f"{name}: {panel['title']}")
    for name, board in BOARDS.items()
    for panel in board["panels"]
    if panel["type"] != "row"
]
RULES = yaml.safe_load((ROOT / "grafana" / "alerts" / "assay.rules.yaml").read_text())
ALERTS = [rule["alert"] for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]
RECORDED = [rule["record"] for group in RULES["groups"] for rule in group["rules"] if "record" in rule]
# Shares that may pass 1: a candidate may cost more than its yardstick, a process may use a little more than its quota
# within one interval, and `Ceiling used` compares CPU time that was counted when a request ended.
BEYOND_ONE = {"Cost ratio", "CPU used against limit", "Ceiling used"}
ROUNDING = 1e-6


def panel(board: str, title: str) -> dict:
    (found,) = (panel for panel in BOARDS[board]["panels"] if panel["title"] == title)
    return found


def ask(story, expr: str, chapter: str = "") -> list[Series]:
    """A query over one chapter of the story, or all of it."""
    times = [*story.at.values()]
    start, end = story.span(chapter) if chapter else (times[0], times[-1])
    return story.prometheus.source(start, end).range(expr)


def lines(story, board: str, title: str, chapter: str = "") -> dict[str, Series]:
    """A panel's series, by their names in its legend."""
    return {
        one.named(target["legendFormat"]): one
        for target in panel(board, title)["targets"]
        for one in ask(story, target["expr"], chapter)
    }


def top(series: Series) -> float:
    return max(value for value in series.values if not math.isnan(value))


@pytest.mark.parametrize(("board", "shown"), PANELS)
def test_every_query_of_a_panel_gives_data_of_the_right_shape(story, board, shown):
    for target in shown["targets"]:
        found = ask(story, target["expr"])
        assert found, target["expr"]
        columns = shown["transformations"][0]["options"]["indexByName"] if shown["type"] == "table" else ()
        labels = [*re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]), *columns]
        names = [one.named(target["legendFormat"]) for one in found]
        assert len(set(names)) == len(names), "two series of one name"
        for one in found:
            assert set(labels) <= set(one.labels), "the legend names a label that is not there"
            values = [value for value in one.values if not math.isnan(value)]
            assert min(values, default=0) >= 0
            if shown["fieldConfig"]["defaults"]["unit"] == "percentunit" and shown["title"] not in BEYOND_ONE:
                assert max(values, default=0) <= 1 + ROUNDING
            if shown["type"] == "state-timeline":
                texts = shown["fieldConfig"]["defaults"]["mappings"][0]["options"]
                assert {f"{value:g}" for value in values} <= set(texts)
        assert any(not math.isnan(value) for one in found for value in one.values), target["expr"]


@pytest.mark.parametrize("name", RECORDED)
def test_every_recording_rule_records(story, name):
    assert [one.labels["release"] for one in ask(story, name)].count("assay") == 1


def test_a_query_that_cannot_be_read_is_an_error_and_not_no_data(story):
    with pytest.raises(QueryError, match="parse error"):
        ask(story, "sum by (")


# -- alerts
@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_was_provoked_and_fired(story, name):
    (fired, *_) = ask(story, f'ALERTS{{alertname="{name}",alertstate="firing"}}')
    assert fired.labels["severity"] in ("critical", "warning")


def test_nothing_fires_on_an_idle_or_an_ordinarily_loaded_service(story):
    # Of latency, a busy machine decides: with minutes of a second, ten bad seconds are enough.
    others = "AssayOperatorNotReconciling|AssayLatencyHigh"
    of_service = f'ALERTS{{alertstate="firing",release!="",alertname!~"{others}"}}'
    assert ask(story, of_service, "idle") == []
    assert ask(story, of_service, "loaded") == []


@pytest.mark.parametrize(
    ("name", "chapter", "labels"),
    [
        ("AssayShedding", "shedding", {"release": "assay"}),
        ("AssayStoreDrops", "store dead", {"release": "assay", "reason": "QueueFull"}),
        ("AssayThrottled", "throttled", {"release": "tight", "pod": "tight-1"}),
        ("AssayLatencyHigh", "throttled", {"release": "tight"}),
        ("AssayNoReadyPods", "gone", {"release": "assay"}),
    ],
)
def test_alert_fires_in_its_chapter_about_what_is_wrong(story, name, chapter, labels):
    begin = story.span(chapter)[0]
    fired = [one for one in ask(story, f'ALERTS{{alertname="{name}",alertstate="firing"}}')
             if labels.items() <= one.labels.items()]  # fmt: skip
    assert fired
    assert min(one.times[0] for one in fired) >= begin


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("AssayVariantStalled", {"name": "assay", "reason": "AccuracyBelowThreshold"}),
        ("AssayRollbackFailed", {"name": "assay"}),
        ("AssayOperatorNotReconciling", {"release": "assay"}),
    ],
)
def test_alerts_about_the_operator_name_what_they_are_about(story, name, labels):
    fired = ask(story, f'ALERTS{{alertname="{name}",alertstate="firing"}}')
    assert any({"namespace": "assay", **labels}.items() <= one.labels.items() for one in fired)


# -- states
def test_idle_service_is_ready_and_nothing_is_known_of_cost_or_ceiling(story):
    assert top(lines(story, "service", "Ready pods", "idle")["ready"]) == 1
    assert lines(story, "service", "Not answered", "idle") == {}
    assert "ceiling" not in lines(story, "service", "Load against ceiling", "idle")
    assert list(lines(story, "service", "Ready pods by model", "idle")) == ["efficientnet-lite0-fp32 FP32"]


def test_loaded_service_answers_what_k6_sends_below_its_ceiling(story):
    load = lines(story, "load-test", "Load against ceiling", "loaded")
    assert top(load["answered"]) <= top(load["sent by k6"]) * 1.5  # two clocks, and seconds' windows
    assert top(load["answered"]) > 4
    assert load["ceiling"].last > top(load["answered"])
    # Long after k6 has ended, and after its last wrong answer, too.
    right = lines(story, "load-test", "Right answers")["right"]
    assert right.last == pytest.approx(1 - story.k6["checksFailed"] / story.k6["requests"], abs=1e-6)
    (sent,) = ask(story, "sum(k6_http_reqs_total)", "loaded")
    assert sent.last == pytest.approx(RATE * LOADED_S, rel=0.3)  # four standard deviations of a Poisson count


def test_stages_of_a_loaded_service_stack_up_to_the_total(story):
    stages = lines(story, "service", "Mean time of a request, by stage", "loaded")
    total = stages.pop("total")
    assert {"receive", "queue", "decode", "preprocess", "infer", "postprocess", "respond"} <= set(stages)
    # Over the chapter: in a single interval at its beginning, k6's question for the model's name weighs in the total.
    sums, wholes = [], []
    for at, whole in zip(total.times, total.values, strict=True):
        parts = [
            value for one in stages.values() for when, value in zip(one.times, one.values, strict=True) if when == at
        ]
        if not math.isnan(whole) and not any(map(math.isnan, parts)):
            sums.append(sum(parts))
            wholes.append(whole)
    assert len(sums) > 3
    assert sum(sums) == pytest.approx(sum(wholes), rel=0.05)


def test_shedding_service_shows_what_it_refuses_and_why(story):
    refused = lines(story, "service", "Refused, by reason", "shedding")
    assert top(refused["Overloaded"]) > 1
    assert top(lines(story, "service", "Not answered", "shedding")["not answered"]) > 0.072
    assert top(lines(story, "service", "Work that waits", "shedding")["assay-1"]) > 0
    assert top(lines(story, "service", "Requests by status", "shedding")["429"]) > 1


def test_swap_is_marked_once_and_both_models_are_seen(story):
    (mark,) = (note["expr"] for note in BOARDS["service"]["annotations"]["list"] if note["name"] == "Model swapped")
    (swapped,) = ask(story, mark)
    begin, end = story.span("swapping")
    assert begin <= swapped.times[0] <= end + 2
    assert swapped.times[-1] - swapped.times[0] <= 10  # for as long as the rate interval, not for ever
    assert swapped.labels["name"] == SECOND
    served = lines(story, "service", "Ready pods by model")
    assert {"efficientnet-lite0-fp32 FP32", f"{SECOND} FP32"} <= set(served)


def test_store_that_works_takes_what_is_answered(story):
    written = lines(story, "service", "Store: written", "loaded")["written"]
    answered = lines(story, "service", "Answered", "loaded")["answered"]
    assert sum(written.values) == pytest.approx(sum(answered.values), rel=0.2)  # some seconds later
    assert {top(one) for one in lines(story, "service", "Store: dropped", "loaded").values()} == {0}


def test_dead_store_loses_answers_and_nothing_else(story):
    assert top(lines(story, "service", "Store: dropped", "store dead")["QueueFull"]) > 0
    (written,) = ask(story, 'assay_store_written_total{pod="assay-2"}', "store dead")
    assert top(written) == 0
    assert top(lines(story, "service", "Store: waiting", "store dead")["assay-2"]) > 100_000
    assert set(lines(story, "service", "Requests by status", "store dead")) & {"500", "503"} == set()


def test_dead_collector_loses_traces_and_one_that_works_gets_all(story):
    title = "Traces: sent and dropped"
    before, after = (lines(story, "service", title, chapter) for chapter in ("shedding", "store dead"))
    assert top(before["sent"]) > 0
    assert {name for name, one in before.items() if top(one) > 0} == {"sent"}
    # What the first pod sent in its drain is still within the rate's window as this chapter begins.
    assert {name for name, one in after.items() if top(one) > 0} - {"sent"} == {"CollectorFailed"}
    (sent,) = ask(story, 'assay_traces_sent_total{pod="assay-2"}', "store dead")
    assert top(sent) == 0


def test_dots_of_the_latency_lead_to_traces_of_just_these_requests(story):
    targets = panel("service", "Latency of answered requests")["targets"]
    (dotted,) = (target for target in targets if target.get("exemplar"))
    found = story.prometheus.exemplars(dotted["expr"], story.at["loaded"], story.at["swapping"])
    assert len(found) > 10
    roots = {(span.trace_id, span.span_id): span for span in story.traces.spans if not span.parent_id}
    for one in found:
        root = roots[one["labels"]["trace_id"], one["labels"]["span_id"]]
        assert root.seconds == pytest.approx(float(one["value"]), abs=1e-6)
        assert str(root.attributes["http.response.status_code"]) == one["series"]["code"] == "200"


def test_cache_and_batches_of_the_second_model_are_seen(story):
    assert top(lines(story, "service", "Cache: share of hits", "store dead")["hits"]) > 0
    assert top(lines(story, "service", "Cache: memory", "store dead")["assay-2"]) > 0
    assert top(lines(story, "service", "Cache: evictions", "store dead")["evicted"]) > 0
    assert top(lines(story, "service", "Images in a batch", "store dead")["mean"]) >= 1
    stages = lines(story, "service", "Mean time of a request, by stage", "store dead")
    assert {"cache", "batch_wait"} <= set(stages)


def test_throttled_pod_stands_out(story):
    throttled = lines(story, "service", "Throttled periods", "throttled")
    assert top(throttled["tight-1"]) > 0.25
    assert top(lines(story, "service", "p99 by pod", "throttled")["tight-1"]) > 0.1


def test_end_of_the_last_pod_is_seen(story):
    assert min(lines(story, "service", "Ready pods", "gone")["ready"].values) == 0


def test_operators_story_is_told_by_its_panels(story):
    verdicts = lines(story, "variants", "Verdicts")
    assert {"Pass CheckPassed", "Fail AccuracyBelowThreshold"} <= set(verdicts)
    assert {"RolledBack", "RolloutComplete"} & set(lines(story, "variants", "Rollouts that ended"))
    states = panel("variants", "State of rollouts")["fieldConfig"]["defaults"]["mappings"][0]["options"]
    (rollout,) = lines(story, "variants", "State of rollouts").values()
    assert {"RolloutComplete", "RollbackFailed"} <= {states[f"{value:g}"]["text"] for value in rollout.values}
    containment = lines(story, "variants", "Top-3 containment")
    assert top(containment["assay counted"]) == 398 / 400
    assert min(containment["assay lower bound"].values) == 0.612
    assert top(lines(story, "variants", "Cost ratio")["assay"]) == 1.24
    assert top(lines(story, "variants", "Since the last resync")["assay/assay"]) > 5
    assert "403" in lines(story, "variants", "Requests to the API server")

"""The dashboards' JSON: fresh, complete, about metrics that exist. Whether queries give data: test_prometheus.py."""

import json
import re
import runpy
from collections.abc import Iterator

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from assay.telemetry import Telemetry
from assay_operator.telemetry import Telemetry as OperatorTelemetry

# Links and bookmarks name dashboards by their uid: a changed one is a broken promise.
UIDS = {"service": "assay-service", "variants": "assay-variants", "load-test": "assay-load-test"}
PERCENTILES = {"p50", "p95", "p99"}
# What k6's remote write makes of its own metrics and of those of k6/lib: trends by statistic, rates, counters.
K6 = (
    {"k6_vus", "k6_checks_rate", "k6_late_arrivals_rate", "k6_http_reqs_total", "k6_dropped_iterations_total"}
    | {"k6_sent_total", "k6_not_right_total"}
    | {f"k6_latency_from_intended_{q}" for q in (*PERCENTILES, "max")}
    | {f"k6_http_req_duration_{q}" for q in PERCENTILES}
)


@pytest.fixture(scope="module")
def generate(root):
    return runpy.run_path(str(root / "grafana" / "generate.py"))


@pytest.fixture(params=UIDS)
def board(request, root):
    return json.loads((root / "charts" / "assay" / "files" / "dashboards" / f"{request.param}.json").read_text())


def panels(board) -> Iterator[dict]:
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def named(board, title) -> dict:
    (found,) = (panel for panel in panels(board) if panel["title"] == title)
    return found


def expressions(board) -> Iterator[str]:
    yield from (target["expr"] for panel in panels(board) for target in panel["targets"])
    yield from (annotation["expr"] for annotation in board["annotations"]["list"] if "expr" in annotation)


def metrics_of(expr: str) -> set[str]:
    """Names that PromQL would look up: those of Assay, of processes, and of k6."""
    return set(re.findall(r"\b(?:assay[_:]|process_|k6_)[a-zA-Z0-9_:]+", expr))


def test_generated_files_are_fresh(generate):
    for file, text in generate["generated"]().items():
        assert file.exists(), "run `make manifests`"
        assert file.read_text() == text, f"{file.name} is stale: run `make manifests`"


def test_these_are_all_the_dashboards_and_their_uids_are_stable(root):
    found = {file.stem: json.loads(file.read_text()) for file in (root / "charts/assay/files/dashboards").iterdir()}
    assert {name: board["uid"] for name, board in found.items()} == UIDS


def test_dashboard_is_one_by_grafanas_own_model(board):
    register_default_plugins()
    read = Dashboard.from_json(board)
    assert json.loads(json.dumps(read, cls=JSONEncoder)) == board


def test_every_panel_has_title_description_and_unit(board):
    titles = [panel["title"] for panel in panels(board)]
    assert len(titles) == len(set(titles))
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in panels(board):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_every_query_goes_to_the_chosen_data_source(board):
    (chosen,) = (variable for variable in board["templating"]["list"] if variable["type"] == "datasource")
    assert (chosen["name"], chosen["query"]) == ("datasource", "prometheus")
    for panel in panels(board):
        for target in panel["targets"]:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs))
    for entry in [*board["annotations"]["list"], *board["templating"]["list"]]:
        if entry.get("type") != "datasource":
            assert entry["datasource"]["uid"] == "${datasource}"


def test_every_rate_is_over_the_rate_interval(board):
    for expr in expressions(board):
        ranges = set(re.findall(r"(\w+)\([^()\[]*\[([^\]]+)\]", expr))
        assert len(re.findall(r"\[", expr)) == len(re.findall(r"\w+\([^()\[]*\[", expr)), expr
        assert {over for how, over in ranges if how != "max_over_time"} <= {"$__rate_interval"}, expr


def test_every_variable_that_queries_use_is_offered_and_all_leaves_nothing_out(board):
    offered = {variable["name"]: variable for variable in board["templating"]["list"]}
    used = {name for expr in expressions(board) for name in re.findall(r"\$([a-z]+)\b", expr)}
    assert used == set(offered) - {"datasource"}
    for name in used:
        assert (offered[name]["includeAll"], offered[name]["allValue"]) == (True, ".*")


def test_thresholds_are_drawn(board):
    for panel in panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        if panel["type"] == "timeseries" and len(defaults.get("thresholds", {}).get("steps", [])) > 1:
            assert defaults["custom"]["thresholdsStyle"]["mode"] == "dashed", panel["title"]


def test_panels_stand_side_by_side_without_overlap(board):
    taken = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_metric_that_is_asked_for_exists(board, root):
    families = [*Telemetry().registry.collect(), *OperatorTelemetry().registry.collect()]
    known = {f"{family.name}{ending}" for family in families for ending in ("", "_total", "_bucket", "_sum", "_count")}
    known |= set(re.findall(r"record: (\S+)", (root / "grafana" / "alerts" / "assay.rules.yaml").read_text()))
    known |= {f"assay_cfs_{name}_total" for name in ("periods", "throttled_periods", "throttled_seconds")} | K6
    for expr in expressions(board):
        assert metrics_of(expr), expr
        assert metrics_of(expr) <= known, expr


def test_stages_are_stacked_up_to_the_total_that_is_not_stacked(root):
    for name in ("service", "load-test"):
        board = json.loads((root / f"charts/assay/files/dashboards/{name}.json").read_text())
        panel = named(board, "Mean time of a request, by stage")
        assert panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal"
        (override,) = panel["fieldConfig"]["overrides"]
        assert override["matcher"] == {"id": "byName", "options": "total"}
        assert {"id": "custom.stacking", "value": {"mode": "none", "group": "B"}} in override["properties"]
        assert [target["legendFormat"] for target in panel["targets"]] == ["{{stage}}", "total"]


def test_every_figure_that_the_design_names_is_on_the_service_dashboard(root):
    board = json.loads((root / "charts/assay/files/dashboards/service.json").read_text())
    asked = {name for expr in expressions(board) for name in metrics_of(expr)}
    every = {
        f"{family.name}{'_total' if family.type == 'counter' else ''}"
        for family in Telemetry().registry.collect()
        if family.name.startswith("assay_")
    }
    plain = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}
    # The two left out say how many threads there are, and that two sources of the limit differ: for a runbook.
    assert every - plain == {"assay_worker_threads", "assay_cpu_limit_disagreement_cores"}
    for title in ("Latency of answered requests", "Cost of a request"):
        assert {target["legendFormat"] for target in named(board, title)["targets"]} >= PERCENTILES
    assert [note["name"] for note in board["annotations"]["list"] if "expr" in note] == ["Model swapped"]

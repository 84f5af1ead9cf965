"""Recording rules and alerts: complete, filled in, explained, and judged by promtool with firing and silent cases."""

import re
import runpy
import subprocess

import pytest
import yaml

from alerts.rules import DEFAULTS, Timing

SECTIONS = ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation"]


@pytest.fixture(scope="module")
def rules(root):
    return yaml.safe_load((root / "grafana" / "alerts" / "assay.rules.yaml").read_text())


@pytest.fixture(scope="module")
def alerts(rules):
    return {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule}


@pytest.fixture(scope="module")
def cases(root):
    return {file.name: yaml.safe_load(file.read_text()) for file in (root / "grafana" / "alerts" / "tests").iterdir()}


def test_these_are_the_alerts(alerts):
    assert {name: rule["labels"]["severity"] for name, rule in alerts.items()} == {
        "AssayErrorBudgetBurnsFast": "critical",
        "AssayErrorBudgetBurnsSlowly": "warning",
        "AssayLatencyHigh": "warning",
        "AssayThrottled": "warning",
        "AssayShedding": "warning",
        "AssayStoreDrops": "warning",
        "AssayNoReadyPods": "critical",
        "AssayVariantStalled": "warning",
        "AssayRollbackFailed": "critical",
        "AssayOperatorNotReconciling": "critical",
    }


def test_every_alert_says_what_is_so_and_where_its_runbook_is(alerts, root):
    for name, rule in alerts.items():
        told = rule["annotations"]
        assert set(told) == {"summary", "description", "runbook_url"}
        assert "{{ $labels." in told["summary"]
        assert told["description"].endswith(".")
        text = (root / told["runbook_url"]).read_text()
        assert text.startswith(f"# {name}\n")
        assert re.findall(r"^## .*", text, re.MULTILINE) == SECTIONS


def test_every_runbook_has_its_alert_and_its_links_lead_somewhere(alerts, root):
    folder = root / "grafana" / "runbooks"
    assert {file.stem for file in folder.iterdir()} == {*alerts, "README"}
    for file in folder.iterdir():
        for link in re.findall(r"\]\(([^)]+)\)", file.read_text()):
            assert (folder / link).exists(), f"{file.name}: {link}"


def test_panels_that_runbooks_name_are_on_a_dashboard(root):
    boards = "".join(file.read_text() for file in (root / "charts/assay/files/dashboards").iterdir())
    titles = set(re.findall(r'"title": "([^"]+)"', boards))
    named = {
        name
        for file in (root / "grafana" / "runbooks").iterdir()
        for name in re.findall(r"(?<![*\w])\*([A-Z][^*\n]+)\*(?!\*)", file.read_text())
    }
    assert len(named) > 8
    assert named - titles == {"Targets"}  # a page of Prometheus


def test_no_place_is_left_open_in_the_plain_file_and_all_are_open_in_the_charts(root):
    assert "$(" not in (root / "grafana" / "alerts" / "assay.rules.yaml").read_text()
    files = (root / "charts" / "assay" / "files" / "rules").iterdir()
    assert {place for file in files for place in re.findall(r"\$\(\w+\)", file.read_text())} == set(DEFAULTS)


@pytest.mark.parametrize(
    ("minute_s", "minutes", "text"),
    [(60, 5, "5m"), (60, 60, "1h"), (60, 4320, "3d"), (60, 90, "90m"), (1, 5, "5s"), (1, 4320, "72m"), (0.1, 1, "1s")],
)
def test_durations_are_written_in_the_largest_whole_unit(minute_s, minutes, text):
    assert Timing(minute_s).window(minutes) == text


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_nothing_does(alerts, cases):
    fires = set()
    silent = set()
    for name, file in cases.items():
        for case in file["tests"]:
            checks = case["promql_expr_test"]
            fires |= {
                found
                for check in checks
                for sample in check["exp_samples"]
                for found in alerts
                if found in sample["labels"]
            }
            silent |= {name for check in checks if check["expr"] == "ALERTS" and check["exp_samples"] == []}
    assert fires == set(alerts)
    assert silent == set(cases)


def promtool(*arguments) -> str:
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.system
def test_promtool_takes_the_rules(root, rules):
    told = promtool("check", "rules", root / "grafana" / "alerts" / "assay.rules.yaml")
    assert f"SUCCESS: {sum(len(group['rules']) for group in rules['groups'])} rules found" in told


@pytest.mark.system
def test_promtool_takes_the_rules_as_tests_shorten_them(root, tmp_path):
    generate = runpy.run_path(str(root / "grafana" / "generate.py"))
    short = tmp_path / "rules.yaml"
    short.write_text(generate["generated"](Timing(1))[generate["PLAIN_RULES"]])
    promtool("check", "rules", short)


@pytest.mark.system
def test_cases_come_out_as_they_say(root):
    files = sorted((root / "grafana" / "alerts" / "tests").iterdir())
    told = promtool("test", "rules", *files)
    assert told.count("SUCCESS") == len(files)

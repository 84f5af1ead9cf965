"""What a run's numbers mean, and how it is told."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from support.k6 import evaluate

LATENCY = {"count": 1000, "mean": 30, "p50": 25, "p95": 60, "p99": 90, "max": 120}
RUN = {
    "scenario": "load",
    "mix": "distinct",
    "url": "http://assay",
    "seed": 1,
    "plan": [{"name": "load", "rate": 20, "seconds": 50}],
    "seconds": 50,
    "planned": 1000,
    "started": 1000,
    "senders": 100,
    "lateShare": 0,
    "unattended": 0,
    "refused": 0,
    "statuses": {"200": 1000},
    "faults": {},
    "latencyMs": LATENCY,
    "phases": {"all": LATENCY, "load": LATENCY},
    "kinds": {"ordinary": LATENCY},
    "stages": {"decode": 3.1, "infer": 9.5},
    "slots": [{"sent": 33, "notRight": 0, **LATENCY}] * 30,
    "bins": {"edges": [10 ** (n / 8) for n in range(33)], "counts": [0] * 12 + [400, 600] + [0] * 20},
    "model": None,
}
LIMITS = {"maxErrorPermille": 0, "p99": [{"phase": "all", "ms": 250}]}


def told(folder, run):
    code = f"const run = {json.dumps(run)}; return {{ text: text(run), line: line(run), html: html(run) }};"
    return evaluate(folder, {"summary.js": "text, line", "report.js": "html"}, code)


def phases(**p50):
    return {"all": LATENCY} | {name: LATENCY | {"p50": value} for name, value in p50.items()}


DRIFT = LIMITS | {"drift": {"from": "first", "to": "last", "percent": 125}}


CASES = [
    ({}, LIMITS, "pass", ""),
    ({"lateShare": 0.001}, LIMITS, "pass", ""),
    ({"lateShare": 0.01, "started": 100, "planned": 100}, LIMITS, "pass", ""),  # one
    ({"lateShare": 0.02, "started": 100, "planned": 100}, LIMITS, "invalid", "0.10 % may be, or one"),
    ({"lateShare": 0.002}, LIMITS, "invalid", "had no CPU when they were due"),
    ({"lateShare": 0.01, "unattended": 9}, LIMITS, "invalid", "all 100 senders waited for answers"),
    ({"started": 999}, LIMITS, "invalid", "1 of 1000 requests were never sent"),
    ({"started": 0}, LIMITS, "invalid", "1000 of 1000 requests were never sent"),
    ({"faults": {"wrong label": 1}}, LIMITS, "fail", "1 answers were wrong (wrong label)"),
    ({"faults": {"another model": 2}}, LIMITS, "fail", "another model"),
    ({"faults": {"status": 1}, "statuses": {"200": 999, "503": 1}}, LIMITS, "fail", "1 x 503"),
    ({"faults": {"status": 1}}, LIMITS | {"maxErrorPermille": 1}, "pass", ""),
    ({"faults": {"wrong label": 1}}, LIMITS | {"maxErrorPermille": 1}, "fail", "wrong label"),
    ({"faults": {"no answer": 1}}, LIMITS, "fail", "1 requests failed"),
    ({"phases": {"all": LATENCY | {"p99": 251}}}, LIMITS, "fail", "p99 of ordinary photos is 251 ms"),
    ({"phases": {"all": LATENCY | {"count": 0}}}, LIMITS, "fail", "no ordinary photo was answered rightly"),
    ({"phases": {"all": LATENCY | {"p99": 251}}}, LIMITS | {"p99": []}, "pass", ""),
    ({"phases": phases(first=20, last=25)}, DRIFT, "pass", ""),
    ({"phases": phases(first=20, last=26)}, DRIFT, "fail", "the median rose from 20.0 ms (first) to 26.0 ms"),
    # A run that is not valid says nothing of the service: invalid, though the answers were wrong too.
    ({"lateShare": 0.5, "faults": {"wrong label": 1}}, LIMITS, "invalid", "wrong label"),
]


@pytest.fixture(scope="module")
def judgements(tmp_path_factory):
    """What `judge` says of each case; one k6 for all of them."""
    cases = json.dumps([[RUN | change, limits] for change, limits, _, _ in CASES])
    code = f"return {cases}.map(([run, limits]) => judge(run, limits));"
    return evaluate(tmp_path_factory.mktemp("judge"), {"thresholds.js": "judge"}, code)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_verdict_and_its_reason(judgements, case):
    _, _, verdict, reason = CASES[case]
    found = judgements[case]
    assert found["verdict"] == verdict
    assert reason in " | ".join(found["reasons"])
    assert bool(found["reasons"]) == (verdict != "pass")


def test_line_fits_a_termination_message_however_much_there_is_to_tell(tmp_path):
    run = RUN | {"verdict": "fail", "reasons": ["x" * 5000] * 40, "p99LimitMs": 250}
    line = told(tmp_path, run)["line"]
    assert len(line.encode()) < 4096
    assert "\n" not in line
    assert json.loads(line)["verdict"] == "fail"


def test_report_is_one_file_that_loads_nothing_and_says_what_the_text_says(tmp_path):
    run = RUN | {"verdict": "pass", "reasons": [], "p99LimitMs": 250}
    report = told(tmp_path, run)
    assert "PASS  load" in report["text"]
    html = report["html"]
    assert '<b style="color:#2e7d32">PASS</b>' in html
    assert not re.findall(r"(?:src|href)=|@import|url\(|<script", html)
    pictures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(pictures) == 4  # latency and rate over time, distribution, stages
    for picture in pictures:
        names = [element.tag for element in ET.fromstring(picture).iter()]
        assert len(names) >= 10
    assert "NaN" not in html
    assert "undefined" not in html


def test_report_of_a_search_shows_its_probes(tmp_path):
    probes = [
        {"rate": rate, "verdict": verdict, "p50": 20, "p95": 50, "p99": p99, "planned": 500}
        for rate, verdict, p99 in ((20, "pass", 40), (40, "fail", 900), (30, "pass", 70))
    ]
    run = RUN | {"verdict": "pass", "reasons": [], "p99LimitMs": 250}
    run |= {"probes": probes, "ceiling": {"low": 30, "high": None}}
    report = told(tmp_path, run)
    assert "30 to unknown" in report["text"]
    assert report["html"].count("<circle") == 3


def test_what_a_server_says_cannot_break_out_of_the_report(tmp_path):
    bad = '<script>alert("x")</script>'
    model = {"name": bad, "precision": "FP32", "digest": bad, "workers": 2, "cpu_limit_millicores": 2000}
    run = RUN | {"verdict": "fail", "reasons": [bad], "p99LimitMs": 250, "model": model, "url": bad}
    html = told(tmp_path, run)["html"]
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 4


ANSWERS = [
    ({"predictions": [{"label": "cat"}], "model": {"digest": "d"}}, 200, ""),
    ({"predictions": [{"label": "dog"}], "model": {"digest": "d"}}, 200, "wrong label"),
    ({"predictions": [{"label": "cat"}], "model": {"digest": "e"}}, 200, "another model"),
    ({"predictions": [{"label": "cat"}]}, 200, "another model"),
    ({"predictions": []}, 200, "no labels"),
    (None, 200, "no labels"),
    (None, 503, "status 503"),
    (None, 0, "no answer"),
]


def test_answer_is_right_only_with_the_label_of_the_pack_that_gave_it(tmp_path):
    expected = json.dumps({"status": 200, "labels": {"d": "cat"}})
    answers = json.dumps([[status, answer] for answer, status, _ in ANSWERS])
    code = f"return {answers}.map(([status, answer]) => fault({expected}, status, answer));"
    assert evaluate(tmp_path, {"client.js": "fault"}, code) == [fault for _, _, fault in ANSWERS]


def test_harmful_file_must_be_refused_with_its_own_status(tmp_path):
    code = "return [413, 422, 200].map((status) => fault({ status: 413, labels: null }, status, null));"
    assert evaluate(tmp_path, {"client.js": "fault"}, code) == ["", "status 422", "status 200"]

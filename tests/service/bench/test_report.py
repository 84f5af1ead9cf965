"""The report of a bench: its JSON keeps to the schema, and its table and picture show what it holds."""

import json
import sys

import jsonschema
import pytest
from PIL import Image
from pydantic import ValidationError

from assay.bench.picture import check_drawable, draw
from assay.bench.report import Chart, Column, Report, schema
from assay.errors import BenchError

COLUMNS = (
    Column(key="variant", title="variant"),
    Column(key="threads", title="threads", decimals=0),
    Column(key="mean_ms", title="mean", unit="ms", decimals=2),
    Column(key="high_ms", title="p90", unit="ms", decimals=2),
)
ROWS = (
    {"variant": "ONNX FP32", "threads": 1, "mean_ms": 9.126, "high_ms": 10.0},
    {"variant": "ONNX FP32", "threads": 2, "mean_ms": 5.0, "high_ms": 6.5},
    {"variant": "INT8", "threads": 1, "mean_ms": None, "high_ms": None},
)
BARS = Chart(kind="bars", x="variant", y="mean_ms", series=("threads",), high="high_ms", title="time")
LINES = Chart(kind="lines", x="threads", y="mean_ms", series=("variant",), high="high_ms", logarithmic=True)


def report(**changed):
    given = {
        "bench": "variants", "title": "A bench", "columns": COLUMNS, "rows": ROWS, "notes": ("a < b & c",),
        "charts": (BARS, LINES), "started_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return Report(**(given | changed))


def test_json_keeps_to_the_schema_that_is_written_down(root):
    kept = (root / "docs" / "contracts" / "bench-report.schema.json").read_text()
    assert kept == schema()
    document = json.loads(report().json_text())
    jsonschema.validate(document, json.loads(kept))
    assert document["rows"][2] == {"variant": "INT8", "threads": 1, "mean_ms": None, "high_ms": None}
    assert document["cpu_model"]
    assert document["cpu_limit_millicores"] > 0
    assert Report.model_validate(document) == report(completed_at=document["completed_at"])


def test_markdown_has_units_and_no_figure_where_none_was_measured():
    lines = report().markdown().splitlines()
    assert lines[0] == "| variant | threads | mean, ms | p90, ms |"
    assert lines[1] == "| --- | ---: | ---: | ---: |"
    assert lines[2] == "| ONNX FP32 | 1 | 9.13 | 10.00 |"
    assert lines[4] == "| INT8 | 1 | n/a | n/a |"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rows": ({"variant": "a"},)}, "a row has"),
        ({"rows": ({**ROWS[0], "mean_ms": "fast"},)}, "do not mix"),
        ({"rows": ({**ROWS[0], "variant": 3},)}, "do not mix"),
        ({"rows": ({**ROWS[0], "mean_ms": float("nan")},)}, "null"),
        ({"columns": (*COLUMNS, COLUMNS[0])}, "not its own"),
        ({"charts": (Chart(kind="bars", x="variant", y="speed"),)}, "no columns"),
    ],
)
def test_a_report_that_contradicts_itself_is_none(changed, said):
    with pytest.raises(ValidationError, match=said):
        report(**changed)


def test_png_is_a_picture(tmp_path):
    draw(report(), tmp_path / "bench.png")
    with Image.open(tmp_path / "bench.png") as image:
        image.load()
        assert image.format == "PNG"
        assert len(image.convert("RGB").getcolors(1 << 24)) > 10  # bars, lines and letters, not an empty page


def test_svg_holds_title_figures_and_notes_as_text_and_is_the_same_again(tmp_path):
    from xml.etree import ElementTree as ET

    once = report()
    for name in ("one.svg", "two.svg"):
        draw(once, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    text = " ".join(ET.parse(tmp_path / "one.svg").getroot().itertext())
    for shown in ("A bench", "9.13", "ONNX FP32", "a < b & c", once.cpu_model):
        assert shown in text


@pytest.mark.parametrize(("name", "said"), [("bench.jpg", ".png or .svg"), ("bench", ".png or .svg")])
def test_a_picture_of_another_kind_is_refused(tmp_path, name, said):
    with pytest.raises(BenchError, match=said):
        draw(report(), tmp_path / name)


def test_without_matplotlib_a_picture_is_refused_with_the_way_to_get_it_and_the_rest_works(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BenchError, match=r"pip install 'service\[bench\]'"):
        check_drawable(tmp_path / "bench.png")
    assert json.loads(report().json_text())["rows"]
    assert report().markdown()


def test_a_picture_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(BenchError, match="cannot write the picture"):
        draw(report(), tmp_path / "missing" / "bench.png")

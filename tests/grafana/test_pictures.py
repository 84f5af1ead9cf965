"""Pictures of panels: names, units, what is drawn. The series are made here; real ones are in test_prometheus.py."""

import json
import math

import pytest
from matplotlib.figure import Figure

from pictures import units
from pictures.panels import draw
from pictures.source import Series, Source


@pytest.fixture
def panels(root):
    boards = (json.loads(file.read_text()) for file in (root / "charts/assay/files/dashboards").iterdir())
    return {panel["title"]: panel for board in boards for panel in board["panels"]}


def drawn(panel, series):
    axes = Figure().add_subplot()
    draw(axes, panel, series, 100.0)
    return axes


def line(values, **labels):
    return Series(labels, [100.0 + at for at in range(len(values))], values)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123, "s", "12.3 ms"),
        (2.5, "s", "2.5 s"),
        (0.005, "percentunit", "0.5 %"),
        (3 * 1024**2, "bytes", "3 MiB"),
        (12.34, "reqps", "12.3 req/s"),
        (7, "short", "7"),
        (math.nan, "s", "no data"),
    ],
)
def test_values_are_told_with_their_unit(value, unit, text):
    assert units.text(value, unit) == text


def test_series_is_named_by_its_legend_or_by_all_its_labels():
    one = line([1.0], pod="a", code="200")
    assert one.named("{{pod}}: {{ code }}{{absent}}") == "a: 200"
    assert one.named("__auto") == "pod=a, code=200"


def test_variables_are_filled_in_and_those_not_chosen_are_everything():
    source = Source("", 0, 1, 1, "60s", {"release": "mine"})
    filled = source.filled('rate(x{namespace=~"$namespace",release=~"$release"}[$__rate_interval])')
    assert filled == 'rate(x{namespace=~".*",release=~"mine"}[60s])'


def test_stack_reaches_the_sum_and_the_total_is_a_line_of_its_own(panels):
    panel = panels["Mean time of a request, by stage"]
    axes = drawn(panel, [("decode", line([1.0, 2.0])), ("infer", line([3.0, 4.0])), ("total", line([4.0, 6.0]))])
    (total,) = [entry for entry in axes.lines if entry.get_label() == "total"]
    assert list(total.get_ydata()) == [4.0, 6.0]
    assert max(area.get_datalim(axes.transData).y1 for area in axes.collections) == 6.0


def test_thresholds_within_sight_are_drawn_as_lines(panels):
    axes = drawn(panels["Throttled periods"], [("a", line([0.1, 0.2]))])
    assert [entry.get_ydata()[0] for entry in axes.lines if entry.get_label().startswith("_")] == [0.1, 0.25]


def test_bytes_have_round_numbers_of_their_unit_at_the_axis(panels):
    axes = drawn(panels["Memory"], [("a", line([120e6, 200e6]))])
    told = axes.yaxis.get_major_formatter()
    texts = [told(at) for at in axes.get_yticks() if 0 <= at <= axes.get_ylim()[1]]
    assert texts == ["0 B", "64 MiB", "128 MiB", "192 MiB"]


def test_figure_shows_the_newest_number_in_the_colour_of_its_threshold(panels):
    axes = drawn(panels["Throttled"], [("throttled", line([0.0, 0.5, math.nan]))])
    (text,) = axes.texts
    assert (text.get_text(), text.get_color()) == ("50 %", "#e02f44")


def test_panel_without_series_says_so(panels):
    assert drawn(panels["Throttled"], []).texts[0].get_text() == "no data"

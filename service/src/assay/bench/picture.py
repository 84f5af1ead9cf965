"""A bench's report as a picture, PNG or SVG; the only module that knows matplotlib (the extra ``bench``)."""

import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.bench.report import NOT_KNOWN, Chart, Report
from assay.errors import BenchError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES: Final = (".png", ".svg")

_WIDTH: Final = 10.0
"""Inches; at 110 dots each, as wide as a page shows it unscaled."""

_DOTS: Final = 110

_BAR: Final = 0.26
"""Inches for a bar, its value beside it in letters of 8 points (0.11 inches)."""

_FOOT_LINE: Final = 0.14
"""Inches for a line of the foot, in letters of 7 points."""

_LINE: Final = 150
"""Letters of that size across the picture."""

_COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#555555")
"""Told apart by colour-blind people too: Okabe and Ito, "Color universal design" (2008)."""

Series = dict[str, list[dict[str, str | int | float | None]]]


def check_drawable(path: Path) -> None:
    """Raise ``BenchError`` when a picture could not be drawn there; asked before anything is measured."""
    if path.suffix.lower() not in SUFFIXES:
        raise BenchError(f"a picture is {' or '.join(SUFFIXES)}, by the end of its name; {path.name} is neither")
    if find_spec("matplotlib") is None:
        raise BenchError(
            "--picture needs matplotlib, which is not installed: pip install 'service[bench]' in a checkout, or "
            "matplotlib alone; without --picture, the table and the JSON need nothing"
        )


def draw(report: Report, path: Path) -> None:
    """Draw a report's charts beneath each other.

    Raises ``BenchError`` for what `check_drawable` refuses and for a file that cannot be written, ``ValueError`` for a
    report without charts.
    """
    check_drawable(path)
    if not report.charts:
        raise ValueError(f"the report of {report.bench} has nothing to draw")
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    heights = [_height(report, chart) for chart in report.charts]
    foot = _foot(report)
    below = _FOOT_LINE * (len(foot) + 1)
    total = sum(heights) + 0.5 + below
    # Letters stay letters in an SVG; the same report gives the same bytes.
    with mpl.rc_context({"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "assay"}):
        layout = ConstrainedLayoutEngine(rect=(0, below / total, 1, 1 - below / total))
        figure = Figure(figsize=(_WIDTH, total), dpi=_DOTS, layout=layout)
        figure.suptitle(report.title, fontsize=11, fontweight="bold")
        figure.text(0.01, 0.06 / total, "\n".join(foot), fontsize=7, color="#444444", verticalalignment="bottom")
        areas = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
        for chart, axes in zip(report.charts, areas[:, 0], strict=True):
            (_bars if chart.kind == "bars" else _lines)(report, chart, axes)
        kind = path.suffix.lower().removeprefix(".")
        try:
            figure.savefig(path, format=kind, metadata={"Date": None} if kind == "svg" else None)
        except OSError as error:
            raise BenchError(f"cannot write the picture {path}: {error.strerror or error}") from error


def _height(report: Report, chart: Chart) -> float:
    return 0.9 + _BAR * len(report.rows) if chart.kind == "bars" else 4.0


def _foot(report: Report) -> list[str]:
    """CPU, command and notes, wrapped: a picture travels without its page."""
    cpu = f"{report.cpu_model} ({', '.join(report.cpu_features)}), limit {report.cpu_limit_millicores / 1000:g} cores"
    texts = [f"{cpu}; {report.completed_at}", *([f"$ {report.command}"] if report.command else []), *report.notes]
    return [line for text in texts for line in textwrap.wrap(text, _LINE, subsequent_indent="   ")]


def _series(report: Report, chart: Chart) -> Series:
    """Rows by the name of their series, in the order of the table; rows without a figure are left out."""
    found: Series = {}
    for row in report.rows:
        name = ", ".join(
            str(row[key])
            if column.decimals is None
            else f"{column.title} {column.shown(row[key])} {column.unit}".rstrip()
            for key in chart.series
            for column in (report.column(key),)
        )
        found.setdefault(name, [])
        if row[chart.y] is not None and row[chart.x] is not None:
            found[name].append(row)
    return found


def _number(cell: str | int | float | None) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


def _spread(chart: Chart, row: dict[str, str | int | float | None]) -> tuple[float, float]:
    """Distances from a row's figure down to ``low`` and up to ``high``."""
    middle = _number(row[chart.y])
    low, high = row[chart.low or chart.y], row[chart.high or chart.y]
    return max(0.0, middle - _number(low)) if low is not None else 0.0, max(0.0, _number(high) - middle)


def _bars(report: Report, chart: Chart, axes: "Axes") -> None:
    groups = list(dict.fromkeys(str(row[chart.x]) for row in report.rows))
    series, column = _series(report, chart), report.column(chart.y)
    thick = 0.8 / max(1, len(series))
    for index, (name, rows) in enumerate(series.items()):
        places = [groups.index(str(row[chart.x])) + (index - (len(series) - 1) / 2) * thick for row in rows]
        lengths = [_number(row[chart.y]) for row in rows]
        under, over = ([_spread(chart, row)[end] for row in rows] for end in (0, 1))
        axes.barh(places, lengths, height=thick * 0.92, color=_COLOURS[index % len(_COLOURS)], label=name)
        if rows and (chart.low or chart.high):
            axes.errorbar(lengths, places, xerr=[under, over], fmt="none", ecolor="#333333", elinewidth=0.8, capsize=2)
        for place, length, beyond in zip(places, lengths, over, strict=True):
            where, shift = (length + beyond, place), (4, 0)
            axes.annotate(column.shown(length), where, shift, textcoords="offset points", va="center", fontsize=7)
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    axes.set_xlabel(column.head)
    if chart.logarithmic:
        axes.set_xscale("log")
    axes.margins(x=0.08)
    _finish(chart, axes, legend=len(series) > 1)


def _lines(report: Report, chart: Chart, axes: "Axes") -> None:
    series = _series(report, chart)
    for index, (name, rows) in enumerate(series.items()):
        points = sorted(rows, key=lambda row: _number(row[chart.x]))
        colour = _COLOURS[index % len(_COLOURS)]
        xs, ys = ([_number(row[key]) for row in points] for key in (chart.x, chart.y))
        axes.plot(xs, ys, marker="o", markersize=4, color=colour, label=name or NOT_KNOWN)
        if chart.low or chart.high:
            spreads = [_spread(chart, row) for row in points]
            below = [y - down for y, (down, _) in zip(ys, spreads, strict=True)]
            above = [y + up for y, (_, up) in zip(ys, spreads, strict=True)]
            axes.fill_between(xs, below, above, color=colour, alpha=0.15, linewidth=0)
    if chart.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        ticks = sorted({_number(row[chart.x]) for row in report.rows})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _position: f"{value:g}")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(report.column(chart.x).head)
    axes.set_ylabel(report.column(chart.y).head)
    _finish(chart, axes, legend=len(series) > 1)


def _finish(chart: Chart, axes: "Axes", *, legend: bool) -> None:
    axes.set_title(chart.title, fontsize=9)
    axes.grid(visible=True, axis="x" if chart.kind == "bars" else "both", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(frameon=False, fontsize=8)

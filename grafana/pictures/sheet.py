"""A contact sheet: all panels of a dashboard in one picture, where Grafana's grid has them."""

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pictures.panels import Named, draw
from pictures.source import Source

WIDTH_IN, ROW_IN = 17.0, 0.27  # inches: 24 columns, and one row of the grid
DPI = 80  # 1360 pixels wide: legible, and a few hundred kilobytes
COLUMNS = 24
MARGINS_IN = (0.55, 0.12, 0.26, 0.32)  # within a panel: left and right for the axis, top for the title, below for ticks


def series_of(panel: dict[str, Any], source: Source, moment: float) -> Named:
    """What a panel's queries give, by the names in its legend; `moment` is the present of tables and figures."""
    found: Named = []
    for target in panel["targets"]:
        expr = target["expr"]
        given = source.instant(expr, moment) if target.get("instant") else source.range(expr)
        if panel["type"] == "stat":
            given = [known for one in given if (known := one.until(moment)).times]
        found += [(one.named(target["legendFormat"]), one) for one in given]
    return found


def draw_sheet(board: dict[str, Any], source: Source, marks: dict[str, float], moment: float, path: Path) -> None:
    """Write the sheet as PNG.

    marks: what happened when (seconds of the epoch), drawn on the time axes. moment: the present of tables
    and single figures.
    """
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    height = rows * ROW_IN + 0.6
    figure = Figure(figsize=(WIDTH_IN, height), dpi=DPI)
    FigureCanvasAgg(figure)
    figure.text(0.01, 1 - 0.2 / height, board["title"], fontsize=13, weight="bold", va="center")
    told = ", ".join(f"{at - source.start:.0f} s {name}" for name, at in marks.items())
    figure.text(0.99, 1 - 0.2 / height, told, fontsize=8, va="center", ha="right")
    notes = [
        (one.times[0], annotation["iconColor"])
        for annotation in board["annotations"]["list"]
        if "expr" in annotation
        for one in source.range(annotation["expr"])
    ]
    for panel in board["panels"]:
        place = panel["gridPos"]
        left = place["x"] / COLUMNS
        top = 1 - (0.4 + place["y"] * ROW_IN) / height
        if panel["type"] == "row":
            figure.text(left + 0.01, top - ROW_IN / 2 / height, panel["title"], fontsize=10, weight="bold", va="center")
            continue
        w, h = place["w"] / COLUMNS, place["h"] * ROW_IN / height
        west, east, north, south = MARGINS_IN
        axes = figure.add_axes(
            (
                left + west / WIDTH_IN,
                top - h + south / height,
                w - (west + east) / WIDTH_IN,
                h - (north + south) / height,
            )
        )
        draw(axes, panel, series_of(panel, source, moment), source.start)
        if panel["type"] != "table":
            axes.set_xlim(0, source.end - source.start)
        if panel["type"] in ("timeseries", "state-timeline"):
            for at, colour in notes:
                axes.axvline(at - source.start, color=colour, linestyle=":", linewidth=1)
            for at in marks.values():
                axes.axvline(at - source.start, color="black", linewidth=0.3, alpha=0.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)

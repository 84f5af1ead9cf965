"""One panel's picture, from its JSON and the series that its queries gave."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MultipleLocator

from pictures import units
from pictures.source import Series

Panel = dict[str, Any]
Named = list[tuple[str, Series]]
"""The series of a panel, by their names in the legend."""

COLOURS = ("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#37872d", "#fa6400", "#a352cc")
NAMED = {"green": "#56a64b", "orange": "#ff780a", "red": "#e02f44", "blue": "#5794f2", "purple": "#8f3bb8"}
SMALL = 6.5  # points; a sheet of thirty panels is looked at enlarged
HEADROOM = 1.1  # above the highest value, for a flat line to be seen
LEGEND_ENTRIES = 9  # more would cover the lines
TICKS = 6  # about as many as matplotlib draws by itself


def draw(axes: Axes, panel: Panel, series: Named, begin: float) -> None:
    """Draw a panel. Times are seconds since `begin`."""
    axes.set_title(panel["title"], fontsize=SMALL + 1.5, loc="left")
    axes.tick_params(labelsize=SMALL)
    kinds = {"stat": _stat, "table": _table, "state-timeline": _states}
    if not series:
        axes.text(0.5, 0.5, "no data", ha="center", va="center", transform=axes.transAxes, color="grey")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    kinds.get(panel["type"], _graph)(axes, panel, series, begin)


def _colour(value: float, panel: Panel) -> str:
    steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
    reached = [step["color"] for step in steps if step.get("value") is None or value >= step["value"]]
    return NAMED.get(reached[-1], "black") if reached else "black"


def _graph(axes: Axes, panel: Panel, series: Named, begin: float) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults.get("custom", {})
    apart = {override["matcher"]["options"] for override in panel["fieldConfig"].get("overrides", [])}
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    coloured = list(zip(series, (COLOURS[place % len(COLOURS)] for place in range(len(series))), strict=True))
    pile = [entry for entry in coloured if stacked and entry[0][0] not in apart]
    if pile:
        _stack(axes, pile, begin, bars=custom.get("drawStyle") == "bars")
    for (name, one), colour in coloured:
        if (name, one) in [entry for entry, _ in pile]:
            continue
        at = np.array(one.times) - begin
        # A lone sample is a dot: a line has nothing to go to.
        (drawn,) = axes.plot(at, one.values, label=name, marker="." if len(at) == 1 else "", color=colour, linewidth=1)
        if name in apart:
            drawn.set(color="#333333", linestyle="--", linewidth=1.4)
    unit = defaults["unit"]
    top = axes.get_ylim()[1]
    for step in defaults.get("thresholds", {}).get("steps", [])[1:]:
        if step["value"] < 2 * top:  # a threshold far above would flatten what there is to see
            axes.axhline(step["value"], color=NAMED[step["color"]], linestyle=(0, (4, 3)), linewidth=0.8)
    axes.set_ylim(bottom=0, top=defaults.get("max") or top * HEADROOM)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.text(value, unit)))
    if unit == "bytes" and axes.get_ylim()[1] > TICKS:
        # Powers of two: round numbers of bytes are no round numbers of MiB.
        axes.yaxis.set_major_locator(MultipleLocator(2 ** math.ceil(math.log2(axes.get_ylim()[1] / TICKS))))
    axes.grid(visible=True, linewidth=0.3)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[:LEGEND_ENTRIES], names[:LEGEND_ENTRIES], fontsize=SMALL - 1, ncols=3, loc="best",
                framealpha=0.6, borderpad=0.2, handlelength=1, columnspacing=0.8)  # fmt: skip


def _stack(axes: Axes, pile: Sequence[tuple[tuple[str, Series], str]], begin: float, *, bars: bool) -> None:
    times = sorted({at for (_, one), _ in pile for at in one.times})
    rows = []
    for (_, one), _ in pile:
        known = dict(zip(one.times, one.values, strict=True))
        rows.append([0.0 if math.isnan(known.get(at, math.nan)) else known[at] for at in times])
    names = [name for (name, _), _ in pile]
    colours = [colour for _, colour in pile]
    at = np.array(times) - begin
    if bars or len(times) == 1:
        bottom = np.zeros(len(times))
        width = float(np.diff(at).min()) if len(at) > 1 else 1.0
        for row, name, colour in zip(rows, names, colours, strict=True):
            axes.bar(at, row, width=width, bottom=bottom, color=colour, label=name)
            bottom += np.array(row)
    else:
        axes.stackplot(at, rows, labels=names, colors=colours, alpha=0.75, linewidth=0)


def _stat(axes: Axes, panel: Panel, series: Named, begin: float) -> None:
    one = series[0][1]
    colour = _colour(one.last, panel)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.fill_between(np.array(one.times) - begin, one.values, color=colour, alpha=0.15, linewidth=0)
    axes.text(0.5, 0.5, units.text(one.last, panel["fieldConfig"]["defaults"]["unit"]), ha="center", va="center",
              transform=axes.transAxes, fontsize=13, color=colour)  # fmt: skip


def _table(axes: Axes, panel: Panel, series: Named, _begin: float) -> None:
    places = panel["transformations"][0]["options"]["indexByName"]
    columns = sorted(places, key=places.__getitem__)
    rows = [[str(one.labels.get(column, ""))[:26] for column in columns] for _, one in series]
    axes.axis("off")
    made = axes.table(rows, colLabels=columns, loc="upper left", cellLoc="left")
    made.auto_set_font_size(False)
    made.set_fontsize(SMALL - 0.5)
    made.auto_set_column_width(list(range(len(columns))))


def _states(axes: Axes, panel: Panel, series: Named, begin: float) -> None:
    texts = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    shown: dict[str, str] = {}
    for row, (_, one) in enumerate(series):
        step = min(np.diff(one.times), default=1.0)
        for at, value in zip(one.times, one.values, strict=True):
            state = texts[f"{value:g}"]
            colour = NAMED.get(state["color"], state["color"])
            label = None if state["text"] in shown else state["text"]
            shown[state["text"]] = colour
            axes.barh(row, step, left=at - begin, height=0.8, color=colour, linewidth=0, label=label)
    axes.set_yticks([])
    for row, (name, _) in enumerate(series):
        axes.annotate(name, (0.995, row), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=SMALL)
    axes.legend(fontsize=SMALL - 1, ncols=3, loc="upper left", framealpha=0.7)

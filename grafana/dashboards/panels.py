"""Panels and dashboards by the conventions of this folder; the only module that knows Grafana's SDK.

Every panel has a title, a description and a unit. Thresholds are drawn, not only coloured. Rates are over
`$__rate_interval`, so that they hold at every scrape interval and zoom.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from grafana_foundation_sdk.builders import common as parts
from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Visual = timeseries.Panel | stat.Panel | table.Panel | statetimeline.Panel
State = tuple[str, str, str]
"""A value, the text it stands for, and its colour."""

GOOD, WARN, BAD, TOTAL = "green", "orange", "red", "#8f8f8f"
COLUMNS = 24  # the width of Grafana's grid
STAT_HEIGHT, GRAPH_HEIGHT, LIST_HEIGHT = 4, 8, 7  # in rows of the grid, of about 30 pixels
FILL = 12  # percent; enough to see a line's side, too little to hide another
STACKED_FILL = 60

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")


@dataclass(frozen=True)
class Query:
    """One expression of a panel. `legend` may name labels as `{{label}}`; `exemplars` are drawn as dots."""

    expr: str
    legend: str = "__auto"
    exemplars: bool = False


def _target(query: Query, number: int, *, instant: bool = False) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(chr(ord("A") + number))
    made.datasource(SOURCE)
    if query.exemplars:
        made.exemplar(True)
    return made.instant().format(PromQueryFormat.TABLE) if instant else made.range()


def _steps(thresholds: Sequence[float], *, falling: bool) -> grafana.ThresholdsConfig:
    """Green below the first, then orange and red; the other way round where low values are the bad ones."""
    colours = [GOOD, WARN, BAD] if len(thresholds) > 1 else [GOOD, BAD]
    if falling:
        colours.reverse()
    steps = [models.Threshold(None, colours[0])]
    steps += [models.Threshold(value, colour) for value, colour in zip(thresholds, colours[1:], strict=False)]
    return grafana.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def graph(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    span: int = 8,
    thresholds: Sequence[float] = (),
    falling: bool = False,
    stacked: bool = False,
    bars: bool = False,
    total: str = "",
    top: float | None = None,
) -> timeseries.Panel:
    """Lines over time. `total` names the series that a stack must reach: a dashed line that is not stacked."""
    panel = timeseries.Panel().title(title).description(description).unit(unit).span(span).height(GRAPH_HEIGHT)
    panel.datasource(SOURCE).min(0).line_width(1).show_points(kinds.VisibilityMode.NEVER)
    panel.fill_opacity(STACKED_FILL if stacked or bars else FILL)
    panel.legend(
        parts.VizLegendOptions()
        .display_mode(kinds.LegendDisplayMode.LIST)
        .placement(kinds.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    panel.tooltip(parts.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
    if bars:
        panel.draw_style(kinds.GraphDrawStyle.BARS)
    if stacked:
        panel.stacking(parts.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A"))
    if thresholds:
        panel.thresholds(_steps(thresholds, falling=falling))
        panel.thresholds_style(parts.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED))
    if top is not None:
        panel.max(top)
    if total:
        panel.override_by_name(
            total,
            [
                models.DynamicConfigValue("custom.stacking", {"mode": "none", "group": "B"}),
                models.DynamicConfigValue("custom.fillOpacity", 0),
                models.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 6]}),
                models.DynamicConfigValue("custom.lineWidth", 2),
                models.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": TOTAL}),
            ],
        )
    for number, query in enumerate(queries):
        panel.with_target(_target(query, number))
    return panel


def number(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    span: int = 4,
    thresholds: Sequence[float] = (),
    falling: bool = False,
    decimals: int | None = None,
) -> stat.Panel:
    """One figure, with its course as a sparkline."""
    panel = stat.Panel().title(title).description(description).unit(unit).span(span).height(STAT_HEIGHT)
    panel.datasource(SOURCE).with_target(_target(query, 0)).graph_mode(kinds.BigValueGraphMode.AREA)
    panel.reduce_options(parts.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.color_mode(kinds.BigValueColorMode.VALUE)
    panel.thresholds(_steps(thresholds, falling=falling))
    if decimals is not None:
        panel.decimals(decimals)
    return panel


def states(
    title: str, description: str, query: Query, values: Sequence[State], *, span: int = COLUMNS
) -> statetimeline.Panel:
    """Bars over time whose colour is a state: numbers that `values` give a text and a colour."""
    texts = {
        value: models.ValueMappingResult(text, colour, None, place)
        for place, (value, text, colour) in enumerate(values)
    }
    panel = statetimeline.Panel().title(title).description(description).unit("short").span(span).height(LIST_HEIGHT)
    panel.datasource(SOURCE).mappings([models.ValueMap(texts)]).merge_values(True)
    panel.show_value(kinds.VisibilityMode.AUTO).line_width(0).fill_opacity(STACKED_FILL).with_target(_target(query, 0))
    return panel.thresholds(_steps((), falling=False))


def listing(title: str, description: str, *columns: str, query: Query, span: int = 12) -> table.Panel:
    """A table of what is so now: one row for each series, its labels `columns` in that order."""
    panel = table.Panel().title(title).description(description).unit("short").span(span).height(LIST_HEIGHT)
    panel.datasource(SOURCE).with_target(_target(query, 0, instant=True)).filterable(True)
    order = {name: place for place, name in enumerate(columns)}
    transformation = {"includeByName": dict.fromkeys(columns, True), "indexByName": order}
    return panel.with_transformation(models.DataTransformerConfig("organize", options=transformation))


class Board:
    """A dashboard under construction: variables first, then rows of panels."""

    def __init__(self, uid: str, title: str, description: str) -> None:
        self._made = grafana.Dashboard(title).uid(uid).description(description).tags(["assay"]).readonly()
        self._made.timezone("browser").time("now-1h", "now").refresh("30s")
        self._made.tooltip(models.DashboardCursorSync.CROSSHAIR)
        self._made.link(
            grafana.DashboardLink("Assay").type(models.DashboardLinkType.DASHBOARDS).tags(["assay"])
            .as_dropdown(True).include_vars(True).keep_time(True)
        )  # fmt: skip
        self._made.with_variable(
            grafana.DatasourceVariable("datasource").label("Data source").type("prometheus")
            .description("The Prometheus that scrapes Assay.")
        )  # fmt: skip
        self._ids = 0

    def variable(self, name: str, label: str, description: str, query: str) -> Self:
        """A choice among the values of a label. All is everything, series without that label included."""
        self._made.with_variable(
            grafana.QueryVariable(name).label(label).description(description).query(query).datasource(SOURCE)
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.ALPHABETICAL_ASC)
            .multi(True).include_all(True).all_value(".*")
            .current(models.VariableOption(text="All", value="$__all", selected=True))
        )  # fmt: skip
        return self

    def annotation(self, name: str, expr: str, colour: str) -> Self:
        """Marks on every graph where the expression has a value."""
        self._made.annotation(grafana.AnnotationQuery().name(name).datasource(SOURCE).expr(expr).icon_color(colour))
        return self

    def row(self, title: str, *panels: Visual) -> Self:
        """A row with its panels, left to right, then below."""
        self._ids += 1
        self._made.with_row(grafana.Row(title).id(self._ids))
        for panel in panels:
            self._ids += 1
            self._made.with_panel(panel.id(self._ids))
        return self

    def build(self) -> models.Dashboard:
        """The dashboard."""
        return self._made.build()

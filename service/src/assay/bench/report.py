"""The result of a bench: a table with units, where it was measured, and how it may be drawn.

One model for every bench, so that whatever reads one reads all: ``docs/contracts/bench-report.schema.json`` is its
schema, and ``python -m assay.bench.report`` writes it. Times are milliseconds, sizes megabytes (1e6 bytes), shares
percent, each said in its column's unit.
"""

import json
import math
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assay import __version__
from assay.platform.cpu import cpu_limit_millicores, cpu_model, notable_features

FORMAT: Final = 1
"""Version of this JSON. A column may be added to a bench without a new one; a key never changes its meaning."""

NOT_KNOWN: Final = "n/a"
"""Stands in tables for a figure that was not or cannot be measured; null in JSON."""

Cell = str | int | float | None

_KEY: Final = r"^[a-z][a-z0-9_]*$"


def now() -> str:
    """The time, as reports have it: RFC 3339, UTC, seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def versions(*distributions: str) -> dict[str, str]:
    """Versions of this program and of what a bench used, as far as it is installed."""
    found = {"assay": __version__}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Column(_Frozen):
    """One column: ``key`` names its figures in JSON, ``title`` heads it. ``decimals`` is None for text."""

    key: str = Field(pattern=_KEY)
    title: str
    unit: str = ""
    decimals: int | None = Field(None, ge=0, le=6, description="digits shown after the point; null for text")

    @property
    def head(self) -> str:
        """Title and unit, for the top of a table or beside an axis."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def shown(self, cell: Cell) -> str:
        """A cell as people read it."""
        if cell is None:
            return NOT_KNOWN
        return str(cell) if self.decimals is None or isinstance(cell, str) else f"{cell:.{self.decimals}f}"


class Chart(_Frozen):
    """How some columns may be drawn; all names are keys of columns.

    ``bars``: a group of bars for each text in ``x``, one bar per series. ``lines``: a line per series over the number
    in ``x``. ``series`` columns together name a bar or line; ``low`` and ``high`` are the ends of its spread.
    """

    kind: Literal["bars", "lines"]
    x: str
    y: str
    series: tuple[str, ...] = ()
    low: str | None = None
    high: str | None = None
    title: str = ""
    logarithmic: bool = Field(default=False, description="both axes of lines, the length of bars")


class Report(_Frozen):
    """What a bench found. Every row has every column; notes say what the figures mean and what was left out."""

    format: Literal[1] = FORMAT
    bench: str = Field(pattern=r"^[a-z][a-z-]*$", description="name of the command")
    title: str
    command: str = Field("", description="what was typed, so that anybody can type it again")
    columns: tuple[Column, ...] = Field(min_length=1)
    rows: tuple[dict[str, Cell], ...]
    notes: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    cpu_model: str = Field(default_factory=cpu_model)
    cpu_features: tuple[str, ...] = Field(default_factory=notable_features)
    cpu_limit_millicores: int = Field(default_factory=cpu_limit_millicores, ge=1)
    versions: dict[str, str] = Field(default_factory=versions)
    started_at: str = Field(description="RFC 3339, UTC")
    completed_at: str = Field(default_factory=now, description="RFC 3339, UTC")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        keys = [column.key for column in self.columns]
        if len(set(keys)) != len(keys):
            raise ValueError(f"a column's key is not its own: {keys}")
        for row in self.rows:
            if list(row) != keys:
                raise ValueError(f"a row has {list(row)}; the columns are {keys}")
            for column in self.columns:
                cell = row[column.key]
                if (column.decimals is None) != isinstance(cell, str) and cell is not None:
                    raise ValueError(f"{column.key} holds {cell!r}: text and figures do not mix in a column")
                if isinstance(cell, float) and not math.isfinite(cell):
                    raise ValueError(f"{column.key} holds {cell}: a figure that is not known is null")
        for chart in self.charts:
            named = (chart.x, chart.y, *chart.series, chart.low or chart.y, chart.high or chart.y)
            if missing := sorted(set(named) - set(keys)):
                raise ValueError(f"a chart draws {missing}, which are no columns")
        return self

    def column(self, key: str) -> Column:
        """The column of a key."""
        return next(column for column in self.columns if column.key == key)

    def json_text(self) -> str:
        """One JSON document, with a line feed at its end."""
        return self.model_dump_json() + "\n"

    def markdown(self) -> str:
        """The table in Markdown, for documents."""
        lines = [[column.head for column in self.columns]]
        lines.append(["---" if column.decimals is None else "---:" for column in self.columns])
        lines += [[column.shown(row[column.key]) for column in self.columns] for row in self.rows]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def schema() -> str:
    """The JSON schema, as the text of its file."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Report.model_json_schema()}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema())

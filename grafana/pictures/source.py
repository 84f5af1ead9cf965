"""A Prometheus as panels see it: their variables filled in, their ranges asked for."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

TIMEOUT_S = 30  # Prometheus gives up after two minutes; a panel that takes this long is broken


class QueryError(Exception):
    """Prometheus refused a query, or could not be asked; the text has the query and what it said."""


@dataclass(frozen=True)
class Series:
    """One line of a panel: times in seconds of the epoch, ascending, and values, NaN among them where there are any."""

    labels: Mapping[str, str]
    times: Sequence[float]
    values: Sequence[float]

    def named(self, legend: str) -> str:
        """Its name by a legend such as `{{pod}}`, or, as Grafana does it, all labels where there is no legend."""
        if legend == "__auto":
            return ", ".join(f"{name}={value}" for name, value in self.labels.items() if name != "__name__")
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: self.labels.get(found[1], ""), legend)

    def until(self, moment: float) -> "Series":
        """What was known of it at a time."""
        kept = [(at, value) for at, value in zip(self.times, self.values, strict=True) if at <= moment]
        return Series(self.labels, [at for at, _ in kept], [value for _, value in kept])

    @property
    def last(self) -> float:
        """The newest value that is a number; NaN where none is."""
        return next((value for value in reversed(self.values) if not math.isnan(value)), math.nan)


@dataclass(frozen=True)
class Source:
    """A Prometheus, and the range to look at: from `start` to `end` (seconds of the epoch) in steps of `step_s`.

    rate_interval: what Grafana would make of `$__rate_interval`: at least four scrape intervals.
    variables: values of other variables; those not given are everything.
    """

    url: str
    start: float
    end: float
    step_s: float
    rate_interval: str
    variables: Mapping[str, str]

    def filled(self, expr: str) -> str:
        """The expression with its variables filled in."""
        expr = expr.replace("$__rate_interval", self.rate_interval)
        expr = expr.replace("$__range", f"{max(1, round(self.end - self.start))}s")
        return re.sub(r"\$([a-z]+)\b", lambda found: self.variables.get(found[1], ".*"), expr)

    def range(self, expr: str) -> list[Series]:
        """The expression over the range."""
        asked = {"query": self.filled(expr), "start": self.start, "end": self.end, "step": self.step_s}
        return [
            Series(one["metric"], [at for at, _ in one["values"]], [float(value) for _, value in one["values"]])
            for one in self._ask("query_range", asked)
        ]

    def instant(self, expr: str, at: float | None = None) -> list[Series]:
        """The expression at one time: by default the end of the range."""
        asked = {"query": self.filled(expr), "time": self.end if at is None else at}
        return [Series(one["metric"], [one["value"][0]], [float(one["value"][1])]) for one in self._ask("query", asked)]

    def _ask(self, path: str, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        try:
            answer = httpx.get(f"{self.url}/api/v1/{path}", params=dict(asked), timeout=TIMEOUT_S)
            told = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise QueryError(f"{asked['query']}: {error}") from error
        if told["status"] != "success":
            raise QueryError(f"{asked['query']}: {told['error']}")
        result: list[dict[str, Any]] = told["data"]["result"]
        return result

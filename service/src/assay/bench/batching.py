"""``assay bench batching``: what gathering requests into batches is worth, against serving them one by one.

Two real services beside each other, one of which batches; slices of load alternate between them, with the same arrivals
and the same photos. The arithmetic that a batching server is judged by: a batch holds the request that opened it and
whatever arrives in its window, 1 + rate x window.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from assay.bench.cores import Division, divide, on
from assay.bench.report import Cell, Chart, Column, Report, now, versions
from assay.bench.sender import Sender, sending
from assay.bench.service import Service
from assay.bench.sides import PATIENT, Side, alternate, served
from assay.bench.uploads import Begin

SHARES: Final = (0.3, 0.6, 0.85)
"""Rates, of the ceiling, where none are given: nearly idle, busy, and where a queue forms by itself."""

_PROBE: Final = 100
"""Requests that tell the ceiling, from two clients: a second or two, to within a few percent."""

ONE_BY_ONE: Final = "one by one"
BATCHED: Final = "batched"
MODES: Final = (ONE_BY_ONE, BATCHED)

COLUMNS: Final = (
    Column(key="load", title="load"),
    Column(key="rate", title="offered", unit="req/s", decimals=1),
    Column(key="window_ms", title="window", unit="ms", decimals=0),
    Column(key="batch_max", title="limit", unit="images", decimals=0),
    Column(key="mode", title="served"),
    Column(key="expected_batch", title="expected", unit="images", decimals=2),
    Column(key="mean_batch", title="batch", unit="images", decimals=2),
    Column(key="answered", title="answered", unit="req/s", decimals=1),
    Column(key="p50_ms", title="p50", unit="ms", decimals=1),
    Column(key="p99_ms", title="p99", unit="ms", decimals=1),
    Column(key="cpu_ms", title="cost", unit="CPU-ms", decimals=2),
    Column(key="flaw", title="flaw"),
)

Row = dict[str, Cell]


@dataclass(frozen=True)
class Plan:
    """What to measure. ``rates`` empty: `SHARES` of the ceiling. ``flood_clients`` 0: no flood.

    The flood: that many requests at once, each another photo, ``rounds`` times, and ``serial_requests`` one after the
    other. 250 clients and 20 ms are those of the measurement that this one repeats; its batches' size is not known.
    """

    pack: Path
    millicores: int
    windows_ms: Sequence[float] = (5, 20)
    batches: Sequence[int] = (4, 16)
    rates: Sequence[float] = ()
    seconds: float = 5
    pairs: int = 2
    flood_clients: int = 250
    flood_window_ms: float = 20
    flood_batch: int = 32
    rounds: int = 3
    serial_requests: int = 100
    seed: int = 1


class _Bench:
    """One run: the service that does not batch stays, those that do come and go."""

    def __init__(self, plan: Plan, division: Division, sender: Sender, plain: Service, begin: Begin) -> None:
        self._plan, self._division, self._sender, self._plain, self._begin = plan, division, sender, plain, begin

    def grid(self) -> Iterator[Row]:
        """Two rows for each window, batch and rate."""
        plan = self._plan
        rates = plan.rates or self._shares()
        cells = [(window, most) for window in plan.windows_ms for most in plan.batches]
        step = self._begin("batching: window x batch x rate")
        for number, (window, most) in enumerate(cells):
            with self._batching(window, most) as service:
                for index, rate in enumerate(rates):
                    seeds = [plan.seed + plan.pairs * index + pair for pair in range(plan.pairs)]
                    slices = [
                        partial(self._sender.poisson, rate=rate, seconds=plan.seconds, seed=seed) for seed in seeds
                    ]
                    sides = Side(self._plain), Side(service)
                    alternate(sides, slices)
                    yield from _rows("open loop", sides, window, most, rate)
                    step(number * len(rates) + index + 1, len(cells) * len(rates))

    def flood(self) -> Iterator[Row]:
        """Two rows for one request after the other, and two for all at once."""
        plan = self._plan
        window, most = plan.flood_window_ms, plan.flood_batch
        step = self._begin("batching: all at once")
        loads = {
            "one at a time": (1, plan.serial_requests),
            f"{plan.flood_clients} at once": (plan.flood_clients, plan.flood_clients),
        }
        with self._batching(window, most) as service:
            for number, (name, (clients, requests)) in enumerate(loads.items()):
                sides = Side(self._plain), Side(service)
                slice_ = partial(self._sender.closed, clients=clients, requests=requests)
                alternate(sides, [slice_] * plan.rounds)
                yield from _rows(name, sides, window, most, None)
                step(number + 1, len(loads))

    def _batching(self, window_ms: float, most: int) -> AbstractContextManager[Service]:
        settings = {**_settings(self._plan), "batching": True, "batch_window_ms": window_ms, "batch_max": most}
        return served(self._plan.pack, settings, self._division, self._sender)

    def _shares(self) -> list[float]:
        """Rates to offer, from the ceiling that a short closed loop finds."""
        side = Side(self._plain)
        side.take(partial(self._sender.closed, clients=2 * -(-self._plan.millicores // 1000), requests=_PROBE))
        return [round(share * side.load.rate, 1) for share in SHARES]


def _settings(plan: Plan) -> dict[str, object]:
    return {"cpu_limit_millicores": plan.millicores, **PATIENT}


def batching(plan: Plan, images: Sequence[bytes], begin: Begin) -> Report:
    """Measure every window, batch and rate, then the flood. Raises `BenchError` where a service fails."""
    started, division = now(), divide(plan.millicores)
    with (
        on(division.client),
        sending(images) as sender,
        served(plan.pack, _settings(plan), division, sender) as plain,
    ):
        bench = _Bench(plan, division, sender, plain, begin)
        grid = list(bench.grid())
        flood = list(bench.flood()) if plan.flood_clients else []
    rows = [*grid, *flood]
    flaws = [f"INVALID: {_named(row)}: {row['flaw']}" for row in rows if row["flaw"]]
    return Report(
        bench="batching",
        title=f"batching against serving one by one: {plan.pack.name}",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(*flaws, *_notes(plan, division, len(images)), *_findings(flood)),
        charts=(
            Chart(kind="lines", x="rate", y="p99_ms", series=("mode", "window_ms", "batch_max"), title="p99"),
            Chart(kind="lines", x="rate", y="mean_batch", series=("window_ms", "batch_max"), title="mean batch"),
        ),
        cpu_limit_millicores=plan.millicores,
        versions=versions("onnxruntime", "numpy", "pillow", "uvicorn"),
        started_at=started,
    )


def _rows(name: str, sides: tuple[Side, Side], window_ms: float, batch_max: int, rate: float | None) -> list[Row]:
    """The service that does not batch and the one that does, under one load."""
    return [_row(name, mode, side, window_ms, batch_max, rate) for mode, side in zip(MODES, sides, strict=True)]


def _row(name: str, mode: str, side: Side, window_ms: float, batch_max: int, rate: float | None) -> Row:
    met, batches = side.load, side.rise("assay_batch_size_count")
    unlike = "it does not batch this pack: see the warning of `assay serve`" if mode == BATCHED and not batches else ""
    return {
        "load": name,
        "rate": rate,
        "window_ms": window_ms,
        "batch_max": batch_max,
        "mode": mode,
        "expected_batch": 1 + rate * window_ms / 1000 if rate and mode == BATCHED else None,
        "mean_batch": side.rise("assay_batch_size_sum") / batches if batches else None,
        "answered": met.rate,
        "p50_ms": met.p50_ms,
        "p99_ms": met.p99_ms,
        "cpu_ms": side.cost_ms,
        "flaw": "; ".join(part for part in (unlike, met.flaw) if part),
    }


def _named(row: Row) -> str:
    """A row in words."""
    rate = f" at {row['rate']:g} req/s, {row['window_ms']:g} ms, {row['batch_max']} images" if row["rate"] else ""
    return f"{row['load']}{rate}, {row['mode']}"


def _notes(plan: Plan, division: Division, images: int) -> Iterator[str]:
    yield f"{division.text}; {images} different photos; nothing is refused (deadline and budget of a minute)"
    yield (
        f"open loop: Poisson arrivals, {plan.pairs} pairs of {plan.seconds:g} s, the same arrivals for both sides; "
        "latency from when a request was due"
    )
    yield (
        "expected: 1 + rate x window. The batch stays below it where the service is idle, because it waits only while "
        "another image is being decoded, never for one that may or may not come; it is above it where requests wait "
        "for the model anyway"
    )


def _findings(flood: Sequence[Row]) -> Iterator[str]:
    """What the flood says about where a gain comes from."""
    if not flood:
        return
    alone, alone_batched, together, together_batched = (float(row["answered"] or "nan") for row in flood)
    yield (
        f"one at a time {alone:.1f} req/s, {flood[2]['load']} {together:.1f}: {together / alone:.2f} times from "
        f"concurrency alone; batches on top of that: {together_batched / together:.2f} times"
    )
    yield f"what a window does to a lone request's rate: {alone_batched / alone:.2f} times"

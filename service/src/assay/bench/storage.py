"""``assay bench storage``: what keeping images and results costs the requests, in their path and beside it.

Three real services at once: one that stores nothing, one that stores in the background as Assay does, and one that
stores in the path of the request (`inpath`: the same service, and the same sink awaited before the answer leaves).
Slices of the same Poisson arrivals go round among them. Sinks: a folder, and object stores that take a known time for
each write (`slowsink`); an answer is two objects, written one after the other.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from assay.bench.cores import Division, divide, on
from assay.bench.report import Cell, Chart, Column, Report, now, versions
from assay.bench.sender import Sender, sending
from assay.bench.service import SERVE
from assay.bench.sides import PATIENT, Side, alternate, served
from assay.bench.slowsink import slow_sink
from assay.bench.uploads import Begin

IN_PATH: Final[Sequence[str]] = ("assay.bench.inpath",)

BACKGROUND: Final = "in the background"

COLUMNS: Final = (
    Column(key="sink", title="sink"),
    Column(key="latency_ms", title="its pause", unit="ms", decimals=0),
    Column(key="mode", title="stores"),
    Column(key="requests", title="requests", decimals=0),
    Column(key="rate", title="answered", unit="req/s", decimals=1),
    Column(key="p50_ms", title="p50", unit="ms", decimals=1),
    Column(key="p95_ms", title="p95", unit="ms", decimals=1),
    Column(key="p99_ms", title="p99", unit="ms", decimals=1),
    Column(key="cpu_ms", title="cost", unit="CPU-ms", decimals=2),
    Column(key="stored", title="stored", decimals=0),
    Column(key="dropped", title="dropped", decimals=0),
    Column(key="flaw", title="flaw"),
)

Row = dict[str, Cell]


@dataclass(frozen=True)
class Plan:
    """What to measure. ``latencies_ms``: of the object stores; ``folder``: whether to store into one as well."""

    pack: Path
    millicores: int
    latencies_ms: Sequence[float] = (20, 100)
    folder: bool = True
    rate: float = 20
    seconds: float = 5
    rounds: int = 4
    seed: int = 1


@dataclass(frozen=True)
class _Place:
    """A sink: its URI, and the environment in which it is there."""

    name: str
    latency_ms: float | None
    uri: str
    environment: dict[str, str]


def storage(plan: Plan, images: Sequence[bytes], begin: Begin) -> Report:
    """Measure each sink. Raises `BenchError` where a service or a sink fails to start."""
    started, division = now(), divide(plan.millicores)
    rows: list[Row] = []
    step = begin("storage: sink by sink")
    with on(division.client), sending(images) as sender:
        latencies: list[float | None] = [*([None] if plan.folder else []), *plan.latencies_ms]
        for number, latency in enumerate(latencies):
            with _place(latency) as place:
                rows += _rows(plan, place, division, sender)
            step(number + 1, len(latencies))
    flaws = [f"INVALID: {row['sink']}, {row['mode']}: {row['flaw']}" for row in rows if row["flaw"]]
    return Report(
        bench="storage",
        title=f"storing answers, in the path and beside it: {plan.pack.name}",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(*flaws, *_notes(plan, division, len(images))),
        charts=(Chart(kind="bars", x="sink", y="p50_ms", series=("mode",), high="p99_ms", title="p50, up to p99"),),
        cpu_limit_millicores=plan.millicores,
        versions=versions("onnxruntime", "obstore", "pillow", "uvicorn"),
        started_at=started,
    )


@contextmanager
def _place(latency_ms: float | None) -> Iterator[_Place]:
    """A folder, or an object store that pauses."""
    if latency_ms is None:
        with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
            yield _Place("folder", None, Path(folder).as_uri(), {})
        return
    with slow_sink(latency_ms) as environment:
        yield _Place(f"object store, {latency_ms:g} ms", latency_ms, "s3://bench", environment)


def _rows(plan: Plan, place: _Place, division: Division, sender: Sender) -> list[Row]:
    settings: dict[str, object] = {"cpu_limit_millicores": plan.millicores, **PATIENT}
    storing = {**settings, "store_uri": place.uri}
    modes = (("nothing", settings, SERVE), (BACKGROUND, storing, SERVE), ("in the path", storing, IN_PATH))
    with ExitStack() as services:
        sides = {
            mode: Side(services.enter_context(served(plan.pack, own, division, sender, place.environment, program)))
            for mode, own, program in modes
        }
        slices = [
            partial(sender.poisson, rate=plan.rate, seconds=plan.seconds, seed=plan.seed + number)
            for number in range(plan.rounds)
        ]
        alternate(list(sides.values()), slices)
    return [_row(place, mode, side) for mode, side in sides.items()]


def _row(place: _Place, mode: str, side: Side) -> Row:
    met = side.load
    background = mode == BACKGROUND
    return {
        "sink": place.name,
        "latency_ms": place.latency_ms,
        "mode": mode,
        "requests": met.requests,
        "rate": met.rate,
        "p50_ms": met.p50_ms,
        "p95_ms": met.p95_ms,
        "p99_ms": met.p99_ms,
        "cpu_ms": side.cost_ms,
        "stored": side.rise("assay_store_written_total") if background else None,
        "dropped": side.rise("assay_store_dropped_total") if background else None,
        "flaw": met.flaw,
    }


def _notes(plan: Plan, division: Division, images: int) -> Iterator[str]:
    yield f"{division.text}; the object store's process is on the client's side; {images} different photos"
    yield (
        f"Poisson arrivals, {plan.rate:g} a second, {plan.rounds} slices of {plan.seconds:g} s for each, in turn; "
        "latency from when a request was due"
    )
    yield (
        "in the path: the service awaits both writes before it answers, and no worker is held meanwhile: the best case"
    )
    yield (
        "stored and dropped: the background queue's own counters at the end of its slices; the last answers may still "
        "be on their way then"
    )

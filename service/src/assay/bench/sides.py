"""The sides of a comparison: services that run at once loaded in turn, so that a busy machine is busy for all."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from assay.bench.cores import Division
from assay.bench.sender import Outcome, Sender
from assay.bench.service import SERVE, Service, running
from assay.bench.slices import Load, load

Slice = Callable[[int], list[Outcome]]
"""Sends one slice of load to a port, and returns what became of it."""

PATIENT: Final[Mapping[str, object]] = {
    "queue_budget_ms": 60_000,
    "deadline_ms": 60_000,
    "max_receiving_bytes": 512 << 20,
}
"""Settings under which nothing is refused: a flood is to be worked off, and a slice above the ceiling to be seen."""

_WARM_UP: Final = 20
"""Requests of a service that do not count: code and memory of every worker are touched, prices are learned."""

_WARM_UP_CLIENTS: Final = 4


class Side:
    """One service, and what it did over its slices."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._runs: list[list[Outcome]] = []
        self._cpu_s = 0.0
        self._counted: Counter[str] = Counter()

    def take(self, slice_: Slice) -> None:
        """Load it with a slice."""
        metrics, cpu_s = self._service.metrics(), self._service.cpu_s()
        self._runs.append(slice_(self._service.port))
        self._cpu_s += self._service.cpu_s() - cpu_s
        after = self._service.metrics()
        for name, value in after.items():
            if name.startswith("assay_"):
                self._counted[name] += value - metrics.get(name, 0.0)  # type: ignore[assignment] # metrics are floats

    @property
    def load(self) -> Load:
        """What it met."""
        return load(self._runs)

    @property
    def cost_ms(self) -> float | None:
        """CPU-ms of its process a request, over all threads."""
        requests = sum(len(run) for run in self._runs)
        return self._cpu_s / requests * 1000 if requests else None

    def rise(self, metric: str) -> float:
        """By how much a counter of its own went up during its slices."""
        return float(self._counted[metric])


@contextmanager
def served(
    pack: Path,
    settings: Mapping[str, object],
    division: Division,
    sender: Sender,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = SERVE,
) -> Iterator[Service]:
    """A service on its cores, warm. As `running`, which see."""
    with running(pack, settings, division.server, environment, program) as service:
        sender.closed(service.port, _WARM_UP_CLIENTS, _WARM_UP)
        yield service


def alternate(sides: Sequence[Side], slices: Sequence[Slice], step: Callable[[], None] | None = None) -> None:
    """Load every side with every slice; who is first goes round."""
    for number, slice_ in enumerate(slices):
        for place in range(len(sides)):
            sides[(number + place) % len(sides)].take(slice_)
        if step:
            step()

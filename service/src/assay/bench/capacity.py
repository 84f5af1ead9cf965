"""``assay capacity``: how many requests a second this machine can answer with a pack, and how many it should be given.

The ceiling is arithmetic: CPU-ms per second of the limit, over the mean CPU-ms of a request. What can be offered below
it, at a latency target, is a matter of queues (`queueing`). Costs are those of the real service, read from the kernel's
accounts of its threads while photos come one at a time, and then of as many at once as keep it busy.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from assay.bench.cores import divide, on
from assay.bench.queueing import Queue
from assay.bench.report import now
from assay.bench.sender import sending
from assay.bench.service import Service
from assay.bench.sides import PATIENT, Side, served
from assay.bench.uploads import Begin
from assay.inference.engine import Engine
from assay.inference.postprocess import best_classes
from assay.packs.archive import Pack, read_pack
from assay.platform.cpu import cpu_model, notable_features
from assay.vision.decode import decode
from assay.vision.header import MAX_PIXELS, read_header
from assay.vision.preprocess import preprocess

_MILLI: Final = 1000

LOADS: Final = (0.5, 0.7, 0.85)
"""Shares of the ceiling that are predicted in any case: half, a usual target, and where the tail begins to run away."""

_BUSY_REQUESTS: Final = 200
"""Requests that tell the cost of a busy service: some seconds, to within a percent."""

_TOP_K: Final = 3


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Stage(_Frozen):
    """Mean CPU-ms of a part of a request."""

    stage: str
    cpu_ms: float


class Expected(_Frozen):
    """What requests at a rate will meet, by the queue model: milliseconds the client waits."""

    rate: float
    load: float
    p50_ms: float
    p99_ms: float


class Capacity(_Frozen):
    """What ``assay capacity`` found. Costs are CPU-ms; ``costs_ms`` holds one for each request that came alone."""

    format: int = 1
    pack: str
    precision: str
    digest: str
    photos: int
    megapixels: float
    kilobytes: float
    cpu_model: str
    cpu_features: tuple[str, ...]
    cpu_limit_millicores: int
    workers: int
    cores: str
    stages: tuple[Stage, ...]
    cost_ms: float
    busy_cost_ms: float
    overhead_ms: float
    ceiling: float
    p99_target_ms: float
    recommended: Expected | None
    expected: tuple[Expected, ...]
    costs_ms: tuple[float, ...]
    started_at: str
    completed_at: str


@dataclass(frozen=True)
class Plan:
    """What to measure: ``rounds`` times every photo, for a service of this CPU limit; and the target to plan for."""

    pack: Path
    millicores: int
    p99_ms: float = 100
    rounds: int = 5
    seed: int = 1


@dataclass(frozen=True)
class Costs:
    """Of requests that came alone: CPU seconds each, of them on the event loop, seconds the client waited."""

    cpu_s: NDArray[np.float64]
    loop_s: NDArray[np.float64]
    waited_s: NDArray[np.float64]
    busy_s: float
    """Mean CPU seconds of a request while every worker is busy."""

    @property
    def service_s(self) -> NDArray[np.float64]:
        """What a request costs under load, one for each that was measured alone.

        Below the ceiling a worker also begins with cold caches, as one does for a request that comes alone; so the
        dearer of both means holds.
        """
        return self.cpu_s * max(1.0, self.busy_s / float(self.cpu_s.mean()))

    @property
    def overhead_s(self) -> float:
        """What a client waits beyond the service's work: connection, and hand-overs between threads that slept."""
        return max(0.0, float(np.median(self.waited_s - self.cpu_s)))


def capacity(plan: Plan, photos: Sequence[bytes], begin: Begin) -> Capacity:
    """Measure costs and predict. Raises `BenchError` where the service fails or CPU time cannot be read."""
    started, pack, division = now(), read_pack(plan.pack), divide(plan.millicores)
    settings: dict[str, object] = {"cpu_limit_millicores": plan.millicores, **PATIENT, "max_pixels": MAX_PIXELS}
    workers = max(1, plan.millicores // _MILLI)
    with on(division.client), sending(photos) as sender, served(plan.pack, settings, division, sender) as service:
        cpu_s, loop_s, waited_s = _alone(service, photos, plan.rounds, begin("one request at a time"))
        step, busy = begin("as many at once as keep it busy"), Side(service)
        busy.take(partial(sender.closed, clients=2 * workers, requests=max(_BUSY_REQUESTS, len(photos))))
        step(1, 1)
        stages = _stages(pack, photos, begin("stage by stage"))
    costs = Costs(cpu_s, loop_s, waited_s, (busy.cost_ms or 0.0) / 1000)
    queue = Queue(costs.service_s * _stretch(plan.millicores, workers), workers, seed=plan.seed)
    ceiling = plan.millicores / 1000 / costs.busy_s

    def expected(rate: float) -> Expected:
        found = queue.predict(rate)
        p50_s, p99_s = found.p50_s + costs.overhead_s, found.p99_s + costs.overhead_s
        return Expected(rate=rate, load=rate / ceiling, p50_ms=p50_s * 1000, p99_ms=p99_s * 1000)

    best = queue.highest_rate(plan.p99_ms / 1000 - costs.overhead_s)
    begin("queues")(1, 1)
    headers = [read_header(photo) for photo in photos]
    return Capacity(
        pack=pack.manifest.name,
        precision=pack.manifest.precision,
        digest=pack.digest,
        photos=len(photos),
        megapixels=sum(header.pixels for header in headers) / len(headers) / 1e6,
        kilobytes=sum(map(len, photos)) / len(photos) / 1000,
        cpu_model=cpu_model(),
        cpu_features=notable_features(),
        cpu_limit_millicores=plan.millicores,
        workers=workers,
        cores=division.text,
        stages=_split(costs, stages),
        cost_ms=float(cpu_s.mean()) * 1000,
        busy_cost_ms=costs.busy_s * 1000,
        overhead_ms=costs.overhead_s * 1000,
        ceiling=ceiling,
        p99_target_ms=plan.p99_ms,
        recommended=expected(best) if best else None,
        expected=tuple(expected(load * min(ceiling, queue.ceiling)) for load in LOADS),
        costs_ms=tuple(round(value * 1000, 3) for value in cpu_s.tolist()),
        started_at=started,
        completed_at=now(),
    )


def _stretch(millicores: int, workers: int) -> float:
    """How much longer work takes under a quota of less than the workers' cores; the kernel stops them meanwhile."""
    return max(1.0, workers * _MILLI / millicores)


def _alone(
    service: Service, photos: Sequence[bytes], rounds: int, step: Callable[[int, int], None]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """CPU seconds of each request, of them on the event loop, and seconds it took: all photos, ``rounds`` times."""
    found = []
    cpu_s, loop_s = service.cpu_s(), service.loop_cpu_s()
    for number in range(rounds):
        for photo in photos:
            waited_s = service.classify(photo).seconds
            before, loop_before = cpu_s, loop_s
            cpu_s, loop_s = service.cpu_s(), service.loop_cpu_s()
            found.append((cpu_s - before, loop_s - loop_before, waited_s))
        step(number + 1, rounds)
    taken = np.array(found)
    return taken[:, 0], taken[:, 1], taken[:, 2]


def _stages(pack: Pack, photos: Sequence[bytes], step: Callable[[int, int], None]) -> dict[str, float]:
    """Mean CPU seconds of what a worker does for a photo, stage by stage, by the functions it calls."""
    geometry, engine = pack.manifest.preprocess, Engine(pack)
    taken = dict.fromkeys(("decode", "preprocess", "infer", "postprocess"), 0.0)
    for number, photo in enumerate([photos[0], *photos]):
        header = read_header(photo)
        marks = [time.thread_time()]
        picture = decode(photo, header, geometry)
        marks.append(time.thread_time())
        pixels = preprocess(picture, geometry, header.upright_size, header.decoded_orientation)
        marks.append(time.thread_time())
        logits = engine.infer(pixels[None])
        marks.append(time.thread_time())
        best_classes(logits[0], _TOP_K)
        marks.append(time.thread_time())
        if number:  # the first time is slower than all others
            for name, begun, ended in zip(taken, marks, marks[1:], strict=False):
                taken[name] += (ended - begun) / len(photos)
        step(number, len(photos))
    return taken


def _split(costs: Costs, stages: dict[str, float]) -> tuple[Stage, ...]:
    """The cost of a request by stage. The rest: hand-overs, and what the two ways of measuring differ by."""
    loop = float(costs.loop_s.mean())
    rest = float(costs.cpu_s.mean()) - loop - sum(stages.values())
    parts = {
        "receive, respond": loop,
        **stages,
        "the rest": rest,
        "more while busy": costs.busy_s - float(costs.cpu_s.mean()),
    }
    return tuple(Stage(stage=name, cpu_ms=seconds * 1000) for name, seconds in parts.items())

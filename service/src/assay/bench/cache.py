"""``assay bench cache``: what a hit costs, and what a cache costs where nothing repeats, by size of the image.

Two real services at once, one of which has a cache. Every image goes to both, one request at a time, first to the one
and next time first to the other; its digest is new each time, until the same bytes come again for the hits. Costs are
CPU time of the whole process, so that others on the machine matter less.
"""

import os
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assay.bench.cores import divide, on
from assay.bench.report import Cell, Chart, Column, Report, now, versions
from assay.bench.service import Service, running
from assay.bench.uploads import Begin, resized

_WARM_UP: Final = 20
"""Pairs that do not count: the first requests touch memory and code for the first time."""

_RESAMPLES: Final = 1000
"""Of the 95 % interval: its ends are then the 25th values from either end (percentile bootstrap, Efron 1979)."""

_SALT_BYTES: Final = 8
"""Random bytes behind an image's end: decoders stop before them, and its digest is another one."""

CACHE_BYTES: Final = 64 << 20
"""Holds every answer of a run: nothing is evicted."""

COLUMNS: Final = (
    Column(key="megapixels", title="image", unit="MP", decimals=2),
    Column(key="kilobytes", title="image", unit="KB", decimals=0),
    Column(key="pairs", title="pairs", decimals=0),
    Column(key="plain_cpu_ms", title="no cache", unit="CPU-ms", decimals=2),
    Column(key="miss_cpu_ms", title="miss", unit="CPU-ms", decimals=2),
    Column(key="miss_added_percent", title="added by a miss", unit="%", decimals=2),
    Column(key="miss_added_low_percent", title="95 % from", unit="%", decimals=2),
    Column(key="miss_added_high_percent", title="to", unit="%", decimals=2),
    Column(key="hit_cpu_ms", title="hit", unit="CPU-ms", decimals=2),
    Column(key="plain_ms", title="no cache, client waits", unit="ms", decimals=2),
    Column(key="hit_ms", title="hit, client waits", unit="ms", decimals=2),
    Column(key="look_up_ms", title="digest and look-up", unit="ms", decimals=3),
    Column(key="gain", title="hit, times cheaper", decimals=1),
)


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    pack: Path
    millicores: int
    megapixels: Sequence[float] = (0.2, 0.5, 1.1, 4)
    pairs: int = 200
    hits: int = 200
    seed: int = 1


@dataclass(frozen=True)
class _Sample:
    """One request: CPU seconds of the service, seconds the client waited, and of them in the cache."""

    cpu_s: float
    waited_s: float
    cache_s: float


def cache(plan: Plan, photos: Sequence[bytes], begin: Begin) -> Report:
    """Measure every size. Raises `BenchError` where a service fails or CPU time cannot be read."""
    started, division = now(), divide(plan.millicores)
    settings: dict[str, object] = {"cpu_limit_millicores": plan.millicores, "max_pixels": 89_000_000}
    step = begin("cache: size by size")
    rows = []
    with (
        on(division.client),
        running(plan.pack, settings, division.server) as plain,
        running(plan.pack, {**settings, "cache_bytes": CACHE_BYTES}, division.server) as caching,
    ):
        for number, megapixels in enumerate(plan.megapixels):
            images = [resized(photo, megapixels) for photo in photos]
            rows.append(_size(plan, megapixels, images, plain, caching))
            step(number + 1, len(plan.megapixels))
    return Report(
        bench="cache",
        title=f"a cache of answers, where images repeat and where none does: {plan.pack.name}",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=tuple(_notes(plan, division.text, len(photos))),
        charts=(Chart(kind="lines", x="megapixels", y="hit_cpu_ms", title="a hit's cost"),),
        cpu_limit_millicores=plan.millicores,
        versions=versions("onnxruntime", "numpy", "pillow", "uvicorn"),
        started_at=started,
    )


def _size(plan: Plan, megapixels: float, images: Sequence[bytes], plain: Service, caching: Service) -> dict[str, Cell]:
    off, on_ = _misses(plan, images, plain, caching)
    hits = _hits(plan, images, caching)
    without = statistics.mean(sample.cpu_s for sample in off)
    added = [b.cpu_s - a.cpu_s for a, b in zip(off, on_, strict=True)]
    low, high = _interval(added, plan.seed)
    hit = statistics.median(sample.cpu_s for sample in hits)
    return {
        "megapixels": megapixels,
        "kilobytes": statistics.mean(len(image) for image in images) / 1000,
        "pairs": len(added),
        "plain_cpu_ms": without * 1000,
        "miss_cpu_ms": statistics.mean(sample.cpu_s for sample in on_) * 1000,
        "miss_added_percent": statistics.median(added) / without * 100,
        "miss_added_low_percent": low / without * 100,
        "miss_added_high_percent": high / without * 100,
        "hit_cpu_ms": hit * 1000,
        "plain_ms": statistics.median(sample.waited_s for sample in off) * 1000,
        "hit_ms": statistics.median(sample.waited_s for sample in hits) * 1000,
        "look_up_ms": statistics.median(sample.cache_s for sample in hits) * 1000,
        "gain": without / hit if hit else None,
    }


def _misses(
    plan: Plan, images: Sequence[bytes], plain: Service, caching: Service
) -> tuple[list[_Sample], list[_Sample]]:
    """The same image, never seen before, to both; who is first alternates."""
    found: tuple[list[_Sample], list[_Sample]] = ([], [])
    for number in range(plan.pairs + _WARM_UP):
        image = images[number % len(images)] + os.urandom(_SALT_BYTES)
        for which in (0, 1) if (number // len(images) + number) % 2 else (1, 0):
            found[which].append(_sample((plain, caching)[which], image))
    return found[0][_WARM_UP:], found[1][_WARM_UP:]


def _hits(plan: Plan, images: Sequence[bytes], caching: Service) -> list[_Sample]:
    for image in images:
        caching.classify(image)
    return [_sample(caching, images[number % len(images)]) for number in range(plan.hits)]


def _sample(service: Service, image: bytes) -> _Sample:
    before = service.cpu_s()
    answered = service.classify(image)
    return _Sample(service.cpu_s() - before, answered.seconds, answered.stages_ms.get("cache", 0.0) / 1000)


def _interval(added: Sequence[float], seed: int) -> tuple[float, float]:
    """The 95 % interval of the median, by resampling."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    medians = sorted(statistics.median(chance.choices(added, k=len(added))) for _ in range(_RESAMPLES))
    return medians[round(0.025 * _RESAMPLES)], medians[round(0.975 * _RESAMPLES) - 1]


def _notes(plan: Plan, cores: str, photos: int) -> Iterator[str]:
    yield f"{cores}; one request at a time, {photos} photos brought to each size"
    yield (
        f"miss and no cache: {plan.pairs} pairs, every image's digest new; added: the median difference within a pair, "
        "of the mean cost without a cache. Two processes of one program differ by one percent as well"
    )
    yield f"hit: medians of {plan.hits}; CPU of the whole process, HTTP included; the client is on this machine"

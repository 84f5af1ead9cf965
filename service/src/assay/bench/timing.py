"""Times several ways of doing one thing in one run, taking turns, so that a busy machine is as busy for all of them."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from assay.errors import BenchError

MIN_ROUNDS: Final = 2
"""With fewer there is no spread."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One call: seconds on the wall, seconds of CPU, and those of its parts where they are told apart."""

    wall_s: float
    cpu_s: float
    parts_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Spread:
    """What many calls took, in milliseconds; percentiles are values that were seen (nearest rank), never between."""

    mean: float
    p10: float
    p50: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        """The spread of timings in seconds; there is at least one."""
        milliseconds = np.asarray(seconds) * 1e3
        ranks = np.percentile(milliseconds, (10, 50, 90, 95, 99), method="inverted_cdf")
        return cls(float(milliseconds.mean()), *(float(rank) for rank in ranks))


Call = Callable[[int], Sample]
"""Does the thing once, for the input of the round given, and says what it took."""


@dataclass(frozen=True)
class Timings:
    """Samples of each contender by round: the n-th of all were taken within one round."""

    samples: dict[str, list[Sample]]
    complete: bool

    @property
    def rounds(self) -> int:
        """Rounds that all contenders finished."""
        return len(next(iter(self.samples.values())))

    def wall(self, name: str) -> Spread:
        """Time on the wall of a contender."""
        return Spread.of([sample.wall_s for sample in self.samples[name]])

    def cpu(self, name: str) -> Spread:
        """CPU time of a contender."""
        return Spread.of([sample.cpu_s for sample in self.samples[name]])

    def part(self, name: str, index: int) -> Spread:
        """CPU time of a part of a contender's calls."""
        return Spread.of([sample.parts_s[index] for sample in self.samples[name]])

    def ratio(self, name: str, other: str, *, cpu: bool = False) -> float:
        """Median over the rounds of one contender's time by another's: what the rounds have in common cancels out."""
        pairs = zip(self.samples[name], self.samples[other], strict=True)
        ratios = [(a.cpu_s / max(b.cpu_s, 1e-9)) if cpu else a.wall_s / b.wall_s for a, b in pairs]
        return float(np.median(ratios))


def interleave(
    contenders: Mapping[str, Call],
    calls: int,
    warmups: int,
    seed: int,
    max_seconds: float,
    progress: Callable[[int, int], None] | None = None,
) -> Timings:
    """Call every contender once a round, in an order drawn anew for each: ``warmups`` rounds untimed, then ``calls``.

    Nobody runs always behind the same other one, whose data would be what the caches hold. Ends early, with
    ``complete`` false, after ``max_seconds``; raises ``BenchError`` if not even two rounds were timed by then.
    """
    order, draw = list(contenders), random.Random(seed)  # noqa: S311 - not a secret
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    ends = time.monotonic() + max_seconds
    for number in range(-warmups, calls):
        if time.monotonic() > ends:
            break
        draw.shuffle(order)
        found = {name: contenders[name](number) for name in order}
        if number >= 0:
            for name, sample in found.items():
                samples[name].append(sample)
        if progress:
            progress(number + warmups + 1, warmups + calls)
    timings = Timings(samples, complete=len(next(iter(samples.values()))) == calls)
    if timings.rounds < MIN_ROUNDS:
        raise BenchError(
            f"{timings.rounds} rounds were timed within {max_seconds:g} s, and {MIN_ROUNDS} are the least: "
            "ask for fewer --warmups, or for more --max-seconds"
        )
    return timings


def timed(do: Callable[[], object], *, threads: int = 1) -> Sample:
    """Do a thing once and say what it took.

    CPU is this thread's; where the thing has ``threads`` of its own, the process's, which must be idle otherwise.
    """
    clock = time.thread_time if threads == 1 else time.process_time
    wall, cpu = time.perf_counter(), clock()
    do()
    return Sample(time.perf_counter() - wall, clock() - cpu)

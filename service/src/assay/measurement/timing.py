"""CPU time of one inference, and blocks of four that compare two engines fairly."""

import time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assay.check.cost import Block
from assay.inference.engine import Engine

WARM_UP: Final = 10
"""Calls of each engine before anything is timed; first calls allocate, and the clock of the CPU rises."""

_TICK_S: Final = 1e-9
"""Resolution of ``time.thread_time`` on Linux; a call that takes no tick counts as one."""

Timed = tuple[Engine, NDArray[np.uint8]]
"""An engine and what it is given, uint8 [1, crop, crop, 3]."""


def warm_up(candidate: Timed, yardstick: Timed) -> None:
    """Run both until they are at their usual speed."""
    for _ in range(WARM_UP):
        for engine, images in (candidate, yardstick):
            engine.infer(images)


def timed_block(candidate: Timed, yardstick: Timed, number: int) -> Block:
    """Time candidate, yardstick, yardstick, candidate; every other block (by ``number``) the other way round.

    A pack that runs twice in a row finds its own weights in the cache: worth one percent, which would always go to
    the same side.
    """
    outer, inner = (candidate, yardstick) if number % 2 == 0 else (yardstick, candidate)
    first, second, third, fourth = (cpu_time(*each) for each in (outer, inner, inner, outer))
    ends, middle = (first, fourth), (second, third)
    return Block(ends, middle) if number % 2 == 0 else Block(middle, ends)


def cpu_time(engine: Engine, images: NDArray[np.uint8]) -> float:
    """Return the CPU seconds of one inference in this thread, which is where a single-threaded session computes."""
    start = time.thread_time()
    engine.infer(images)
    return max(time.thread_time() - start, _TICK_S)

"""CPU time of one inference, and blocks of four that compare two engines fairly."""

import time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assay.check.cost import Block, order
from assay.inference.engine import Engine

WARM_UP: Final = 10
"""Calls of each engine before anything is timed; first calls allocate, and the clock of the CPU rises."""

_TIMED_S: Final = 0.005
"""CPU time that a timing lasts, about: a faster model is called several times. A single call of half a millisecond is
mostly about what the decoder left in the caches, and on a busy machine one check in five was too noisy to decide."""

_LONGEST_S: Final = 0.02
"""CPU time that several calls of the slower model take at most: where costs differ fourfold, no noise hides it."""

_MOST_CALLS: Final = 20
"""Calls in one timing: a classifier of photos takes a quarter of a millisecond and more."""

_TICK_S: Final = 1e-9
"""Resolution of ``time.thread_time`` on Linux; a call that takes no tick counts as one."""

Timed = tuple[Engine, NDArray[np.uint8]]
"""An engine and what it is given, uint8 [1, crop, crop, 3]."""


def warm_up(candidate: Timed, yardstick: Timed) -> int:
    """Run both until they are at their usual speed; return how many calls make a timing of theirs."""
    rounds = [[cpu_time(*each) for each in (candidate, yardstick)] for _ in range(WARM_UP)]
    quickest = [min(times[side] for times in rounds) for side in (0, 1)]
    return max(1, min(_MOST_CALLS, round(_TIMED_S / min(quickest)), int(_LONGEST_S / max(quickest))))


def timed_block(candidate: Timed, yardstick: Timed, number: int, calls: int = 1) -> Block:
    """Time both on an image, twice each by so many calls, in the order that ``check.cost`` asks for."""
    pair, sides = (candidate, yardstick), order(number)
    return Block.of(sides, [cpu_time(*pair[side], calls) for side in sides])


def cpu_time(engine: Engine, images: NDArray[np.uint8], calls: int = 1) -> float:
    """Return the CPU seconds of an inference in this thread, which is where a single-threaded session computes."""
    start = time.thread_time()
    for _ in range(calls):
        engine.infer(images)
    return max(time.thread_time() - start, _TICK_S) / calls

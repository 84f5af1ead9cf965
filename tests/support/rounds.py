"""An operator that is ended at random moments, by SIGTERM or SIGKILL, while a fleet is checked and rolled out."""

import random
import signal
import time
from collections.abc import Callable

from support.apiserver import eventually
from support.fleet import Fleet
from support.operator_process import OperatorProcess

WEIGHTS = {"good": 30, "other": 30, "bad": 15, "dead": 10, "base": 15}
MOMENT_S = 3.0  # a check and a rollout of a fleet take about as long
SETTLE_S = 240  # with a busy machine; it takes some seconds


class Rounds:
    """One operator after another. ``start`` starts one."""

    def __init__(self, fleet: Fleet, names: list[str], start: Callable[[], OperatorProcess], seed: int) -> None:
        self.fleet, self.names, self._start = fleet, names, start
        self._random = random.Random(seed)
        self.ends = {signal.SIGTERM: 0, signal.SIGKILL: 0}
        self.operator = start()

    def play(self) -> float:
        """Ask for other packs, end the operator somewhere on the way, once or more often, and see that all comes right.

        Returns the seconds from the last start until all had settled. AssertionError if anything is not as it should.
        """
        self._ask()
        while True:
            time.sleep(self._random.uniform(0, MOMENT_S))
            how = self._random.choice([signal.SIGTERM, signal.SIGKILL])
            self.operator.end(how)
            self.ends[how] += 1
            if self._random.random() < 0.3:
                self._ask()
            began = time.monotonic()
            self.operator = self._start()
            if self._random.random() < 0.7:
                break
        eventually(lambda: not self.fleet.unsettled(), "all are Ready or Stalled", SETTLE_S)
        took_s = time.monotonic() - began
        # A Job that has just been deleted is told of a moment later.
        eventually(lambda: not self.fleet.wrong() or self.fleet.broken, "all are as they were asked to be", SETTLE_S)
        assert self.fleet.wrong() + self.fleet.broken == []
        return took_s

    def _ask(self) -> None:
        for name in self._random.sample(self.names, self._random.randint(1, len(self.names))):
            pack = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            # Seldom without a token of its own: then a verdict that is there is to be used again.
            token = f"{self._random.randrange(10**6)}" if self._random.random() < 0.8 else ""
            self.fleet.ask(name, pack, retryToken=token)

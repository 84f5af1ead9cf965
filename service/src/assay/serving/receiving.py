"""How many bytes of request bodies may be in memory at once, over all connections."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from assay.serving.errors import OverloadedError


class Allowance:
    """The bytes one request holds of the budget."""

    def __init__(self, budget: "ReceivingBudget") -> None:
        self._budget = budget
        self._wake: Callable[[], None] | None = None
        self.held = 0
        self.revoked = False
        """Whether it was taken back: another body needed room, and none was larger than this one."""

    def receive(self, wake: Callable[[], None]) -> None:
        """The body begins to arrive. Until `received` the allowance may be revoked; ``wake`` is called then."""
        self._wake = wake

    def received(self) -> None:
        """The body is complete: it cannot be revoked any more."""
        self._wake = None

    @property
    def revocable(self) -> bool:
        """Whether the body is still arriving."""
        return self._wake is not None

    def take(self, count: int) -> None:
        """Hold ``count`` more bytes. Raises `OverloadedError` when the process has no more to give."""
        if self.revoked:
            raise self.refusal()
        self._budget.take(self, count)

    def refusal(self) -> OverloadedError:
        """What the body is refused with once its allowance was revoked."""
        return self._budget.refusal()

    def revoke(self) -> None:
        """Take it back, and let whoever waits for the body know."""
        self.revoked = True
        if self._wake is not None:
            self._wake()
            self._wake = None


class ReceivingBudget:
    """A process's budget of body bytes: the limit per body alone would allow it as often as there are clients.

    When it is used up, the largest body that is still arriving is refused, not the one that comes last: a few clients
    that send large bodies slowly must not keep everybody else out.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = 0
        self._allowances: set[Allowance] = set()

    def refusal(self) -> OverloadedError:
        """What a body is refused with."""
        return OverloadedError(
            f"Request bodies of {self._limit} bytes are being received already: try again in 1 s.", retry_after_s=1
        )

    def take(self, mine: Allowance, count: int) -> None:
        """Hold ``count`` more bytes for ``mine``. Raises `OverloadedError` when nobody who holds more can yield."""
        while self._held + count > self._limit:
            others = (other for other in self._allowances if other.revocable and other is not mine)
            largest = max(others, key=lambda other: other.held, default=None)
            if largest is None or largest.held <= mine.held + count:
                raise self.refusal()
            self._give_back(largest)
            largest.revoke()
        self._held += count
        mine.held += count

    def _give_back(self, allowance: Allowance) -> None:
        self._held -= allowance.held
        allowance.held = 0

    @contextmanager
    def allowance(self) -> Iterator[Allowance]:
        """One request's share; what it holds comes back at the end."""
        mine = Allowance(self)
        self._allowances.add(mine)
        try:
            yield mine
        finally:
            self._allowances.remove(mine)
            self._give_back(mine)

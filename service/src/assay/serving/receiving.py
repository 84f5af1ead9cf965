"""How many bytes of request bodies may be in memory at once, over all connections."""

from collections.abc import Iterator
from contextlib import contextmanager

from assay.serving.errors import OverloadedError


class Allowance:
    """The bytes one request holds of the budget."""

    def __init__(self, budget: "ReceivingBudget") -> None:
        self._budget = budget
        self.held = 0

    def take(self, count: int) -> None:
        """Hold ``count`` more bytes. Raises `OverloadedError` when the process has no more to give."""
        self._budget.take(count)
        self.held += count


class ReceivingBudget:
    """A process's budget of body bytes: the limit per body alone would allow it as often as there are clients."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = 0

    def take(self, count: int) -> None:
        """Hold ``count`` bytes. Raises `OverloadedError` beyond the limit."""
        if self._held + count > self._limit:
            raise OverloadedError(
                f"Request bodies of {self._limit} bytes are being received already: try again in 1 s.", retry_after_s=1
            )
        self._held += count

    @contextmanager
    def allowance(self) -> Iterator[Allowance]:
        """One request's share; what it holds comes back at the end."""
        mine = Allowance(self)
        try:
            yield mine
        finally:
            self._held -= mine.held

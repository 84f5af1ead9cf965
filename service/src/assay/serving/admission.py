"""Who may wait: a queue bounded by the CPU time its requests will need, not by their number.

A 12-megapixel photo costs what ten ordinary ones cost; a queue counted in requests would be ten times too long, or ten
times too short.
"""

import math
import threading

from assay.serving.errors import OverloadedError


class Admission:
    """The budget of one process. ``admit`` is called on the event loop, ``leave`` on the thread that takes the work."""

    def __init__(self, budget_ms: float, limit_cores: float) -> None:
        self._budget_ms = budget_ms
        self._limit_cores = limit_cores
        self._waiting = 0
        self._waiting_ms = 0.0
        self._lock = threading.Lock()

    @property
    def waiting_ms(self) -> float:
        """Estimated CPU-ms of the requests that wait."""
        return self._waiting_ms

    def admit(self, price_ms: float, images: int = 1) -> None:
        """Let a request's images wait, all of them or none; each leaves by itself.

        Into an empty queue any may go: else one dearer than the budget could never be served.

        Raises `OverloadedError` when more would wait than may, saying when the queue will have been worked off.
        """
        with self._lock:
            if self._waiting and self._waiting_ms + price_ms > self._budget_ms:
                seconds = max(1, math.ceil(self._waiting_ms / self._limit_cores / 1000))
                raise OverloadedError(
                    f"Requests worth {self._waiting_ms:.0f} CPU-ms are waiting, of {self._budget_ms:.0f} that may: "
                    f"try again in {seconds} s.",
                    retry_after_s=seconds,
                )
            self._waiting += images
            self._waiting_ms += price_ms

    def begin(self, part_ms: float) -> None:
        """A part of what a waiting request costs is being worked off; the request goes on waiting for the rest."""
        with self._lock:
            self._waiting_ms -= part_ms

    def leave(self, price_ms: float) -> None:
        """An image no longer waits: work on it begins, or it was dropped."""
        with self._lock:
            self._waiting -= 1
            # Sums of floats drift; an empty queue is exactly empty.
            self._waiting_ms = self._waiting_ms - price_ms if self._waiting else 0.0

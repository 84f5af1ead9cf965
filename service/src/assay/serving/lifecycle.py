"""The phases of a process, from loading to its end, and what each lets in."""

import asyncio
from enum import Enum

from assay.serving.errors import DrainingError, NotReadyError
from assay.telemetry import Telemetry


class Phase(Enum):
    """Where a process stands. Only `SERVING` is ready; `LEAVING` still serves whoever has not looked away yet."""

    LOADING = "loading"
    SERVING = "serving"
    LEAVING = "leaving"
    REFUSING = "refusing"


_REASONS = {
    Phase.LOADING: "The model is being loaded and warmed up.",
    Phase.LEAVING: "This process was told to end; it still serves, but send new requests elsewhere.",
    Phase.REFUSING: "This process was told to end; it finishes what it has admitted.",
}


class Lifecycle:
    """The phase of one process and its requests under way. Lives on the event loop."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._phase = Phase.LOADING
        self._inflight = 0
        self.entered = 0
        """Requests that came in since the process began."""
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def phase(self) -> Phase:
        """Where the process stands."""
        return self._phase

    @property
    def leaving(self) -> bool:
        """Whether connections should not be kept for another request."""
        return self._phase in (Phase.LEAVING, Phase.REFUSING)

    def unready_reason(self) -> str | None:
        """Why this process takes no new traffic, as a sentence; nothing when it does."""
        return _REASONS.get(self._phase)

    def loaded(self) -> None:
        """The model is warm: take traffic, unless the end has begun meanwhile."""
        if self._phase is Phase.LOADING:
            self._phase = Phase.SERVING
            self._telemetry.ready.set(1)

    def enter(self) -> None:
        """A request arrives. Raises `NotReadyError` or `DrainingError` when it may not come in."""
        if self._phase is Phase.LOADING:
            raise NotReadyError(_REASONS[Phase.LOADING])
        if self._phase is Phase.REFUSING:
            raise DrainingError(f"{_REASONS[Phase.REFUSING]} Try again on a new connection.")
        self._inflight += 1
        self.entered += 1
        self._idle.clear()
        self._telemetry.inflight.set(self._inflight)

    def leave(self) -> None:
        """A request that came in has its answer, whatever it was."""
        self._inflight -= 1
        self._telemetry.inflight.set(self._inflight)
        if not self._inflight:
            self._idle.set()

    async def drain(self, delay_s: float, timeout_s: float) -> bool:
        """Stop being ready at once, serve on for ``delay_s``, then finish what came in; whether all of it was finished.

        The delay is what lets a load balancer look away before anything is refused.
        """
        was_loading = self._phase is Phase.LOADING
        self._phase = Phase.LEAVING
        self._telemetry.ready.set(0)
        if not was_loading:
            await asyncio.sleep(delay_s)
        self._phase = Phase.REFUSING
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

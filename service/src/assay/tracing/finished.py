"""What a trace is made from. Knows nothing of OpenTelemetry: it is imported whether or not anything is traced."""

from collections.abc import Mapping
from dataclasses import dataclass

NANO = 1e9
"""Nanoseconds of a second."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What is known of a request at its end. ``name``: method and route, as ``POST /v1/classify``.

    ``status`` is 0 where the client left before it had one. ``seconds``: from its arrival to its end, which was at
    ``ended_ns`` (`time.time_ns`). ``stages``: wall seconds by name, none for a refusal. ``attributes``: further ones.
    """

    name: str
    status: int
    reason: str
    seconds: float
    ended_ns: int
    stages: Mapping[str, float]
    attributes: Mapping[str, str | float]

    @property
    def began_ns(self) -> int:
        """When the request arrived, in nanoseconds since the epoch."""
        return self.ended_ns - round(self.seconds * NANO)

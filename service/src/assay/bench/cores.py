"""Which cores a measured server runs on, and which its client: apart from each other wherever there are enough."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_MILLI = 1000


@dataclass(frozen=True)
class Division:
    """Cores of the server and of the client; both None where they share all there are."""

    server: frozenset[int] | None
    client: frozenset[int] | None

    @property
    def text(self) -> str:
        """How the cores are divided, in words for a reader of the figures."""
        if self.server is None or self.client is None:
            return "server and client share all cores: their costs and waits touch each other"
        return f"server on core {_listed(self.server)}, client on core {_listed(self.client)}"


def divide(millicores: int) -> Division:
    """Divide the cores for a server of this CPU limit: as many as it may use, the client on one that is left."""
    if not hasattr(os, "sched_setaffinity"):  # not on macOS
        return Division(None, None)
    cores = sorted(os.sched_getaffinity(0))
    wanted = -(-millicores // _MILLI)
    if len(cores) <= wanted:
        return Division(None, None)
    return Division(frozenset(cores[:wanted]), frozenset(cores[wanted:]))


@contextmanager
def on(cores: frozenset[int] | None) -> Iterator[None]:
    """Keep this thread on these cores, and whatever it starts meanwhile for ever; None changes nothing."""
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _listed(cores: frozenset[int]) -> str:
    return ",".join(str(core) for core in sorted(cores))

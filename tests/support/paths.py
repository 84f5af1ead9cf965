"""A request path with the tiny model and real threads, without a server around it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from assay.inference.engine import Engine
from assay.packs.archive import Pack
from assay.serving.admission import Admission
from assay.serving.batcher import Batcher
from assay.serving.cache import Cache
from assay.serving.executor import Executor
from assay.serving.model import Model
from assay.serving.pictures import PictureMemory
from assay.serving.request import RequestPath
from assay.settings import Settings
from assay.telemetry import Telemetry
from support.corpus.table import PICTURE_BYTES

TIMEOUT_S = 60  # for threads to end; the machines that run tests may be busy


@dataclass(frozen=True)
class Wired:
    """A request path, and the objects it was made of."""

    path: RequestPath
    admission: Admission
    executor: Executor
    batcher: Batcher | None
    telemetry: Telemetry

    def count(self, name: str, **labels: str) -> float:
        """A sample of its metrics."""
        registry: CollectorRegistry = self.telemetry.registry
        value = registry.get_sample_value(name, labels)
        assert value is not None, name
        return value

    def finish(self) -> None:
        """Work off what is queued, and end the threads."""
        self.executor.close()
        for thread in self.executor._threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
        if self.batcher is not None:
            self.batcher.close()
            self.batcher._thread.join(TIMEOUT_S)
            assert not self.batcher._thread.is_alive()


@contextmanager
def wired(pack: Pack, *, workers: int = 2, cache: Cache | None = None, **chosen: object) -> Iterator[Wired]:
    """A request path for this pack with these settings; its threads have ended afterwards."""
    settings = Settings(**{"deadline_ms": 60_000, "queue_budget_ms": 60_000, **chosen})
    telemetry, executor, engine = Telemetry(), Executor(workers), Engine(pack)
    admission = Admission(settings.queue_budget_ms, workers)
    batcher = None
    if settings.batching:
        batcher = Batcher(engine, settings.batch_max, settings.batch_window_ms / 1000, telemetry)
    if cache is None and settings.cache_bytes:
        cache = Cache(settings.cache_bytes, telemetry)
    path = RequestPath(
        Model("a test's", pack, engine),
        1.0,
        settings,
        admission,
        PictureMemory(PICTURE_BYTES, workers),
        executor,
        telemetry,
        batcher=batcher,
        cache=cache,
    )
    made = Wired(path, admission, executor, batcher, telemetry)
    try:
        yield made
    finally:
        made.finish()

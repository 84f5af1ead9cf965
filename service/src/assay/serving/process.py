"""The one place where the objects of a serving process are wired together."""

import asyncio
import os
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from assay.errors import SettingsError
from assay.platform.cpu import CpuLimit, cpu_limit
from assay.platform.memory import memory_limit_bytes, return_large_blocks
from assay.serving.admission import Admission
from assay.serving.batcher import Batcher
from assay.serving.cache import Cache
from assay.serving.errors import NotReadyError
from assay.serving.executor import Executor
from assay.serving.lifecycle import Lifecycle
from assay.serving.model import Model, batches_alike, load_model, warm_up
from assay.serving.pictures import PictureMemory
from assay.serving.receiving import ReceivingBudget
from assay.serving.request import RequestPath
from assay.settings import Settings
from assay.storage.queue import StoreQueue
from assay.storage.sinks import Sink
from assay.telemetry import Telemetry

if TYPE_CHECKING:
    from assay.tracing.export import Traces

_INPUT_SHARE = 42
"""Request bodies may hold this fraction of the memory limit, and pictures that are being decoded as much again. Of the
chart's 2 GiB these are twice 48 MiB, so that hostile input as a whole stays below 100 MiB (docs/measurements.md); and
48 MiB are a 12-megapixel photo as PNG, 8 bodies of a phone's camera, or 150 of an ordinary upload."""

_INPUT_DEFAULT = 48 << 20  # without a memory limit: as with the chart's
_INPUT_LEAST = 16 << 20  # in a small pod: 4 megapixels, two bodies of the largest size

_BATCHER_MILLICORES = 1500
"""Above this CPU limit one batching thread is what limits a process: the model takes two thirds of a request's CPU
time, so one thread in the model keeps half another one busy decoding."""

_STORE_SHARE = 4
"""The store's queue may hold this fraction of the memory limit, whatever its setting says: it must not end the pod."""

_log = structlog.get_logger()


@dataclass
class Slot:
    """Holds the request path once the model is loaded."""

    path: RequestPath | None = None

    def get(self) -> RequestPath:
        """The request path. Raises `NotReadyError` before it is there."""
        if self.path is None:
            raise NotReadyError("The model is being loaded and warmed up.")
        return self.path


@dataclass(frozen=True)
class Process:
    """Everything a serving process has one of."""

    settings: Settings
    limit: CpuLimit
    memory_limit_bytes: int | None
    workers: int
    telemetry: Telemetry
    executor: Executor
    admission: Admission
    receiving: ReceivingBudget
    pictures: PictureMemory
    lifecycle: Lifecycle
    cache: Cache | None
    store: StoreQueue | None
    traces: "Traces | None"
    slot: Slot = field(default_factory=Slot)

    async def load(self) -> None:
        """Load the model on a worker, warm it up on each, then take traffic. Raises what `load_model` raises."""
        model: Model = await self.executor.submit(lambda: load_model(self.settings))
        # As many at once as there are workers: each has memory of its own to touch for the first time.
        warm_ups = [self.executor.submit(lambda: warm_up(model)) for _ in range(self.workers)]
        model_ms = statistics.median(await asyncio.gather(*warm_ups))
        manifest = model.pack.manifest
        self.telemetry.set_model(manifest.name, manifest.precision, model.pack.digest)
        self.slot.path = RequestPath(
            model,
            model_ms,
            self.settings,
            self.admission,
            self.pictures,
            self.executor,
            self.telemetry,
            batcher=await self._batcher(model) if self.settings.batching else None,
            cache=self.cache,
        )
        self.lifecycle.loaded()
        _log.info(
            "The model is loaded and warm.",
            pack=manifest.name,
            precision=manifest.precision,
            digest=model.pack.digest,
            uri=model.uri,
            model_ms=round(model_ms, 2),
        )

    async def _batcher(self, model: Model) -> Batcher | None:
        """The batcher, every batch size warm; none where a batch would change the answers."""
        most = self.settings.batch_max
        if not await self.executor.submit(lambda: batches_alike(model, most)):
            _log.warning(
                "Images change each other's scores in this model, so it is served without batching. Packs quantised "
                "dynamically do that; a static recipe does not.",
                pack=model.pack.manifest.name,
            )
            return None
        if self.limit.millicores > _BATCHER_MILLICORES:
            _log.warning(
                "One thread computes all batches, so the model gets one core of this limit. Batch in pods of one core.",
                millicores=self.limit.millicores,
            )
        return Batcher(model.engine, most, self.settings.batch_window_ms / 1000, self.telemetry)


def worker_threads(settings: Settings, limit: CpuLimit) -> int:
    """One worker per whole core: a thread more would only be throttled together with the others.

    A limit may be higher than what the machine has, by much if its unit was mistaken; threads are not.
    """
    return settings.workers or max(1, min(limit.millicores // 1000, os.cpu_count() or 1))


def _tell_limit(limit: CpuLimit, workers: int) -> None:
    if limit.disagree:
        _log.warning(
            "The declared CPU limit and the control group's differ; the smaller is used. Check the pod's resources.",
            declared_millicores=limit.declared,
            cgroup_millicores=limit.cgroup,
        )
    if limit.unlimited:
        _log.warning(
            "No CPU limit is set; threads are sized for the whole machine. Set a limit, or ASSAY_CPU_LIMIT_MILLICORES.",
            millicores=limit.millicores,
        )
    _log.info("CPU is divided.", millicores=limit.millicores, source=limit.source, workers=workers)


def _store(settings: Settings, memory: int | None, telemetry: Telemetry) -> StoreQueue | None:
    """The queue of answers to be stored, if they are to be. Raises `SettingsError` for a URI that names no sink."""
    if not settings.store_uri:
        return None
    limit = min(settings.store_queue_bytes, memory // _STORE_SHARE if memory else settings.store_queue_bytes)
    store = StoreQueue(Sink(settings.store_uri), limit, telemetry)
    telemetry.store_queue_bytes.set_function(lambda: store.held_bytes)
    _log.info("Answers are stored.", uri=settings.store_uri, queue_bytes=limit)
    return store


def _traces(settings: Settings, telemetry: Telemetry) -> "Traces | None":
    """The queue of traces to be sent, if any are. Raises `SettingsError` where what sends them is not installed."""
    if not settings.traces_endpoint:
        return None
    try:
        from assay.tracing.export import Traces  # here: a process without traces pays nothing for what they need
    except ImportError as error:
        raise SettingsError(
            f"ASSAY_TRACES_ENDPOINT is set, and what sends traces is not installed ({error.name}): "
            "pip install 'service[traces]' in a checkout."
        ) from error
    traces = Traces(settings.traces_endpoint, settings.traces_ratio, telemetry)
    _log.info("Requests are traced.", endpoint=traces.endpoint, ratio=settings.traces_ratio)
    return traces


def build_process(settings: Settings) -> Process:
    """The objects of a process with these settings; its model is not loaded yet."""
    return_large_blocks()
    limit = cpu_limit(settings.cpu_limit_millicores or None)
    memory = memory_limit_bytes(settings.memory_limit_bytes or None)
    workers = worker_threads(settings, limit)
    _tell_limit(limit, workers)
    optional = {"cache": settings.cache_bytes > 0, "batch_wait": settings.batching}
    telemetry = Telemetry([stage for stage, on in optional.items() if on])
    cores = limit.millicores / 1000
    disagreement = (limit.declared - limit.cgroup) / 1000 if limit.declared and limit.cgroup else 0.0
    telemetry.set_limits(cores, workers, disagreement)
    admission = Admission(settings.queue_budget_ms, min(cores, workers))
    telemetry.queue_cost.set_function(lambda: admission.waiting_ms / 1000)
    cache = Cache(settings.cache_bytes, telemetry) if settings.cache_bytes else None
    if cache is not None:
        telemetry.cache_bytes.set_function(lambda: cache.bytes)
    share = max(_INPUT_LEAST, memory // _INPUT_SHARE if memory else _INPUT_DEFAULT)
    return Process(
        settings=settings,
        limit=limit,
        memory_limit_bytes=memory,
        workers=workers,
        telemetry=telemetry,
        executor=Executor(workers),
        admission=admission,
        receiving=ReceivingBudget(max(settings.max_receiving_bytes or share, settings.max_body_bytes)),
        pictures=PictureMemory(settings.max_picture_bytes or share, workers),
        lifecycle=Lifecycle(telemetry),
        cache=cache,
        store=_store(settings, memory, telemetry),
        traces=_traces(settings, telemetry),
    )

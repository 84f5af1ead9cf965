"""A request's way through the service, once its body is here: cache, header, price, admission, worker, answer."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from assay.serving.admission import Admission
from assay.serving.batcher import Batcher, Waiting
from assay.serving.cache import Cache, key_of
from assay.serving.errors import AbandonedError, DeadlineExceededError
from assay.serving.executor import Executor, Reply
from assay.serving.model import Model
from assay.serving.pictures import PictureMemory
from assay.serving.pricing import PriceList, is_dear
from assay.serving.stages import Classified, Prepared, infer, prepare
from assay.settings import Settings
from assay.telemetry import Telemetry
from assay.vision.decode import picture_bytes
from assay.vision.errors import ImageError, TooManyPixels
from assay.vision.header import ImageHeader, read_header


@dataclass(frozen=True, slots=True)
class Answer:
    """What an image shows: (class index, label, score), best first. ``stages``: wall seconds, without ``respond``.

    ``cpu_s``: CPU seconds on worker and batcher; none for an answer that another request has paid for. ``finished``:
    `time.perf_counter` when the answer was there.
    """

    predictions: Sequence[tuple[int, str, float]]
    stages: dict[str, float]
    cpu_s: float
    finished: float

    @staticmethod
    def total(answers: Sequence["Answer"]) -> "Answer":
        """The answers to one request's images as one: their predictions in a row, their times added up."""
        stages: dict[str, float] = {}
        for answer in answers:
            for name, seconds in answer.stages.items():
                stages[name] = stages.get(name, 0.0) + seconds
        return Answer(
            predictions=[found for answer in answers for found in answer.predictions],
            stages=stages,
            cpu_s=sum(answer.cpu_s for answer in answers),
            finished=answers[-1].finished,
        )


Picture = bytes | NDArray[np.uint8]
"""An image of a request: an encoded file, or the model's own input, uint8 [crop, crop, 3]."""


@dataclass(frozen=True, slots=True)
class _Job:
    """An admitted image. Times are those of `time.perf_counter`; ``model_ms`` is the model's part of the price.

    ``queued``: since when it waits. ``received``: when its request was admitted, from which the deadline counts.
    ``memory``: bytes that decoding takes. ``gone``: whether the client has hung up.
    """

    picture: Picture
    header: ImageHeader | None
    top_k: int
    price_ms: float
    model_ms: float
    queued: float
    received: float
    memory: int
    gone: Callable[[], bool]


def _never_gone() -> bool:
    return False


class RequestPath:
    """Takes images to answers for one loaded model. Lives on the event loop; the stages run on worker threads.

    ``batcher``: computes the model if given, else each worker does. ``cache``: may be shared with the path of another
    model.
    """

    def __init__(
        self,
        model: Model,
        model_ms: float,
        settings: Settings,
        admission: Admission,
        pictures: PictureMemory,
        executor: Executor,
        telemetry: Telemetry,
        *,
        batcher: Batcher | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.model = model
        self._max_pixels = settings.max_pixels
        self._deadline_s = settings.deadline_ms / 1000
        self._admission = admission
        self._pictures = pictures
        self._executor = executor
        self._telemetry = telemetry
        self._prices = PriceList(model.pack.manifest.preprocess, model_ms)
        self._batcher = batcher
        self._cache = cache

    async def classify(self, data: bytes, top_k: int, started: float, gone: Callable[[], bool] = _never_gone) -> Answer:
        """Labels of an encoded image. ``started``: `time.perf_counter` when the request arrived.

        ``gone`` tells whether the client has hung up; it is asked on a worker. Raises the errors of ``vision`` for the
        image, `OverloadedError` when the queue is full, `DeadlineExceededError` when the request waited too long,
        `AbandonedError` when nobody waits for the answer any more.
        """
        if self._cache is None:
            return await self._compute(data, top_k, started, gone)
        received = time.perf_counter()
        key = await key_of(data, self.model.pack.digest, top_k)
        found = await self._cache.find(key)
        looked_up = time.perf_counter()
        stages = {"receive": received - started, "cache": looked_up - received}
        if found is not None:
            return Answer(found, stages, 0.0, looked_up)
        with self._cache.lead(key) as land:
            answer = await self._compute(data, top_k, looked_up, gone, received)
            land(tuple(answer.predictions))
        stages["receive"] += answer.stages["receive"]  # header and admission
        return replace(answer, stages=answer.stages | stages)

    async def _compute(
        self, data: bytes, top_k: int, started: float, gone: Callable[[], bool], received: float | None = None
    ) -> Answer:
        """The answer by way of worker and model. ``received``: since when the deadline counts; else from here."""
        header = read_header(data, self._max_pixels)
        self._telemetry.observe_pixels(header.pixels)
        memory = self._memory(header)
        price_ms = self._prices.price_ms(header)
        self._admission.admit(price_ms)
        queued = time.perf_counter()
        job = _Job(data, header, top_k, price_ms, self._prices.model_ms, queued, received or queued, memory, gone)
        return await self._answer(job, started)

    def _memory(self, header: ImageHeader) -> int:
        """Bytes that decoding takes. Raises `TooManyPixels` where that is more than may be."""
        memory = picture_bytes(header, self.model.pack.manifest.preprocess)
        self._pictures.check(header, memory)
        return memory

    async def classify_several(
        self, pictures: Sequence[Picture], top_k: int, started: float, gone: Callable[[], bool] = _never_gone
    ) -> list[Answer]:
        """Labels of each of a request's images, in order; at least one. Raises what `classify` raises, for any of them.

        All are admitted at once or none is, and may have as many pixels together as one image may. They are then
        worked on one after the other, so that a request of many images takes turns with everybody else's, and the
        deadline is that of the whole request. The cache knows single images only.
        """
        if self._cache is not None and len(pictures) == 1 and isinstance(pictures[0], bytes):
            try:
                return [await self.classify(pictures[0], top_k, started, gone)]
            except ImageError as error:
                raise type(error)(f"Image 0: {error}") from error
        headers = self._headers(pictures)
        model_ms = self._prices.model_ms
        prices = [
            self._prices.tensor_price_ms() if header is None else self._prices.price_ms(header) for header in headers
        ]
        self._admission.admit(sum(prices), len(prices))
        received = time.perf_counter()
        answers: list[Answer] = []
        handed_over = 0
        try:
            for picture, header, price_ms in zip(pictures, headers, prices, strict=True):
                handed_over += 1
                queued = time.perf_counter() if answers else received
                memory = self._memory(header) if header else 0
                job = _Job(picture, header, top_k, price_ms, model_ms, queued, received, memory, gone)
                answers.append(await self._answer(job, started))
                started = answers[-1].finished
        except ImageError as error:
            raise type(error)(f"Image {len(answers)}: {error}") from error
        finally:
            for price_ms in prices[handed_over:]:
                self._admission.leave(price_ms)
        return answers

    def _headers(self, pictures: Sequence[Picture]) -> list[ImageHeader | None]:
        """The header of each encoded image; nothing where the pixels are here already."""
        headers: list[ImageHeader | None] = []
        pixels = 0
        for picture in pictures:
            header = None
            if isinstance(picture, bytes):
                try:
                    header = read_header(picture, self._max_pixels)
                    self._memory(header)
                except ImageError as error:
                    raise type(error)(f"Image {len(headers)}: {error}") from error
                pixels += header.pixels
            headers.append(header)
        if pixels > self._max_pixels:
            raise TooManyPixels(
                f"The images have {pixels} pixels together; a request may have {self._max_pixels}: send fewer at once, "
                "or scale them down."
            )
        for header in headers:
            if header is not None:
                self._telemetry.observe_pixels(header.pixels)
        return headers

    async def _answer(self, job: _Job, started: float) -> Answer:
        """The answer to one admitted image; ``started``: where the stage ``receive`` begins."""
        result = await (self._in_lane(job) if self._pictures.is_large(job.memory) else self._result(job))
        if job.header is None:
            self._prices.learn_model(result.model_cpu_s * 1000)
        else:
            self._prices.learn(job.header, result.pixels_cpu_s * 1000, result.model_cpu_s * 1000)
        labels = self.model.pack.labels
        return Answer(
            predictions=[(index, labels[index], score) for index, score in result.predictions],
            stages={"receive": job.queued - started, **result.stages},
            cpu_s=result.cpu_s,
            finished=result.finished,
        )

    def _is_dear(self, job: _Job) -> bool:
        return is_dear(job.price_ms - job.model_ms, self._deadline_s)

    def _result(self, job: _Job) -> asyncio.Future[Classified]:
        if self._batcher is None:
            return self._executor.submit(partial(self._work, job), dear=self._is_dear(job))
        return self._batch(self._batcher, job)

    async def _in_lane(self, job: _Job) -> Classified:
        """The result for a large picture; it may wait for others of its kind first."""
        try:
            await self._pictures.enter(job.memory)
        except asyncio.CancelledError:
            self._admission.leave(job.price_ms)
            raise
        try:
            return await self._result(job)
        finally:
            self._pictures.leave(job.memory)

    def _begin(self, job: _Job) -> float:
        """When the work on an image begins. What is too late, or for nobody, is dropped here, at no cost."""
        if job.gone():
            raise AbandonedError("The client hung up while its request waited.")
        begun = time.perf_counter()
        if begun - job.received > self._deadline_s:
            raise DeadlineExceededError(
                f"The request waited {begun - job.received:.2f} s, beyond its deadline of {self._deadline_s:.2f} s."
            )
        return begun

    def _work(self, job: _Job) -> Classified:
        """The worker's part."""
        self._admission.leave(job.price_ms)
        begun = self._begin(job)
        result = infer(self._prepared(job, begun), self.model.engine, top_k=job.top_k)
        result.stages["queue"] = begun - job.queued
        return result

    def _batch(self, batcher: Batcher, job: _Job) -> asyncio.Future[Classified]:
        """Have a worker prepare the image, and the batcher do the rest."""
        reply: Reply[Classified] = Reply()
        batcher.expect()
        work = partial(self._prepare, batcher, job, reply)
        self._executor.submit_for(reply, work, dear=self._is_dear(job))
        return reply.future

    def _prepare(self, batcher: Batcher, job: _Job, reply: Reply[Classified]) -> None:
        """The worker's part when batching: its image goes on waiting, for the model."""
        self._admission.begin(job.price_ms - job.model_ms)
        leave = partial(self._admission.leave, job.model_ms)
        try:
            begun = self._begin(job)
            prepared = self._prepared(job, begun)
        except BaseException:
            leave()
            batcher.forgo()
            raise
        prepared.stages["queue"] = begun - job.queued
        batcher.put(Waiting(prepared, job.top_k, job.received + self._deadline_s, leave, reply))

    def _prepared(self, job: _Job, begun: float) -> Prepared:
        if not isinstance(job.picture, bytes):
            return Prepared(job.picture, {}, 0.0, begun)
        assert job.header is not None  # noqa: S101 - every encoded image has one
        return prepare(job.picture, job.header, self.model.pack.manifest.preprocess, started=begun)

"""A request's way through the service, once its body is here: header, price, admission, worker, answer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from assay.serving.admission import Admission
from assay.serving.errors import DeadlineExceededError
from assay.serving.executor import Executor
from assay.serving.model import Model
from assay.serving.pricing import PriceList
from assay.serving.stages import Classified, classify, classify_pixels
from assay.settings import Settings
from assay.telemetry import Telemetry
from assay.vision.errors import ImageError, TooManyPixels
from assay.vision.header import ImageHeader, read_header


@dataclass(frozen=True, slots=True)
class Answer:
    """What an image shows: (class index, label, score), best first. ``stages``: wall seconds, without ``respond``.

    ``cpu_s``: CPU seconds on the worker. ``finished``: `time.perf_counter` when the worker was done.
    """

    predictions: list[tuple[int, str, float]]
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


class RequestPath:
    """Takes images to answers for one loaded model. Lives on the event loop; the stages run on worker threads."""

    def __init__(
        self,
        model: Model,
        model_ms: float,
        settings: Settings,
        admission: Admission,
        executor: Executor,
        telemetry: Telemetry,
    ) -> None:
        self.model = model
        self._max_pixels = settings.max_pixels
        self._deadline_s = settings.deadline_ms / 1000
        self._admission = admission
        self._executor = executor
        self._telemetry = telemetry
        self._prices = PriceList(model.pack.manifest.preprocess, model_ms)

    async def classify(self, data: bytes, top_k: int, started: float) -> Answer:
        """Labels of an encoded image. ``started``: `time.perf_counter` when the request arrived.

        Raises the errors of ``vision`` for the image, `OverloadedError` when the queue is full, `DeadlineExceededError`
        when the request waited too long.
        """
        header = read_header(data, self._max_pixels)
        self._telemetry.observe_pixels(header.pixels)
        price_ms = self._prices.price_ms(header)
        self._admission.admit(price_ms)
        received = time.perf_counter()
        return await self._answer(data, header, top_k, price_ms, started, received, received)

    async def classify_several(self, pictures: Sequence[Picture], top_k: int, started: float) -> list[Answer]:
        """Labels of each of a request's images, in order; at least one. Raises what `classify` raises, for any of them.

        All are admitted at once or none is, and may have as many pixels together as one image may. They are then
        worked on one after the other, so that a request of many images takes turns with everybody else's, and the
        deadline is that of the whole request.
        """
        headers = self._headers(pictures)
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
                answers.append(await self._answer(picture, header, top_k, price_ms, started, queued, received))
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

    async def _answer(
        self,
        picture: Picture,
        header: ImageHeader | None,
        top_k: int,
        price_ms: float,
        started: float,
        queued: float,
        received: float,
    ) -> Answer:
        """The answer to one admitted image, which waits since ``queued``, of a request that was ``received``."""
        work = partial(self._work, picture, header, top_k, price_ms, queued, received)
        result = await self._executor.submit(work)
        if header is None:
            self._prices.learn_model(result.model_cpu_s * 1000)
        else:
            self._prices.learn(header, result.pixels_cpu_s * 1000, result.model_cpu_s * 1000)
        labels = self.model.pack.labels
        return Answer(
            predictions=[(index, labels[index], score) for index, score in result.predictions],
            stages={"receive": queued - started, **result.stages},
            cpu_s=result.cpu_s,
            finished=result.finished,
        )

    def _work(
        self,
        picture: Picture,
        header: ImageHeader | None,
        top_k: int,
        price_ms: float,
        queued: float,
        received: float,
    ) -> Classified:
        """The worker's part. What is too late is dropped here, before anything was spent on it."""
        self._admission.leave(price_ms)
        begun = time.perf_counter()
        if begun - received > self._deadline_s:
            raise DeadlineExceededError(
                f"The request waited {begun - received:.2f} s, beyond its deadline of {self._deadline_s:.2f} s."
            )
        if isinstance(picture, bytes):
            assert header is not None  # noqa: S101 - every encoded image has one
            result = classify(picture, header, self.model.pack, self.model.engine, top_k=top_k, started=begun)
        else:
            result = classify_pixels(picture, self.model.engine, top_k=top_k, started=begun)
        result.stages["queue"] = begun - queued
        return result

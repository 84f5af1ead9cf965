"""A request's way through the service, once its body is here: header, price, admission, worker, answer."""

import time
from dataclasses import dataclass
from functools import partial

from assay.serving.admission import Admission
from assay.serving.errors import DeadlineExceededError
from assay.serving.executor import Executor
from assay.serving.model import Model
from assay.serving.pricing import PriceList
from assay.serving.stages import Classified, classify
from assay.settings import Settings
from assay.telemetry import Telemetry
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
        result = await self._executor.submit(partial(self._work, data, header, top_k, price_ms, received))
        self._prices.learn(header, result.pixels_cpu_s * 1000, result.model_cpu_s * 1000)
        labels = self.model.pack.labels
        return Answer(
            predictions=[(index, labels[index], score) for index, score in result.predictions],
            stages={"receive": received - started, **result.stages},
            cpu_s=result.cpu_s,
            finished=result.finished,
        )

    def _work(self, data: bytes, header: ImageHeader, top_k: int, price_ms: float, received: float) -> Classified:
        """The worker's part. What is too late is dropped here, before anything was spent on it."""
        self._admission.leave(price_ms)
        begun = time.perf_counter()
        if begun - received > self._deadline_s:
            raise DeadlineExceededError(
                f"The request waited {begun - received:.2f} s, beyond its deadline of {self._deadline_s:.2f} s."
            )
        result = classify(data, header, self.model.pack, self.model.engine, top_k=top_k, started=begun)
        result.stages["queue"] = begun - received
        return result

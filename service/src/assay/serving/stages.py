"""The stages of a request that need the CPU, in order, on one thread; each is timed where it ends.

Nothing here knows of queues or HTTP: the service runs it on its workers, ``assay classify`` on the main thread.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assay.inference.engine import Engine
from assay.inference.postprocess import best_classes
from assay.packs.archive import Pack
from assay.vision.decode import decode
from assay.vision.header import ImageHeader
from assay.vision.preprocess import preprocess


@dataclass(frozen=True, slots=True)
class Classified:
    """An image's best classes, and what finding them took.

    ``predictions``: (class index, score), best first. ``stages``: wall seconds by name. ``*_cpu_s``: CPU seconds of
    this thread, up to the model's input, in the model, and in all. ``finished``: `time.perf_counter` at the end.
    """

    predictions: list[tuple[int, float]]
    stages: dict[str, float]
    pixels_cpu_s: float
    model_cpu_s: float
    cpu_s: float
    finished: float


def classify(data: bytes, header: ImageHeader, pack: Pack, engine: Engine, *, top_k: int, started: float) -> Classified:
    """Classify an encoded image whose header was read. ``started``: `time.perf_counter` where the first stage begins.

    Raises the errors of `assay.vision.errors`.
    """
    geometry = pack.manifest.preprocess
    cpu_started = time.thread_time()
    picture = decode(data, header, geometry)
    decoded = time.perf_counter()
    pixels = preprocess(picture, geometry, header.upright_size)
    preprocessed, cpu_preprocessed = time.perf_counter(), time.thread_time()
    result = classify_pixels(pixels, engine, top_k=top_k, started=preprocessed)
    pixels_cpu_s = cpu_preprocessed - cpu_started
    return replace(
        result,
        stages={"decode": decoded - started, "preprocess": preprocessed - decoded, **result.stages},
        pixels_cpu_s=pixels_cpu_s,
        cpu_s=pixels_cpu_s + result.cpu_s,
    )


def classify_pixels(pixels: NDArray[np.uint8], engine: Engine, *, top_k: int, started: float) -> Classified:
    """Classify the model's own input, uint8 [crop, crop, 3]; ``started`` as above.

    Raises `PackError` when the model fails on it.
    """
    cpu_started = time.thread_time()
    logits = engine.infer(pixels[None])
    inferred, cpu_inferred = time.perf_counter(), time.thread_time()
    best = best_classes(logits[0], top_k)
    finished, cpu_finished = time.perf_counter(), time.thread_time()
    return Classified(
        predictions=best,
        stages={"infer": inferred - started, "postprocess": finished - inferred},
        pixels_cpu_s=0.0,
        model_cpu_s=cpu_inferred - cpu_started,
        cpu_s=cpu_finished - cpu_started,
        finished=finished,
    )

"""The stages of a request that need the CPU, in order; each is timed where it ends.

Nothing here knows of queues or HTTP: the service runs them on its workers, ``assay classify`` on the main thread. When
batching, a worker runs `prepare` and the batcher the rest.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.inference.engine import Engine
from assay.inference.postprocess import best_classes
from assay.packs.archive import Pack
from assay.vision.decode import decode
from assay.vision.geometry import Geometry
from assay.vision.header import ImageHeader
from assay.vision.preprocess import preprocess


@dataclass(frozen=True, slots=True)
class Prepared:
    """An image as the model takes it, uint8 [crop, crop, 3], and what that took, as in `Classified`."""

    pixels: NDArray[np.uint8]
    stages: dict[str, float]
    cpu_s: float
    finished: float


@dataclass(frozen=True, slots=True)
class Classified:
    """An image's best classes, and what finding them took.

    ``predictions``: (class index, score), best first. ``stages``: wall seconds by name. ``*_cpu_s``: CPU seconds, up to
    the model's input, in the model, and in all. ``finished``: `time.perf_counter` at the end.
    """

    predictions: list[tuple[int, float]]
    stages: dict[str, float]
    pixels_cpu_s: float
    model_cpu_s: float
    cpu_s: float
    finished: float


def prepare(data: bytes, header: ImageHeader, geometry: Geometry, *, started: float) -> Prepared:
    """Decode an image whose header was read. ``started``: `time.perf_counter` where the first stage begins.

    Raises the errors of `assay.vision.errors`.
    """
    cpu_started = time.thread_time()
    picture = decode(data, header, geometry)
    decoded = time.perf_counter()
    pixels = preprocess(picture, geometry, header.upright_size, header.decoded_orientation)
    finished, cpu_finished = time.perf_counter(), time.thread_time()
    stages = {"decode": decoded - started, "preprocess": finished - decoded}
    return Prepared(pixels, stages, cpu_finished - cpu_started, finished)


def rank(
    logits: NDArray[np.float32], top_k: int, prepared: Prepared, model_cpu_s: float, inferred: float
) -> Classified:
    """Rank the classes of one image: logits float32 [classes]; ``model_cpu_s`` and ``inferred`` tell of the model."""
    cpu_started = time.thread_time()
    best = best_classes(logits, top_k)
    finished, cpu_finished = time.perf_counter(), time.thread_time()
    prepared.stages["postprocess"] = finished - inferred
    return Classified(
        predictions=best,
        stages=prepared.stages,
        pixels_cpu_s=prepared.cpu_s,
        model_cpu_s=model_cpu_s,
        cpu_s=prepared.cpu_s + model_cpu_s + cpu_finished - cpu_started,
        finished=finished,
    )


def infer(prepared: Prepared, engine: Engine, *, top_k: int) -> Classified:
    """Have the model classify one image on this thread. Raises `PackError` when the model fails on it."""
    cpu_started = time.thread_time()
    logits = engine.infer(prepared.pixels[None])
    inferred, cpu_inferred = time.perf_counter(), time.thread_time()
    prepared.stages["infer"] = inferred - prepared.finished
    return rank(logits[0], top_k, prepared, cpu_inferred - cpu_started, inferred)


def classify(data: bytes, header: ImageHeader, pack: Pack, engine: Engine, *, top_k: int, started: float) -> Classified:
    """Classify an encoded image on this thread: `prepare`, then `infer`."""
    return infer(prepare(data, header, pack.manifest.preprocess, started=started), engine, top_k=top_k)

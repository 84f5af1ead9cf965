"""One model in its variants: PyTorch eager where there is one, ONNX FP32, dynamic and static INT8; one image at a time.

Everything is timed from uint8 pixels to logits, at batch 1, all variants taking turns on the same images.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from assay.bench.pytorch import Build, PyTorchMissingError, Worker
from assay.bench.report import Cell, Chart, Column, Report, now, versions
from assay.bench.timing import Call, Sample, Timings, interleave, timed
from assay.errors import BenchError
from assay.inference.engine import Engine
from assay.packs.archive import Pack

FP32: Final = "ONNX FP32"

COLUMNS: Final = (
    Column(key="variant", title="variant"),
    Column(key="threads", title="threads", decimals=0),
    Column(key="mean_ms", title="mean", unit="ms", decimals=2),
    Column(key="p50_ms", title="p50", unit="ms", decimals=2),
    Column(key="p95_ms", title="p95", unit="ms", decimals=2),
    Column(key="p99_ms", title="p99", unit="ms", decimals=2),
    Column(key="cpu_ms", title="cost", unit="CPU-ms", decimals=2),
    Column(key="of_fp32", title=f"of {FP32}", decimals=2),
    Column(key="size_mb", title="size", unit="MB", decimals=1),
    Column(key="agreement_percent", title="top-1 as FP32", unit="%", decimals=1),
)

TIMED_IMAGES: Final = 32
"""Different images that calls go round on; a model's time hardly depends on what it sees, its caches' state may."""

Begin = Callable[[str], Callable[[int, int], None] | None]


@dataclass(frozen=True)
class Variant:
    """One ONNX model to run. ``pack`` is the source's with another model where it is quantised."""

    name: str
    pack: Pack


@dataclass(frozen=True)
class PyTorch:
    """Where PyTorch is, and the weights its model gets: None for random ones of its own."""

    python: str
    architecture: str
    tensors: dict[str, NDArray[Any]] | None = None


@dataclass
class _Run:
    """What is running: a call for each variant at each number of threads, what it weighs, and what to say about it."""

    calls: dict[tuple[str, int], Call] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    agreement: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def measure(
    source: Pack,
    quantised: Sequence[Variant],
    images: Sequence[NDArray[np.uint8]],
    *,
    threads: Sequence[int],
    trained: bool,
    pytorch: PyTorch | None = None,
    notes: Sequence[str] = (),
    calls: int = 100,
    warmups: int = 10,
    seed: int = 1,
    max_seconds: float = 240,
    progress: Begin | None = None,
) -> Report:
    """Time a source pack (FP32), its quantised variants and PyTorch on images, uint8 [1, crop, crop, 3] each.

    Labels are compared on all images, unless the model was not ``trained``; times are taken on some of them. Raises
    ``BenchError`` without images, and what ``Engine`` raises; a missing PyTorch becomes a note.
    """
    if not images:
        raise BenchError("there is no image to measure on: name a dataset that has some with --judge")
    started, begin, run = now(), progress or (lambda _step: None), _Run(notes=list(notes))
    timed_images = [images[index * len(images) // TIMED_IMAGES] for index in range(min(TIMED_IMAGES, len(images)))]
    variants = (Variant(FP32, source), *quantised)
    with ExitStack() as stack:
        begin("loading models")
        if pytorch:
            _add_pytorch(run, stack, pytorch, source, threads, timed_images)
        for variant in variants:
            run.sizes[variant.name] = len(variant.pack.model)
            for count in threads:
                run.calls[variant.name, count] = _engine_call(Engine(variant.pack, count), count, timed_images)
        if trained:
            run.agreement |= _agreement(variants, images, begin("comparing labels"))
        named = {_key(*contender): call for contender, call in run.calls.items()}
        timings = interleave(named, calls, warmups, seed, max_seconds, begin("timing"))
    run.notes += _remarks(timings, len(images), calls, max_seconds, trained=trained)
    return Report(
        bench="variants",
        title=f"{source.manifest.architecture}: one image, from pixels to logits",
        columns=COLUMNS,
        rows=tuple(_row(run, name, count, timings) for name, count in run.calls),
        notes=tuple(run.notes),
        charts=(
            Chart(
                kind="bars", x="variant", y="mean_ms", series=("threads",), high="p95_ms",
                title="Time: mean, and up to the 95th percentile",
            ),
            Chart(kind="bars", x="variant", y="cpu_ms", series=("threads",), title="Cost: mean CPU time"),
        ),
        versions=versions("onnxruntime", "onnx", "numpy"),
        started_at=started,
    )  # fmt: skip


def _engine_call(engine: Engine, threads: int, images: Sequence[NDArray[np.uint8]]) -> Call:
    return lambda number: timed(lambda: engine.infer(images[number % len(images)]), threads=threads)


def _add_pytorch(
    run: _Run,
    stack: ExitStack,
    pytorch: PyTorch,
    source: Pack,
    threads: Sequence[int],
    images: Sequence[NDArray[np.uint8]],
) -> None:
    """Start a worker for each number of threads, and hold its logits against those of the ONNX model."""
    norm = source.manifest.preprocess.normalisation
    try:
        workers = {
            count: stack.enter_context(Worker(pytorch.python, pytorch.architecture, count, norm, pytorch.tensors))
            for count in threads
        }
    except PyTorchMissingError as error:
        run.notes.append(f"{error}.")
        return
    build = workers[threads[0]].build
    for count, worker in workers.items():
        run.calls[build.name, count] = _worker_call(worker, images)
    run.sizes[build.name] = build.state_bytes
    run.notes.append(build.remark)
    if pytorch.tensors is None:
        run.notes.append("Its weights are random, its own: time does not depend on them.")
    else:
        run.notes.append(_parity(build, workers[threads[0]], Engine(source), images))


def _worker_call(worker: Worker, images: Sequence[NDArray[np.uint8]]) -> Call:
    def call(number: int) -> Sample:
        return worker.infer(images[number % len(images)])[0]

    return call


def _parity(build: Build, worker: Worker, engine: Engine, images: Sequence[NDArray[np.uint8]]) -> str:
    """Say how far both models' logits are apart: the same weights must give the same answers."""
    same, apart = 0, 0.0
    for image in images:
        theirs, ours = worker.infer(image)[1][0], engine.infer(image)[0]
        same += int(theirs.argmax() == ours.argmax())
        apart = max(apart, float(np.abs(theirs - ours).max() / np.abs(theirs).max()))
    return (
        f"{build.name} has the weights of {FP32}: top-1 the same on {same} of {len(images)} images, logits apart by at "
        f"most {apart:.1e} of the largest."
    )


def _agreement(
    variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]], progress: Callable[[int, int], None] | None
) -> dict[str, float]:
    """Percentage of images on which each variant's top-1 is that of the first."""
    engines = [Engine(variant.pack) for variant in variants]
    found = np.zeros((len(images), len(engines)), int)
    for number, image in enumerate(images):
        found[number] = [int(engine.infer(image)[0].argmax()) for engine in engines]
        if progress:
            progress(number + 1, len(images))
    shares = (found == found[:, :1]).mean(axis=0) * 100
    return {variant.name: float(share) for variant, share in zip(variants[1:], shares[1:], strict=True)}


def _key(name: str, threads: int) -> str:
    return f"{name} @ {threads}"


def _row(run: _Run, name: str, threads: int, timings: Timings) -> dict[str, Cell]:
    wall = timings.wall(_key(name, threads))
    return {
        "variant": name,
        "threads": threads,
        "mean_ms": wall.mean,
        "p50_ms": wall.p50,
        "p95_ms": wall.p95,
        "p99_ms": wall.p99,
        "cpu_ms": timings.cpu(_key(name, threads)).mean,
        "of_fp32": timings.ratio(_key(name, threads), _key(FP32, threads)),
        "size_mb": run.sizes[name] / 1e6,
        "agreement_percent": run.agreement.get(name),
    }


def _remarks(timings: Timings, images: int, calls: int, max_seconds: float, *, trained: bool) -> list[str]:
    remarks = [
        f"{timings.rounds} calls of each, all taking turns, at batch 1, from uint8 pixels to logits.",
        f"'of {FP32}': median of the ratios of times in one round, with as many threads.",
    ]
    if trained:
        remarks.append(f"Labels compared on {images} images.")
    else:
        remarks.append("Random weights: time, cost and size are real, labels mean nothing (n/a).")
    if not timings.complete:
        remarks.append(f"Ended after {max_seconds:g} s, before the {calls} calls that were asked for.")
    return remarks

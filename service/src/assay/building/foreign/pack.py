"""``assay model pack``: from anyone's ONNX file and labels to a pack that was run before it is written."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto
from pydantic import ValidationError

from assay.building.foreign import batch, scores
from assay.building.foreign.file import read_source
from assay.building.foreign.interface import Interface, Layout, choose_output, class_count, examine, usual_resize
from assay.building.foreign.labels import fit_labels, read_labels
from assay.building.foreign.proof import UnevenBatchError, probes, prove
from assay.building.foreign.tidy import OLDEST_OPSET, converted, is_quantised, opset, tidied
from assay.building.foreign.wrap import Pixels, wrap
from assay.building.graph import OPSET
from assay.building.models import versions
from assay.errors import BuildError
from assay.packs.archive import Pack, write_pack
from assay.packs.manifest import Manifest, Normalisation, Preprocess, Source

Triple = tuple[float, float, float]

_QUANTISABLE: Final = range(13, 22)
"""Opsets that `assay model quantize` can write: 13 brought one scale per channel; ONNX Runtime's kernels for the newest
opsets come one by one, and what reads its pack may be older than what wrote it."""

_ALIKE: Final = 1e-3
"""Largest change by raising the opset, as a share of the largest score: the operators are the same, to the rounding."""

_RAW: Final = Pixels((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


@dataclass(frozen=True)
class Order:
    """What the user asks for. None leaves it to the model (or to the usual: see ``model pack --help``)."""

    onnx: Path
    labels: Path
    name: str
    mean: Triple | None = None
    std: Triple | None = None
    layout: Layout | None = None
    output: str | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    resize: int | None = None
    crop: int | None = None
    architecture: str | None = None
    licence: str = "unknown"
    photo: Path | None = None


@dataclass(frozen=True)
class Packed:
    """A finished pack: its digest, what was done to the model (sentences), and its logits of the photo."""

    digest: str
    notes: tuple[str, ...]
    labels: tuple[str, ...]
    logits: NDArray[np.float32]


def pack_onnx(order: Order, out: Path, progress: Callable[[str], object] | None = None) -> Packed:
    """Make a pack of an ONNX file; the same files and versions give the same bytes.

    ``progress`` is told each step by name. Raises ``BuildError``, one sentence with what is wrong and what to do, and
    writes nothing then.
    """
    step = progress or (lambda _name: None)
    step("reading")
    source, labels = read_source(order.onnx), read_labels(order.labels)
    notes = [f"weights of {', '.join(source.external)} are inside the pack"] if source.external else []
    model = tidied(source.model)
    choose_output(model, order.output)
    interface = examine(model, order.layout, order.crop)
    pixels = _pixels(order, interface)
    classes = class_count(model, interface)
    named = fit_labels(labels, classes, order.labels)
    if scores.without_softmax(model, interface):
        notes.append("the softmax at the end is removed: the service applies it")
    manifest = _manifest(order, model, interface, pixels, source.sha256)
    trial = _Trial(manifest, named, interface, pixels, probes(order.photo, manifest.preprocess), step)
    made, said = trial.run(model)
    step("writing")
    digest = write_pack(out, manifest, made.model, named)
    return Packed(digest, (*notes, *said), named, made.logits[1])


@dataclass(frozen=True)
class _Made:
    """A graph for the pack, and its logits of the probes."""

    model: bytes
    logits: NDArray[np.float32]


class _Trial:
    """Tries forms of a model until one runs as a service needs it: as it is, its batch freed, at a newer opset."""

    def __init__(
        self,
        manifest: Manifest,
        labels: tuple[str, ...],
        interface: Interface,
        pixels: Pixels,
        images: NDArray[np.uint8],
        step: Callable[[str], object],
    ) -> None:
        self._manifest, self._labels, self._interface = manifest, labels, interface
        self._pixels, self._images, self._step = pixels, images, step

    def run(self, model: onnx.ModelProto) -> tuple[_Made, list[str]]:
        """Return the best form that runs, and sentences about it."""
        version = opset(model)
        if version in _QUANTISABLE:
            return self._settled(model)
        moved = converted(model, OPSET)
        if version < OLDEST_OPSET:
            if moved is None:
                raise BuildError(
                    f"the model uses opset {version}, older than {OLDEST_OPSET}, and cannot be converted: export it "
                    "for opset 17"
                )
            made, notes = self._settled(moved)
            return made, [*notes, f"moved from opset {version} to {OPSET}"]
        made, notes = self._settled(model)
        try:
            better = self._settled(moved)[0] if moved is not None else None
        except BuildError:
            better = None
        if better is not None and np.abs(better.logits - made.logits).max() <= _ALIKE * np.abs(made.logits).max():
            return better, [*notes, f"moved from opset {version} to {OPSET}, which `assay model quantize` needs"]
        return made, [*notes, f"left at opset {version}: it runs, but `assay model quantize` may not take it"]

    def _settled(self, model: onnx.ModelProto) -> tuple[_Made, list[str]]:
        """Return the model as it is if it takes any batch, else with its reshapes mended."""
        fixed = self._interface.batch
        freed = [f"made for a batch of {fixed}, now takes any number of images"] if fixed else []
        try:
            made, notes = self._proved(model)
            return made, [*freed, *notes]
        except UnevenBatchError as error:
            first = error
        mended, count = batch.mended(model, self._interface)
        try:
            if not count:
                raise first
            made, notes = self._proved(mended)
        except UnevenBatchError as error:
            raise BuildError(self._batch_message(first)) from error
        return made, [*freed, f"reshapes that had the batch built in: {count}, mended", *notes]

    def _proved(self, model: onnx.ModelProto) -> tuple[_Made, list[str]]:
        self._step("running it on a photo, black and noise")
        body = wrap(model, self._interface, self._pixels)
        logits = prove(self._pack(body), self._images, self._interface.batch)
        if not scores.are_probabilities(logits):
            return _Made(body, logits), []
        body = wrap(model, self._interface, self._pixels, logarithm=True)
        logits = prove(self._pack(body), self._images, self._interface.batch)
        return _Made(body, logits), ["it returns probabilities: their logarithm is taken, for the service's softmax"]

    def _pack(self, body: bytes) -> Pack:
        return Pack(self._manifest, body, self._labels, "")

    def _batch_message(self, error: UnevenBatchError) -> str:
        fixed = self._interface.batch
        how = f"is exported for a batch of {fixed}" if fixed else "says that it takes any batch, but does not"
        return (
            f"the model {how}, and cannot be freed ({error}): export it with a free batch axis "
            "(torch.onnx.export: dynamic_axes={'input': {0: 'batch'}}; tf2onnx: None in the input signature)"
        )


def _pixels(order: Order, interface: Interface) -> Pixels:
    """Return how pixels are normalised. Raises ``BuildError`` where it is not said, or in other units than pixels."""
    mean, std = order.mean, order.std
    if interface.kind == TensorProto.UINT8:
        if (mean or _RAW.mean, std or _RAW.std) != (_RAW.mean, _RAW.std):
            raise BuildError("the model takes uint8, so it normalises pixels itself: leave out --mean and --std")
        return _RAW
    if mean is None or std is None:
        raise BuildError(
            "the model takes floats, so it needs --mean and --std in 0..255 pixel units, x = (pixel - mean) / std: "
            "torchvision's are --mean 123.675,116.28,103.53 --std 58.395,57.12,57.375; inputs in -1..1 are "
            "--mean 127.5 --std 127.5; in 0..1 --mean 0 --std 255; bare pixels --mean 0 --std 1"
        )
    if not all(map(math.isfinite, (*mean, *std))) or min(std) <= 0:
        raise BuildError(f"mean {_listed(mean)} and std {_listed(std)}: both must be finite, and std above 0")
    if max(std) <= 1 and max(map(abs, mean)) <= 1 and (mean, std) != (_RAW.mean, _RAW.std):
        bigger = [_listed(tuple(255 * value for value in values)) for values in (mean, std)]
        raise BuildError(
            f"mean {_listed(mean)} and std {_listed(std)} are in units of 0..1; pixels here are 0..255: pass "
            f"--mean {bigger[0]} --std {bigger[1]}"
        )
    return Pixels(mean, std)


def _listed(values: tuple[float, ...]) -> str:
    values = values[:1] if len(set(values)) == 1 else values
    return ",".join(f"{value:.7g}" for value in values)


def _manifest(order: Order, model: onnx.ModelProto, interface: Interface, pixels: Pixels, sha256: str) -> Manifest:
    crop = interface.crop
    try:
        return Manifest(
            format=1,
            name=order.name,
            precision="INT8" if is_quantised(model) else "FP32",
            architecture=(order.architecture or model.graph.name or order.onnx.stem)[:100],
            source=Source(name=order.onnx.name[:200], sha256=sha256, licence=order.licence),
            preprocess=Preprocess(
                resize_short=order.resize or usual_resize(crop),
                crop=crop,
                interpolation=order.interpolation,
                normalisation=Normalisation(mean=pixels.mean, scale=pixels.std),
            ),
            quantization=None,
            requires_cpu=(),
            created_with=versions("onnx", "numpy"),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["loc"] == ("name",):
            raise BuildError(
                f"--name {order.name!r}: use lower-case letters and digits, with dots and dashes between "
                "them, at most 100"
            ) from error
        where = ".".join(str(part) for part in first["loc"]) or "preprocess"
        raise BuildError(f"the pack cannot be described: {where}: {first['msg']}") from error

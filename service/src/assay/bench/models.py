"""The models of a bench: an architecture's or a given pack as FP32, and its quantised variants."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from assay.bench.variants import Begin, Variant
from assay.building import models
from assay.building.ladder import AUTO, quantise, spread
from assay.errors import BenchError, BuildError
from assay.measurement.compare import decoded
from assay.packs.archive import Pack, read_pack
from assay.packs.dataset import Dataset
from assay.platform.cpu import cpu_features

ARCHITECTURES: Final = tuple(models.MODELS)
"""What a bench builds itself, by name."""

_RANDOM: Final = "random weights"
"""How the source of a pack with random weights begins (``building.models``)."""

_FEW: Final = 20
"""Images to judge a recipe on that is not chosen by its judgement: the least that the quantiser takes figures from."""


@dataclass(frozen=True)
class Source:
    """An FP32 pack. ``tensors`` are its weights where they are random, and so can be given to PyTorch as well."""

    pack: Pack
    trained: bool
    tensors: dict[str, NDArray[Any]] | None = None


def of_architecture(name: str, seed: int) -> Source:
    """Build a model, with published weights where an installed package has them, else with seeded random ones."""
    recipe = models.MODELS[name]
    with TemporaryDirectory(prefix="assay-bench-") as folder:
        path = Path(folder) / "fp32.tar"
        if recipe.shipped:
            models.build(name, path)
            return Source(read_pack(path), trained=True)
        models.build(name, path, random_seed=seed)
        return Source(read_pack(path), trained=False, tensors=recipe.random(seed).tensors)


def of_pack(pack: Pack) -> Source:
    """Take a pack as it is. Raises ``BenchError`` unless it is FP32, which all its variants are made from."""
    if pack.manifest.precision != "FP32":
        raise BenchError(f"{pack.manifest.name} is {pack.manifest.precision}: name the FP32 pack that it was made from")
    return Source(pack, trained=not pack.manifest.source.name.startswith(_RANDOM))


def quantised(
    source: Source, calibration: Dataset, judging: Dataset, recipe: str = AUTO, progress: Begin | None = None
) -> tuple[list[Variant], list[str]]:
    """Return the dynamic and the static INT8 variant of a model, and notes on how they were made or why not.

    The static ``recipe`` is chosen as ``assay model quantize`` chooses, except for random weights, whose labels say
    nothing about a recipe. Raises ``BuildError`` for a recipe that there is not.
    """
    variants, notes = [], []
    static = _plain() if recipe == AUTO and not source.trained else recipe
    for kind, name in (("dynamic", "dynamic"), ("static", static)):
        judged = judging if name == AUTO else _few(judging)
        try:
            found = quantise(source.pack, calibration, judged, name, progress=progress, quick=True)
        except BuildError as error:
            if name == recipe != AUTO:
                raise  # what was asked for by name
            notes.append(f"No {kind} INT8 row: {error}.")
            continue
        variants.append(Variant(f"ONNX {kind} INT8", found.chosen.pack))
        if kind == "static":
            reached = "" if found.reached or not source.trained else ", which is not right enough to be served"
            chosen = "chosen by `assay model quantize`'s rule" if name == AUTO else "as asked"
            chosen = chosen if source.trained or recipe != AUTO else "unjudged: random weights"
            notes.append(f"Static recipe: {found.chosen.recipe.name} ({chosen}){reached}.")
    return variants, notes


def images(source: Source, judging: Dataset, wanted: int) -> list[NDArray[np.uint8]]:
    """Decode at most ``wanted`` images, spread over a dataset, as the model takes them: uint8 [1, crop, crop, 3]."""
    return list(decoded(judging.read(spread(judging.manifest.images, wanted)), source.pack))


def _plain() -> str:
    """Name the plain static recipe that is sound on this CPU: 8-bit weights saturate on x86 without VNNI."""
    return "static" if cpu_features() & {"vnni", "asimd"} else "static-reduce-range"


def _few(dataset: Dataset) -> Dataset:
    kept: Sequence[Any] = spread(dataset.manifest.images, _FEW)
    return replace(dataset, manifest=dataset.manifest.model_copy(update={"images": tuple(kept)}))

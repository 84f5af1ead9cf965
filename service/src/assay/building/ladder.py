"""Chooses how to quantise on this CPU: tries recipes rung by rung, measures each, keeps the fastest that is right."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assay.building.choice import Goal, Ladder, Trial, choose
from assay.building.models import versions
from assay.building.quantize import Quantiser
from assay.building.recipes import CALIBRATION_IMAGES, DYNAMIC, FEW, MORE, PERCENTILE, RECIPES, Recipe
from assay.errors import BuildError
from assay.measurement.compare import Progress, Selection, decoded, select
from assay.measurement.jury import Jury
from assay.packs.archive import Pack
from assay.packs.dataset import Dataset, ImageEntry
from assay.packs.manifest import Agreement, Manifest, Quantization
from assay.platform.cpu import cpu_features, cpu_model, notable_features

AUTO: Final = "auto"

RUNGS: Final = tuple(
    tuple(f"static{range_}{suffix}" for suffix in rung for range_ in ("", "-reduce-range"))
    for rung in (("", "-gates-float", "-curved-float"), ("-percentile",), (f"-{FEW}-float",), (f"-{MORE}-float",))
)
"""All of it in integers first, and what may be cheaper than that; then what is only tried to be right. Dynamic is never
a choice."""

JUDGING_IMAGES: Final = 200
"""Enough to see one image in a hundred disagree; the check itself looks at more."""

_COST_BLOCKS: Final = 60
"""The interval of the median then spans the middle fifth of the blocks; recipes differ by more than that."""

_CONFIDENCE: Final = 0.95


def quantise(
    source: Pack,
    calibration: Dataset,
    judging: Dataset,
    recipe: str = AUTO,
    goal: Goal | None = None,
    calibration_images: int = CALIBRATION_IMAGES,
    name: str | None = None,
    progress: Callable[[str], Progress | None] | None = None,
    *,
    quick: bool = False,
) -> Ladder:
    """Quantise an FP32 pack by one recipe, or by the best on this CPU (``auto``).

    Ranges are measured on ``calibration_images`` images of one dataset, recipes judged on up to 200 of the other whose
    photos calibrated nothing. ``quick`` ends at the first rung with a recipe that is right and cheaper than FP32.
    ``name`` is the pack's; by default the source's with ``-int8``. The chosen pack's digest is empty: it is known when
    the pack is written. Raises ``BuildError`` for a pack that is not FP32, an unknown recipe, or one that fails;
    ``DatasetError`` when all photos to judge by have calibrated; both before any long work.
    """
    if source.manifest.precision != "FP32":
        raise BuildError(f"{source.manifest.name} is {source.manifest.precision} already: quantise an FP32 pack")
    if recipe != AUTO and recipe not in RECIPES:
        raise BuildError(f"there is no recipe called {recipe!r}; known: {AUTO}, {', '.join(RECIPES)}")
    goal, begin = goal or Goal(), progress or (lambda _step: None)
    maker = _Maker(source, calibration, spread(calibration.manifest.images, calibration_images), name)
    asked = RECIPES["static" if recipe == AUTO else recipe]
    selection = select(judging, (maker.pack(asked, b"", ()),), JUDGING_IMAGES)
    quantiser = Quantiser(source.model, begin=begin)
    if not quantiser.applies(asked):
        raise BuildError(f"{asked.name} leaves nothing out, or nothing in integers, on this model: use another recipe")
    quantiser.images.extend(_decoded(maker, begin("reading the calibration images")))
    jury = Jury(source, judging, selection, begin("asking the FP32 pack about the photos to judge by"))
    trials: list[Trial] = []
    for rung in RUNGS if recipe == AUTO else ((recipe,),):
        for chosen in (RECIPES[each] for each in rung):
            if recipe == AUTO and not (quantiser.applies(chosen) and _sound(chosen)):
                continue
            step = begin(f"{chosen.name}: quantising, judging")
            pack = maker.pack(chosen, quantiser.quantise(chosen), quantiser.float_layers(chosen))
            trials.append(_try(chosen, pack, jury, judging, step))
        if quick and any(trial.reaches(goal) and trial.gains for trial in trials):
            break
    return choose(trials, goal, _notes(maker, judging, selection, calibration_images))


def spread(entries: Sequence[ImageEntry], wanted: int) -> tuple[ImageEntry, ...]:
    """Return at most ``wanted`` entries, spread evenly, so that every source keeps its share."""
    count = min(wanted, len(entries))
    return tuple(entries[index * len(entries) // count] for index in range(count))


@dataclass(frozen=True)
class _Maker:
    """Writes manifests: what all recipes of one run have in common."""

    source: Pack
    dataset: Dataset
    calibrating: tuple[ImageEntry, ...]
    name: str | None

    def pack(self, recipe: Recipe, model: bytes, float_layers: tuple[str, ...]) -> Pack:
        """Return a pack of a quantised model; it is not judged yet."""
        static = recipe.name != DYNAMIC
        made = Quantization(
            recipe=recipe.name,
            source_digest=self.source.digest,
            calibration_digest=self.dataset.digest if static else None,
            calibration_images=len(self.calibrating) if static else 0,
            calibration_groups=tuple(sorted({entry.group for entry in self.calibrating})) if static else (),
            calibration_method=(f"Percentile {PERCENTILE}" if recipe.percentile else "MinMax") if static else None,
            float_layers=float_layers,
            cpu_model=cpu_model(),
            cpu_features=notable_features(),
            agreement=None,
        )
        full = self.source.manifest
        described: Manifest = full.model_copy(
            update={
                "name": self.name or f"{full.name.removesuffix('-fp32')}-int8",
                "precision": "INT8",
                "quantization": made,
                "requires_cpu": tuple(dict.fromkeys((*full.requires_cpu, *_requires(recipe)))),
                "created_with": {**full.created_with, **versions("onnx", "onnxruntime", "numpy", "pillow")},
            }
        )
        return Pack(described, model, self.source.labels, "")


def _decoded(maker: _Maker, progress: Progress | None) -> list[NDArray[np.uint8]]:
    images: list[NDArray[np.uint8]] = []
    for image in decoded(maker.dataset.read(maker.calibrating), maker.source):
        images.append(image)
        if progress:
            progress(len(images), len(maker.calibrating))
    return images


def _sound(recipe: Recipe) -> bool:
    """Say whether a recipe adds up without saturating here: 8-bit weights need VNNI on x86, and nothing on Arm."""
    return not recipe.full_range or bool(cpu_features() & {"vnni", "asimd"})


def _requires(recipe: Recipe) -> tuple[str, ...]:
    """Return what CPUs must have to run a recipe's pack: the kind of the one that it was judged on."""
    if not recipe.full_range:
        return ()
    return ("asimd",) if "asimd" in cpu_features() else ("vnni",)


def _try(recipe: Recipe, pack: Pack, jury: Jury, judging: Dataset, progress: Progress | None) -> Trial:
    """Measure one quantised model against its source, and write into its manifest what was found."""
    if set(pack.manifest.requires_cpu) - cpu_features():
        return Trial(recipe, pack, None, None)
    accuracy, cost = jury.judge(pack, _COST_BLOCKS, _CONFIDENCE, progress)
    found = Agreement(
        dataset_digest=judging.digest,
        images=accuracy.images,
        groups=accuracy.groups,
        top1_agreed=accuracy.agreed.count,
        top3_contained=accuracy.contained.count,
    )
    made = pack.manifest.quantization
    update = {"quantization": made.model_copy(update={"agreement": found}) if made else None}
    return Trial(recipe, replace(pack, manifest=pack.manifest.model_copy(update=update)), accuracy, cost)


def _notes(maker: _Maker, judging: Dataset, selection: Selection, wanted: int) -> tuple[str, ...]:
    """Return what whoever asked should know about the photos that were used."""
    notes, used = [], maker.calibrating
    if len(used) < wanted:
        name = maker.dataset.manifest.name
        notes.append(f"calibrated on {len(used)} images: {name} has no more, and {wanted} were asked for")
    if selection.left_out:
        same = "the same dataset calibrates and judges: " if judging.digest == maker.dataset.digest else ""
        notes.append(f"{same}{selection.left_out} images whose photos calibrate were left out of judging")
    return tuple(notes)

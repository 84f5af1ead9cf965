"""Chooses how to quantise on this CPU: tries recipes rung by rung, measures each, keeps the fastest that is right."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assay.building.models import versions
from assay.building.quantize import RECIPES, Quantiser, Recipe
from assay.check import agreement, cost
from assay.check.agreement import Accuracy
from assay.check.cost import Cost
from assay.errors import BuildError
from assay.measurement.compare import Progress, decoded, measure, select
from assay.packs.archive import Pack
from assay.packs.dataset import Dataset, ImageEntry
from assay.packs.manifest import Agreement, Manifest, Quantization
from assay.platform.cpu import cpu_features, cpu_model, notable_features

AUTO: Final = "auto"

RUNGS: Final = (
    ("static", "static-reduce-range"),
    ("static-edges-float", "static-reduce-range-edges-float"),
)
"""All of it in integers first; float at both ends only if that is not right enough. Dynamic is never a choice."""

CALIBRATION_IMAGES: Final = 100
"""Ranges of a ReLU6 network settle after some dozens of images; each costs 20 ms and 30 MB while calibrating."""

JUDGING_IMAGES: Final = 200
"""Enough to see one image in a hundred disagree; the check itself looks at more."""

_COST_BLOCKS: Final = 60
"""The interval of the median then spans the middle fifth of the blocks; recipes differ by more than that."""

_ALIKE: Final = 1.05
"""Costs within a twentieth are alike: it is what a busy machine does to a ratio, and not worth a wrong label."""

_CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Goal:
    """What a recipe must reach against the FP32 pack, as shares of the images judged."""

    agreement: float = 0.9
    containment: float = 0.98


@dataclass(frozen=True)
class Trial:
    """One recipe tried. ``accuracy`` and ``cost`` are None where this CPU cannot run the result."""

    recipe: Recipe
    pack: Pack
    accuracy: Accuracy | None
    cost: Cost | None

    def reaches(self, goal: Goal) -> bool:
        """Say whether it is right enough."""
        found = self.accuracy
        return (
            found is not None
            and found.not_finite == 0
            and found.agreed.rate >= goal.agreement
            and found.contained.rate >= goal.containment
        )

    @property
    def gains(self) -> bool:
        """Whether it is certainly cheaper than FP32."""
        return self.cost is not None and self.cost.upper < 1


@dataclass(frozen=True)
class Ladder:
    """Everything that was tried, and which of it was kept."""

    trials: tuple[Trial, ...]
    chosen: Trial
    reached: bool


def quantise(
    source: Pack,
    calibration: Dataset,
    judging: Dataset,
    recipe: str = AUTO,
    goal: Goal | None = None,
    calibration_images: int = CALIBRATION_IMAGES,
    name: str | None = None,
    progress: Callable[[str], Progress | None] | None = None,
) -> Ladder:
    """Quantise an FP32 pack by one recipe, or by the best on this CPU (``auto``).

    Ranges are measured on ``calibration_images`` images of one dataset, recipes judged on up to 200 of the other whose
    photos calibrated nothing. ``name`` is the pack's; by default the source's with ``-int8``. The chosen pack's digest
    is empty: it is known when the pack is written. Raises ``BuildError`` for a pack that is not FP32, an unknown
    recipe, or one that fails; ``DatasetError`` when all photos to judge by have calibrated.
    """
    if source.manifest.precision != "FP32":
        raise BuildError(f"{source.manifest.name} is {source.manifest.precision} already: quantise an FP32 pack")
    if recipe != AUTO and recipe not in RECIPES:
        raise BuildError(f"there is no recipe called {recipe!r}; known: {AUTO}, {', '.join(RECIPES)}")
    goal, progress = goal or Goal(), progress or (lambda _step: None)
    calibrating = spread(calibration.manifest.images, calibration_images)
    images = list(decoded(calibration.read(calibrating), source))
    trials: list[Trial] = []
    with Quantiser(source.model, images) as quantiser:
        for rung in RUNGS if recipe == AUTO else ((recipe,),):
            for rung_recipe in rung:
                chosen = RECIPES[rung_recipe]
                if recipe == AUTO and chosen.full_range and not _full_range_is_sound():
                    continue
                step = progress(f"{chosen.name}: quantising, judging")
                model = quantiser.quantise(chosen)
                described = _manifest(source, chosen, calibration, calibrating, name)
                trials.append(_try(source, chosen, Pack(described, model, source.labels, ""), judging, step))
            if any(trial.reaches(goal) for trial in trials):
                break
    return _choose(trials, goal)


def spread(entries: Sequence[ImageEntry], wanted: int) -> tuple[ImageEntry, ...]:
    """Return at most ``wanted`` entries, spread evenly, so that every source keeps its share."""
    count = min(wanted, len(entries))
    return tuple(entries[index * len(entries) // count] for index in range(count))


def _full_range_is_sound() -> bool:
    """Say whether 8-bit weights add up without saturating here: VNNI on x86, always on Arm."""
    return bool(cpu_features() & {"vnni", "asimd"})


def _requires(recipe: Recipe) -> tuple[str, ...]:
    """Return what CPUs must have to run a recipe's pack: the kind of the one that it was judged on."""
    if not recipe.full_range:
        return ()
    return ("asimd",) if "asimd" in cpu_features() else ("vnni",)


def _try(source: Pack, recipe: Recipe, pack: Pack, judging: Dataset, progress: Progress | None) -> Trial:
    """Measure one quantised model against its source, and write into its manifest what was found."""
    if set(pack.manifest.requires_cpu) - cpu_features():
        return Trial(recipe, pack, None, None)
    selection = select(judging, (pack,), JUDGING_IMAGES)
    measured = measure(pack, source, judging, selection, progress, _COST_BLOCKS)
    accuracy = agreement.summarise(measured.outcomes, _CONFIDENCE)
    found = Agreement(
        dataset_digest=judging.digest,
        images=accuracy.images,
        groups=accuracy.groups,
        top1_agreed=accuracy.agreed.count,
        top3_contained=accuracy.contained.count,
    )
    made = pack.manifest.quantization
    update = {"quantization": made.model_copy(update={"agreement": found}) if made else None}
    pack = replace(pack, manifest=pack.manifest.model_copy(update=update))
    return Trial(recipe, pack, accuracy, cost.summarise(measured.blocks, _CONFIDENCE))


def _manifest(
    source: Pack, recipe: Recipe, dataset: Dataset, calibrating: Sequence[ImageEntry], name: str | None
) -> Manifest:
    static = recipe.name != "dynamic"
    made = Quantization(
        recipe=recipe.name,
        source_digest=source.digest,
        calibration_digest=dataset.digest if static else None,
        calibration_images=len(calibrating) if static else 0,
        calibration_groups=tuple(sorted({entry.group for entry in calibrating})) if static else (),
        cpu_model=cpu_model(),
        cpu_features=notable_features(),
        agreement=None,
    )
    full = source.manifest
    return full.model_copy(
        update={
            "name": name or f"{full.name.removesuffix('-fp32')}-int8",
            "precision": "INT8",
            "quantization": made,
            "requires_cpu": tuple(dict.fromkeys((*full.requires_cpu, *_requires(recipe)))),
            "created_with": {**full.created_with, **versions("onnx", "onnxruntime", "numpy", "pillow")},
        }
    )


def _choose(trials: Sequence[Trial], goal: Goal) -> Ladder:
    """Keep the cheapest of those that reach the goal; where costs are alike, the one that agrees most."""
    right = [trial for trial in trials if trial.reaches(goal)]
    runnable = [trial for trial in trials if trial.cost and trial.accuracy]
    if not runnable:
        return Ladder(tuple(trials), trials[0], reached=False)

    def agreed(trial: Trial) -> tuple[int, int]:
        return (trial.accuracy.contained.count, trial.accuracy.agreed.count) if trial.accuracy else (0, 0)

    if not right:
        return Ladder(tuple(trials), max(runnable, key=agreed), reached=False)
    least = min(trial.cost.ratio for trial in right if trial.cost)
    alike = [trial for trial in right if trial.cost and trial.cost.ratio <= least * _ALIKE]
    return Ladder(tuple(trials), max(alike, key=agreed), reached=True)

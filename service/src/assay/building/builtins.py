"""Everything that ships in the image: the base pack, its INT8 packs, and the photos a check judges on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from assay.building import models, photos
from assay.building.ladder import quantise
from assay.building.weights_file import WeightsFile
from assay.check.report import CheckResult
from assay.check.verdict import Criteria
from assay.errors import BuildError
from assay.measurement.compare import Progress
from assay.measurement.run import CheckRequest, Reference, run_check
from assay.packs.archive import read_pack, write_pack
from assay.packs.dataset import read_dataset

MODEL: Final = "efficientnet-lite0"
"""The base of an image that is built without asking for another one."""

_ANY_COST: Final = 100_000
_ANY_NOISE: Final = 10_000
"""The machine that builds an image is not the one that serves: cost is shown there and decides nothing."""

_COST_BLOCKS: Final = 40
"""Enough for a figure to print."""


@dataclass(frozen=True)
class BuiltIn:
    """A file made. ``check`` is None for what is not judged: the base, datasets, packs this CPU cannot run.

    ``left_out`` says why there is no such file, where a base other than the default has no good INT8 pack.
    """

    name: str
    path: Path
    digest: str
    check: CheckResult | None = None
    left_out: str = ""


def int8_packs(base: str) -> dict[str, str]:
    """Return the INT8 packs of a base by name, with their recipes: for every CPU, and for CPUs with VNNI."""
    return {f"{base}-int8": "static-reduce-range", f"{base}-int8-vnni": "static"}


def build_all(
    out: Path,
    *,
    base: str = MODEL,
    weights: WeightsFile | None = None,
    calibration: bool = False,
    progress: Callable[[str], Progress | None] | None = None,
) -> list[BuiltIn]:
    """Write every built-in to a folder; with ``calibration``, the calibration photos too (46 MB that serve nobody).

    ``base`` is one of `models.MODELS`, with the published weights or others. Raises ``BuildError`` when an INT8 pack of
    the default base that this CPU can run is not right: nothing known to be bad ships. Those of another base, which
    nobody has judged before, are left out unless they Pass here.
    """
    begin = progress or (lambda _step: None)
    begin("building the FP32 pack")
    made = [_made(f"{base}-fp32", out, lambda path: models.build(base, path, weights))]
    made.append(_made("photos", out, lambda path: photos.build("photos", path, begin("building photos"))))
    with TemporaryDirectory(prefix="assay-builtin-") as folder:
        kept = out if calibration else Path(folder)
        name = "photos-calibration"
        calibrating = _made(name, kept, lambda path: photos.build(name, path, begin(f"building {name}")))
        for int8, recipe in int8_packs(base).items():
            try:
                made.append(_quantised(int8, recipe, out, made[0], made[1], calibrating, begin))
            except _NotGoodError as error:
                if base == MODEL and not weights:
                    raise BuildError(f"{int8} is not right and is not kept: {error}") from error
                made.append(BuiltIn(int8, out / f"{int8}.tar", "", left_out=str(error)))
    return [*made, calibrating] if calibration else made


def _made(name: str, folder: Path, build: Callable[[Path], str]) -> BuiltIn:
    path = folder / f"{name}.tar"
    return BuiltIn(name, path, build(path))


def _quantised(
    name: str,
    recipe: str,
    out: Path,
    base: BuiltIn,
    judging: BuiltIn,
    calibrating: BuiltIn,
    begin: Callable[[str], Progress | None],
) -> BuiltIn:
    """Quantise the base by one recipe, and judge the result's accuracy as a check would.

    Raises ``_NotGoodError``, and keeps no file, when it does not Pass.
    """
    sets = read_dataset(calibrating.path), read_dataset(judging.path)
    source, path = read_pack(base.path), out / f"{name}.tar"
    try:
        pack = quantise(source, *sets, recipe=recipe, name=name, progress=begin).chosen.pack
    except BuildError as error:
        raise _NotGoodError(str(error)) from error
    digest = write_pack(path, pack.manifest, pack.model, pack.labels)
    request = CheckRequest(
        candidate=Reference(str(path), digest, "INT8"),
        yardstick=Reference(str(base.path), base.digest),
        dataset=Reference(str(judging.path), judging.digest),
        cache_dir=out,
        criteria=Criteria(max_noise=_ANY_NOISE),
        max_cost_ratio=_ANY_COST,
        cost_blocks=_COST_BLOCKS,
    )
    result = run_check(request, begin)
    if result.reason == "CpuFeatureMissing":
        return BuiltIn(name, path, digest)
    if result.verdict != "Pass":
        path.unlink(missing_ok=True)
        raise _NotGoodError(f"{result.verdict}, {result.reason}: {result.message}")
    return BuiltIn(name, path, digest, result)


class _NotGoodError(Exception):
    """An INT8 pack cannot be made, or is not right."""

"""``assay model quantize``: the ladder of recipes on this CPU, as a table and a pack."""

import json
import shutil
import tempfile
from pathlib import Path

import click
from rich.console import Console

from assay.building.choice import Goal, Ladder
from assay.building.recipes import CALIBRATION_IMAGES
from assay.cli.ladder import ladder_document, ladder_table
from assay.cli.progress import Begin, steps
from assay.errors import PackUnavailableError
from assay.measurement.run import Reference, load_reference
from assay.packs.archive import write_pack
from assay.packs.builtin import PHOTOS, PHOTOS_CALIBRATION
from assay.packs.dataset import MAX_DATASET_BYTES, Dataset, read_dataset
from assay.packs.fetch import fetch
from assay.settings import load_settings


@click.command()
@click.argument("pack")
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="file to write")
@click.option("--calibration", default=PHOTOS_CALIBRATION, show_default=True, help="dataset: URI or path")
@click.option("--judge", default=PHOTOS, show_default=True, help="dataset that recipes are judged on: URI or path")
@click.option("--recipe", default="auto", show_default=True, help="auto, or one of those the table names")
@click.option("--quick", is_flag=True, help="end at the first rung with a recipe that is right and cheaper than FP32")
@click.option("--min-agreement", type=click.FloatRange(0, 100), default=90, show_default=True, help="top-1, percent")
@click.option("--min-containment", type=click.FloatRange(0, 100), default=98, show_default=True, help="top-3, percent")
@click.option("--calibration-images", type=click.IntRange(1), default=CALIBRATION_IMAGES, show_default=True)
@click.option("--require-gain", is_flag=True, help="exit 1 unless the result is right and cheaper than FP32")
@click.option("--json", "as_json", is_flag=True, help="print one JSON document")
def quantize(
    pack: str,
    out: Path,
    calibration: str,
    judge: str,
    recipe: str,
    quick: bool,
    min_agreement: float,
    min_containment: float,
    calibration_images: int,
    require_gain: bool,
    as_json: bool,
) -> None:
    """Quantise an FP32 PACK to INT8 for this CPU; the fastest recipe that is right enough is kept.

    Every recipe is tried, measured against the FP32 pack and shown. Where none is right and cheaper, the best one is
    written with a warning: serve the FP32 pack then.

    \b
    Example:
      assay model quantize fp32.tar --calibration photos-calibration.tar --out int8.tar
      assay model quantize fp32.tar --recipe static-reduce-range --out int8.tar
      assay model quantize fp32.tar --min-agreement 95 --require-gain --out int8.tar
    """
    # Imported here: serving images come without what builds packs.
    from assay.building.ladder import quantise

    console, cache = Console(stderr=True), load_settings().cache_dir
    source = load_reference(Reference(pack), cache)
    _claim(out, len(source.model))
    goal = Goal(min_agreement / 100, min_containment / 100)
    with steps(console) as begin:
        sets = _dataset(calibration, cache, begin), _dataset(judge, cache, begin)
        found = quantise(source, *sets, recipe, goal, calibration_images, progress=begin, quick=quick)
    # Wide enough for whole names where nobody watches, as in a build's log.
    (console if console.is_terminal else Console(stderr=True, width=140)).print(ladder_table(found, goal))
    kept = found.chosen.pack
    digest = write_pack(out, kept.manifest, kept.model, kept.labels)
    _explain(found, console)
    size = out.stat().st_size
    document = {"file": str(out), "digest": digest, "bytes": size, **ladder_document(found)}
    click.echo(json.dumps(document) if as_json else f"{out} {digest} {size}")
    if require_gain and not found.wins:
        raise click.exceptions.Exit(1)


def _explain(found: Ladder, console: Console) -> None:
    """Say why this one was kept, and what is doubtful about it."""
    for note in found.notes:
        console.print(f"[yellow]note:[/] {note}", highlight=False, soft_wrap=True)
    label = "[green]kept:[/]" if found.wins else "[yellow]warning:[/]"
    written = "" if found.wins else f"; {found.chosen.recipe.name} is written all the same"
    console.print(f"{label} {found.reason}{written}", highlight=False, soft_wrap=True)


def _dataset(uri: str, cache: Path, begin: Begin) -> Dataset:
    from assay.building import photos

    path = photos.find(uri, cache, begin) or fetch(uri, None, cache_dir=cache, max_bytes=MAX_DATASET_BYTES)
    return read_dataset(path)


def _claim(out: Path, need: int) -> None:
    """Find out before the long work whether a pack of about ``need`` bytes can be written.

    Raises ``PackUnavailableError``: the folder cannot be made or written to, or its disk is full. An INT8 pack has a
    quarter of the FP32 model's bytes; whether all fits is known when it is written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out.parent):
            free = shutil.disk_usage(out.parent).free
    except OSError as error:
        raise PackUnavailableError(f"cannot write {out}: {error.strerror or error}") from error
    if free < need:
        raise PackUnavailableError(
            f"cannot write {out}: its disk has {free // 1_000_000} MB left and the FP32 model alone has "
            f"{need // 1_000_000}; free some, or write elsewhere"
        )

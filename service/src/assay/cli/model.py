"""``assay model``: builds, quantises, fetches and inspects packs."""

import json
import shutil
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from assay.cli import model_pack
from assay.cli.progress import steps
from assay.cli.quantize import quantize
from assay.errors import PackUnavailableError
from assay.measurement.run import Reference, load_reference
from assay.packs.archive import MAX_PACK_BYTES, Pack, read_pack
from assay.packs.fetch import fetch
from assay.settings import load_settings

_OUT = click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="file to write")
_DIGEST = click.option("--digest", help="sha256:… it must have")
_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON document")


@click.group()
def model() -> None:
    """Build, pack, quantise, fetch and inspect model packs."""


model.add_command(model_pack.pack)


model.add_command(quantize)


@model.command()
@click.argument("name")
@_OUT
@click.option("--weights", help="checkpoint of it, as `torch.save` writes a state dict: path or URL")
@click.option("--sha256", help="64 digits the checkpoint must have; else those that end its name (model-1234abcd.pth)")
@click.option("--random-weights", type=click.IntRange(0), metavar="SEED", help="random numbers, for tests and benches")
@_JSON
def build(
    name: str, out: Path, weights: str | None, sha256: str | None, random_weights: int | None, as_json: bool
) -> None:
    """Build the FP32 pack NAME (efficientnet-lite0, mobilenet-v2, mobilenet-v3-large), without PyTorch.

    \b
    Example:
      assay model build efficientnet-lite0 --out efficientnet-lite0-fp32.tar
      assay model build mobilenet-v2 --weights mobilenet_v2-b0353104.pth --out mobilenet-v2-fp32.tar
    """
    # Imported here: serving images come without what builds packs.
    from assay.building import models
    from assay.building.weights_file import find_weights

    if sha256 and not weights:
        raise click.UsageError("--sha256 is of a file: name it with --weights")
    with steps(Console(stderr=True)) as begin:
        file = weights and find_weights(
            weights,
            sha256,
            cache_dir=load_settings().cache_dir,
            progress=begin("fetching weights") if "://" in weights else None,
        )
        digest = models.build(name, out, file or None, random_weights)
    _written(out, digest, as_json)


@model.command()
@click.argument("pack")
@_DIGEST
@_JSON
def inspect(pack: str, digest: str | None, as_json: bool) -> None:
    """Show what a PACK says about itself; its digest is verified if one is given.

    \b
    Example:
      assay model inspect builtin:efficientnet-lite0-int8
    """
    read = load_reference(Reference(pack, digest), load_settings().cache_dir)
    shown = {"digest": read.digest, "model_bytes": len(read.model), "classes": len(read.labels)}
    document = {**shown, "manifest": read.manifest.model_dump(mode="json")}
    if as_json:
        click.echo(json.dumps(document))
    else:
        Console().print(_manifest_table(read))


@model.command("fetch")
@click.argument("uri")
@_OUT
@_DIGEST
@_JSON
def fetch_pack(uri: str, out: Path, digest: str | None, as_json: bool) -> None:
    """Fetch a pack from URI, verify its digest, read it strictly, and write it to a file.

    \b
    Example:
      assay model fetch https://example.org/int8.tar --digest sha256:… --out int8.tar
    """
    with steps(Console(stderr=True)) as begin:
        path = fetch(
            uri, digest, cache_dir=load_settings().cache_dir, max_bytes=MAX_PACK_BYTES, progress=begin("fetching")
        )
    read = read_pack(path, digest)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part = out.with_name(f".{out.name}.part")
        shutil.copyfile(path, part)
        part.replace(out)
    except OSError as error:
        raise PackUnavailableError(f"cannot write {out}: {error.strerror or error}") from error
    _written(out, read.digest, as_json)


def _written(out: Path, digest: str, as_json: bool) -> None:
    size = out.stat().st_size
    click.echo(json.dumps({"file": str(out), "digest": digest, "bytes": size}) if as_json else f"{out} {digest} {size}")


def _manifest_table(pack: Pack) -> Table:
    manifest, made = pack.manifest, pack.manifest.quantization
    table = Table(title=manifest.name, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    shape = manifest.preprocess
    table.add_row("digest", pack.digest)
    table.add_row("precision", manifest.precision)
    table.add_row("architecture", manifest.architecture)
    table.add_row("source", f"{manifest.source.name}, {manifest.source.licence}, sha256 {manifest.source.sha256}")
    table.add_row(
        "input", f"short side {shape.resize_short} ({shape.interpolation}), centre {shape.crop} x {shape.crop}"
    )
    table.add_row("model", f"{len(pack.model)} bytes, {len(pack.labels)} classes")
    table.add_row("needs of the CPU", ", ".join(manifest.requires_cpu) or "nothing special")
    if made:
        table.add_row("recipe", f"{made.recipe}, on {made.cpu_model} ({', '.join(made.cpu_features)})")
        table.add_row("calibrated on", f"{made.calibration_images} images of {len(made.calibration_groups)} photos")
        if found := made.agreement:
            text = f"top-1 {found.top1_agreed}/{found.images}, top-3 {found.top3_contained}/{found.images}"
            table.add_row("agreement when made", f"{text}, {found.groups} photos")
    table.add_row("made with", ", ".join(f"{name} {version}" for name, version in manifest.created_with.items()))
    return table

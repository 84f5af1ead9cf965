"""``assay dataset``: builds the two that ship, packs a folder, inspects."""

import json
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from assay.cli.progress import steps
from assay.packs.dataset import MAX_DATASET_BYTES, read_dataset
from assay.packs.fetch import fetch
from assay.settings import load_settings

_OUT = click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="file to write")
_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON document")


@click.group()
def dataset() -> None:
    """Build, pack and inspect datasets."""


@dataset.command()
@click.argument("name", type=click.Choice(["photos", "photos-calibration"]))
@_OUT
@_JSON
def build(name: str, out: Path, as_json: bool) -> None:
    """Build a built-in smoke set from the photos of scikit-image and scikit-learn.

    \b
    Example:
      assay dataset build photos --out photos.tar
    """
    from assay.building import photos

    with steps(Console(stderr=True)) as begin:
        digest = photos.build(name, out, begin(f"building {name}"))
    _written(out, digest, as_json)


@dataset.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_OUT
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV with columns file, class_index (or label), group [default: every image of the folder, without labels]",
)
@click.option("--classes", type=click.IntRange(2), help="how many there are: no class_index may reach it")
@click.option("--name", help="[default: the file's name]")
@_JSON
def pack(folder: Path, out: Path, labels: Path | None, classes: int | None, name: str | None, as_json: bool) -> None:
    """Pack a FOLDER of images as a dataset, for check and calibration; every image is decoded once to see that it can.

    \b
    Example:
      assay dataset pack my-photos/ --labels my-photos/labels.csv --out my-photos.tar
    """
    from assay.building.folder import pack_folder

    with steps(Console(stderr=True)) as begin:
        digest = pack_folder(folder, labels, name or out.stem.lower(), out, classes, begin("decoding the images"))
    _written(out, digest, as_json)


@dataset.command()
@click.argument("uri")
@click.option("--digest", help="sha256:… it must have")
@_JSON
def inspect(uri: str, digest: str | None, as_json: bool) -> None:
    """Show what is in a dataset.

    \b
    Example:
      assay dataset inspect builtin:photos
    """
    path = fetch(uri, digest, cache_dir=load_settings().cache_dir, max_bytes=MAX_DATASET_BYTES)
    read = read_dataset(path, digest)
    images = read.manifest.images
    labelled = sum(entry.label is not None or entry.class_index is not None for entry in images)
    groups = Counter(entry.group for entry in images)
    summary = {
        "name": read.manifest.name,
        "digest": read.digest,
        "bytes": path.stat().st_size,
        "images": len(images),
        "labelled": labelled,
        "groups": len(groups),
        "description": read.manifest.description,
    }
    if as_json:
        click.echo(json.dumps(summary))
        return
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in summary.items():
        table.add_row(key, str(value))
    Console().print(table)


def _written(out: Path, digest: str, as_json: bool) -> None:
    size = out.stat().st_size
    click.echo(json.dumps({"file": str(out), "digest": digest, "bytes": size}) if as_json else f"{out} {digest} {size}")

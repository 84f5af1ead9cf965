"""``assay bench input``: what decoding and preprocessing cost, by megapixels."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from assay.bench.input import MAX_MEGAPIXELS, PHOTOS, SIZES, Shape, measure
from assay.bench.photos import ENCODINGS, from_dataset, from_folder
from assay.cli.bench.output import Output, amount_options, report_options
from assay.cli.bench.sources import dataset
from assay.cli.progress import steps


@click.command("input")
@click.option(
    "--photos", type=click.Path(exists=True, file_okay=False, path_type=Path), help="folder [default: builtin:photos]"
)
@click.option(
    "--megapixels", multiple=True, default=SIZES, show_default=True, type=click.FloatRange(0.01, MAX_MEGAPIXELS),
    help="a size; may be given several times",
)  # fmt: skip
@click.option(
    "--format", "formats", multiple=True, default=("jpeg",), show_default=True, type=click.Choice(list(ENCODINGS)),
    help="a kind of file; may be given several times",
)  # fmt: skip
@click.option("--interpolation", type=click.Choice(["bilinear", "bicubic"]), default="bicubic", show_default=True)
@amount_options(calls=100, warmups=10)
@report_options
def input_(photos: Path | None, interpolation: str, output: Output, **options: Any) -> None:  # noqa: ANN401 - click's options
    """Measure decode and preprocess: the plain way (decode all, resize all, crop) against the served one.

    \b
    Example:
      assay bench input
      assay bench input --photos my-photos/ --format jpeg --format png --megapixels 2 --calls 50 --picture input.png
    """
    with steps(Console(stderr=True), between=True) as begin:
        pictures = from_folder(photos, PHOTOS) if photos else from_dataset(dataset(None, begin), PHOTOS)
        options["sizes"] = tuple(sorted(set(options.pop("megapixels"))))
        options["formats"] = tuple(dict.fromkeys(options["formats"]))
        report = measure(pictures, geometry=Shape(interpolation=interpolation), progress=begin, **options)
    output.show(report)

"""``assay bench cache``."""

from typing import Any

import click
from rich.console import Console

from assay.bench.cache import Plan
from assay.bench.cache import cache as measure
from assay.cli.bench.output import Output, report_options
from assay.cli.bench.service import finish, interruptible, limit, pack_file, photos_to_send, service_options
from assay.cli.progress import steps


@click.command()
@service_options(photos=8)
@click.option(
    "--megapixels", multiple=True, default=(0.2, 0.5, 1.1, 4), show_default=True, type=click.FloatRange(0.01, 16),
    help="a size; may be given several times",
)  # fmt: skip
@click.option(
    "--pairs", type=click.IntRange(2, 100_000), default=200, show_default=True, help="of misses, for each size"
)
@click.option("--hits", type=click.IntRange(2, 100_000), default=200, show_default=True, help="for each size")
@click.option("--seed", type=int, default=1, show_default=True, help="of the interval's resampling")
@report_options
def cache(
    pack: str | None,
    dataset_uri: str | None,
    photos: int,
    millicores: int | None,
    output: Output,
    **options: Any,  # noqa: ANN401 - click's options
) -> None:
    """Measure the cache of answers: what a hit costs, and what a miss pays, by size of the image. Needs Linux.

    PACK is a URI or path, by default the base pack.

    \b
    Example:
      assay bench cache
      assay bench cache --megapixels 0.5 --pairs 1000 --json
    """
    with interruptible(), steps(Console(stderr=True), between=True) as begin:
        file, images = pack_file(pack, begin), photos_to_send(dataset_uri, photos, begin)
        options["megapixels"] = tuple(sorted(set(options["megapixels"])))
        report = measure(Plan(pack=file, millicores=limit(millicores), **options), images, begin)
    finish(output, report)

"""``assay bench storage``."""

from typing import Any

import click
from rich.console import Console

from assay.bench.storage import Plan
from assay.bench.storage import storage as measure
from assay.cli.bench.output import Output, report_options
from assay.cli.bench.service import (
    RATE,
    SECONDS,
    finish,
    interruptible,
    limit,
    pack_file,
    photos_to_send,
    service_options,
)
from assay.cli.progress import steps


@click.command()
@service_options(photos=100)
@click.option(
    "--latency-ms", "latencies_ms", multiple=True, default=(20, 100), show_default=True,
    type=click.FloatRange(0, 10_000),
    help="time an object store takes for each write; may be given several times",
)  # fmt: skip
@click.option("--folder/--no-folder", default=True, show_default=True, help="whether to store into a folder as well")
@click.option("--rate", type=RATE, default=20, show_default=True, help="requests a second")
@click.option("--seconds", type=SECONDS, default=5, show_default=True, help="of each slice of load")
@click.option("--rounds", type=click.IntRange(1, 1000), default=4, show_default=True, help="slices of each service")
@click.option("--seed", type=int, default=1, show_default=True, help="of the arrivals")
@report_options
def storage(
    pack: str | None,
    dataset_uri: str | None,
    photos: int,
    millicores: int | None,
    output: Output,
    **options: Any,  # noqa: ANN401 - click's options
) -> None:
    """Measure what storing answers costs requests: not at all, in the background, and in the request's path.

    PACK is a URI or path, by default the base pack. The object store is a process on this machine that speaks S3,
    takes a known time for each write, and keeps nothing. Exits with 1 where a figure is not valid.

    \b
    Example:
      assay bench storage
      assay bench storage --latency-ms 50 --rate 30 --markdown
    """
    with interruptible(), steps(Console(stderr=True), between=True) as begin:
        file, images = pack_file(pack, begin), photos_to_send(dataset_uri, photos, begin)
        report = measure(Plan(pack=file, millicores=limit(millicores), **options), images, begin)
    finish(output, report)

"""``assay bench batching``."""

from typing import Any

import click
from rich.console import Console

from assay.bench.batching import Plan
from assay.bench.batching import batching as measure
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
@service_options(photos=250)
@click.option(
    "--window-ms", "windows_ms", multiple=True, default=(5, 20), show_default=True, type=click.FloatRange(0, 1000),
    help="time an image may wait for others; may be given several times",
)  # fmt: skip
@click.option(
    "--batch-max", "batches", multiple=True, default=(4, 16), show_default=True, type=click.IntRange(1, 32),
    help="most images in a batch; may be given several times",
)  # fmt: skip
@click.option(
    "--rate", "rates", multiple=True, type=RATE,
    help="requests a second; may be given several times [default: 30, 60 and 85 % of what it can do]",
)  # fmt: skip
@click.option("--seconds", type=SECONDS, default=5, show_default=True, help="of each slice of load")
@click.option("--pairs", type=click.IntRange(1, 1000), default=2, show_default=True, help="of slices, for each rate")
@click.option(
    "--clients", "flood_clients", type=click.IntRange(0, 2000), default=250, show_default=True,
    help="requests at once, each another photo where there are enough; 0 leaves this out",
)  # fmt: skip
@click.option(
    "--flood-window-ms", type=click.FloatRange(0, 1000), default=20, show_default=True, help="window for those"
)
@click.option("--flood-batch-max", "flood_batch", type=click.IntRange(1, 32), default=32, show_default=True)
@click.option("--rounds", type=click.IntRange(1, 1000), default=3, show_default=True, help="of all at once")
@click.option("--seed", type=int, default=1, show_default=True, help="of the arrivals")
@report_options
def batching(
    pack: str | None,
    dataset_uri: str | None,
    photos: int,
    millicores: int | None,
    output: Output,
    **options: Any,  # noqa: ANN401 - click's options
) -> None:
    """Measure batching against serving one by one: window x batch x rate, and many requests at once.

    PACK is a URI or path, by default the base pack. Exits with 1 where a figure is not valid: requests sent late or
    refused.

    \b
    Example:
      assay bench batching
      assay bench batching builtin:efficientnet-lite0-int8 --window-ms 2 --window-ms 10 --rate 40 --picture batching.png
    """
    with interruptible(), steps(Console(stderr=True), between=True) as begin:
        file, images = pack_file(pack, begin), photos_to_send(dataset_uri, photos, begin)
        report = measure(Plan(pack=file, millicores=limit(millicores), **options), images, begin)
    finish(output, report)

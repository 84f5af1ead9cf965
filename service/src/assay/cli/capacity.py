"""``assay capacity``: how many requests a second this machine can take with a pack."""

from typing import Final

import click
from rich.console import Console
from rich.table import Table

from assay.bench.capacity import Capacity, Plan
from assay.bench.capacity import capacity as measure
from assay.cli.bench.service import interruptible, pack_file, photos_to_send
from assay.cli.progress import steps
from assay.platform.cpu import cpu_limit_millicores

_P99_MS: Final = 100
"""What people still take for an immediate answer (J. Nielsen, "Usability Engineering", 1993, chapter 5)."""


@click.command()
@click.argument("pack", required=False)
@click.option(
    "--p99-ms", type=click.FloatRange(1, 60_000), default=_P99_MS, show_default=True,
    help="what 99 of 100 requests are to stay below",
)  # fmt: skip
@click.option(
    "--cpu-limit", "millicores", type=click.IntRange(100, 256_000), metavar="MILLICORES",
    help="of the service [default: what this machine or container has]",
)  # fmt: skip
@click.option("--dataset", "dataset_uri", help="photos to send: URI or path [default: builtin:photos]")
@click.option("--photos", type=click.IntRange(1, 10_000), default=60, show_default=True, help="different ones of it")
@click.option("--megapixels", type=click.FloatRange(0.01, 16), help="bring them to this size [default: as they are]")
@click.option("--rounds", type=click.IntRange(1, 1000), default=5, show_default=True, help="of all photos, one by one")
@click.option("--seed", type=int, default=1, show_default=True, help="of the simulated queue")
@click.option("--json", "as_json", is_flag=True, help="print one JSON document instead of tables")
def capacity(
    pack: str | None,
    p99_ms: float,
    millicores: int | None,
    dataset_uri: str | None,
    photos: int,
    megapixels: float | None,
    rounds: int,
    seed: int,
    as_json: bool,
) -> None:
    """Measure what a request costs here, stage by stage; tell the ceiling, and the rate to offer at a p99 target.

    PACK is a URI or path, by default the base pack. Needs Linux. With a CPU limit below the cores there are, service
    and client have cores of their own, and the figures are better for it.

    \b
    Example:
      assay capacity --p99-ms 80
      assay capacity builtin:efficientnet-lite0-int8 --cpu-limit 1000 --megapixels 0.5 --json
    """
    with interruptible(), steps(Console(stderr=True), between=True) as begin:
        file, images = pack_file(pack, begin), photos_to_send(dataset_uri, photos, begin, megapixels)
        plan = Plan(file, millicores or cpu_limit_millicores(), p99_ms, rounds, seed)
        found = measure(plan, images, begin)
    if as_json:
        click.echo(found.model_dump_json())
    else:
        _print(found, Console())


def _print(found: Capacity, console: Console) -> None:
    cpu = f"{found.cpu_model} ({', '.join(found.cpu_features)})"
    cores = found.cpu_limit_millicores / 1000
    lines = (
        f"{found.pack}, {found.precision}, on {cpu}",
        f"limit {cores:g} cores, workers {found.workers}; {found.cores}",
        f"{found.photos} photos, {found.megapixels:.2f} MP and {found.kilobytes:.0f} KB on average",
    )
    for line in lines:
        console.print(line, highlight=False, markup=False)
    console.print(_stages(found))
    console.print(
        f"ceiling: {cores * 1000:g} CPU-ms a second / {found.busy_cost_ms:.2f} = {found.ceiling:.1f} requests a second",
        highlight=False,
    )
    console.print(_rates(found))
    if best := found.recommended:
        text = f"for a p99 of {found.p99_target_ms:g} ms: at most {best.rate:.1f} requests a second"
        console.print(f"{text} ({best.load:.0%} of the ceiling)", highlight=False)
    else:
        console.print(
            f"no rate has a p99 of {found.p99_target_ms:g} ms: the dearest of 100 requests alone takes longer; "
            "smaller photos, a faster pack (INT8) or a higher target",
            highlight=False,
        )


def _stages(found: Capacity) -> Table:
    table = Table("stage", title="what a request costs", title_justify="left")
    table.add_column("CPU-ms", justify="right")
    for stage in found.stages:
        table.add_row(stage.stage, f"{stage.cpu_ms:.2f}")
    table.add_section()
    table.add_row("while busy", f"{found.busy_cost_ms:.2f}")
    return table


def _rates(found: Capacity) -> Table:
    table = Table(title="what clients will wait, by the queue model", title_justify="left")
    for name in ("requests a second", "of the ceiling", "p50, ms", "p99, ms"):
        table.add_column(name, justify="right")
    for each in found.expected:
        table.add_row(f"{each.rate:.1f}", f"{each.load:.0%}", f"{each.p50_ms:.0f}", f"{each.p99_ms:.0f}")
    return table

"""``assay builtin``: makes the packs and photos that ship in the image."""

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from assay.cli.progress import steps


@click.group()
def builtin() -> None:
    """Make what ships in the image."""


@builtin.command()
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="folder to write to")
@click.option("--calibration", is_flag=True, help="keep the calibration photos as well")
def build(out: Path, calibration: bool) -> None:
    """Build every pack and dataset that ships, judge the INT8 packs this CPU can run, fail if one is not right.

    \b
    Example:
      assay builtin build --out share/assay
    """
    from assay.building.builtins import build_all

    with steps(Console(stderr=True)) as begin:
        made = build_all(out, calibration=calibration, progress=begin)
    table = Table(title="built-ins", title_justify="left")
    for name in ("name", "MB", "top-1", "top-3", "cost ratio", "digest"):
        table.add_column(name)
    for item in made:
        found = item.check
        figures = ("", "", "")
        if found and found.cost_ratio_permille is not None:
            images, ratio = found.dataset.images, f"{found.cost_ratio_permille / 1000:.3f}"
            figures = (f"{found.top1_agreed}/{images}", f"{found.top3_contained}/{images}", ratio)
        elif "int8" in item.name:
            figures = ("not judged", "this CPU", "cannot run it")
        table.add_row(item.name, f"{item.path.stat().st_size / 1e6:.1f}", *figures, item.digest[:19])
    # Wide enough for whole names where nobody watches, as in a build's log.
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)

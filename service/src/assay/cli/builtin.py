"""``assay builtin``: makes the packs and photos that ship in the image."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.table import Table

from assay.cli.progress import steps
from assay.settings import load_settings

if TYPE_CHECKING:  # serving images come without what builds packs
    from assay.building.builtins import BuiltIn

DEFAULT_BASE: Final = "efficientnet-lite0"
"""The same as ``building.builtins.MODEL``, which cannot be imported just to show a command's help."""


@click.group()
def builtin() -> None:
    """Make what ships in the image."""


@builtin.command()
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="folder to write to")
@click.option("--base", default=DEFAULT_BASE, show_default=True, help="the base model, by its name in `model build`")
@click.option("--weights", help="checkpoint of the base: path or URL, as in `model build`")
@click.option("--sha256", help="64 digits the checkpoint must have; else those that end its name")
@click.option("--calibration", is_flag=True, help="keep the calibration photos as well")
def build(out: Path, base: str, weights: str | None, sha256: str | None, calibration: bool) -> None:
    """Build every pack and dataset that ships, and judge the INT8 packs this CPU can run.

    Fail if one of the default base is not right; leave out one of another base that does not Pass.

    \b
    Example:
      assay builtin build --out share/assay
      assay builtin build --base mobilenet-v2 --weights mobilenet_v2-b0353104.pth --out share/assay
    """
    from assay.building.builtins import build_all
    from assay.building.weights_file import find_weights

    if sha256 and not weights:
        raise click.UsageError("--sha256 is of a file: name it with --weights")
    with steps(Console(stderr=True)) as begin:
        file = find_weights(weights, sha256, cache_dir=load_settings().cache_dir) if weights else None
        made = build_all(out, base=base, weights=file, calibration=calibration, progress=begin)
    table = Table(title="built-ins", title_justify="left")
    for name in ("name", "MB", "top-1", "top-3", "cost ratio", "digest"):
        table.add_column(name)
    for item in made:
        table.add_row(item.name, *_figures(item))
    # Wide enough for whole names where nobody watches, as in a build's log.
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)
    for item in made:
        if item.left_out:
            click.echo(f"{item.name} is left out: {item.left_out}")


def _figures(item: "BuiltIn") -> tuple[str, ...]:
    """Return the cells after the name."""
    if item.left_out:
        return ("", "left out", "", "", "")
    found = item.check
    figures = ("", "", "")
    if found and found.cost_ratio_permille is not None:
        images, ratio = found.dataset.images, f"{found.cost_ratio_permille / 1000:.3f}"
        figures = (f"{found.top1_agreed}/{images}", f"{found.top3_contained}/{images}", ratio)
    elif "int8" in item.name:
        figures = ("not judged", "this CPU", "cannot run it")
    return (f"{item.path.stat().st_size / 1e6:.1f}", *figures, item.digest[:19])

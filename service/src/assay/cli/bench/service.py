"""What the benches that start a service have in common on the command line: pack, CPU limit, photos."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from assay.bench.report import Report
from assay.bench.uploads import uploads
from assay.cli.bench.output import Output
from assay.cli.bench.sources import dataset
from assay.cli.progress import Begin
from assay.packs.archive import MAX_PACK_BYTES, read_pack
from assay.packs.builtin import SCHEME, builtin_dir
from assay.packs.fetch import fetch
from assay.platform.cpu import cpu_limit_millicores
from assay.settings import load_settings

_Command = TypeVar("_Command", bound=Callable[..., Any])

_ONE_CORE: Final = 1000

INVALID: Final = 1
"""Exit code of a bench whose figures show something else than they say; each flaw is in its notes."""

_FP32: Final = "-fp32"

_INTERRUPTED: Final = 130
"""128 and the number of SIGINT."""

RATE: Final = click.FloatRange(0.1, 100_000)
SECONDS: Final = click.FloatRange(0.1, 3600)


def service_options(photos: int) -> Callable[[_Command], _Command]:
    """Give a command ``PACK``, ``--cpu-limit``, ``--photos`` and ``--dataset``."""

    def add(command: _Command) -> _Command:
        for option in (
            click.option("--dataset", "dataset_uri", help="photos to send: URI or path [default: builtin:photos]"),
            click.option(
                "--photos", type=click.IntRange(1, 10_000), default=photos, show_default=True,
                help="different photos of it",
            ),
            click.option(
                "--cpu-limit", "millicores", type=click.IntRange(100, 256_000), metavar="MILLICORES",
                help="of the service [default: 1000, so that a core is left for the client]",
            ),
            click.argument("pack", required=False),
        ):  # fmt: skip
            command = option(command)
        return command

    return add


def pack_file(uri: str | None, begin: Begin) -> Path:
    """The file of a pack, by default the base's, which is built where it did not ship and can be.

    Raises what `fetch` and `read_pack` raise.
    """
    settings = load_settings()
    wanted = uri or settings.base_model_uri
    if (made := _built(wanted, settings.cache_dir, begin)) is not None:
        return made
    digest = settings.base_model_digest or None if uri is None else None
    found = fetch(wanted, digest, cache_dir=settings.cache_dir, max_bytes=MAX_PACK_BYTES)
    read_pack(found)  # told in a line here; a service would end with it in its log
    return found


def _built(uri: str, folder: Path, begin: Begin) -> Path | None:
    """A built-in FP32 pack that did not ship, built from installed weights; None where there is nothing to do."""
    name = uri.removeprefix(SCHEME)
    if not uri.startswith(SCHEME) or (builtin_dir() / f"{name}.tar").is_file() or find_spec("onnx") is None:
        return None
    from assay.building import models  # here: needs onnx, which the image does not have

    recipe = models.MODELS.get(name.removesuffix(_FP32))
    if recipe is None or not recipe.shipped or not name.endswith(_FP32):
        return None
    begin(f"building {name}")
    out = folder / f"{name}.tar"
    out.parent.mkdir(parents=True, exist_ok=True)
    models.build(name.removesuffix(_FP32), out)
    return out


def photos_to_send(uri: str | None, count: int, begin: Begin, megapixels: float | None = None) -> list[bytes]:
    """Different photos of a dataset, as they are or brought to a size."""
    return uploads(dataset(uri, begin), count, megapixels)


def limit(millicores: int | None) -> int:
    """The service's CPU limit: what was asked for, else one core, or what there is of it."""
    return millicores or min(_ONE_CORE, cpu_limit_millicores())


@contextmanager
def interruptible() -> Iterator[None]:
    """Exit as shells expect it when Ctrl-C ends the block; 1, click's code for it, is `INVALID` here."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("assay: interrupted; nothing is left running", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None


def finish(output: Output, report: Report) -> None:
    """Show a report; exit with `INVALID` if something is wrong with it."""
    output.show(report)
    if any(row.get("flaw") for row in report.rows):
        click.echo("assay: the figures are not valid; see the notes", err=True)
        raise click.exceptions.Exit(INVALID)

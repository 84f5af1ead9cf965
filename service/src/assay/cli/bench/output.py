"""What every bench has in common on the command line: where its report goes, and how much of it is measured."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from rich.console import Console
from rich.table import Table

from assay.bench.picture import check_drawable, draw
from assay.bench.report import Report
from assay.errors import BenchError

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class Output:
    """Where a report goes."""

    as_json: bool
    as_markdown: bool
    json_file: Path | None
    picture: Path | None

    def show(self, report: Report) -> None:
        """Print a report, and write the files that were asked for. Raises ``BenchError`` if one cannot be written."""
        report = report.model_copy(update={"command": command_line()})
        if self.as_json:
            click.echo(report.json_text(), nl=False)
        elif self.as_markdown:
            click.echo(f"    {report.command}\n\n{report.markdown()}", nl=False)
        else:
            _print(report)
        if self.json_file:
            try:
                self.json_file.write_text(report.json_text())
            except OSError as error:
                raise BenchError(f"cannot write {self.json_file}: {error.strerror or error}") from error
        if self.picture:
            draw(report, self.picture)


def report_options(command: _Command) -> _Command:
    """Give a command the options of its output; it gets them as one argument, ``output``."""
    wanted = (
        click.option("--json", "as_json", is_flag=True, help="print one JSON document instead of a table"),
        click.option("--markdown", "as_markdown", is_flag=True, help="print the table in Markdown"),
        click.option(
            "--out-json", "json_file", type=_FILE, callback=_folder_exists, help="write the JSON here as well"
        ),
        click.option(
            "--picture", type=_FILE, callback=_drawable, help="draw it here: a file that ends in .png or .svg"
        ),
    )

    def gathered(
        *, as_json: bool, as_markdown: bool, json_file: Path | None, picture: Path | None, **options: object
    ) -> object:
        return command(output=Output(as_json, as_markdown, json_file, picture), **options)

    update_wrapper(gathered, command)  # the options that click has noted on the command too
    for option in reversed(wanted):
        option(gathered)
    return cast("_Command", gathered)


def amount_options(calls: int, warmups: int, max_seconds: float = 240) -> Callable[[_Command], _Command]:
    """Give a command ``--calls``, ``--warmups``, ``--seed`` and ``--max-seconds``."""

    def add(command: _Command) -> _Command:
        for option in (
            click.option(
                "--max-seconds", type=click.FloatRange(1, 3600), default=max_seconds, show_default=True,
                help="timing ends then, with what it has",
            ),
            click.option("--seed", type=int, default=1, show_default=True, help="of everything random"),
            click.option(
                "--warmups", type=click.IntRange(0, 10_000), default=warmups, show_default=True,
                help="calls of each side before any is timed",
            ),
            click.option(
                "--calls", type=click.IntRange(2, 1_000_000), default=calls, show_default=True,
                help="timed calls of each side",
            ),
        ):  # fmt: skip
            command = option(command)
        return command

    return add


def command_line() -> str:
    """What was typed."""
    return shlex.join(["assay", *sys.argv[1:]])


def _drawable(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path:
        check_drawable(path)
    return _folder_exists(_ctx, _option, path)


def _folder_exists(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before minutes are spent on what goes into it."""
    if path and not path.resolve().parent.is_dir():
        raise BenchError(f"there is no folder for {path}: make {path.resolve().parent} first")
    return path


def _print(report: Report) -> None:
    table = Table(title=report.title, title_justify="left", caption_justify="left")
    for column in report.columns:
        head = f"{column.title}\n[dim]{column.unit}[/]" if column.unit else column.title
        table.add_column(head, justify="left" if column.decimals is None else "right", no_wrap=column.decimals is None)
    for row in report.rows:
        table.add_row(*(column.shown(row[column.key]) for column in report.columns))
    console = Console()
    # Wide enough for whole names where nobody watches, as in a build's log.
    console = console if console.is_terminal else Console(width=160)
    console.print(table)
    features = ", ".join(report.cpu_features)
    limit = f"{report.cpu_limit_millicores / 1000:g} cores"
    for line in (f"CPU: {report.cpu_model} ({features}), limit {limit}", f"command: {report.command}", *report.notes):
        console.print(line, highlight=False, markup=False, style="dim")

"""The command ``assay``: a group whose commands are imported when they are called, not before.

Contract: a module here turns options into calls of the packages below and prints what they return. Machine output goes
to stdout, progress and tables to stderr. An `AssayError` that reaches the top is printed as one line, without a trace.
"""

import signal
import sys

import click

from assay import __version__
from assay.cli.lazy import LazyGroup
from assay.constants import EXIT_CHECK_ERROR, EXIT_ERROR
from assay.errors import AssayError

COMMANDS = {
    "serve": ("assay.cli.serve:serve", "Serve a model over HTTP."),
    "classify": ("assay.cli.classify:classify", "Classify image files, here or on a server."),
    "check": ("assay.cli.check:check", "Measure a candidate pack against a yardstick; exit with the verdict."),
    "bench": ("assay.cli.bench:bench", "Measure what each technique is worth on this machine."),
    "capacity": ("assay.cli.capacity:capacity", "Tell how many requests a second this machine can take with a pack."),
    "model": ("assay.cli.model:model", "Build, pack, quantise, fetch and inspect model packs."),
    "dataset": ("assay.cli.dataset:dataset", "Build, pack and inspect datasets."),
    "builtin": ("assay.cli.builtin:builtin", "Make the packs and photos that ship in the image."),
    "demo": ("assay.cli.demo:demo", "Build, check and serve a model on this machine."),
}
"""Name to where the command is and its line in the overview (which is shown without importing any of them)."""

_KILLED = 128
"""What shells add to a signal's number for the exit code of what it ended."""

_ERROR_EXITS = {"check": EXIT_CHECK_ERROR}


class Assay(LazyGroup):
    """The top: where errors of this package end."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; print an `AssayError` as one line and exit with the command's code for errors.

        SIGTERM unwinds like Ctrl-C, so that temporary files go and child processes end; `serve` has its own handler.
        """
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(_KILLED + number))
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            error.show()
            ctx.exit(_ERROR_EXITS.get(ctx.invoked_subcommand or "", error.exit_code))
        except AssayError as error:
            click.echo(f"assay: error: {error}", err=True)
            ctx.exit(_ERROR_EXITS.get(ctx.invoked_subcommand or "", EXIT_ERROR))


@click.group(
    cls=Assay, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="assay")
def main() -> None:
    """Serve image classifiers on CPUs, and measure a new model before it may take traffic.

    \b
    Example:
      assay serve --model builtin:efficientnet-lite0-fp32
      assay classify photo.jpg --url http://127.0.0.1:8000
    """

"""``assay check``: measures a candidate pack against a yardstick and exits with the verdict."""

import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from assay.check.report import CheckResult, render
from assay.check.verdict import COST_RATIO_INT8, COST_RATIO_OTHER, Criteria
from assay.cli.progress import steps
from assay.cli.verdict import verdict_table
from assay.constants import EXIT_CHECK_ERROR
from assay.errors import AssayError, PackUnavailableError
from assay.measurement.run import DEFAULT_MAX_IMAGES, CheckRequest, Reference, failed, run_check
from assay.packs.builtin import PHOTOS
from assay.settings import load_settings

EXITS = {"Pass": 0, "Fail": 1, "Inconclusive": 2, "Error": EXIT_CHECK_ERROR}
"""Exit code of each verdict; with ``--result-file``, 0 for all but Error: the verdict is in the file."""

_INTERRUPTED = 130
"""Exit code of a command that was interrupted (128 and the number of SIGINT), as shells have it."""

_COST_HELP = (
    f"most the candidate may cost, of 1000; default {COST_RATIO_INT8} for INT8 against FP32, else {COST_RATIO_OTHER}"
)


@click.command()
@click.option("--candidate", required=True, help="pack to judge: URI or path")
@click.option("--candidate-digest", help="sha256:… it must have")
@click.option("--candidate-precision", type=click.Choice(["FP32", "INT8"]), help="precision it must have")
@click.option("--compare-with", help="yardstick: URI or path [default: the base pack]")
@click.option("--compare-with-digest", help="sha256:… it must have")
@click.option("--dataset", default=PHOTOS, show_default=True, help="photos to judge on: URI or path")
@click.option("--dataset-digest", help="sha256:… it must have")
@click.option("--max-images", type=click.IntRange(1), default=DEFAULT_MAX_IMAGES, show_default=True)
@click.option("--confidence-percent", type=int, default=95, show_default=True, help="of each one-sided bound; 80 to 99")
@click.option("--min-top3-containment-permille", type=int, default=980, show_default=True, help="0 is off")
@click.option("--min-top1-agreement-permille", type=int, default=0, show_default=True, help="0 is off")
@click.option("--max-top1-drop-permille", type=int, help="needs labels [default: off]")
@click.option("--max-cost-ratio-permille", type=int, help=_COST_HELP)
@click.option("--max-noise-permille", type=int, default=100, show_default=True, help="spread of the cost ratio")
@click.option("--json", "as_json", is_flag=True, help="print the result as one line of JSON")
@click.option("--result-file", type=click.Path(dir_okay=False, path_type=Path), help="write the JSON here as well")
@click.option("--job-uid", default="", help="copied into the result")
@click.option("--inputs-hash", default="", help="copied into the result")
@click.pass_context
def check(ctx: click.Context, /, *, as_json: bool, result_file: Path | None, **options: Any) -> None:  # noqa: ANN401 - click's options
    """Measure whether a candidate pack may serve instead of another one, on this machine.

    Exits with 0 for Pass, 1 for Fail, 2 for Inconclusive, 3 for Error. With --result-file: 0 for any verdict written,
    3 for Error (also written), so that a failed measurement is never mistaken for a bad model.

    \b
    Example:
      assay check --candidate builtin:efficientnet-lite0-int8 --compare-with builtin:efficientnet-lite0-fp32
      assay check --candidate int8.tar --compare-with fp32.tar --dataset my-photos.tar --json
    """
    try:
        code = _check(options, as_json, result_file)
    except AssayError:
        raise
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except Exception:
        # Python would exit with 1, and 1 is a verdict.
        traceback.print_exc()
        code = EXIT_CHECK_ERROR
    ctx.exit(code)


def _check(options: dict[str, Any], as_json: bool, result_file: Path | None) -> int:
    """Run the check, show its result, and return the exit code."""
    result = _run(options, Console(stderr=True))
    if as_json:
        click.echo(render(result), nl=False)
    else:
        Console().print(verdict_table(result))
    if result_file is None:
        return EXITS[result.verdict]
    _write(result_file, result)
    return EXITS["Error"] if result.verdict == "Error" else 0


def _run(options: dict[str, Any], console: Console) -> CheckResult:
    """Turn options into a request and run it; an option or setting out of range is an Error like any other."""
    # An argument need not be Unicode; a result must be.
    options = {name: _unicode(value) for name, value in options.items()}
    request = CheckRequest(
        candidate=Reference(options["candidate"], options["candidate_digest"] or None, options["candidate_precision"]),
        yardstick=Reference(options["compare_with"] or "", options["compare_with_digest"] or None),
        dataset=Reference(options["dataset"], options["dataset_digest"] or None),
        cache_dir=Path(),
        max_cost_ratio=options["max_cost_ratio_permille"],
        max_images=options["max_images"],
        job_uid=options["job_uid"],
        inputs_hash=options["inputs_hash"],
    )
    try:
        request = _with_settings(request, options)
    except AssayError as error:
        return failed(request, error)
    with steps(console) as begin:
        return run_check(request, begin)


def _unicode(value: object) -> Any:  # noqa: ANN401 - click's options
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _with_settings(request: CheckRequest, options: dict[str, Any]) -> CheckRequest:
    """Fill in what comes from the environment, and the criteria."""
    settings = load_settings()
    yardstick = request.yardstick
    if not yardstick.uri:
        yardstick = Reference(settings.base_model_uri, yardstick.digest or settings.base_model_digest or None)
    criteria = Criteria(
        confidence_percent=options["confidence_percent"],
        min_top3_containment=options["min_top3_containment_permille"],
        min_top1_agreement=options["min_top1_agreement_permille"],
        max_top1_drop=options["max_top1_drop_permille"],
        max_noise=options["max_noise_permille"],
    )
    if request.max_cost_ratio is not None:
        criteria = replace(criteria, max_cost_ratio=request.max_cost_ratio)
    return replace(
        request,
        yardstick=yardstick,
        cache_dir=settings.cache_dir,
        criteria=criteria,
        cpu_limit_millicores=settings.cpu_limit_millicores or None,
    )


def _write(path: Path, result: CheckResult) -> None:
    """Write the result in one piece, in place: a termination log is a mounted file and cannot be replaced."""
    try:
        path.write_bytes(render(result))
    except OSError as error:
        raise PackUnavailableError(f"cannot write the result to {path}: {error.strerror or error}") from error

"""``assay bench variants``: one model as PyTorch, ONNX FP32, dynamic INT8 and static INT8."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from assay.bench.pytorch import DEFAULT_PYTHON
from assay.cli.bench.output import Output, amount_options, report_options
from assay.cli.bench.sources import dataset
from assay.cli.progress import Begin, steps
from assay.errors import BenchError
from assay.measurement.run import Reference, load_reference
from assay.packs.builtin import PHOTOS, PHOTOS_CALIBRATION
from assay.platform.cpu import cpu_limit_millicores
from assay.settings import load_settings

if TYPE_CHECKING:
    from assay.bench.models import Source

DEFAULT: Final = "efficientnet-lite0"


@click.command()
@click.argument("model", default=DEFAULT)
@click.option(
    "--threads", multiple=True, type=click.IntRange(1, 256), help="[default: 1, and as many as the CPU limit]"
)
@click.option("--recipe", default="auto", show_default=True, help="static INT8: as of `assay model quantize`")
@click.option("--calibration", default=PHOTOS_CALIBRATION, show_default=True, help="dataset: URI or path")
@click.option("--judge", default=PHOTOS, show_default=True, help="dataset to compare labels on: URI or path")
@click.option("--images", type=click.IntRange(1), default=200, show_default=True, help="images to compare labels on")
@click.option(
    "--torch-python", default=DEFAULT_PYTHON, show_default=True, help="a Python that has PyTorch, torchvision"
)
@click.option("--no-torch", is_flag=True, help="leave PyTorch out")
@amount_options(calls=100, warmups=10)
@report_options
def variants(
    model: str,
    threads: tuple[int, ...],
    recipe: str,
    calibration: str,
    judge: str,
    images: int,
    torch_python: str,
    no_torch: bool,
    output: Output,
    **amount: Any,  # noqa: ANN401 - click's options
) -> None:
    """Measure a MODEL in its variants: time, CPU cost, size, and labels against FP32.

    MODEL is efficientnet-lite0, mobilenet-v2 or mobilenet-v3-large (the latter two with random weights: their cost is
    real, their labels are not), or the URI or path of an FP32 pack.

    \b
    Example:
      assay bench variants
      assay bench variants mobilenet-v3-large --calls 200 --picture variants.png
      assay bench variants my-model-fp32.tar --threads 1 --json
    """
    if find_spec("onnx") is None:
        raise BenchError("variants are quantised here, which needs onnx: pip install 'service[build]' in a checkout")
    from assay.bench import models
    from assay.bench.variants import PyTorch, measure

    limit = max(1, cpu_limit_millicores(load_settings().cpu_limit_millicores or None) // 1000)
    with steps(Console(stderr=True), between=True) as begin:
        begin("making the FP32 model")
        source = models.of_architecture(model, amount["seed"]) if model in models.ARCHITECTURES else _pack(model, begin)
        judging = dataset(judge, begin)
        quantised, notes = models.quantised(source, dataset(calibration, begin), judging, recipe, begin)
        report = measure(
            source.pack,
            quantised,
            models.images(source, judging, images),
            threads=tuple(dict.fromkeys(threads or (1, limit))),
            trained=source.trained,
            pytorch=None if no_torch else PyTorch(torch_python, source.pack.manifest.architecture, source.tensors),
            notes=notes,
            progress=begin,
            **amount,
        )
    output.show(report)


def _pack(model: str, begin: Begin) -> "Source":
    from assay.bench import models

    if ":" not in model and not Path(model).exists():
        known = ", ".join(models.ARCHITECTURES)
        raise BenchError(f"{model} is neither an architecture ({known}) nor a file: name one of them, or a URI")
    return models.of_pack(load_reference(Reference(model), load_settings().cache_dir, begin("fetching the pack")))

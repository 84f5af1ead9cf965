"""``assay model pack``: a user's own ONNX file and labels, as a pack."""

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from assay.cli.progress import steps
from assay.inference.postprocess import best_classes

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_SHOWN = 3
"""Labels shown of the photo: what a check's containment is about."""


def _per_channel(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """Return one number for each of R, G and B; a single one is for all three."""
    if value is None:
        return None
    try:
        numbers = tuple(float(part) for part in value.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, 3):
        raise click.BadParameter(f"{value!r} is not one number, or three with commas (R,G,B)", ctx, param)
    return numbers * 3 if len(numbers) == 1 else numbers


@click.command()
@click.option("--onnx", "onnx_file", required=True, type=_FILE, help="the model")
@click.option("--labels", required=True, type=_FILE, help="one label per line, in class order")
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="file to write")
@click.option("--name", help="of the pack [default: that of the file to write]")
@click.option(
    "--mean",
    metavar="M[,M,M]",
    callback=_per_channel,
    help="x = (pixel - mean) / std, pixel 0..255",
)
@click.option("--std", metavar="S[,S,S]", callback=_per_channel, help="one number, or R,G,B; neither for uint8 models")
@click.option("--layout", type=click.Choice(["NCHW", "NHWC"]), help="of its input [default: what its shape tells]")
@click.option("--interpolation", type=click.Choice(["bilinear", "bicubic"]), default="bilinear", show_default=True)
@click.option("--resize", type=click.IntRange(16, 2048), help="short side before the crop [default: 256 for 224]")
@click.option("--crop", type=click.IntRange(16, 2048), help="side of the centre crop [default: what it takes, or 224]")
@click.option("--output", help="tensor of the scores, where the model returns several; may be inside the graph")
@click.option("--architecture", help="for the manifest [default: the graph's name]")
@click.option("--licence", default="unknown", show_default=True, help="of the weights, for the manifest")
@click.option("--photo", type=_FILE, help="photo to try it on [default: a cat]")
@click.option("--json", "as_json", is_flag=True, help="print one JSON document")
def pack(onnx_file: Path, out: Path, name: str | None, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's options
    """Pack your own ONNX classifier: RGB pictures in, one score per class out.

    The model is rewritten to take uint8 photos, any number at a time, and to return logits; then it is run on a photo,
    and its answers are shown. What cannot be made to fit is refused with the reason.

    \b
    Example:
      assay model pack --onnx own.onnx --labels labels.txt --mean 127.5 --std 127.5 --out own.tar
      assay model pack --onnx resnet.onnx --labels labels.txt --out resnet.tar --photo dog.jpg \\
        --mean 123.675,116.28,103.53 --std 58.395,57.12,57.375
    """
    # Imported here: serving images come without what builds packs.
    from assay.building.foreign.pack import Order, pack_onnx

    console = Console(stderr=True)
    order = Order(onnx=onnx_file, name=name or out.stem.lower(), **options)
    with steps(console) as begin:
        packed = pack_onnx(order, out, begin)
    for note in packed.notes:
        console.print(f"- {note}", highlight=False, markup=False)
    best = [(packed.labels[index], score) for index, score in best_classes(packed.logits, _SHOWN)]
    size = out.stat().st_size
    if as_json:
        seen = [{"label": label, "score": round(score, 6)} for label, score in best]
        document = {"file": str(out), "digest": packed.digest, "bytes": size, "notes": packed.notes, "photo": seen}
        click.echo(json.dumps(document))
        return
    shown = options["photo"].name if options["photo"] else "the photo of a cat that comes with Assay"
    console.print(f"what it sees in {shown}:", highlight=False, markup=False)
    for label, score in best:
        console.print(f"  {score:.3f}  {label}", highlight=False, markup=False)
    click.echo(f"{out} {packed.digest} {size}")

"""``assay demo``: from nothing to a checked INT8 model that answers over HTTP, on this machine."""

import hashlib
import json
import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final, NoReturn

import click
from rich.console import Console

import assay
from assay.check.report import CheckResult, render
from assay.cli.demo_service import classify_three, demo_environment
from assay.cli.progress import Begin, steps
from assay.cli.verdict import verdict_table
from assay.measurement.run import CheckRequest, Reference, run_check
from assay.packs.archive import read_pack, write_pack
from assay.packs.dataset import read_dataset
from assay.packs.tar import file_digest
from assay.platform.cpu import cpu_model, notable_features

MODEL: Final = "efficientnet-lite0"

_MADE_BY: Final = ("building", "check", "inference", "measurement", "packs", "vision")
"""Packages whose change makes what the demo has built stale."""


@dataclass(frozen=True)
class Files:
    """What the demo makes, in its folder."""

    folder: Path

    @property
    def fp32(self) -> Path:
        """The pack built from published weights."""
        return self.folder / f"{MODEL}-fp32.tar"

    @property
    def int8(self) -> Path:
        """The pack quantised for this CPU."""
        return self.folder / f"{MODEL}-int8.tar"

    @property
    def photos(self) -> Path:
        """The photos the check judges on."""
        return self.folder / "photos.tar"

    @property
    def calibration(self) -> Path:
        """The photos that calibrate."""
        return self.folder / "photos-calibration.tar"

    @property
    def check(self) -> Path:
        """The last check's result."""
        return self.folder / "check.json"

    @property
    def stamp(self) -> Path:
        """What made the files above."""
        return self.folder / "made-by.json"


@click.command()
@click.option("--serve", is_flag=True, help="serve in the foreground instead of classifying three photos")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="with --serve")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=".demo", show_default=True)
def demo(serve: bool, port: int, folder: Path) -> None:
    """Build an FP32 pack, quantise it for this CPU, check it, serve the winner, classify three photos.

    Takes a minute or two; what was built is kept in a folder and used again while nothing that made it has changed.

    \b
    Example:
      assay demo
      assay demo --serve
    """
    console, files = Console(), Files(folder.resolve())
    with steps(Console(stderr=True)) as begin:
        _prepare(files, console, begin)
        result = _check(files, begin, reuse=serve)
    console.print(verdict_table(result))
    winner = files.int8 if result.verdict == "Pass" else files.fp32
    console.print(f"{winner.name} serves: the INT8 pack's verdict is {result.verdict}", highlight=False)
    if serve:
        _serve(winner, port, console)
    classify_three(winner, console)


def _prepare(files: Files, console: Console, begin: Begin) -> None:
    """Make packs and photos, unless those there were made by the same code, libraries and CPU."""
    # Imported here: `demo --help` works without what builds packs.
    from assay.building import models, photos
    from assay.building.choice import Goal
    from assay.building.ladder import quantise
    from assay.cli.ladder import ladder_table

    stamp = _stamp()
    made = (files.fp32, files.int8, files.photos, files.calibration)
    if files.stamp.is_file() and files.stamp.read_text() == stamp and all(path.is_file() for path in made):
        console.print(f"using the packs and photos in {files.folder}", highlight=False)
        return
    files.stamp.unlink(missing_ok=True)
    files.check.unlink(missing_ok=True)
    begin("building the FP32 pack from published weights, without PyTorch")
    models.build(MODEL, files.fp32)
    photos.build("photos-calibration", files.calibration, begin("building the calibration photos"))
    photos.build("photos", files.photos, begin("building the photos to judge on"))
    sets = read_dataset(files.calibration), read_dataset(files.photos)
    found = quantise(read_pack(files.fp32), *sets, progress=begin, quick=True)
    pack = found.chosen.pack
    write_pack(files.int8, pack.manifest, pack.model, pack.labels)
    console.print(ladder_table(found, Goal()))
    files.stamp.write_text(stamp)


def _stamp() -> str:
    """Return what would make the files now: the code, the libraries and the CPU."""
    root = Path(assay.__file__).parent
    code = hashlib.sha256()
    for path in sorted(path for package in _MADE_BY for path in (root / package).rglob("*.py")):
        code.update(path.read_bytes())
    libraries = {name: version(name) for name in ("onnx", "onnxruntime", "numpy", "pillow")}
    cpu = {"cpu": cpu_model(), "features": notable_features()}
    return json.dumps({"code": code.hexdigest(), **libraries, **cpu}, indent=1)


def _check(files: Files, begin: Begin, *, reuse: bool) -> CheckResult:
    """Check the INT8 pack against the FP32 one; ``reuse`` takes the last result of the same packs."""
    candidate, yardstick = file_digest(files.int8), file_digest(files.fp32)
    if reuse and files.check.is_file():
        last = CheckResult.model_validate_json(files.check.read_bytes())
        if (last.candidate.digest, last.yardstick.digest) == (candidate, yardstick) and last.verdict == "Pass":
            return last
    request = CheckRequest(
        candidate=Reference(str(files.int8), candidate, "INT8"),
        yardstick=Reference(str(files.fp32), yardstick, "FP32"),
        dataset=Reference(str(files.photos)),
        cache_dir=files.folder,
    )
    result = run_check(request, begin)
    files.check.write_bytes(render(result))
    return result


def _serve(pack: Path, port: int, console: Console) -> NoReturn:
    """Become the service, in the foreground: signals reach it directly."""
    console.print(f"serving {pack.name} on http://127.0.0.1:{port} (stop with Ctrl-C)", highlight=False)
    command = [sys.executable, "-m", "assay", "serve", "--host", "127.0.0.1", "--port", str(port)]
    os.execve(sys.executable, command, demo_environment(pack))  # noqa: S606 - our own interpreter and program

"""Packs for the end-to-end tests: real ones, spoilt in ways that raise no error when a model is loaded."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from assay.packs.archive import read_pack, write_pack


@dataclass(frozen=True)
class PackFile:
    """A pack on disk and its digest."""

    path: Path
    digest: str
    precision: str


def assay(*argv: str | Path) -> None:
    """Run the command line as a user would."""
    subprocess.run([sys.executable, "-m", "assay", *map(str, argv)], check=True, capture_output=True, timeout=600)


def scramble(model: bytes) -> bytes:
    """The same graph with the values of every large weight shuffled: valid, fast, and wrong."""
    graph = onnx.load_from_string(model)
    random = np.random.default_rng(0)
    for tensor in graph.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.size > 1000:  # kernels and the classifier; shapes and scalars stay as they are
            shuffled = random.permutation(values.reshape(-1)).reshape(values.shape)
            tensor.CopyFrom(numpy_helper.from_array(shuffled, tensor.name))
    scrambled: bytes = graph.SerializeToString()
    return scrambled


def build_packs(folder: Path) -> dict[str, PackFile]:
    """A good FP32 pack, one with scrambled weights, one with labels off by one, and one quantised dynamically."""
    good = folder / "good.tar"
    assay("model", "build", "efficientnet-lite0", "--out", good)
    calibration = folder / "calibration.tar"
    assay("dataset", "build", "photos-calibration", "--out", calibration)
    dynamic = folder / "dynamic.tar"
    assay(
        "model", "quantize", good, "--calibration", calibration, "--recipe", "dynamic",
        "--min-agreement", "0", "--out", dynamic,
    )  # fmt: skip

    pack = read_pack(good)
    scrambled, permuted = folder / "scrambled.tar", folder / "permuted.tar"
    write_pack(scrambled, pack.manifest, scramble(pack.model), pack.labels)
    write_pack(permuted, pack.manifest, pack.model, (*pack.labels[1:], pack.labels[0]))
    return {
        path.stem: PackFile(path, (read := read_pack(path)).digest, read.manifest.precision)
        for path in (good, scrambled, permuted, dynamic)
    }

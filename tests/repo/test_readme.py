"""The README's way for one's own model, run as it is printed."""

import os
import re
import shlex
import subprocess
import sys

import pytest
import yaml
from onnx import TensorProto

from support.own_models import plain
from support.small_packs import COLOURS, LABELS, colour_jpeg

VERDICTS = (0, 1, 2)  # a model of four numbers may well be dearer in integers: that is an answer too


def commands(root):
    section = (root / "README.md").read_text().split("## Your own model", 1)[1].split("\n## ", 1)[0]
    return [shlex.split(line) for line in re.findall(r"^    (assay .*)$", section, re.MULTILINE)]


@pytest.fixture
def desk(tmp_path):
    """A folder with what the README takes for granted: a model, its labels, photos, and two lists of them."""
    model = plain(source=("chw", TensorProto.FLOAT, (1, 3, 224, 224)))
    (tmp_path / "own.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "labels.txt").write_text("".join(f"{label}\n" for label in LABELS))
    (tmp_path / "photos").mkdir()
    for name, sizes in {"calibrate": (230, 240), "judge": (250, 260)}.items():
        rows = ["file,class_index"]
        for size in sizes:
            for index, colour in enumerate(COLOURS.values()):
                file = f"{size}-{index}.jpg"
                (tmp_path / "photos" / file).write_bytes(colour_jpeg(colour, size))
                rows.append(f"{file},{index}")
        (tmp_path / f"{name}.csv").write_text("\n".join(rows))
    return tmp_path


def test_commands_for_ones_own_model_do_what_the_readme_says(root, desk):
    named = commands(root)
    assert [command[1] for command in named] == ["model", "dataset", "dataset", "model", "check", "serve"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment["ASSAY_CACHE_DIR"] = str(desk / "cache")
    for command in named[:-1]:  # serving does not end by itself, and has tests of its own
        ran = subprocess.run(
            [sys.executable, "-m", *command], cwd=desk, env=environment, capture_output=True, text=True, timeout=120
        )
        assert ran.returncode in (VERDICTS if command[1] == "check" else (0,)), ran.stderr
        if command[1] == "check":
            assert "verdict" in ran.stdout
    assert (desk / "own-int8.tar").is_file()


def test_sample_for_ones_own_model_names_the_command_with_options_it_has(root):
    text = (root / "k8s" / "samples" / "own-model.yaml").read_text()
    command = re.search(r"`(assay model pack [^`]*)`", text)[1]
    shown = subprocess.run(
        [sys.executable, "-m", "assay", "model", "pack", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert {word for word in command.split() if word.startswith("--")} <= set(shown.split())
    assert yaml.safe_load(text)["kind"] == "ModelVariant"

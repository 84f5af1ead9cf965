"""``assay model``, ``assay dataset``: from the command line, as a user types them."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from assay.building.models import MODELS
from assay.packs.archive import read_pack
from support.checkpoints import zipped
from support.small_packs import SOME_DIGEST, colour_dataset, colour_pack


@pytest.fixture
def assay(tmp_path):
    """Run the command in an environment of its own; return the finished process."""

    def run(*argv, builtin=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        environment |= {"ASSAY_CACHE_DIR": str(tmp_path / "cache"), "ASSAY_BUILTIN_DIR": str(builtin or tmp_path)}
        command = [sys.executable, "-m", "assay", *map(str, argv)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path)

    return run


def test_a_pack_is_built_and_inspected(assay, tmp_path):
    built = assay("model", "build", "efficientnet-lite0", "--out", "fp32.tar", "--json")
    assert built.returncode == 0, built.stderr
    found = json.loads(built.stdout)
    assert found == {"file": "fp32.tar", "digest": read_pack(tmp_path / "fp32.tar").digest, "bytes": found["bytes"]}
    shown = json.loads(assay("model", "inspect", "fp32.tar", "--digest", found["digest"], "--json").stdout)
    assert shown["digest"] == found["digest"]
    assert shown["manifest"]["name"] == "efficientnet-lite0-fp32"
    assert "Apache-2.0" in assay("model", "inspect", "fp32.tar").stdout


def test_a_pack_is_built_from_a_checkpoint_that_is_what_its_name_says(assay, tmp_path):
    path = zipped(tmp_path / "m.pth", MODELS["mobilenet-v2"].random(1).tensors)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    named = path.rename(tmp_path / f"mobilenet_v2-{sha256[:8]}.pth")
    built = assay("model", "build", "mobilenet-v2", "--weights", named.name, "--sha256", sha256, "--out", "m.tar")
    assert built.returncode == 0, built.stderr
    assert read_pack(tmp_path / "m.tar").manifest.source.name == named.name
    seeded = assay("model", "build", "mobilenet-v2", "--random-weights", "1", "--out", "r.tar")
    assert seeded.returncode == 0, seeded.stderr
    assert read_pack(tmp_path / "r.tar").model == read_pack(tmp_path / "m.tar").model
    named.rename(tmp_path / "mobilenet_v2-b0353104.pth")
    refused = assay("model", "build", "mobilenet-v2", "--weights", "mobilenet_v2-b0353104.pth", "--out", "x.tar")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"has sha256 {sha256}, but b0353104 is in its name" in " ".join(refused.stderr.split())


def test_a_pack_is_fetched_whole_or_not_at_all(assay, tmp_path):
    pack = colour_pack(tmp_path / "fp32.tar")
    fetched = assay("model", "fetch", f"file://{tmp_path}/fp32.tar", "--digest", pack.digest, "--out", "copy.tar")
    assert fetched.returncode == 0, fetched.stderr
    assert (tmp_path / "copy.tar").read_bytes() == (tmp_path / "fp32.tar").read_bytes()
    refused = assay("model", "fetch", f"file://{tmp_path}/fp32.tar", "--digest", SOME_DIGEST, "--out", "no.tar")
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].startswith("assay: error: ")
    assert not (tmp_path / "no.tar").exists()


def test_a_dataset_is_packed_and_inspected(assay, tmp_path):
    colour_dataset(tmp_path / "d.tar", 8, groups=4)
    shown = json.loads(assay("dataset", "inspect", "d.tar", "--json").stdout)
    assert (shown["images"], shown["groups"], shown["labelled"]) == (8, 4, 8)
    assert "plain squares" in assay("dataset", "inspect", "d.tar").stdout


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("model", "build", "resnet", "--out", "x.tar"), "known: efficientnet-lite0"),
        (("model", "build", "mobilenet-v2", "--out", "x.tar"), "no installed package has weights of mobilenet-v2"),
        (
            ("model", "build", "mobilenet-v2", "--weights", "https://example.org/m.pth", "--out", "x.tar"),
            "https://example.org/m.pth is not pinned",
        ),
        (("builtin", "build", "--base", "mobilenet-v2", "--out", "x"), "no installed package has weights"),
        (("builtin", "build", "--sha256", "0" * 64, "--out", "x"), "name it with --weights"),
        (("model", "inspect", "none.tar"), "none.tar"),
        (("dataset", "inspect", "builtin:none"), "there is no built-in 'none'"),
    ],
)
def test_what_goes_wrong_is_one_line_and_exit_code_2(assay, argv, told):
    failed = assay(*argv)
    assert failed.returncode == 2
    assert told in failed.stderr
    assert "Traceback" not in failed.stderr
    assert failed.stdout == ""


@pytest.mark.parametrize(
    "command",
    [
        ("model", "build"), ("model", "pack"), ("model", "quantize"), ("model", "inspect"), ("model", "fetch"),
        ("dataset", "build"), ("dataset", "pack"), ("dataset", "inspect"), ("check",), ("demo",), ("builtin", "build"),
    ],
)  # fmt: skip
def test_every_command_explains_itself_with_an_example(assay, command):
    shown = assay(*command, "--help")
    assert shown.returncode == 0
    assert "Example:" in shown.stdout
    assert f"assay {' '.join(command)}" in shown.stdout

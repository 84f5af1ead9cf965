"""``assay demo``, with what it builds already there: the check, the service and its answers are real."""

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from assay.cli.demo import MODEL, Files, _prepare, _stamp
from assay.packs.archive import write_pack
from support.small_packs import quantization


@pytest.fixture
def folder(tmp_path, photo_sets, base_pack, quantised):
    """A demo's folder as it looks after a first run."""
    files = Files(tmp_path / "demo")
    files.folder.mkdir()
    for ours, theirs in ((files.fp32, f"{MODEL}-fp32.tar"), (files.photos, "photos.tar")):
        ours.symlink_to(photo_sets / theirs)
    files.calibration.symlink_to(photo_sets / "photos-calibration.tar")
    update = {"precision": "INT8", "name": f"{MODEL}-int8", "quantization": quantization(("astronaut",))}
    manifest = base_pack.manifest.model_copy(update=update)
    write_pack(files.int8, manifest, quantised["static-reduce-range"], base_pack.labels)
    files.stamp.write_text(_stamp())
    return files.folder


def test_the_demo_checks_serves_classifies_and_stops(folder, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    # A setting of the caller's shell must not reach the demo's service.
    environment["ASSAY_MODEL_URI"] = "builtin:nothing"
    command = [sys.executable, "-m", "assay", "demo", "--folder", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.replace("│", " ").split())
    assert "using the packs and photos in" in shown
    assert "600 images of 4 photos (smoke set, 4 groups: not proof)" in shown
    for part in ("top-1 agreement", "top-3 containment", "CPU-ms", "cost ratio", "verdict"):
        assert part in shown
    assert "serves: the INT8 pack's verdict is" in shown
    for label in ("tiger cat", "espresso", "missile"):
        assert label in shown
    for stage in ("receive", "queue", "decode", "preprocess", "infer", "postprocess", "respond"):
        assert shown.count(f" {stage} ") >= 3
    assert shown.endswith("the service has drained and stopped")
    assert "Traceback" not in done.stderr


def test_what_other_code_made_is_built_anew_and_what_this_made_is_not(folder, monkeypatch):
    class BuiltAnewError(Exception):
        pass

    def build(*_):
        raise BuiltAnewError

    monkeypatch.setattr("assay.building.models.build", build)
    files, console = Files(folder), Console(file=io.StringIO())
    _prepare(files, console, lambda _step: lambda _done, _total: None)
    files.stamp.write_text(_stamp().replace('"onnxruntime": "', '"onnxruntime": "0.'))
    with pytest.raises(BuiltAnewError):
        _prepare(files, console, lambda _step: lambda _done, _total: None)
    assert not files.stamp.exists()  # until everything is there again

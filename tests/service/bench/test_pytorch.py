"""PyTorch as the other side of a bench: another interpreter's process, and everything it may lack."""

import os
import sys

import numpy as np
import pytest

from assay.bench.models import of_architecture
from assay.bench.pytorch import DEFAULT_PYTHON, Build, PyTorchMissingError, Worker
from assay.bench.variants import PyTorch, measure
from assay.errors import BenchError
from assay.inference.engine import Engine
from assay.packs.manifest import Normalisation

NORM = Normalisation(mean=(0, 0, 0), scale=(255, 255, 255))


def interpreter(tmp_path, script):
    """A file that can be run like a Python."""
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("python", "architecture", "said"),
    [
        ("/no/such/python", "mobilenet-v2", "/no/such/python does not run"),
        (sys.executable, "mobilenet-v2", "No module named 'torch'"),
        (sys.executable, "efficientnet-lite0", "torchvision has no efficientnet-lite0"),
    ],
)
def test_what_is_missing_is_told(python, architecture, said):
    with pytest.raises(PyTorchMissingError, match=said):
        Worker(python, architecture, 1, NORM)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('I cannot')", "has ended; its last words: I cannot"),
        ("print('hello', flush=True)", "says b'hello"),
    ],
)
def test_a_process_that_breaks_the_contract_is_told(tmp_path, script, said):
    with pytest.raises(BenchError, match=said):
        Worker(interpreter(tmp_path, script), "mobilenet-v2", 1, NORM)


def test_a_process_that_dies_between_calls_is_told(tmp_path):
    known = {"version": "1", "origin": "test", "onednn": "", "blas": "", "bytes": 4}
    script = f"import json; print(json.dumps({known!r}), flush=True)"
    with Worker(interpreter(tmp_path, script), "mobilenet-v2", 1, NORM) as worker:
        assert worker.build.version == "1"
        with pytest.raises(BenchError, match="has ended"):
            worker.infer(np.zeros((1, 224, 224, 3), np.uint8))


def test_a_worker_leaves_no_process_and_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    script = (
        "import json, os, sys\n"
        "known = {'version': '1', 'origin': 'test', 'onednn': '', 'blas': str(os.getpid()), 'bytes': 4}\n"
        "print(json.dumps(known), flush=True)\n"
        "sys.stdin.read()"
    )
    with Worker(interpreter(tmp_path, script), "mobilenet-v2", 1, NORM, {"a": np.zeros(1)}) as worker:
        pid = int(worker.build.blas)
        os.kill(pid, 0)
        assert list((tmp_path / "temporary").iterdir())
    assert not list((tmp_path / "temporary").iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_build_is_never_called_just_pytorch():
    slow = Build("1.13.1+dfsg-4", "Debian", "", "reference BLAS", 14_000_000)
    assert slow.name == "PyTorch 1.13.1+dfsg-4 (Debian, no oneDNN, reference BLAS)"
    assert "not PyTorch's speed" in slow.remark
    assert "libopenblas0-pthread is faster" in slow.remark
    fast = Build("2.9.0+cpu", "wheel", "3.7.1", "mkl BLAS", 1)
    assert fast.name == "PyTorch 2.9.0+cpu (wheel, oneDNN, mkl BLAS)"
    assert "oneDNN 3.7.1" in fast.remark


@pytest.mark.system
def test_pytorch_of_the_system_gives_the_logits_of_the_onnx_model():
    source = of_architecture("mobilenet-v2", seed=1)
    norm = source.pack.manifest.preprocess.normalisation
    image = np.random.default_rng(1).integers(0, 256, (2, 224, 224, 3), np.uint8)
    with Worker(DEFAULT_PYTHON, "mobilenet-v2", 1, norm, source.tensors) as worker:
        sample, logits = worker.infer(image)
        assert worker.build.name.startswith("PyTorch 1")
        assert worker.build.blas in ("OpenBLAS", "reference BLAS", "BLIS", "ATLAS", "MKL")
        assert sample.wall_s > 0
        assert sample.cpu_s > 0
    ours = Engine(source.pack).infer(image)
    assert np.abs(logits - ours).max() <= 1e-4 * np.abs(logits).max()


@pytest.mark.system
def test_the_row_of_the_system_s_pytorch_names_its_build():
    source = of_architecture("mobilenet-v3-large", seed=1)
    images = list(np.random.default_rng(1).integers(0, 256, (2, 1, 224, 224, 3), np.uint8))
    pytorch = PyTorch(DEFAULT_PYTHON, "mobilenet-v3-large", source.tensors)
    report = measure(source.pack, [], images, threads=(1,), trained=False, pytorch=pytorch, calls=2, warmups=0)
    name = report.rows[0]["variant"]
    assert name.startswith("PyTorch 1")
    assert "oneDNN" in name
    assert report.rows[0]["size_mb"] == pytest.approx(22, abs=1)  # 5.5 million parameters of 4 bytes
    assert any("top-1 the same on 2 of 2 images" in note for note in report.notes)
    assert any(name in note and "this one build" in note for note in report.notes)

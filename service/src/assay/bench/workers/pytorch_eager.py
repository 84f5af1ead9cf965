"""Times a torchvision model in eager mode, on request: ``python pytorch_eager.py ARCHITECTURE THREADS JSON [WEIGHTS]``.

Run by an interpreter that has PyTorch; `assay.bench.pytorch` is at the other end of the pipe. JSON gives ``mean`` and
``scale`` of the pixels, WEIGHTS is an .npz of a state dict (random weights otherwise). Says one line of JSON about the
build, or ``{"error": …}``. Then, for each line ``{"shape": [N, H, W, 3]}`` and its uint8 pixels on stdin: a line
``{"wall_s": …, "cpu_s": …, "shape": [N, classes]}`` and the float32 logits on stdout.
"""

import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

MODELS = {"mobilenet-v2": "mobilenet_v2", "mobilenet-v3-large": "mobilenet_v3_large"}
"""torchvision's function by the architecture's name."""

_DISTRIBUTION_PACKAGES = re.compile(r"^/usr/lib(64)?/python3[^/]*/(dist|site)-packages/")
"""Where packages of the operating system are, on Debian (dist) and Fedora (site); pip does not write there."""


_BLAS_FILE = re.compile(r"lib(blas|openblasp?|mkl_core|blis)\.so")
"""Names of libraries for linear algebra; those of a wheel (NumPy's) have a suffix before the dot."""

_BLAS_MAKERS = {
    "libmkl": "MKL",
    "openblas": "OpenBLAS",
    "blis": "BLIS",
    "atlas": "ATLAS",
    "/blas/libblas": "reference BLAS",
}
"""Parts of their paths, by what they are."""


def build(torch: Any) -> dict[str, str]:  # noqa: ANN401 - a module without types here
    """Say which build of PyTorch this is: version, whose it is, its oneDNN (empty without one), and its BLAS."""
    found = re.search(r"(?:MKL-DNN|oneDNN)\D{0,3}v?([\d.]+)", torch.__config__.show())
    # A path is the only trace of who built it.
    system = _DISTRIBUTION_PACKAGES.match(torch.__file__)
    return {
        "version": (_package_version() if system else "") or torch.__version__,
        "origin": _system() if system else "wheel",
        "onednn": (found.group(1) if found else "yes") if torch.backends.mkldnn.is_available() else "",
        "blas": _blas(torch),
    }


def _blas(torch: Any) -> str:  # noqa: ANN401 - as above
    """Name the linear algebra that runs: the library that is loaded, if it is one of its own, else what was built in.

    Debian's PyTorch is built against whichever ``libblas.so.3`` the system has: the reference, or OpenBLAS.
    """
    try:
        loaded = Path("/proc/self/maps").read_text()
    except OSError:  # not Linux
        loaded = ""
    files = sorted({path for path in re.findall(r"/\S+", loaded) if _BLAS_FILE.match(Path(path).name)})
    # LAPACK may come from another library than BLAS does; Debian's libblas.so.3 is what PyTorch multiplies with.
    if files:
        path = next((path for path in files if Path(path).name.startswith("libblas")), files[0])
        return next((name for mark, name in _BLAS_MAKERS.items() if mark in path), Path(path).name)
    told = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return f"{told.group(1)} BLAS" if told else "unknown BLAS"


def _package_version() -> str:
    """Version of Debian's package, which torch itself does not tell; empty elsewhere."""
    command = ["dpkg-query", "--show", "--showformat=${Version}", "python3-torch"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["NAME"].split()[0]
    except (OSError, KeyError):
        return "the system's package"


def load(architecture: str, weights: str | None) -> Any:  # noqa: ANN401 - as above
    """Return the model, ready to infer; tensors that only training needs may be missing from its weights."""
    import torch
    import torchvision

    torch.manual_seed(1)
    model = getattr(torchvision.models, MODELS[architecture])()
    if weights:
        with np.load(weights) as tensors:
            state = {name: torch.from_numpy(tensors[name]) for name in tensors.files}
        lacking = model.load_state_dict(state, strict=False)
        odd = [name for name in lacking.missing_keys if not name.endswith("num_batches_tracked")]
        if odd or lacking.unexpected_keys:
            raise ValueError(f"the weights are not those of {architecture}: {odd or lacking.unexpected_keys}")
    return model.eval()


def serve(model: Any, norm: dict[str, list[float]], source: BinaryIO, sink: BinaryIO) -> None:  # noqa: ANN401
    """Answer requests until their end. What is timed begins at uint8 pixels and ends at logits, as in an ONNX graph."""
    import torch

    mean, scale = (torch.tensor(norm[name]).view(1, 3, 1, 1) for name in ("mean", "scale"))
    with torch.inference_mode():
        for line in iter(source.readline, b""):
            shape = json.loads(line)["shape"]
            images = np.frombuffer(source.read(int(np.prod(shape))), np.uint8).reshape(shape).copy()
            wall, cpu = time.perf_counter(), time.process_time()
            pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float()
            logits = model((pixels - mean) / scale).numpy()
            took = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
            say(sink, {**took, "shape": list(logits.shape)})
            sink.write(np.ascontiguousarray(logits, np.float32).tobytes())
            sink.flush()


def say(sink: BinaryIO, message: dict[str, Any]) -> None:
    """Write one line of JSON."""
    sink.write(json.dumps(message).encode() + b"\n")
    sink.flush()


def main(architecture: str, threads: str, norm: str, weights: str | None = None) -> int:
    """Load, introduce, serve."""
    # Whatever libraries print must not end up between the answers.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        import torch

        torch.set_num_threads(int(threads))
        torch.set_num_interop_threads(1)
        model = load(architecture, weights)
    except Exception as error:  # whatever an unknown interpreter's packages do: the other end decides what it means
        say(sink, {"error": f"{type(error).__name__}: {error}"})
        return 1
    size = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    say(sink, {**build(torch), "bytes": size})
    serve(model, json.loads(norm), sys.stdin.buffer, sink)
    return 0


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
    sys.exit(main(*sys.argv[1:]))

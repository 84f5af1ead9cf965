"""Runs any ``assay`` command as on an x86 CPU without VNNI, or without AVX-512 altogether, on one that has them.

ONNX Runtime asks the CPU itself, once, and has no switch to ignore what it finds. So a copy of its library is made in a
temporary folder, in which the answer is thrown away: the kernels that run are those of such CPUs, saturation of 8-bit
weights included. (Their caches and clocks are this machine's.) What the program itself knows of the CPU is cut alike.

    PYTHONPATH=tests python tests/measure/without_vnni.py avx2 model quantize fp32.tar --judge photos.tar --out int8.tar
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

PATCHES = {
    # mov eax, 7; cpuid; mov r9d, edx; mov edi, ecx -> xor edi, edi: ECX of leaf 7 holds AVX512_VNNI (bit 11).
    "avx512": (bytes.fromhex("b807000000 0fa2 4189d1 89cf"), bytes.fromhex("b807000000 0fa2 4189d1 31ff")),
    # test r10d, 0x10000; je -> test r10d, 0; je: EBX of leaf 7 holds AVX512F (bit 16).
    "avx2": (bytes.fromhex("41f7c2 00000100 74"), bytes.fromhex("41f7c2 00000000 74")),
}
"""What is searched, which must be there exactly once, and what replaces it. Read off the disassembly of 1.32.0; the
source is the constructor in onnxruntime/core/mlas/lib/platform.cpp."""

CUT = {"avx512": {"vnni", "avx512_vnni", "avx_vnni"}}
CUT["avx2"] = CUT["avx512"] | {"avx512f", "avx512bw", "avx512_bf16", "amx_int8"}


def patched(package: Path, folder: Path, kernels: str) -> None:
    """Make a copy of ONNX Runtime in a folder: links, but for the library that is changed."""
    search, replacement = PATCHES[kernels]
    for source, target in ((package, folder / "onnxruntime"), (package / "capi", folder / "onnxruntime" / "capi")):
        target.mkdir()
        for entry in source.iterdir():
            if entry.name.startswith("onnxruntime_pybind11_state"):
                code = entry.read_bytes()
                if code.count(search) != 1:
                    raise SystemExit(f"{entry.name} has {code.count(search)} places to change, not 1: another version")
                (target / entry.name).write_bytes(code.replace(search, replacement))
            elif entry.name != "capi":
                (target / entry.name).symlink_to(entry)


def main() -> None:
    """Put the copy before the original, cut the CPU's features, and run the command."""
    kernels, *argv = sys.argv[1:]
    spec = importlib.util.find_spec("onnxruntime")
    package = Path(spec.origin).parent
    with tempfile.TemporaryDirectory(prefix="assay-without-vnni-") as folder:
        patched(package, Path(folder), kernels)
        sys.path.insert(0, folder)
        from assay.platform import cpu

        had = cpu.cpu_features()
        cpu.cpu_features = lambda: had - CUT[kernels]
        import onnxruntime

        assert onnxruntime.__file__.startswith(folder), onnxruntime.__file__
        from assay.cli import main as assay

        assay(argv)


if __name__ == "__main__":
    main()

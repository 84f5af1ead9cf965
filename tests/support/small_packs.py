"""Small packs and datasets for tests: a model whose answer is known, and photos of our own making."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from assay.packs.archive import Pack, read_pack, write_pack
from assay.packs.dataset import ImageEntry, write_dataset
from assay.packs.manifest import Manifest, Normalisation, Preprocess, Quantization, Source

CROP = 32

LABELS = ("red", "green", "blue", "grey")

SOME_DIGEST = f"sha256:{'ab' * 32}"


def manifest(**changed: object) -> Manifest:
    """A valid manifest of a tiny FP32 pack."""
    given = {
        "format": 1,
        "name": "colours-fp32",
        "precision": "FP32",
        "architecture": "mean-colour",
        "source": Source(name="written by hand", sha256="0" * 64, licence="Apache-2.0"),
        "preprocess": Preprocess(
            resize_short=CROP,
            crop=CROP,
            interpolation="bilinear",
            normalisation=Normalisation(mean=(0, 0, 0), scale=(255, 255, 255)),
        ),
        "quantization": None,
        "requires_cpu": (),
        "created_with": {"assay": "0"},
    }
    return Manifest.model_validate(given | changed)


def quantization(groups: Sequence[str] = (), **changed: object) -> Quantization:
    """How a pack says that it was calibrated on some groups."""
    given = {
        "recipe": "static",
        "source_digest": SOME_DIGEST,
        "calibration_digest": SOME_DIGEST,
        "calibration_images": len(groups),
        "calibration_groups": tuple(groups),
        "cpu_model": "a CPU",
        "cpu_features": (),
        "agreement": None,
    }
    return Quantization.model_validate(given | changed)


def colour_model(weight: np.ndarray | None = None, work: int = 1) -> bytes:
    """Logits from an image's mean colour: one class per channel, and grey. ``work`` repeats a convolution, for cost."""
    if weight is None:
        # Each colour against the other two; grey wins only where none stands out.
        weight = np.array([[2, -1, -1], [-1, 2, -1], [-1, -1, 2], [0, 0, 0]], np.float32) / 64
    kernel = np.zeros((3, 3, 5, 5), np.float32)
    kernel[range(3), range(3), 2, 2] = 1
    nodes = [
        helper.make_node("Cast", ["images"], ["float"], "cast", to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["float"], ["x0"], "chw", perm=[0, 3, 1, 2]),
        *[
            helper.make_node("Conv", [f"x{i}", "kernel"], [f"x{i + 1}"], f"conv{i}", pads=[2, 2, 2, 2])
            for i in range(work)
        ],
        helper.make_node("GlobalAveragePool", [f"x{work}"], ["pooled"], "pool"),
        helper.make_node("Flatten", ["pooled"], ["flat"], "flat"),
        helper.make_node("Gemm", ["flat", "weight", "bias"], ["logits"], "dense", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "colours",
        [helper.make_tensor_value_info("images", TensorProto.UINT8, ["N", CROP, CROP, 3])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", len(weight)])],
        [
            numpy_helper.from_array(kernel, "kernel"),
            numpy_helper.from_array(np.asarray(weight, np.float32), "weight"),
            numpy_helper.from_array(np.array([0] * (len(weight) - 1) + [0.5], np.float32), "bias"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def colour_pack(path: Path, *, labels: Sequence[str] = LABELS, model: bytes | None = None, **changed: object) -> Pack:
    """Write and read a pack of the colour model."""
    write_pack(path, manifest(**changed), model or colour_model(), tuple(labels))
    return read_pack(path)


def colour_jpeg(colour: tuple[int, int, int], side: int = 48) -> bytes:
    """A plain square."""
    out = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(out, "JPEG", quality=95)
    return out.getvalue()


COLOURS = {"red": (220, 30, 30), "green": (30, 220, 30), "blue": (30, 30, 220), "grey": (128, 128, 128)}


def colour_dataset(path: Path, images: int = 40, *, groups: int = 40, labelled: bool = True) -> str:
    """Write a dataset of plain squares, in turn red, green, blue and grey; return its digest."""
    entries, bodies = [], []
    for number in range(images):
        name = LABELS[number % len(LABELS)]
        group = f"group-{number % groups}"
        label = name if labelled else None
        entries.append(ImageEntry(file=f"images/{number:04d}.jpg", group=group, label=label, class_index=None))
        bodies.append(colour_jpeg(COLOURS[name], 40 + number % 8))
    return write_dataset(path, "colours", "plain squares", entries, bodies)

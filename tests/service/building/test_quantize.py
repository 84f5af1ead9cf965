"""Quantisation: what comes out is integer, exact at the input, the same each time, and still right."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from assay.building.ladder import Goal, quantise
from assay.building.quantize import Quantiser, drop_requantisation
from assay.check import agreement
from assay.errors import BuildError, DatasetError
from assay.inference.engine import Engine
from assay.measurement.compare import measure, select
from assay.packs.archive import Pack, read_pack, write_pack
from assay.packs.dataset import read_dataset
from assay.platform.cpu import cpu_features
from support.small_packs import colour_dataset, colour_pack

needs_vnni = pytest.mark.skipif("vnni" not in cpu_features(), reason="this CPU has no VNNI: 8-bit weights saturate")


@pytest.fixture(scope="module")
def calibration(photo_sets):
    return read_dataset(photo_sets / "photos-calibration.tar")


@pytest.fixture(scope="module")
def judging(photo_sets):
    return read_dataset(photo_sets / "photos.tar")


def as_pack(base, model):
    return Pack(base.manifest, model, base.labels, "")


def test_every_layer_becomes_integer_and_the_first_reads_the_photos_own_bytes(quantised):
    graph = onnx.load_from_string(quantised["static"]).graph
    producers = {output: node for node in graph.node for output in node.output}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    layers = [node for node in graph.node if node.op_type in ("Conv", "Gemm")]
    assert len(layers) == 50
    for layer in layers:
        weights = producers[layer.input[1]]
        assert weights.op_type == "DequantizeLinear"
        assert constants[weights.input[0]].dtype == np.int8
        assert len(constants[weights.input[1]]) == constants[weights.input[0]].shape[0]  # one scale per channel
    pixels = producers[layers[0].input[0]]
    assert producers[pixels.input[0]].op_type == "Transpose"  # nothing between the bytes and the first convolution
    assert constants[pixels.input[1]] == np.float32(1 / 128)
    assert constants[pixels.input[2]] == 127


def test_reduced_range_keeps_weights_to_seven_bits(quantised):
    for name, most in (("static", 127), ("static-reduce-range", 64)):
        graph = onnx.load_from_string(quantised[name]).graph
        weights = [
            numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.data_type == TensorProto.INT8
        ]
        large = [w for w in weights if w.ndim > 1]
        assert len(large) == 50
        assert max(abs(w.astype(int)).max() for w in large) <= most
        assert max(abs(w.astype(int)).max() for w in large) > most // 2


@pytest.mark.parametrize("recipe", ["static", "dynamic"])
def test_quantising_again_gives_the_same_bytes_whatever_the_hash_seed(tmp_path, recipe):
    source = tmp_path / "source.tar"
    colour_pack(source)
    colour_dataset(tmp_path / "set.tar", 16)
    program = (
        "import hashlib, sys; from pathlib import Path\n"
        "from assay.building.quantize import *; from assay.packs.archive import read_pack\n"
        "from assay.packs.dataset import read_dataset; from assay.measurement.compare import decoded\n"
        "pack = read_pack(Path(sys.argv[1]))\n"
        "images = list(decoded(iter(read_dataset(Path(sys.argv[2]))), pack))\n"
        "with Quantiser(pack.model, images) as quantiser:\n"
        "    print(hashlib.sha256(quantiser.quantise(RECIPES[sys.argv[3]])).hexdigest())\n"
    )
    command = [sys.executable, "-c", program, str(source), str(tmp_path / "set.tar"), recipe]
    seeds = [{"PYTHONHASHSEED": seed, "PATH": ""} for seed in ("1", "2")]
    runs = [subprocess.run(command, env=e, capture_output=True, text=True, check=True, timeout=120) for e in seeds]
    assert len(runs[0].stdout.strip()) == 64
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stderr == ""


def test_only_what_undoes_itself_exactly_is_dropped():
    def constant(name, value):
        return numpy_helper.from_array(np.asarray(value), name)

    def graph(second_scale):
        nodes = [
            helper.make_node("DequantizeLinear", ["bytes", "s1", "z"], ["float"], "dq"),
            helper.make_node("QuantizeLinear", ["float", "s2", "z"], ["again"], "q"),
            helper.make_node("DequantizeLinear", ["again", "s2", "z"], ["out"], "dq2"),
        ]
        taken = helper.make_tensor_value_info("bytes", TensorProto.UINT8, ["N"])
        given = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["N"])
        scales = [constant("s1", np.float32(0.5)), constant("s2", np.float32(second_scale)), constant("z", np.uint8(3))]
        model = helper.make_model(helper.make_graph(nodes, "g", [taken], [given], scales))
        drop_requantisation(model)
        onnx.checker.check_model(model)
        return [node.name for node in model.graph.node]

    assert graph(0.5) == ["dq2"]
    assert graph(0.25) == ["dq", "q", "dq2"]


def on_photos(base, model, dataset):
    candidate = as_pack(base, model)
    measured = measure(candidate, base, dataset, select(dataset, (candidate,), 2000), cost_blocks=20)
    return agreement.summarise(measured.outcomes, 0.95)


@pytest.fixture(scope="module")
def shared_photos(shared_data, tmp_path_factory):
    from assay.building.folder import pack_folder

    path = tmp_path_factory.mktemp("shared") / "photos.tar"
    pack_folder(shared_data / "photos", shared_data / "photos" / "labels.csv", "shared", path)
    return read_dataset(path)


@pytest.mark.shared_data
@needs_vnni
def test_full_range_int8_keeps_its_top_3_on_real_photos(quantised, base_pack, shared_photos):
    found = on_photos(base_pack, quantised["static"], shared_photos)
    assert found.images == 200
    assert found.contained.count >= 198  # measured: 200, top-1 agreement 191 to 194


@pytest.mark.shared_data
def test_reduced_range_int8_keeps_its_top_3_on_real_photos(quantised, base_pack, shared_photos):
    found = on_photos(base_pack, quantised["static-reduce-range"], shared_photos)
    assert found.images == 200
    assert found.contained.count >= 197  # measured: 200, top-1 agreement 188


def test_int8_costs_less_than_fp32_and_agrees_on_the_built_in_photos(base_pack, calibration, judging, tmp_path):
    found = quantise(base_pack, calibration, judging)
    kept = found.chosen
    assert found.reached
    assert kept.gains
    assert kept.reaches(Goal())
    assert {trial.recipe.name for trial in found.trials} <= {"static", "static-reduce-range"}
    if "vnni" in cpu_features():
        assert kept.cost.ratio <= 0.65  # measured: 0.47 to 0.50
    made = kept.pack.manifest.quantization
    assert kept.pack.manifest.precision == "INT8"
    assert made.source_digest == base_pack.digest
    assert made.calibration_digest == calibration.digest
    assert made.calibration_images == 100
    assert set(made.calibration_groups) == {entry.group for entry in calibration.manifest.images}
    assert made.agreement.dataset_digest == judging.digest
    assert made.agreement.top1_agreed == kept.accuracy.agreed.count
    digest = write_pack(tmp_path / "int8.tar", kept.pack.manifest, kept.pack.model, kept.pack.labels)
    assert read_pack(tmp_path / "int8.tar", digest).manifest == kept.pack.manifest
    assert (tmp_path / "int8.tar").stat().st_size < 6_000_000  # FP32: 18.6 MB


def test_a_full_range_pack_asks_for_the_cpu_it_is_right_on(tmp_path):
    source = colour_pack(tmp_path / "s.tar")
    colour_dataset(tmp_path / "a.tar", 8, groups=8)
    calibrating = read_dataset(tmp_path / "a.tar")
    names = ("static", "static-reduce-range", "dynamic")
    tried = {name: quantise(source, calibrating, judging_set(tmp_path), recipe=name).trials[0] for name in names}
    wanted = ("asimd",) if "asimd" in cpu_features() else ("vnni",)
    assert tried["static"].pack.manifest.requires_cpu == wanted
    assert tried["static-reduce-range"].pack.manifest.requires_cpu == ()
    assert tried["dynamic"].pack.manifest.requires_cpu == ()
    assert tried["dynamic"].pack.manifest.quantization.calibration_groups == ()


def judging_set(tmp_path):
    path = tmp_path / "judging.tar"
    if not path.exists():
        from assay.packs.dataset import ImageEntry, write_dataset
        from support.small_packs import COLOURS, colour_jpeg

        colours = list(COLOURS.values())
        entries = [
            ImageEntry(file=f"images/{i:02d}.jpg", group=f"other-{i}", label=None, class_index=None) for i in range(8)
        ]
        write_dataset(path, "judging", "", entries, [colour_jpeg(colours[i % 4]) for i in range(8)])
    return read_dataset(path)


def test_a_goal_nobody_reaches_keeps_the_nearest_and_says_so(tmp_path):
    # A model that saturates at once: all its classes look alike in 8 bits.
    from support.small_packs import colour_model

    weight = np.array([[1, 0, 0], [1 + 1e-6, 0, 0], [0, 1e-6, 0], [0, 0, 1e-6]], np.float32)
    source = colour_pack(tmp_path / "s.tar", model=colour_model(weight))
    colour_dataset(tmp_path / "a.tar", 8, groups=8)
    found = quantise(source, read_dataset(tmp_path / "a.tar"), judging_set(tmp_path), goal=Goal(1.01, 1.01))
    assert not found.reached
    assert len(found.trials) >= 2
    assert found.chosen in found.trials


def test_what_cannot_be_quantised_is_told(tmp_path):
    source = colour_pack(tmp_path / "s.tar")
    colour_dataset(tmp_path / "a.tar", 8, groups=8)
    dataset = read_dataset(tmp_path / "a.tar")
    with pytest.raises(BuildError, match="known: auto, static"):
        quantise(source, dataset, dataset, recipe="magic")
    with pytest.raises(DatasetError, match="calibrated a pack"):
        quantise(source, dataset, dataset, recipe="static-reduce-range")
    int8 = colour_pack(tmp_path / "i.tar", precision="INT8")
    with pytest.raises(BuildError, match="is INT8 already"):
        quantise(int8, dataset, judging_set(tmp_path))
    with pytest.raises(BuildError, match="cannot be read"):
        Quantiser(b"no model", [])


def test_the_quantised_model_answers_alike_in_any_batch(quantised, base_pack):
    engine = Engine(as_pack(base_pack, quantised["static-reduce-range"]))
    images = np.random.default_rng(0).integers(0, 256, (8, 224, 224, 3), dtype=np.uint8)
    alone = np.concatenate([engine.infer(image[None]) for image in images])
    for size in (2, 8):
        together = np.concatenate([engine.infer(images[i : i + size]) for i in range(0, 8, size)])
        np.testing.assert_array_equal(together, alone)

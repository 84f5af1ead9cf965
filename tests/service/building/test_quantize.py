"""Quantisation: what comes out is integer, exact at the input, the same each time, and still right."""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from assay.building.quantize import Quantiser, drop_requantisation
from assay.building.recipes import RECIPES
from assay.building.sensitivity import freed
from assay.errors import BuildError
from assay.inference.engine import Engine, session_options
from assay.packs.archive import Pack
from support.networks import CLASSES, chain, dense, excited, network, plain
from support.small_packs import CROP, colour_dataset, colour_pack

RANDOM = [np.random.default_rng(i).integers(0, 256, (1, CROP, CROP, 3), dtype=np.uint8) for i in range(12)]


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


@pytest.mark.parametrize("recipe", ["static", "static-reduce-range-3-float", "dynamic"])
def test_quantising_again_gives_the_same_bytes_whatever_the_hash_seed(tmp_path, recipe):
    source = tmp_path / "source.tar"
    colour_pack(source, model=plain() if recipe == "dynamic" else chain())
    colour_dataset(tmp_path / "set.tar", 16)
    program = (
        "import hashlib, sys; from pathlib import Path; from assay.building.recipes import RECIPES\n"
        "from assay.building.quantize import *; from assay.packs.archive import read_pack\n"
        "from assay.packs.dataset import read_dataset; from assay.measurement.compare import decoded\n"
        "pack = read_pack(Path(sys.argv[1]))\n"
        "images = list(decoded(iter(read_dataset(Path(sys.argv[2]))), pack))\n"
        "print(hashlib.sha256(Quantiser(pack.model, images).quantise(RECIPES[sys.argv[3]])).hexdigest())\n"
    )
    command = [sys.executable, "-c", program, str(source), str(tmp_path / "set.tar"), recipe]
    seeds = [
        {"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": os.environ.get("PYTHONPATH", "")} for seed in ("1", "2")
    ]
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


def test_the_quantised_model_answers_alike_in_any_batch(quantised, base_pack):
    engine = Engine(as_pack(base_pack, quantised["static-reduce-range"]))
    images = np.random.default_rng(0).integers(0, 256, (8, 224, 224, 3), dtype=np.uint8)
    alone = np.concatenate([engine.infer(image[None]) for image in images])
    for size in (2, 8):
        together = np.concatenate([engine.infer(images[i : i + size]) for i in range(0, 8, size)])
        np.testing.assert_array_equal(together, alone)


def run(model: bytes, image: np.ndarray) -> np.ndarray:
    return ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"images": image})[0]


def float_layers(model: bytes) -> set[str]:
    """The layers of a QDQ model whose weights are floats."""
    graph = onnx.load_from_string(model).graph
    produced = {output for node in graph.node for output in node.output}
    return {node.name for node in graph.node if node.op_type in ("Conv", "Gemm") and node.input[1] not in produced}


@pytest.mark.parametrize("opset", [11, 13, 17, 21])
def test_a_graph_of_any_opset_with_channels_first_is_quantised_and_answers_nearly_alike(opset):
    model = plain(opset)
    int8 = Quantiser(model, RANDOM).quantise(RECIPES["static-reduce-range"])
    assert float_layers(int8) == set()
    for image in RANDOM[:4]:
        wanted = run(model, image)
        assert np.abs(run(int8, image) - wanted).max() < 0.1 * np.abs(wanted).max()


def test_a_model_of_dense_layers_only_is_quantised():
    model = network(
        """pooled = GlobalAveragePool(x)
        flat = Flatten(pooled)
        hidden = MatMul(flat, w1)
        straight = Relu(hidden)
        logits = MatMul(straight, w2)""",
        w1=dense(1, 3, 32), w2=dense(2, 32, CLASSES),
    )  # fmt: skip
    int8 = Quantiser(model, RANDOM).quantise(RECIPES["static-reduce-range"])
    stored = onnx.load_from_string(int8).graph.initializer
    assert sum(tensor.data_type == TensorProto.INT8 and len(tensor.dims) == 2 for tensor in stored) == 2
    assert np.abs(run(int8, RANDOM[0]) - run(model, RANDOM[0])).max() < 0.05


def test_recipes_leave_gates_and_curved_activations_in_float():
    quantiser = Quantiser(excited(), RANDOM)
    names = {"c1": "conv-3", "c2": "conv-6", "c3": "conv-8", "c4": "conv-11"}
    for recipe, kept in (
        ("static", ()),
        ("static-gates-float", ("c2", "c3")),
        ("static-curved-float", ("c1", "c2", "c3")),
    ):
        chosen = RECIPES[recipe]
        assert quantiser.applies(chosen)
        assert set(quantiser.float_layers(chosen)) == {names[name] for name in kept}
        assert float_layers(quantiser.quantise(chosen)) == {names[name] for name in kept}
    without = Quantiser(plain(), RANDOM)
    assert [without.applies(RECIPES[name]) for name in ("static", "static-gates-float", "static-curved-float")] == [
        True, False, False,
    ]  # fmt: skip


def kernels_that_run(model: bytes, path) -> list[str]:
    """The operations that ONNX Runtime makes of a model, as in production."""
    options = session_options()
    options.optimized_model_filepath = str(path)
    ort.InferenceSession(model, options, ["CPUExecutionProvider"])
    return [node.op_type for node in onnx.load(path).graph.node]


def test_layers_left_in_float_are_computed_in_float(tmp_path):
    # ONNX Runtime quantises what it takes for forgotten weights, with one scale for all channels.
    quantiser = Quantiser(chain(), RANDOM)
    for name, floats in (("static", 0), ("static-3-float", len(quantiser.float_layers(RECIPES["static-3-float"])))):
        ran = kernels_that_run(quantiser.quantise(RECIPES[name]), tmp_path / f"{name}.onnx")
        assert sum(kind in ("Conv", "FusedConv", "Gemm") for kind in ran) == floats
        assert sum(kind in ("QLinearConv", "QGemm") for kind in ran) == 7 - floats
    quantiser = Quantiser(excited(), RANDOM)
    ran = kernels_that_run(quantiser.quantise(RECIPES["static-gates-float"]), tmp_path / "gates.onnx")
    assert (ran.count("QLinearConv"), ran.count("QGemm")) == (2, 1)


def test_the_layer_that_suffers_most_is_found_by_measurement_on_the_model_as_it_would_be(tmp_path):
    model = chain()
    told = []
    quantiser = Quantiser(model, RANDOM, begin=lambda step: told.append(step))
    recipe = RECIPES["static-3-float"]
    kept = quantiser.float_layers(recipe)
    # Either its reader's place or its own brings the spoilt layer back.
    assert kept[0] in ("conv-7", "conv-9")
    assert "conv-9" in kept[:2]
    assert float_layers(quantiser.quantise(recipe)) == set(kept)
    assert told == ["measuring ranges of activations", "measuring which layers suffer most"]
    assert np.abs(run(quantiser.quantise(RECIPES["static"]), RANDOM[0])).max() == 0
    np.testing.assert_allclose(run(quantiser.quantise(recipe), RANDOM[0]), run(model, RANDOM[0]), atol=0.02)


def test_what_is_measured_for_a_layer_is_what_quantising_without_it_gives():
    quantiser = Quantiser(excited(), RANDOM)
    plain_recipe = RECIPES["static-reduce-range"]
    quantised = quantiser._static(plain_recipe, set())
    for place in quantiser._places.values():
        swapped = freed(quantised, quantiser._model, place).SerializeToString()
        left_out = quantiser._static(plain_recipe, place).SerializeToString()
        for image in RANDOM[:3]:
            np.testing.assert_allclose(run(swapped, image), run(left_out, image), atol=1e-5)


def test_percentiles_cut_single_outliers_and_extremes_do_not():
    image = np.full((1, CROP, CROP, 3), 100, np.uint8)
    image[0, 3, 3, 0] = 255  # one pixel of 3072 values, less than the share that is cut, by two sides, of twelve images
    images = [np.full((1, CROP, CROP, 3), 100, np.uint8) for _ in range(11)] + [image]
    quantiser = Quantiser(plain(), images)
    extremes, percentiles = quantiser._extremes, quantiser._percentiles
    assert extremes.keys() == percentiles.keys()
    assert extremes["x"][1] == pytest.approx(1.0)
    assert percentiles["x"][1] == pytest.approx(100 / 255, rel=0.01)
    for name, (low, high) in percentiles.items():
        assert extremes[name][0] <= low <= high <= extremes[name][1]


def test_without_images_or_with_a_model_that_gives_nan_nothing_is_quantised():
    with pytest.raises(BuildError, match="no image to calibrate on"):
        Quantiser(plain()).quantise(RECIPES["static"])
    broken = onnx.load_from_string(plain())
    tensor = next(tensor for tensor in broken.graph.initializer if tensor.name == "b1")
    tensor.CopyFrom(numpy_helper.from_array(np.full(16, np.nan, np.float32), "b1"))
    with pytest.raises(BuildError, match=r"gives NaN or infinity in .*: it cannot be calibrated"):
        Quantiser(broken.SerializeToString(), RANDOM).quantise(RECIPES["static"])

"""The engine: runs what fits its pack's promise on this CPU, refuses all else."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest

from assay.errors import CpuFeatureMissingError, PackError
from assay.inference.engine import Engine, session_options
from assay.packs.archive import Pack
from support.small_packs import CROP, LABELS, colour_model, manifest

TASKS = Path("/proc/self/task")


def pack(model=None, labels=LABELS, **changed):
    return Pack(manifest(**changed), model or colour_model(), labels, "")


def square(colour, n=1):
    return np.tile(np.array(colour, np.uint8), (n, CROP, CROP, 1))


def test_it_tells_colours_apart_in_batches_of_any_size():
    engine = Engine(pack())
    assert (engine.crop, engine.classes) == (CROP, 4)
    for n in (1, 2, 8, 32):
        logits = engine.infer(square((0, 200, 0), n))
        assert logits.shape == (n, 4)
        assert logits.dtype == np.float32
        assert set(logits.argmax(1)) == {1}


def test_threads_share_a_session_and_get_their_own_answers():
    engine, wrong = Engine(pack()), []

    def ask(channel):
        colour = [0, 0, 0]
        colour[channel] = 200
        wrong.extend(channel for _ in range(200) if engine.infer(square(colour)).argmax() != channel)

    threads = [threading.Thread(target=ask, args=(n % 3,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_production_options_neither_spin_nor_pool():
    options = session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert session_options(3).intra_op_num_threads == 3


@pytest.mark.skipif(not TASKS.is_dir(), reason="only Linux lists the threads of a process")
def test_a_single_threaded_session_starts_no_threads():
    before = {task.name for task in TASKS.iterdir()}
    Engine(pack()).infer(square((0, 0, 0)))
    assert {task.name for task in TASKS.iterdir()} <= before


def test_a_feature_this_cpu_lacks_is_named_unknown_ones_too():
    with pytest.raises(CpuFeatureMissingError, match="needs quantum-dots, which this CPU"):
        Engine(pack(requires_cpu=("quantum-dots",)))


def alter(change):
    model = onnx.load_from_string(colour_model())
    change(model.graph)
    return model.SerializeToString()


def float_input(graph):
    graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def fixed_batch(graph):
    graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1


def two_outputs(graph):
    graph.output.append(onnx.helper.make_tensor_value_info("flat", onnx.TensorProto.FLOAT, ["N", 3]))


@pytest.mark.parametrize("change", [float_input, fixed_batch, two_outputs])
def test_a_model_that_breaks_its_packs_promise_is_refused(change):
    with pytest.raises(PackError, match="promises"):
        Engine(pack(alter(change)))


def test_a_model_with_another_number_of_classes_or_another_crop_is_refused():
    with pytest.raises(PackError, match="promises"):
        Engine(pack(labels=("one", "two")))
    shape = manifest().preprocess.model_copy(update={"crop": 24})
    with pytest.raises(PackError, match="promises"):
        Engine(pack(preprocess=shape))


@pytest.mark.parametrize("model", [b"", b"no model", colour_model()[:-200]])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(PackError, match="does not load"):
        Engine(Pack(manifest(), model, LABELS, ""))


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((1, CROP, CROP, 3), np.float32),
        np.zeros((CROP, CROP, 3), np.uint8),
        np.zeros((1, CROP, CROP + 1, 3), np.uint8),
        np.zeros((0, CROP, CROP, 3), np.uint8),
    ],
)
def test_images_of_another_shape_are_the_callers_mistake(images):
    with pytest.raises(ValueError, match="the model takes uint8"):
        Engine(pack()).infer(images)


@pytest.mark.parametrize("module", ["assay.inference.engine", "assay.building.quantize"])
def test_onnx_runtime_keeps_no_device_id_and_reports_nothing(module, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ORT_")}
    environment |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", f"import {module}"], env=environment, check=True)
    assert list(tmp_path.rglob("*")) == []

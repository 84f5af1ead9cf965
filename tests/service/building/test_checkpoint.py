"""Checkpoints are read as data: tensors come out, nothing else runs."""

import contextlib
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.building.checkpoint import read_checkpoint
from assay.building.distributions import distribution_file
from assay.building.models import MODELS
from assay.errors import BuildError
from support.checkpoints import Call, legacy, zipped

TENSORS = {
    "weight": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "steps": np.array(7, dtype=np.int64),
    "half": np.array([0.5, 1.5], dtype=np.float16),
}

LAYOUTS = pytest.mark.parametrize("write", [legacy, zipped])


@LAYOUTS
def test_tensors_come_back_with_their_values_shapes_and_types(tmp_path, write):
    read = read_checkpoint(write(tmp_path / "m.pth", TENSORS))
    assert list(read) == list(TENSORS)
    for name, expected in TENSORS.items():
        assert (read[name].dtype, read[name].shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(read[name], expected)


def test_the_published_weights_are_read():
    shipped = MODELS["efficientnet-lite0"].shipped
    read = read_checkpoint(distribution_file(shipped.distribution, shipped.file, shipped.sha256))
    assert read["_fc.weight"].shape == (1000, 1280)
    assert sum(value.size for name, value in read.items() if name.endswith(("weight", "bias"))) == 4_652_008


@LAYOUTS
@pytest.mark.parametrize(
    "call",
    [
        Call("os", "system", "echo owned > {mark}"),
        Call("posix", "system", "echo owned > {mark}"),
        Call("builtins", "eval", "open({mark!r}, 'w').close()"),
        Call("builtins", "getattr", "x", "y"),
        Call("subprocess", "check_call", ["touch", "{mark}"]),
        Call("torch", "load", "x"),
        Call("torch._utils", "_rebuild_parameter", 1),
        Call("collections", "Counter", "x"),
        Call("assay.building.checkpoint", "read_checkpoint", "x"),
    ],
    ids=lambda call: ".".join(call.call[:2]),
)
def test_a_checkpoint_that_asks_for_anything_else_is_refused_and_nothing_runs(tmp_path, write, call):
    mark = tmp_path / "owned"
    module, name, args = call.call
    args = [arg.format(mark=str(mark)) if isinstance(arg, str) else [*arg, str(mark)] for arg in args if arg != 1]
    with pytest.raises(BuildError, match=f"{module}.{name}, which is no part of a tensor"):
        read_checkpoint(write(tmp_path / "m.pth", {**TENSORS, "evil": Call(module, name, *args)}))
    assert not mark.exists()


def test_a_plain_pickle_with_a_payload_is_refused(tmp_path):
    class Payload:
        def __reduce__(self):
            return (print, ("owned",))

    (tmp_path / "m.pth").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(BuildError, match=r"builtins\.print"):
        read_checkpoint(tmp_path / "m.pth")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((0, (2, 3, 400), (12, 4, 1)), "reaches past its storage"),
        ((23, (2,), (1,)), "reaches past its storage"),
        ((-1, (2,), (1,)), "without a storage or an offset"),
        ((0, (2,), (-1,)), "not sizes"),
        ((0, (2,), (1, 1)), "strides"),
        ((0, (5, 5), (0, 0)), "larger than its storage"),
        ((0, (1 << 20, 1 << 20), (0, 0)), "tensors have 4398046511104 bytes"),
        ((0, (0,), (1,)), "reaches past its storage"),
    ],
)
def test_a_tensor_that_does_not_lie_within_its_storage_is_refused(tmp_path, arguments, told):
    from support import checkpoints

    storage = checkpoints._Storage("1", np.arange(24, dtype=np.float32))
    call = Call("torch._utils", "_rebuild_tensor_v2", storage, *arguments, False, Call("collections", "OrderedDict"))
    with zipfile.ZipFile(tmp_path / "m.pth", "w") as archive:
        archive.writestr("m/data.pkl", checkpoints._dumps({"w": call}))
        archive.writestr("m/data/1", storage.array.tobytes())
    with pytest.raises(BuildError, match=told):
        read_checkpoint(tmp_path / "m.pth")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not a checkpoint"),
        (b"hello", "not a checkpoint"),
        (pickle.dumps(5, 2), "wrong magic"),
        (b"PK\x03\x04 not a zip", "not a checkpoint"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path, content, told):
    (tmp_path / "m.pth").write_bytes(content)
    with pytest.raises(BuildError, match=told):
        read_checkpoint(tmp_path / "m.pth")


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(BuildError, match="cannot read"):
        read_checkpoint(tmp_path / "none.pth")


def test_a_dictionary_of_other_things_is_refused(tmp_path):
    with pytest.raises(BuildError, match="entry 'epoch' is a int"):
        read_checkpoint(legacy(tmp_path / "m.pth", {**TENSORS, "epoch": 3}))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(4, 6).T,
        np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(24, dtype=np.int64).reshape(4, 6)[:, ::2],
        np.arange(24, dtype=np.float16).reshape(4, 6)[::3],
    ],
)
@LAYOUTS
def test_tensors_that_do_not_lie_one_number_after_the_other_come_back_right(tmp_path, write, array):
    read = read_checkpoint(write(tmp_path / "m.pth", {"w": array}))["w"]
    np.testing.assert_array_equal(read, array)
    assert read.flags.c_contiguous


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_checkpoint_is_refused_or_gives_tensors_but_never_crashes(tmp_path, data):
    write = data.draw(st.sampled_from([legacy, zipped]))
    path = write(tmp_path / "m.pth", TENSORS)
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)) | st.just(len(whole)))
    path.write_bytes(bytes(whole[:cut]))
    with contextlib.suppress(BuildError):
        assert all(isinstance(value, np.ndarray) for value in read_checkpoint(path).values())

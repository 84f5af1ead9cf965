"""Checkpoints that attack: each is refused with its reason, in both layouts, and nothing that they name runs."""

import io
import pickle
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from assay.building import checkpoint, tensor_pickle
from assay.building.checkpoint import read_checkpoint
from assay.errors import BuildError
from support import checkpoints
from support.checkpoints import Call, legacy_around, zip_around

AROUND = pytest.mark.parametrize("around", [legacy_around, zip_around], ids=["legacy", "zip"])

SHELL = b"X\x0a\x00\x00\x00echo owned"

PROGRAMS = {
    "REDUCE": (b"\x80\x02cos\nsystem\n" + SHELL + b"\x85R.", "asks for os.system"),
    "REDUCE of posix": (b"\x80\x02cposix\nsystem\n" + SHELL + b"\x85R.", "asks for posix.system"),
    "in a value": (b"\x80\x02}X\x01\x00\x00\x00acos\nsystem\n" + SHELL + b"\x85Rs.", "asks for os.system"),
    "in a key": (b"\x80\x02}cos\nsystem\n" + SHELL + b"\x85RK\x01s.", "asks for os.system"),
    "in the arguments of a tensor": (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(cos\nsystem\n" + SHELL + b"\x85RtR.",
        "asks for os.system",
    ),
    "in the state of a dictionary": (
        b"\x80\x02ccollections\nOrderedDict\n)Rcos\nsystem\n" + SHELL + b"\x85Rb.",
        "asks for os.system",
    ),
    "STACK_GLOBAL": (b"\x80\x04\x8c\x02os\x8c\x06system\x93" + SHELL + b"\x85R.", "asks for os.system"),
    "STACK_GLOBAL of no text": (b"\x80\x04K\x01\x8c\x06system\x93.", "a int stands where a name belongs"),
    "attribute of an admitted module": (b"\x80\x04\x8c\x05torch\x8c\x0fstorage.os.exec\x93.", "torch.storage.os.exec"),
    "INST": (b"(S'echo owned'\nios\nsystem\n.", "uses STRING"),
    "INST without text": (b"(ios\nsystem\n.", "asks for os.system"),
    "INST of an admitted name": (b"(icollections\nOrderedDict\n.", "uses INST"),
    "OBJ": (b"\x80\x02(ccollections\nOrderedDict\no.", "uses OBJ"),
    "NEWOBJ": (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "uses NEWOBJ"),
    "NEWOBJ_EX": (b"\x80\x04ccollections\nOrderedDict\n)}\x92.", "uses NEWOBJ_EX"),
    "EXT1": (b"\x80\x02\x82\x01.", "uses EXT1"),
    "PERSID": (b"Pos.system\n.", "uses PERSID"),
    "persistent id that is a text": (b"\x80\x02X\x09\x00\x00\x00os.systemQ.", "reference that is not a storage"),
    "persistent id of another kind": (
        b"\x80\x02(X\x06\x00\x00\x00moduleX\x01\x00\x00\x00aX\x01\x00\x00\x00bX\x01\x00\x00\x00cK\x01tQ.",
        "reference that is not a storage",
    ),
    "BUILD on the rebuilding function": (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aK\x01sb.",
        "attaches a state to something that is no dictionary",
    ),
    "call of a dictionary with items": (
        b"\x80\x02ccollections\nOrderedDict\n]\x85R.",
        "calls a OrderedDict in a way that makes no tensor",
    ),
    "call of a storage's type": (b"\x80\x02ctorch\nFloatStorage\nK\x01\x85R.", "calls a StorageType"),
    "call of a number": (b"\x80\x02K\x01)R.", "calls a int"),
    "items put into a tuple": (b"\x80\x02)K\x01a.", "puts items into a tuple"),
    "memo that would fill the memory": (b"\x80\x02}r\xff\xff\xff\x7f.", "remembers object 2147483647"),
}


@AROUND
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_in_a_checkpoint_is_refused_and_does_not_run(tmp_path, capfd, around, program):
    pickled, told = PROGRAMS[program]
    (tmp_path / "m.pth").write_bytes(around(pickled))
    with pytest.raises(BuildError, match=told):
        read_checkpoint(tmp_path / "m.pth")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("place", range(4))
def test_a_program_in_any_pickle_of_a_legacy_file_is_refused(tmp_path, capfd, place):
    parts = [pickle.dumps(0x1950A86A20F9469CFC6C, 2), pickle.dumps(1001, 2), pickle.dumps({"little_endian": True}, 2)]
    parts.append(checkpoints._dumps({}))
    parts[place] = PROGRAMS["REDUCE"][0]
    (tmp_path / "m.pth").write_bytes(b"".join(parts))
    with pytest.raises(BuildError, match=r"asks for os\.system"):
        read_checkpoint(tmp_path / "m.pth")
    assert capfd.readouterr().out == ""


def shared_tuples(levels):
    """A tuple of itself twice, and so on: small to write, 2**levels to walk through, hash or print."""
    return b")" + b"".join(b"q%c" % n + b"h%c" % n + b"\x86" for n in range(levels))


BOMBS = {
    "shared tuples as a key": (b"\x80\x02}" + shared_tuples(60) + b"K\x01s.", "stands where a name belongs"),
    "shared tuples as a value": (
        b"\x80\x02}X\x01\x00\x00\x00a" + shared_tuples(60) + b"s.",
        "entry 'a' is a tuple, not a tensor",
    ),
    "shared tuples as the whole": (b"\x80\x02" + shared_tuples(60) + b".", "holds a tuple"),
    "nested tuples as a key": (b"\x80\x02})" + b"\x85" * 200_000 + b"K\x01s.", "stands where a name belongs"),
    "nested lists": (b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", "holds a list"),
    "shared tuples as a persistent id": (b"\x80\x02" + shared_tuples(60) + b"Q.", "reference that is not a storage"),
    "shared tuples as a shape": (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x001X\x03\x00\x00\x00cpuK\x01tQK\x00"
        + shared_tuples(60)
        + b")tR.",
        "shape or strides are not sizes",
    ),
    "instructions without end": (b"\x80\x02" + b"]" * (tensor_pickle.MAX_INSTRUCTIONS + 9) + b".", "instructions"),
}


@AROUND
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_pickle_that_grows_in_time_or_memory_is_refused_soon(tmp_path, around, bomb):
    pickled, told = BOMBS[bomb]
    (tmp_path / "m.pth").write_bytes(around(pickled))
    begun = time.process_time()
    with pytest.raises(BuildError, match=told):
        read_checkpoint(tmp_path / "m.pth")
    assert time.process_time() - begun < 30  # walking 2**60 tuples would take centuries


def test_the_header_of_a_legacy_file_is_never_printed(tmp_path):
    parts = [pickle.dumps(0x1950A86A20F9469CFC6C, 2), b"\x80\x02" + shared_tuples(60) + b".", pickle.dumps({}, 2)]
    (tmp_path / "m.pth").write_bytes(b"".join(parts))
    with pytest.raises(BuildError, match="not of protocol 1001"):
        read_checkpoint(tmp_path / "m.pth")


def test_the_list_of_storages_is_never_hashed(tmp_path):
    state, storages = checkpoints._state({"w": np.zeros(3, np.float32)})
    keys = b"\x80\x02]" + shared_tuples(60) + b"a."
    (tmp_path / "m.pth").write_bytes(legacy_around(checkpoints._dumps(state), storages, keys))
    with pytest.raises(BuildError, match="not the storages used"):
        read_checkpoint(tmp_path / "m.pth")


def tensor(storage, *arguments):
    return Call("torch._utils", "_rebuild_tensor_v2", storage, *arguments, False, Call("collections", "OrderedDict"))


def test_a_compressed_zip_is_refused_before_it_is_unpacked(tmp_path):
    state, storages = checkpoints._state({"w": np.zeros(50_000_000 // 4, np.float32)})
    data = zip_around(checkpoints._dumps(state), storages, zipfile.ZIP_DEFLATED)
    assert len(data) < 100_000
    (tmp_path / "m.pth").write_bytes(data)
    tracemalloc.start()
    with pytest.raises(BuildError, match="the zip is compressed"):
        read_checkpoint(tmp_path / "m.pth")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_members_of_a_zip_that_claim_the_same_bytes_are_refused(tmp_path):
    # Every storage's entry in the central directory points at the first one's bytes.
    count, size = 40, 1000
    storages = [checkpoints._Storage(f"{n:02d}", np.zeros(size, np.float32)) for n in range(count)]
    state = {storage.key: tensor(storage, 0, (size,), (1,)) for storage in storages}
    data = bytearray(zip_around(checkpoints._dumps(state), storages[:1]))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        begin = archive.start_dir
        first = archive.getinfo("model/data/00")
    entries, end = bytes(data[begin:-22]), bytearray(data[-22:])
    at = entries.index(b"model/data/00") - 46
    entry = entries[at : at + 46 + len("model/data/00")]
    for n in range(1, count):
        entries += entry[:46] + f"model/data/{n:02d}".encode()
    total = len(storages) + 3
    end[8:12] = total.to_bytes(2, "little") * 2
    end[12:16] = len(entries).to_bytes(4, "little")
    (tmp_path / "m.pth").write_bytes(bytes(data[:begin]) + entries + bytes(end))
    assert first.file_size == 4 * size
    with pytest.raises(BuildError, match="members of the zip claim"):
        read_checkpoint(tmp_path / "m.pth")


def test_a_zip_of_very_many_members_is_refused_before_they_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "MAX_MEMBERS", 2)
    path = checkpoints.zipped(tmp_path / "m.pth", {"w": np.zeros(3, np.float32)})
    with pytest.raises(BuildError, match="the zip has about 4 members; 2 are allowed"):
        read_checkpoint(path)


def test_many_windows_onto_one_storage_are_refused_together(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "MAX_CHECKPOINT_BYTES", 100_000)
    storage = checkpoints._Storage("1", np.zeros(1000, np.float32))
    state = {f"w{n}": tensor(storage, 0, (1000,), (1,)) for n in range(26)}
    (tmp_path / "m.pth").write_bytes(zip_around(checkpoints._dumps(state), [storage]))
    with pytest.raises(BuildError, match="its tensors have 104000 bytes; 100000 are allowed"):
        read_checkpoint(tmp_path / "m.pth")


@AROUND
@pytest.mark.parametrize("claimed", [0, 23, 25, 1 << 30])
def test_a_storage_that_lies_about_its_size_is_refused(tmp_path, around, claimed):
    class Lying(np.ndarray):
        size = claimed

    array = np.arange(24, dtype=np.float32)
    state = checkpoints._dumps({"w": tensor(checkpoints._Storage("1", array.view(Lying)), 0, (2, 3), (3, 1))})
    (tmp_path / "m.pth").write_bytes(around(state, [checkpoints._Storage("1", array)]))
    with pytest.raises(BuildError, match="its tensor says"):
        read_checkpoint(tmp_path / "m.pth")


@AROUND
def test_tensors_that_differ_about_their_storage_are_refused(tmp_path, around):
    array = np.arange(24, dtype=np.float32)
    one, other = (checkpoints._Storage("1", part) for part in (array, array.astype(np.int64)))
    state = checkpoints._dumps({"a": tensor(one, 0, (2,), (1,)), "b": tensor(other, 0, (2,), (1,))})
    (tmp_path / "m.pth").write_bytes(around(state, [one]))
    with pytest.raises(BuildError, match="differ about storage '1'"):
        read_checkpoint(tmp_path / "m.pth")


@pytest.mark.parametrize("write", [checkpoints.legacy, checkpoints.zipped])
def test_a_file_cut_off_anywhere_is_refused(tmp_path, write):
    path = write(tmp_path / "m.pth", {"w": np.arange(60, dtype=np.float32), "b": np.arange(9, dtype=np.int64)})
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(BuildError):
            read_checkpoint(path)

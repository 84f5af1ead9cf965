"""Packs: written the same way each time, read strictly."""

import contextlib
import hashlib
import io
import json
import tarfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import DigestMismatchError, PackError, PackUnavailableError
from assay.packs.archive import read_pack, write_pack
from assay.packs.manifest import render_manifest
from support.small_packs import LABELS, SOME_DIGEST, colour_model, colour_pack, manifest


def raw_pack(path, members, *, kind=tarfile.USTAR_FORMAT, alter=None):
    """Write a tar as a stranger would, with whatever members."""
    with tarfile.open(path, "w", format=kind) as tar:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            if alter:
                alter(entry)
            tar.addfile(entry, io.BytesIO(data))
    return path


def good_members():
    return [
        ("labels.txt", "".join(f"{label}\n" for label in LABELS).encode()),
        ("model.onnx", colour_model()),
        ("pack.json", render_manifest(manifest())),
    ]


def test_a_pack_survives_writing_and_reading(tmp_path):
    digest = write_pack(tmp_path / "p.tar", manifest(), b"a model", ("a", "b", "b"))
    pack = read_pack(tmp_path / "p.tar", digest)
    assert (pack.manifest, pack.model, pack.labels) == (manifest(), b"a model", ("a", "b", "b"))
    assert pack.digest == digest == f"sha256:{hashlib.sha256((tmp_path / 'p.tar').read_bytes()).hexdigest()}"


def test_the_same_contents_give_the_same_bytes(tmp_path):
    digests = {write_pack(tmp_path / f"{n}.tar", manifest(), b"model", LABELS) for n in range(2)}
    assert len(digests) == 1
    with tarfile.open(tmp_path / "0.tar") as tar:
        entries = tar.getmembers()
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    assert {(entry.mtime, entry.mode, entry.uid, entry.gid, entry.uname) for entry in entries} == {(0, 0o644, 0, 0, "")}


def test_a_pack_made_with_plain_tar_is_read(tmp_path):
    assert read_pack(raw_pack(tmp_path / "p.tar", good_members(), kind=tarfile.GNU_FORMAT)).labels == LABELS


def test_another_digest_is_refused_before_anything_is_parsed(tmp_path):
    (tmp_path / "p.tar").write_bytes(b"not even a tar")
    with pytest.raises(DigestMismatchError, match="was asked for"):
        read_pack(tmp_path / "p.tar", SOME_DIGEST)


def test_a_missing_file_is_unavailable(tmp_path):
    with pytest.raises(PackUnavailableError):
        read_pack(tmp_path / "none.tar")


def symlink(entry):
    entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, "/etc/passwd", 0


def hardlink(entry):
    entry.type, entry.linkname, entry.size = tarfile.LNKTYPE, "pack.json", 0


def device(entry):
    entry.type, entry.size = tarfile.CHRTYPE, 0


def sparse(entry):
    entry.type = tarfile.GNUTYPE_SPARSE


@pytest.mark.parametrize("alter", [symlink, hardlink, device, sparse])
def test_links_devices_and_sparse_members_are_refused(tmp_path, alter):
    with pytest.raises(PackError, match="plain file"):
        read_pack(raw_pack(tmp_path / "p.tar", good_members(), alter=alter))


@pytest.mark.parametrize(
    ("members", "told"),
    [
        (lambda good: [*good, ("extra.txt", b"")], "more than 3 members"),
        (lambda good: [*good[:2], ("readme.txt", b"")], "unknown member 'readme.txt'"),
        (lambda good: good[:2], "'pack.json' is missing"),
        (lambda good: [*good[:2], good[1]], "two members called 'model.onnx'"),
        (lambda good: [*good[:2], ("../pack.json", b"")], "not plain"),
        (lambda good: [*good[:2], ("/pack.json", b"")], "not plain"),
        (lambda good: [("labels.txt", b"one\ntwo"), *good[1:]], "line feed"),
        (lambda good: [("labels.txt", b"one\n\xff\n"), *good[1:]], "UTF-8"),
        (lambda good: [("labels.txt", b"one\n\ntwo\n"), *good[1:]], "label 1 is empty"),
        (lambda good: [("labels.txt", b"only\n"), *good[1:]], "at least two classes"),
        (lambda good: [*good[:2], ("pack.json", b"{}")], "pack.json is not valid: format"),
        (lambda good: [*good[:2], ("pack.json", b"[" * 100_000)], "pack.json is not valid"),
        (lambda good: [*good[:2], ("pack.json", b" " * (17 << 20))], "the limit is"),
    ],
)
def test_what_is_no_pack_is_refused_with_a_reason(tmp_path, members, told):
    with pytest.raises(PackError, match=told):
        read_pack(raw_pack(tmp_path / "p.tar", members(good_members())))


def test_extended_headers_are_refused(tmp_path):
    def stamp(entry):
        entry.pax_headers = {"comment": "hidden"}

    with pytest.raises(PackError, match="not a plain file"):
        read_pack(raw_pack(tmp_path / "p.tar", good_members(), kind=tarfile.PAX_FORMAT, alter=stamp))


def test_bytes_after_the_end_are_refused(tmp_path):
    path = raw_pack(tmp_path / "p.tar", good_members())
    path.write_bytes(path.read_bytes() + b"\0" * 511 + b"x")
    with pytest.raises(PackError, match="after the end"):
        read_pack(path)


@pytest.mark.parametrize("changed", [{"format": 2}, {"precision": "FP16"}, {"more": 1}, {"name": "Upper Case"}])
def test_a_manifest_of_another_shape_is_refused(tmp_path, changed):
    text = manifest().model_dump(mode="json") | changed
    members = [*good_members()[:2], ("pack.json", json.dumps(text).encode())]
    with pytest.raises(PackError, match=next(iter(changed))):
        read_pack(raw_pack(tmp_path / "p.tar", members))


def test_a_crop_larger_than_the_resized_image_is_refused(tmp_path):
    text = manifest().model_dump(mode="json")
    text["preprocess"]["crop"] = 64
    members = [*good_members()[:2], ("pack.json", json.dumps(text).encode())]
    with pytest.raises(PackError, match="larger than resize_short"):
        read_pack(raw_pack(tmp_path / "p.tar", members))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_pack_is_refused_or_reads_as_some_pack_but_never_crashes(tmp_path, data):
    path = tmp_path / "p.tar"
    if not path.exists():
        colour_pack(path)
    whole = bytearray(path.read_bytes())
    kept = data.draw(st.integers(0, len(whole)))
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(bytes(whole[:kept]) if data.draw(st.booleans()) else bytes(whole))
    with contextlib.suppress(PackError):  # and nothing else
        assert len(read_pack(damaged).labels) >= 2


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    with pytest.raises(PackError):
        write_pack(tmp_path / "p.tar", manifest(), b"model", ("one", "bad\nlabel"))
    assert list(tmp_path.iterdir()) == []

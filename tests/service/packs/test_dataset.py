"""Datasets: written the same way each time, read one image at a time, strictly."""

import io
import json
import shutil
import tarfile

import pytest

from assay.errors import DatasetError, DigestMismatchError
from assay.packs.dataset import ImageEntry, read_dataset, write_dataset
from support.small_packs import SOME_DIGEST, colour_dataset, colour_jpeg


def entry(file, **more):
    return ImageEntry(file=file, group=more.pop("group", "g"), label=None, class_index=None, **more)


def test_images_come_back_in_order_with_their_groups_and_labels(tmp_path):
    digest = colour_dataset(tmp_path / "d.tar", 8, groups=4)
    read = read_dataset(tmp_path / "d.tar", digest)
    images = list(read)
    assert [image.entry for image in images] == list(read.manifest.images)
    assert [image.entry.label for image in images[:4]] == ["red", "green", "blue", "grey"]
    assert images[0].data.startswith(b"\xff\xd8")
    assert read.groups == 4
    assert [image.data for image in read] == [image.data for image in images]


def test_the_same_images_give_the_same_bytes(tmp_path):
    assert colour_dataset(tmp_path / "a.tar") == colour_dataset(tmp_path / "b.tar")


def test_another_digest_is_refused(tmp_path):
    colour_dataset(tmp_path / "d.tar")
    with pytest.raises(DigestMismatchError):
        read_dataset(tmp_path / "d.tar", SOME_DIGEST)


def rewrite(path, change):
    """Unpack, change the members, pack again."""
    with tarfile.open(path) as tar:
        members = [(m.name, tar.extractfile(m).read()) for m in tar.getmembers()]
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in change(members):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def listed(members, alter):
    text = json.loads(members[0][1])
    alter(text)
    return [("dataset.json", json.dumps(text).encode()), *members[1:]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda m: m[1:], "dataset.json.* is missing"),
        (lambda m: m[:-1], "not there"),
        (lambda m: [*m, ("images/more.jpg", b"")], "does not list"),
        (lambda m: [*m, m[1]], "two members"),
        (lambda m: listed(m, lambda t: t["images"].append(t["images"][0])), "twice"),
        (lambda m: listed(m, lambda t: t.update(images=[])), "images"),
        (lambda m: listed(m, lambda t: t["images"][0].update(class_index=-1)), "class_index"),
        (lambda m: [("dataset.json", b"{"), *m[1:]], "dataset.json"),
    ],
)
def test_what_is_no_dataset_is_refused_with_a_reason(tmp_path, change, told):
    path = tmp_path / "d.tar"
    colour_dataset(path, 4)
    rewrite(path, change)
    with pytest.raises(DatasetError, match=told):
        read_dataset(path)


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path):
    path = tmp_path / "d.tar"
    colour_dataset(path, 4)
    read = read_dataset(path)
    with path.open("r+b") as stream:
        stream.truncate(2000)
    with pytest.raises(DatasetError, match="damaged"):
        list(read)
    path.unlink()
    with pytest.raises(DatasetError, match="cannot read"):
        list(read)


def test_names_out_of_order_are_refused_and_leave_nothing(tmp_path):
    images = [entry("images/b.jpg"), entry("images/a.jpg")]
    with pytest.raises(DatasetError, match="sorted"):
        write_dataset(tmp_path / "d.tar", "d", "", images, [b"1", b"2"])
    with pytest.raises(DatasetError):
        write_dataset(tmp_path / "d.tar", "d", "", [entry("../a.jpg")], [b"1"])
    assert list(tmp_path.iterdir()) == []


def test_a_copy_reads_alike(tmp_path):
    digest = colour_dataset(tmp_path / "d.tar", 4)
    shutil.copyfile(tmp_path / "d.tar", tmp_path / "e.tar")
    assert read_dataset(tmp_path / "e.tar", digest).digest == digest
    assert next(iter(read_dataset(tmp_path / "e.tar"))).data == colour_jpeg((220, 30, 30), 40)

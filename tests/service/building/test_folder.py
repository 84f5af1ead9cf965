"""A user's own photos as a dataset."""

import pytest

from assay.building.folder import pack_folder
from assay.errors import DatasetError
from assay.packs.dataset import read_dataset
from support.small_packs import COLOURS, colour_jpeg


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.jpg").write_bytes(colour_jpeg(COLOURS["red"]))
    (folder / "a.JPG").write_bytes(colour_jpeg(COLOURS["blue"]))
    (folder / "sub" / "copy of b.jpeg").write_bytes(colour_jpeg(COLOURS["red"]))
    (folder / "notes.txt").write_text("no image")
    return folder


def pack(folder, tmp_path, csv=None, **more):
    labels = None
    if csv is not None:
        labels = tmp_path / "labels.csv"
        labels.write_text(csv)
    digest = pack_folder(folder, labels, "mine", tmp_path / "mine.tar", **more)
    return read_dataset(tmp_path / "mine.tar", digest)


def test_every_image_is_taken_and_copies_of_one_photo_are_one_group(folder, tmp_path):
    read = pack(folder, tmp_path)
    images = list(read)
    assert [image.data for image in images] == [
        colour_jpeg(COLOURS["blue"]), colour_jpeg(COLOURS["red"]), colour_jpeg(COLOURS["red"]),
    ]  # fmt: skip
    assert read.groups == 2
    assert {entry.label for entry in read.manifest.images} == {None}


def test_the_same_folder_gives_the_same_digest(folder, tmp_path):
    assert pack(folder, tmp_path).digest == pack(folder, tmp_path).digest


def test_labels_and_groups_come_from_the_csv_and_only_what_it_lists(folder, tmp_path):
    read = pack(folder, tmp_path, 'file,label,group\nb.jpg,"red, a colour",g1\na.JPG,blue,g1\n')
    assert [(e.label, e.group) for e in read.manifest.images] == [("blue", "g1"), ("red, a colour", "g1")]
    read = pack(folder, tmp_path, "file,class_index\nb.jpg,7\n")
    assert [entry.class_index for entry in read.manifest.images] == [7]


@pytest.mark.parametrize(
    ("csv", "told"),
    [
        ("name,label\nb.jpg,red\n", "needs file"),
        ("file\nb.jpg\n", "needs file, and label or class_index"),
        ("file,label\ngone.jpg,red\n", "lists 'gone.jpg'"),
        ("file,label\n../outside.jpg,red\n", "lists '../outside.jpg'"),
        ("file,class_index\nb.jpg,seven\n", "not a number"),
        ("file,label\nnotes.txt,red\n", "not an image"),
        ("file,label\n", "no images"),
    ],
)
def test_a_csv_that_does_not_fit_is_told(folder, tmp_path, csv, told):
    with pytest.raises(DatasetError, match=told):
        pack(folder, tmp_path, csv)


def test_a_broken_image_is_named(folder, tmp_path):
    (folder / "broken.jpg").write_bytes(b"hello")
    with pytest.raises(DatasetError, match=r"broken\.jpg is not an image"):
        pack(folder, tmp_path)


def test_an_empty_or_missing_folder_is_told(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="has no images"):
        pack(tmp_path / "empty", tmp_path)
    with pytest.raises(DatasetError, match="not a folder"):
        pack(tmp_path / "none", tmp_path)

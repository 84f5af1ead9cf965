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
        ("file;class_index\nb.jpg;7\n", "separate them with commas"),
        ("file,label,file\nb.jpg,red,b.jpg\n", "line 1: the column file is there twice"),
        ("", "line 1: columns"),
        ("file,label\na.JPG,blue\ngone.jpg,red\n", "line 3: 'gone.jpg' is not in"),
        ("file,label\n../outside.jpg,red\n", "line 2: '../outside.jpg' is outside the folder"),
        ("file,label\nsub/../b.jpg,red\n", "line 2: 'sub/../b.jpg' is outside the folder"),
        ("file,label\n/etc/hostname,red\n", "line 2: '/etc/hostname' is outside the folder"),
        ("file,label\nsub\\b.jpg,red\n", "outside the folder"),
        ("file,label\n,red\n", "line 2: no file is named"),
        ("file,label\nsub,red\n", "line 2: 'sub' is not in"),
        ("file,class_index\n\na.JPG,1\nb.jpg,seven\n", "line 4: class_index 'seven' is not a whole number"),
        ("file,class_index\nb.jpg,-1\n", "line 2: class_index '-1' is not a whole number"),
        ("file,class_index\nb.jpg,1.0\n", "line 2: class_index '1.0' is not a whole number"),
        ("file,class_index\nb.jpg,10\n", "line 2: class_index 10 is out of range: .* below 10"),
        (f"file,class_index\nb.jpg,{'9' * 5000}\n", "is out of range"),
        ("file,class_index\nb.jpg,1\na.JPG,2\nb.jpg,1\n", "line 4: 'b.jpg' is listed again, see .*line 2$"),
        ("file,label\nb.jpg,red, a colour\n", "line 2: 3 values for 2 columns: put quotes"),
        ('file,label\nb.jpg,"red\n', "as a CSV"),
        ("file,label\nnotes.txt,red\n", r"line 2: .*notes\.txt is not an image"),
        ("file,label\n", "no images"),
    ],
)
def test_a_csv_that_does_not_fit_is_told(folder, tmp_path, csv, told):
    (tmp_path / "outside.jpg").write_bytes(colour_jpeg(COLOURS["red"]))
    with pytest.raises(DatasetError, match=told):
        pack(folder, tmp_path, csv, classes=10)
    assert not (tmp_path / "mine.tar").exists()


def test_a_csv_of_a_spreadsheet_is_taken_as_it_is(folder, tmp_path):
    read = pack(folder, tmp_path, "\ufeffFile, Class_Index ,note\r\n b.jpg , 7 ,x\r\n,,\r\n", classes=8)
    assert [entry.class_index for entry in read.manifest.images] == [7]


def test_a_csv_of_another_encoding_is_told(folder, tmp_path):
    labels = tmp_path / "latin.csv"
    labels.write_bytes("file,label\nb.jpg,grün\n".encode("latin-1"))
    with pytest.raises(DatasetError, match="as a CSV in UTF-8"):
        pack_folder(folder, labels, "mine", tmp_path / "mine.tar")


def test_progress_counts_every_image(folder, tmp_path):
    seen = []
    pack(folder, tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_broken_image_is_named(folder, tmp_path):
    for data in (b"hello", b"", colour_jpeg(COLOURS["red"], 400)[:-900]):  # the last has a good header
        (folder / "broken.jpg").write_bytes(data)
        with pytest.raises(DatasetError, match=r"broken\.jpg is not an image"):
            pack(folder, tmp_path)


def test_an_empty_or_missing_folder_is_told(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="has no images"):
        pack(tmp_path / "empty", tmp_path)
    with pytest.raises(DatasetError, match="not a folder"):
        pack(tmp_path / "none", tmp_path)

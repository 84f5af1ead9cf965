"""``assay bench input``: real photos through both ways; structure and invariants, never timings."""

import io

import pytest
from PIL import Image

from assay.bench.input import COLUMNS, PLAIN, SERVED, measure
from assay.bench.photos import ENCODINGS, at_size, encoded, from_folder, noise
from assay.errors import BenchError
from support.images import jpeg, photo


@pytest.fixture(scope="module")
def report():
    photos = [photo("chelsea"), photo("coffee")]
    return measure(photos, sizes=(0.1, 2.5), formats=("jpeg", "png", "webp"), calls=3, warmups=0)


def test_every_size_kind_and_path_has_a_row(report):
    kinds = ["JPEG, baseline", "JPEG, progressive", "PNG", "WebP"]
    expected = [(size, kind, path) for size in (0.1, 2.5) for kind in kinds for path in (PLAIN, SERVED)]
    assert [(row["megapixels"], row["file"], row["path"]) for row in report.rows] == expected
    assert report.columns == COLUMNS
    assert report.bench == "input"


def test_only_large_jpeg_files_are_decoded_at_a_reduced_size(report):
    reduced = {(row["megapixels"], row["file"]) for row in report.rows if row["reduction"] != "whole"}
    assert reduced == {(2.5, "JPEG, baseline"), (2.5, "JPEG, progressive")}


def test_figures_fit_together(report):
    for row in report.rows:
        assert row["decode_cpu_ms"] > 0
        assert row["preprocess_cpu_ms"] > 0
        assert row["cpu_ms"] == pytest.approx(row["decode_cpu_ms"] + row["preprocess_cpu_ms"])
        assert row["cpu_p10_ms"] <= row["cpu_p90_ms"]
        assert row["file_kb"] > 1
        assert row["path"] == SERVED or row["of_plain"] == 1


def test_photos_are_brought_to_a_size_with_detail_in_them():
    large = at_size(photo("chelsea"), 2.0, noise(1))
    assert large.width * large.height == pytest.approx(2e6, rel=0.01)
    assert large.width / large.height == pytest.approx(451 / 300, rel=0.01)
    smooth = photo("chelsea").resize(large.size, Image.Resampling.BICUBIC)
    kind = ENCODINGS["jpeg"][0]
    assert len(encoded(large, kind)) > 1.5 * len(encoded(smooth, kind))
    assert large.tobytes() == at_size(photo("chelsea"), 2.0, noise(1)).tobytes() != smooth.tobytes()


def test_progressive_files_are_progressive():
    for kind, progressive in zip(ENCODINGS["jpeg"], (False, True), strict=True):
        with Image.open(io.BytesIO(encoded(photo("chelsea"), kind))) as image:
            assert bool(image.info.get("progressive")) is progressive


def test_a_folder_of_photos_is_read_upright_and_spread_evenly(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.jpg").write_bytes(jpeg("chelsea", (40 + number, 30)))
    (tmp_path / "notes.txt").write_text("no image")
    assert [image.width for image in from_folder(tmp_path, 2)] == [40, 42]
    assert len(from_folder(tmp_path, 9)) == 5


def test_a_folder_without_photos_or_with_a_broken_one_is_told(tmp_path):
    with pytest.raises(BenchError, match="no image in"):
        from_folder(tmp_path, 2)
    (tmp_path / "broken.jpg").write_bytes(jpeg("chelsea")[:500])
    with pytest.raises(BenchError, match=r"broken\.jpg does not decode"):
        from_folder(tmp_path, 2)


@pytest.mark.parametrize("sizes", [(), (0,), (90,)])
def test_a_size_that_cannot_be_is_told(sizes):
    with pytest.raises(BenchError, match="megapixels"):
        measure([photo("chelsea")], sizes=sizes)

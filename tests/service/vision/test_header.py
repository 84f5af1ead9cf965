"""A header says what Pillow would say after opening the file, and says it from the bytes alone."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from assay.vision.errors import ImageBroken, ImageError, TooManyPixels, UnsupportedMediaType
from assay.vision.header import read_header
from support.images import bomb, encoded, exif, jpeg, photo

FILES = {
    "baseline JPEG": jpeg(),
    "progressive JPEG": jpeg(progressive=True),
    "gray JPEG": encoded(photo().convert("L"), "JPEG"),
    "JPEG with a comment": jpeg(comment=b"x" * 60000),
    "JPEG of several pictures": encoded(photo(), "MPO", save_all=True, append_images=[photo("coffee")]),
    "PNG": encoded(photo(), "PNG"),
    "palette PNG": encoded(photo().quantize(32), "PNG"),
    "lossy WebP": encoded(photo(), "WEBP", quality=60),
    "lossless WebP": encoded(photo(), "WEBP", lossless=True),
    "WebP with alpha": encoded(photo().convert("RGBA"), "WEBP"),
    "animated WebP": encoded(photo(), "WEBP", save_all=True, append_images=[photo().rotate(90)]),
    "GIF": encoded(photo(), "GIF"),
    "animated GIF": encoded(photo(), "GIF", save_all=True, append_images=[photo().rotate(90)]),
    "BMP": encoded(photo(), "BMP"),
    "TIFF": encoded(photo(), "TIFF"),
    "big-endian TIFF": encoded(Image.new("I;16B", (40, 30)), "TIFF"),
}


@pytest.mark.parametrize("name", FILES)
def test_size_and_format_are_those_pillow_finds(name):
    header = read_header(FILES[name])
    with Image.open(io.BytesIO(FILES[name])) as image:
        assert (header.width, header.height) == image.size
        assert header.format == {"MPO": "JPEG"}.get(image.format, image.format)


def test_progressive_scans_are_told_from_baseline_ones():
    assert not read_header(FILES["baseline JPEG"]).progressive
    assert read_header(FILES["progressive JPEG"]).progressive


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_read_from_exif(kind, orientation):
    header = read_header(encoded(photo(), kind, exif=exif(orientation)))
    assert header.orientation == orientation
    upright = (451, 300) if orientation < 5 else (300, 451)
    assert header.upright_size == upright


def test_broken_exif_means_upright():
    for block in (
        b"Exif\0\0",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0II*\0\x08\0\0\0\xff\xff",
        exif(9),
        b"Exif\0\0junk",
    ):
        assert read_header(jpeg(exif=block)).orientation == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"<html>",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"PK\x03\x04" + bytes(60),
        bytes(4096),
        encoded(photo(), "PPM"),
        encoded(photo(), "ICO"),
        encoded(photo(), "PDF"),
        encoded(photo(), "JPEG2000"),
    ],
    ids=["nothing", "text", "HTML", "SVG", "zip", "zero bytes", "PPM", "ICO", "PDF", "JPEG 2000"],
)
def test_what_is_no_image_taken_here_is_unsupported(data):
    with pytest.raises(UnsupportedMediaType):
        read_header(data)


@pytest.mark.parametrize("compression", ["group4", "tiff_lzw", "jpeg", "tiff_adobe_deflate", "packbits"])
def test_compressed_tiff_is_unsupported(compression):
    picture = photo().convert("1") if compression == "group4" else photo()
    with pytest.raises(UnsupportedMediaType, match="compression"):
        read_header(encoded(picture, "TIFF", compression=compression))


def test_too_many_pixels_are_refused_from_the_header():
    with pytest.raises(TooManyPixels, match="20000 x 20000"):
        read_header(bomb())
    assert read_header(bomb(), max_pixels=20000 * 20000).pixels == 400_000_000


@pytest.mark.parametrize("name", FILES)
def test_file_cut_within_its_header_is_broken_and_nothing_else(name):
    data = FILES[name]
    for length in range(1, 400):
        try:
            header = read_header(data[:length])
        except ImageError:
            continue
        assert header.pixels == 451 * 300 or "big-endian" in name


def test_picture_without_area_is_broken():
    png = bytearray(FILES["PNG"])
    png[16:20] = bytes(4)
    with pytest.raises(ImageBroken, match="0 x 300"):
        read_header(bytes(png))


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8" + b"\xff" * (8 << 20),
        b"\xff\xd8" + b"\xff\xe1\x00\x02" * (2 << 20),
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + bytes(17) + b"\0\0\0\0tEXt\0\0\0\0" * 700_000,
    ],
    ids=["fill bytes", "empty segments", "empty chunks"],
)
def test_endless_headers_are_given_up(data):
    with pytest.raises(ImageBroken):
        read_header(data)


@given(st.sampled_from(sorted(FILES)), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=8))
def test_mutated_headers_give_a_header_or_an_image_error(name, changes):
    data = bytearray(FILES[name])
    for position, value in changes:
        data[position % len(data)] = value
    try:
        header = read_header(bytes(data))
    except ImageError:
        return
    assert 0 < header.pixels <= 16_000_000
    assert 1 <= header.orientation <= 8

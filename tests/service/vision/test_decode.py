"""Whatever the file's pixels are, the model gets RGB, upright, on white."""

import io

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageOps

from assay.vision.colour import rgb
from assay.vision.decode import decode, draft_scale, picture_bytes
from assay.vision.errors import ImageBroken, UnsupportedMediaType
from assay.vision.header import ImageHeader, read_header
from assay.vision.orientation import upright
from support.corpus.hostile import loops, png
from support.corpus.seeds import interlaced_png
from support.geometry import Wanted
from support.images import deep_png, encoded, exif, jpeg, photo

WANTED = Wanted()


def decoded(data: bytes) -> np.ndarray:
    header = read_header(data)
    image = upright(rgb(decode(data, header, WANTED)), header.decoded_orientation)
    assert image.mode == "RGB"
    return np.asarray(image).astype(int)


def difference(data: bytes, expected: Image.Image) -> float:
    return float(np.abs(decoded(data) - np.asarray(expected.convert("RGB"))).mean())


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_picture_is_turned_upright(kind, orientation):
    data = encoded(photo(), kind, exif=exif(orientation))
    with Image.open(io.BytesIO(data)) as image:
        expected = ImageOps.exif_transpose(image)
    assert difference(data, expected) == 0


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_transparent_pixels_become_white(kind):
    picture = photo().convert("RGBA")
    alpha = Image.new("L", picture.size, 255)
    alpha.paste(0, (0, 0, 200, 300))
    picture.putalpha(alpha)
    options = {"lossless": True} if kind == "WEBP" else {}
    found = decoded(encoded(picture, kind, **options))
    assert (found[:, :200] == 255).all()
    assert (found[:, 200:] == np.asarray(photo())[:, 200:]).all()


def test_half_transparent_pixels_are_mixed_with_white():
    found = decoded(encoded(Image.new("RGBA", (32, 32), (0, 0, 0, 128)), "PNG"))
    assert (found == 127).all()


def test_transparent_colour_of_a_palette_becomes_white():
    for kind in ("PNG", "GIF"):
        palette = Image.new("P", (32, 32), 1)
        palette.putpalette([255, 0, 0, 0, 0, 255] + [0] * 762)
        palette.paste(0, (0, 0, 16, 32))
        found = decoded(encoded(palette, kind, transparency=0))
        assert (found[:, :16] == 255).all()
        assert (found[:, 16:] == (0, 0, 255)).all()


def test_transparent_colour_of_rgb_and_gray_png_becomes_white():
    assert (decoded(encoded(Image.new("RGB", (8, 8), (9, 9, 9)), "PNG", transparency=(9, 9, 9))) == 255).all()
    assert (decoded(encoded(Image.new("L", (8, 8), 9), "PNG", transparency=9)) == 255).all()


def test_gray_cmyk_palette_and_one_bit_pictures_keep_their_colours():
    assert difference(encoded(photo().convert("L"), "PNG"), photo().convert("L")) == 0
    assert difference(encoded(photo().convert("1"), "PNG"), photo().convert("1")) == 0
    assert difference(encoded(photo().quantize(256), "PNG"), photo()) < 8
    assert difference(encoded(photo().convert("CMYK"), "JPEG", quality=95), photo()) < 4
    assert difference(encoded(photo().convert("CMYK"), "TIFF"), photo()) < 1
    assert difference(encoded(photo().convert("LA"), "PNG"), photo().convert("L")) == 0


def without_adobe_marker(data: bytes) -> bytes:
    at = data.index(b"\xff\xee")
    return data[:at] + data[at + 2 + int.from_bytes(data[at + 2 : at + 4]) :]


def test_cmyk_of_a_jpeg_is_inverted_as_adobe_has_it():
    ink = photo().convert("CMYK")
    assert difference(encoded(ink, "JPEG", quality=100, subsampling=0), photo()) < 2
    # Pillow takes four components for Adobe's kind, with its marker or without.
    assert difference(without_adobe_marker(encoded(ink, "JPEG", quality=100, subsampling=0)), photo()) < 2


def test_ycck_as_photoshop_saves_it_is_converted():
    cyan_magenta_yellow, black = Image.merge("RGB", photo().convert("CMYK").split()[:3]), Image.new("L", photo().size)
    planes = [
        ImageChops.invert(plane) for plane in (*cyan_magenta_yellow.convert("YCbCr").split(), ImageChops.invert(black))
    ]
    data = encoded(Image.merge("CMYK", planes), "JPEG", quality=100, subsampling=0)
    at = data.index(b"Adobe") + 11
    found = data[:at] + b"\2" + data[at + 1 :]  # the marker's transform: YCCK
    assert difference(found, photo()) < 3


def test_sixteen_bit_gray_tiff_of_both_byte_orders_keeps_its_range():
    deep = np.asarray(photo().convert("L")).astype(np.uint16) * 257
    for order in ("<u2", ">u2"):
        data = encoded(Image.fromarray(deep.astype(order)), "TIFF")
        assert data[:2] == (b"II" if order == "<u2" else b"MM")
        assert difference(data, photo().convert("L")) == 0


def test_sixteen_bit_colour_keeps_its_range():
    found = decoded(png(8, 8, 2, 16))
    assert (found == 0).all()
    assert (decoded(png(8, 8, 6, 16)) == 255).all()  # wholly transparent


def test_sixteen_bit_gray_keeps_its_range():
    assert difference(deep_png(), photo().convert("L")) == 0


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_first_frame_of_an_animation_is_taken(kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(photo(), kind, save_all=True, append_images=[Image.new("RGB", photo().size, "red")] * 2, **options)
    assert difference(data, photo()) < (8 if kind == "GIF" else 1)


def test_first_picture_of_a_multi_picture_jpeg_is_taken():
    data = encoded(photo(), "MPO", save_all=True, append_images=[photo("coffee")])
    assert difference(data, photo()) < 6


def test_pixels_without_a_defined_white_are_refused():
    data = encoded(Image.fromarray(np.ones((8, 8), np.float32)), "TIFF")
    with pytest.raises(UnsupportedMediaType, match="type F"):
        decoded(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_cut_off_file_is_broken(kind, share):
    data = encoded(photo(), kind)
    with pytest.raises(ImageBroken):
        decoded(data[: int(len(data) * share)])


def test_file_whose_header_and_picture_disagree_is_broken_before_it_is_decoded():
    data = jpeg()
    frame = data.index(b"\xff\xc0")
    small = data[frame : frame + 5] + (16).to_bytes(2) + (16).to_bytes(2) + data[frame + 9 : frame + 19]
    lying = data[:frame] + data[frame : frame + 19] + small + data[frame + 19 :]
    header = read_header(data)
    with pytest.raises(ImageBroken, match="by its header"):
        decode(lying, header, WANTED)


@pytest.mark.parametrize(
    ("width", "height", "scale"),
    [(500, 333, 1), (1023, 4000, 1), (1024, 1024, 2), (2047, 4000, 2), (2048, 2048, 4), (4096, 4096, 8), (65500, 1, 1)],
)
def test_jpeg_is_scaled_only_while_its_short_side_stays_twice_the_target(width, height, scale):
    assert draft_scale(ImageHeader("JPEG", width, height, False, 1), WANTED) == scale
    assert draft_scale(ImageHeader("PNG", width, height, False, 1), WANTED) == 1


def test_scaled_decode_has_the_size_that_was_promised():
    data = jpeg("rocket", (2049, 1537))
    image = decode(data, read_header(data), WANTED)
    assert image.size == (1025, 769)


def test_interlaced_png_is_the_same_picture():
    assert difference(interlaced_png(photo()), photo()) == 0
    assert read_header(interlaced_png(photo())).progressive


def test_metadata_does_not_reach_the_decoder_and_changes_no_pixel():
    rich = jpeg(exif=exif(6), comment=b"a cat" * 1000, icc_profile=bytes(70000), xmp=b"<x:xmpmeta/>")
    image = decode(rich, read_header(rich), WANTED)
    assert {"exif", "comment", "icc_profile", "xmp"} & set(image.info) == set()
    assert (np.asarray(image) == np.asarray(decode(jpeg(), read_header(jpeg()), WANTED))).all()


FULL = {
    "RGB PNG": (encoded(photo(), "PNG"), 4.0),
    "palette PNG": (encoded(photo().quantize(256), "PNG"), 1.0),
    "16-bit gray PNG": (deep_png(), 2.0),
    "baseline JPEG": (jpeg(), 4.0),
    "gray JPEG": (encoded(photo().convert("L"), "JPEG"), 1.0),
    "progressive JPEG, 4:2:0": (jpeg(progressive=True), 7.0),
    "progressive JPEG, 4:4:4": (jpeg(progressive=True, subsampling=0), 10.0),
    "progressive CMYK JPEG": (encoded(photo().convert("CMYK"), "JPEG", progressive=True), 12.0),
    "WebP": (encoded(photo(), "WEBP"), 17.0),
    "GIF": (encoded(photo(), "GIF"), 2.0),
    "BMP": (encoded(photo(), "BMP"), 4.0),
    "TIFF": (encoded(photo(), "TIFF"), 4.0),
    "turned TIFF": (encoded(photo(), "TIFF", exif=exif(6)), 8.0),
}


@pytest.mark.parametrize("name", FULL)
def test_memory_of_a_picture_is_told_from_its_header(name):
    data, bytes_a_pixel = FULL[name]
    assert picture_bytes(read_header(data), WANTED) == int(451 * 300 * bytes_a_pixel)


def test_scaled_decode_takes_less_memory_for_the_picture_and_as_much_for_its_scans():
    size = 2048, 2048
    assert picture_bytes(read_header(jpeg("rocket", size, progressive=True)), WANTED) == 2048 * 2048 * (4 / 16 + 3)
    assert picture_bytes(read_header(jpeg("rocket", size)), WANTED) == 2048 * 2048 * 4 / 16


def test_decoders_written_in_python_or_by_libtiff_are_not_used_whatever_the_header_hides():
    for name in ("loop-bmp-run-length", "loop-tiff-lzw"):
        with pytest.raises(UnsupportedMediaType, match="compress"):
            decoded(loops()[name])

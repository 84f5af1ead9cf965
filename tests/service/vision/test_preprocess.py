"""One resize of the crop box gives the pixels that resizing the whole picture and cropping gives."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from assay.vision.colour import rgb
from assay.vision.geometry import crop_box, resized
from assay.vision.preprocess import load, preprocess
from support.corpus.seeds import deep
from support.geometry import Wanted
from support.images import PHOTOS, encoded, exif, jpeg, photo, two_step

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def errors(found: np.ndarray, picture: Image.Image, interpolation: str) -> list[float]:
    """Mean absolute difference, of 255, to each pass order of the two-step form."""
    forms = two_step(picture, 256, 224, FILTERS[interpolation])
    return [float(np.abs(found.astype(float) - form).mean()) for form in forms]


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("name", PHOTOS)
def test_equals_the_two_step_form(name, interpolation):
    wanted = Wanted(interpolation=interpolation)
    for picture in (photo(name), photo(name).rotate(90, expand=True), photo(name).crop((3, 5, 360, 300))):
        found = preprocess(picture, wanted)
        assert found.shape == (224, 224, 3)
        assert found.dtype == np.uint8
        assert min(errors(found, picture, interpolation)) < 0.05
        assert max(errors(found, picture, interpolation)) < 0.5  # what the pass order alone makes


@pytest.mark.shared_data
@pytest.mark.parametrize("interpolation", FILTERS)
def test_equals_the_two_step_form_on_every_labelled_photo(shared_data, interpolation):
    wanted = Wanted(interpolation=interpolation)
    for file in sorted((shared_data / "photos").glob("*.jpg")):
        with Image.open(file) as image:
            picture = ImageOps.exif_transpose(image).convert("RGB")
        assert min(errors(preprocess(picture, wanted), picture, interpolation)) < 0.05, file.name


@pytest.mark.parametrize(("size", "bound"), [((1200, 900), 1.0), ((2000, 1500), 1.0), ((4000, 3000), 1.0)])
def test_scaled_decode_stays_close_to_the_whole_one(size, bound):
    data = jpeg("coffee", size)
    with Image.open(io.BytesIO(data)) as image:
        whole = image.convert("RGB")
    assert min(errors(load(data, Wanted()), whole, "bicubic")) < bound


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("orientation", range(1, 9))
def test_turning_the_crop_equals_turning_the_picture(orientation, interpolation):
    wanted = Wanted(interpolation=interpolation)
    for picture in (photo(), photo("rocket").crop((1, 2, 400, 411))):
        stored = encoded(picture, "PNG", exif=exif(orientation))
        with Image.open(io.BytesIO(stored)) as image:
            turned = ImageOps.exif_transpose(image)
        assert min(errors(load(stored, wanted), turned, interpolation)) < 0.05


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "CMYK", "L", "I;16"])
@pytest.mark.parametrize("size", [(1600, 1100), (1100, 1600), (60, 20000), (20000, 60)])
def test_picture_converted_in_bands_equals_one_converted_as_a_whole(mode, size):
    picture = photo("coffee", size)
    made = {"I;16": deep, "P": lambda image: image.quantize(64)}.get(mode, lambda image: image.convert(mode))
    picture = made(picture)
    if mode in ("RGBA", "LA"):
        picture.putalpha(Image.linear_gradient("L").resize(size))
    assert min(errors(preprocess(picture, Wanted()), rgb(picture), "bicubic")) < 0.05


def test_scaled_decode_of_a_turned_picture_shows_the_same_part():
    picture = photo("coffee", (2001, 1503))
    upright = load(encoded(picture, "JPEG", quality=95), Wanted()).astype(float)
    turned = load(encoded(picture.rotate(90, expand=True), "JPEG", quality=95, exif=exif(6)), Wanted())
    assert np.abs(upright - turned).mean() < 3


@pytest.mark.parametrize(
    "size", [(1, 1), (2, 1), (1, 65500), (65500, 1), (224, 224), (256, 256), (257, 255), (16, 4000)]
)
def test_any_size_gives_an_input(size):
    assert load(encoded(Image.new("RGB", size, (10, 200, 30)), "JPEG", quality=100), Wanted()).shape == (224, 224, 3)
    assert (load(encoded(Image.new("RGB", size, (10, 200, 30)), "PNG"), Wanted()) == (10, 200, 30)).all()


def test_integer_rounding_is_that_of_the_reference():
    assert resized(500, 333, 256) == (384, 256)  # 384.38 is cut, not rounded
    assert resized(333, 500, 256) == (256, 384)
    assert crop_box((512, 512), Wanted()) == (32, 32, 480, 480)
    assert crop_box((769, 512), Wanted())[0] == 80 * (769 / 384)  # 80 of the 384 columns, not 80.25


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_crop_box_lies_within_the_picture(width, height):
    left, top, right, bottom = crop_box((width, height), Wanted())
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height

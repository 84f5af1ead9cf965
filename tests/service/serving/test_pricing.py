"""Prices follow what decoding costs; the machine's speed and the model's cost are learned."""

import pytest

from assay.serving.pricing import PriceList, is_dear
from assay.vision.header import ImageHeader, read_header
from support.geometry import Wanted
from support.images import encoded, jpeg, photo


def header(kind="JPEG", megapixels=1.0, progressive=False):
    return ImageHeader(kind, int(megapixels * 1000), 1000, progressive, 1)


def price(*args, **options):
    return PriceList(Wanted(), model_ms=9.5).price_ms(header(*args, **options))


def test_more_pixels_cost_more():
    assert price(megapixels=0.5) < price(megapixels=1.0) < price("PNG", 1.0) < price("PNG", 4.0)


def test_progressive_scan_costs_more_than_a_baseline_one():
    assert price(progressive=True) > price() + 3


def test_scaled_decode_is_cheaper_than_its_pixels():
    prices = PriceList(Wanted(), 0)
    large = ImageHeader("JPEG", 4000, 3000, False, 1)
    assert prices.price_ms(large) < 12 * prices.price_ms(header()) / 2


def test_typical_upload_costs_what_was_measured():
    upload = read_header(jpeg("china", (930, 700)))  # 0.65 MP: 14.5 CPU-ms in the design's budget
    assert PriceList(Wanted(), 9.3).price_ms(upload) == pytest.approx(14.5, rel=0.15)


def test_every_format_that_is_taken_has_a_price():
    for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"):
        assert PriceList(Wanted(), 9.5).price_ms(read_header(encoded(photo(), kind))) > 9.5


def test_cost_of_model_and_machine_is_learned():
    prices = PriceList(Wanted(), model_ms=9.5)
    for _ in range(300):
        prices.learn(header(), pixels_ms=20.0, model_ms=5.0)
    assert prices.price_ms(header()) == pytest.approx(25.0, rel=0.01)
    for _ in range(300):
        prices.learn(header(), pixels_ms=5.0, model_ms=20.0)
    assert prices.price_ms(header()) == pytest.approx(25.0, rel=0.01)


def test_ordinary_photos_are_not_dear_and_large_ones_of_slow_formats_are():
    def dear(header):
        return is_dear(PriceList(Wanted(), 0).price_ms(header), deadline_s=1)

    assert not dear(header(megapixels=1.1))
    assert not dear(ImageHeader("JPEG", 4000, 3000, False, 1))
    assert dear(ImageHeader("JPEG", 4000, 3000, True, 1))
    assert dear(header("PNG", 12))

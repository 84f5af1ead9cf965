"""Which photo goes with which request."""

import math
import subprocess

import pytest

from support.k6 import evaluate

KINDS = ["ordinary"] * 60 + ["large"] * 4 + ["hostile"] * 9
REQUESTS = 5000


def drawn(folder, mix, *, seed=1, kinds=KINDS, count=REQUESTS):
    return evaluate(folder, {"mix.js": "draw"}, f"return draw({count}, '{mix}', {kinds}, {seed});")


def share(images, chosen):
    return sum(image in chosen for image in images) / len(images)


@pytest.mark.parametrize(("mix", "kind", "expected"), [("12mp", "large", 0.02), ("hostile", "hostile", 0.1)])
def test_mix_has_its_share_of_unusual_files_and_the_rest_is_ordinary(tmp_path, mix, kind, expected):
    images = drawn(tmp_path, mix)
    found = share(images, {index for index, each in enumerate(KINDS) if each == kind})
    assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / REQUESTS)
    assert {KINDS[image] for image in images} == {"ordinary", kind}


def test_plain_mix_sends_all_ordinary_photos_alike(tmp_path):
    images = drawn(tmp_path, "distinct")
    assert {KINDS[image] for image in images} == {"ordinary"}
    counts = [images.count(image) for image in range(60)]
    assert min(counts) > REQUESTS / 60 / 2


def test_repeats_go_to_a_few_photos(tmp_path):
    # Four in five are for the first tenth of the photos, and of the others a tenth happens to be as well.
    assert abs(share(drawn(tmp_path, "repeats"), set(range(6))) - (0.8 + 0.2 * 0.1)) < 0.03


def test_same_seed_draws_the_same_photos(tmp_path):
    assert drawn(tmp_path, "12mp", count=100) == drawn(tmp_path, "12mp", count=100)
    assert drawn(tmp_path, "12mp", count=100) != drawn(tmp_path, "12mp", count=100, seed=2)


@pytest.mark.parametrize(
    ("mix", "kinds", "message"),
    [
        ("everything", KINDS, "MIX must be one of distinct, 12mp, hostile, repeats"),
        ("12mp", ["ordinary"], "needs large images, and the set has none"),
        ("hostile", ["ordinary"], "needs hostile images"),
        ("distinct", ["large"], "needs ordinary images"),
    ],
)
def test_mix_that_cannot_be_made_is_refused(tmp_path, mix, kinds, message):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        drawn(tmp_path, mix, kinds=kinds)
    assert message in refused.value.stderr

"""Files broken at random give pixels or an image error, and nothing else; `tests/measure/fuzz.py` does it for long."""

import random

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from support.corpus.mutation import mutated
from support.corpus.seeds import seeds
from support.corpus.table import answer

CODES = {"", "ImageBroken", "TooManyPixels", "UnsupportedMediaType"}


@pytest.mark.parametrize("name", seeds())
def test_whole_file_is_answered(name):
    assert answer(seeds()[name]) == (200, "")


@seed(20261130)
@settings(max_examples=400, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(seeds())), st.sampled_from(sorted(seeds())), st.integers(0, 2**32 - 1))
def test_broken_file_gives_pixels_or_an_image_error(name, other, mutation):
    assert answer(mutated(seeds()[name], seeds()[other], random.Random(mutation)))[1] in CODES

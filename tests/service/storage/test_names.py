"""Names of stored objects: by date, unique whatever a client asks for, never outside the prefix."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.storage.names import image_suffix, object_name
from support.images import encoded, photo

FORM = re.compile(r"\d{4}/\d\d/\d\d/\d{6}\.\d{6}-[A-Za-z0-9._-]*-[0-9a-f]{16}")


def test_name_tells_date_time_and_request():
    at = datetime(2026, 11, 30, 20, 26, 7, 250000, UTC).timestamp()
    assert object_name("abc-1", at).startswith("2026/11/30/202607.250000-abc-1-")


@given(st.text(max_size=80), st.integers(0, 4_000_000_000))
def test_name_has_its_form_whatever_the_request_id_is(request_id, at):
    assert FORM.fullmatch(object_name(request_id, at))


@pytest.mark.parametrize("request_id", ["..", "../../etc", "a/b", "\0", ".hidden", ""])
def test_hostile_request_id_stays_within_the_folder_of_the_day(request_id):
    name = object_name(request_id, 0)
    assert name.startswith("1970/01/01/000000.000000-")
    assert name.count("/") == 3


def test_same_request_id_at_the_same_time_gets_another_name():
    assert len({object_name("mine", 1e9) for _ in range(1000)}) == 1000


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_suffix_is_that_of_the_image(kind):
    assert image_suffix(encoded(photo(size=(8, 8)), kind)) == {"JPEG": ".jpg", "TIFF": ".tiff"}.get(
        kind, f".{kind.lower()}"
    )


def test_bytes_of_no_format_get_a_suffix_that_promises_nothing():
    assert image_suffix(b"hello") == ".bin"

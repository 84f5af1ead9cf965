"""Bodies of inference requests: whatever their bytes, images come out or a refusal does."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.http.inference.messages import InferenceRequest
from assay.http.inference.tensors import MAX_IMAGES, parse, pictures
from assay.serving.errors import InferenceInvalidError, TooManyImagesError

CROP = 4
SIZE = CROP * CROP * 3


def body(message, binary=b""):
    head = json.dumps(message).encode()
    return head + binary, str(len(head))


def tensor(name, shape, datatype, **rest):
    return {"inputs": [{"name": name, "shape": shape, "datatype": datatype, **rest}]}


def images(content, header_length=None):
    message, binary = parse(content, header_length)
    return pictures(message, binary, CROP)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=MAX_IMAGES))
def test_files_come_out_as_they_went_in(files):
    data = b"".join(struct.pack("<I", len(file)) + file for file in files)
    message = tensor("encoded", [len(files)], "BYTES", parameters={"binary_data_size": len(data)})
    assert images(*body(message, data)) == files


@given(st.integers(1, 3), st.randoms(use_true_random=False), st.booleans())
def test_pixels_come_out_as_they_went_in(count, random, nested):
    pixels = np.frombuffer(random.randbytes(count * SIZE), np.uint8).reshape(count, CROP, CROP, 3)
    shape = list(pixels.shape)
    data = pixels.tolist() if nested else pixels.ravel().tolist()
    binary = tensor("images", shape, "UINT8", parameters={"binary_data_size": pixels.size})
    for content in (body(tensor("images", shape, "UINT8", data=data)), body(binary, pixels.tobytes())):
        found = images(*content)
        assert np.array_equal(np.stack(found), pixels)
        assert found[0].dtype == np.uint8


SOUND = [
    body(tensor("images", [2, CROP, CROP, 3], "UINT8", parameters={"binary_data_size": 2 * SIZE}), bytes(2 * SIZE)),
    body(tensor("images", [1, CROP, CROP, 3], "UINT8", data=[7] * SIZE)),
    body(tensor("encoded", [2], "BYTES", parameters={"binary_data_size": 11}), b"\2\0\0\0hi\1\0\0\0!"),
    body({**tensor("encoded", [1], "BYTES", data=["aGk="]), "id": "a", "outputs": [{"name": "scores"}]}),
]
JUNK = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b"-1", b"1e9", b"NaN", b"null", b"[", b"]", b"{", b'"', b",", b"\xff", b"true", b"99999999999"]),
)


@settings(max_examples=300)
@given(st.sampled_from(SOUND), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 8), JUNK), max_size=4), st.data())
def test_mutated_bodies_give_images_or_a_refusal(sound, edits, data):
    content, header_length = sound
    for at, length, junk in edits:
        at %= len(content)
        content = content[:at] + junk + content[at + length :]
    header_length = data.draw(st.sampled_from([header_length, None, str(len(content)), "0", "-1", "7"]))
    try:
        found = images(content, header_length)
    except (InferenceInvalidError, TooManyImagesError):
        return
    assert 1 <= len(found) <= MAX_IMAGES
    assert all(isinstance(image, bytes) or image.shape == (CROP, CROP, 3) for image in found)


MANY = 290_000
COSTLY = {
    "parameters": (b'{"parameters":{%b},"inputs":[]}' % b",".join(b'"k%d":1' % n for n in range(MANY))),
    "objects": b'{"inputs":[%b]}' % b",".join([b"{}"] * MANY),
    "digits": b"1" * (8 << 20),
    "depth": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("name", COSTLY)
def test_message_that_would_be_costly_to_check_is_refused_unchecked(name):
    with pytest.raises(InferenceInvalidError):
        parse(COSTLY[name], None)


def test_values_are_counted_before_they_are_made():
    with pytest.raises(TooManyImagesError, match="values"):
        parse(b'{"inputs":[%b]}' % b",".join([b"1"] * 300_001), None)


def test_parameters_nobody_knows_are_ignored():
    message = {**tensor("encoded", [1], "BYTES", data=["aGk="]), "parameters": {"priority": 1, "mine": "x"}}
    request, _ = parse(*body(message))
    assert isinstance(request, InferenceRequest)
    assert request.parameters.top_k is None

"""Inference requests that are wrong get a 4xx in the protocol's shape, whatever it is that they got wrong."""

import httpx
import pytest

from support.tensors import NAME, assert_refused, body, files, infer, one

SIDE = 224 * 224 * 3
IMAGES = [1, 224, 224, 3]
FLAT = [0] * SIDE
WRONG = {
    "another side": (one("images", [1, 225, 224, 3], "UINT8", binary_data_size=225 * 224 * 3), bytes(225 * 224 * 3)),
    "channels first": (one("images", [1, 3, 224, 224], "UINT8", binary_data_size=SIDE), bytes(SIDE)),
    "three dimensions": (one("images", [224, 224, 3], "UINT8", binary_data_size=SIDE), bytes(SIDE)),
    "no image": (one("images", [0, 224, 224, 3], "UINT8", binary_data_size=0), b""),
    "negative size": (one("images", [-1, 224, 224, 3], "UINT8", binary_data_size=SIDE), bytes(SIDE)),
    "nine dimensions": (one("images", [1] * 9, "UINT8", binary_data_size=1), b"1"),
    "floats by type": (one("images", IMAGES, "FP32", binary_data_size=SIDE * 4), bytes(SIDE * 4)),
    "pixels called bytes": (one("images", IMAGES, "BYTES", binary_data_size=SIDE), bytes(SIDE)),
    "files called pixels": (one("encoded", [1], "UINT8", binary_data_size=5), files(b"x")),
    "unknown tensor": (one("pictures", IMAGES, "UINT8", binary_data_size=SIDE), bytes(SIDE)),
    "one byte short": (one("images", IMAGES, "UINT8", binary_data_size=SIDE), bytes(SIDE - 1)),
    "one byte too many": (one("images", IMAGES, "UINT8", binary_data_size=SIDE), bytes(SIDE + 1)),
    "a size that lies": (one("images", IMAGES, "UINT8", binary_data_size=SIDE - 1), bytes(SIDE - 1)),
    "a negative size": (one("images", IMAGES, "UINT8", binary_data_size=-1), b""),
    "a size as text": (one("images", IMAGES, "UINT8", binary_data_size="12"), bytes(12)),
    "data twice": (one("images", IMAGES, "UINT8", FLAT, binary_data_size=SIDE), bytes(SIDE)),
    "no data": (one("images", IMAGES, "UINT8"), b""),
    "no inputs": ({"inputs": []}, b""),
    "two inputs": ({"inputs": 2 * one("encoded", [1], "BYTES", [""])["inputs"]}, b""),
    "shared memory": (one("images", IMAGES, "UINT8", FLAT, shared_memory_region="r"), b""),
    "element longer than the data": (one("encoded", [1], "BYTES", binary_data_size=6), b"\xff\xff\xff\xffab"),
    "element without a length": (one("encoded", [1], "BYTES", binary_data_size=2), b"\x00\x00"),
    "fewer elements": (one("encoded", [3], "BYTES", binary_data_size=10), files(b"a", b"b")),
    "more elements": (one("encoded", [1], "BYTES", binary_data_size=10), files(b"a", b"b")),
    "number too large": (one("images", IMAGES, "UINT8", [*FLAT[1:], 256]), b""),
    "number below zero": (one("images", IMAGES, "UINT8", [*FLAT[1:], -1]), b""),
    "a fraction": (one("images", IMAGES, "UINT8", [*FLAT[1:], 0.5]), b""),
    "a text among numbers": (one("images", IMAGES, "UINT8", ["a" * 100_000, *FLAT[1:]]), b""),
    "not a number": (one("images", IMAGES, "UINT8", [*FLAT[1:], float("nan")]), b""),
    "infinity": (one("images", IMAGES, "UINT8", [*FLAT[1:], float("inf")]), b""),
    "ragged rows": (one("images", IMAGES, "UINT8", [[FLAT]]), b""),
    "one number missing": (one("images", IMAGES, "UINT8", FLAT[1:]), b""),
    "files that are no base64": (one("encoded", [1], "BYTES", ["%%%"]), b""),
    "files that are numbers": (one("encoded", [1], "BYTES", [7]), b""),
    "deep nesting": (b"[" * 100_000, b""),
    "no JSON": (b"hello", b""),
    "an empty body": (b"", b""),
    "a list": (b"[]", b""),
    "bytes that are no text": (b'{"id": "\xff"}', b""),
    "top_k of nothing": ({**one("encoded", [1], "BYTES", [""]), "parameters": {"top_k": 0}}, b""),
    "top_k as text": ({**one("encoded", [1], "BYTES", [""]), "parameters": {"top_k": "3"}}, b""),
    "unknown output": ({**one("encoded", [1], "BYTES", [""]), "outputs": [{"name": "logits"}]}, b""),
    "an output twice": ({**one("encoded", [1], "BYTES", [""]), "outputs": [{"name": "scores"}] * 2}, b""),
    "classification": (
        {
            **one("encoded", [1], "BYTES", [""]),
            "outputs": [{"name": "scores", "parameters": {"classification": 3}}],
        },
        b"",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_request_that_contradicts_itself_is_refused(server, name):
    assert_refused(infer(server, *WRONG[name]), 400, "InferenceInvalid")


@pytest.mark.parametrize("claimed", ["-1", "0", "1", "10", "999999", "9" * 40, "abc", "", "1.5", "0x10"])
def test_header_length_that_lies_is_refused(server, claimed):
    message = one("images", IMAGES, "UINT8", binary_data_size=SIDE)
    answer = infer(server, message, bytes(SIDE), **{"Inference-Header-Content-Length": claimed})
    assert_refused(answer, 400, "InferenceInvalid")


def test_binary_data_without_a_header_length_is_refused(server):
    content = body(one("images", IMAGES, "UINT8", binary_data_size=SIDE), bytes(SIDE)).content
    assert_refused(httpx.post(f"{server.url}/v2/models/assay/infer", content=content), 400, "InferenceInvalid")


MANY = {
    "images": (one("images", [33, 224, 224, 3], "UINT8", binary_data_size=33 * SIDE), bytes(33 * SIDE)),
    "a size beyond memory": (one("images", [1 << 31, 224, 224, 3], "UINT8", binary_data_size=1 << 40), b""),
    "files": (one("encoded", [33], "BYTES", binary_data_size=33 * 5), files(b"x") * 33),
    "numbers in JSON": (one("images", [3, 224, 224, 3], "UINT8", FLAT * 3), b""),
}


@pytest.mark.parametrize("name", MANY)
def test_too_many_at_once_are_refused(server, name):
    assert_refused(infer(server, *MANY[name]), 413, "TooManyImages")


def test_compressed_body_is_refused_and_says_what_is_taken(server):
    answer = infer(server, one("encoded", [1], "BYTES", [""]), **{"Content-Encoding": "gzip"})
    assert_refused(answer, 415, "ContentEncodingUnsupported")
    assert answer.headers["Accept-Encoding"] == "identity"


def test_unknown_model_version_route_and_method_are_refused_in_the_same_shape(server):
    message = one("encoded", [1], "BYTES", [""])
    assert_refused(infer(server, message, model="another"), 404, "ModelNotFound")
    assert_refused(infer(server, message, model=f"{NAME}/versions/1"), 404, "ModelNotFound")
    assert_refused(httpx.get(f"{server.url}/v2/nowhere"), 404, "NotFound")
    assert_refused(httpx.get(f"{server.url}/v2/models/assay/infer"), 405, "MethodNotAllowed")

"""A photo goes in, labels come out: the same ones, whichever way it was sent."""

import io
import json

import httpx
import numpy as np
import pytest
from PIL import Image

from assay.inference.engine import Engine
from assay.inference.postprocess import softmax, top_k
from assay.vision.preprocess import load
from support.images import PHOTOS, deep_png, encoded, exif, jpeg, photo


@pytest.fixture(scope="module")
def engine(base_pack):
    return Engine(base_pack)


def classify(server, data, **options):
    return httpx.post(f"{server.url}/v1/classify", content=data, **options)


@pytest.mark.parametrize("name", PHOTOS)
def test_answer_is_what_the_engine_says(server, base_pack, engine, name):
    data = jpeg(name)
    answer = classify(server, data).json()
    expected = top_k(softmax(engine.infer(load(data, base_pack.manifest.preprocess)[None]))[0], 3)
    assert [(found["index"], found["label"]) for found in answer["predictions"]] == [
        (index, base_pack.labels[index]) for index, _ in expected
    ]
    assert [found["score"] for found in answer["predictions"]] == pytest.approx([s for _, s in expected], abs=1e-5)


def test_answer_names_the_model_and_the_request(server, base_pack):
    answer = classify(server, jpeg(), headers={"X-Request-Id": "my-id.7"})
    assert answer.json()["model"] == {
        "name": "efficientnet-lite0-fp32",
        "precision": "FP32",
        "digest": base_pack.digest,
    }
    assert answer.json()["request_id"] == answer.headers["X-Request-Id"] == "my-id.7"
    assert answer.headers["Assay-Variant"] == "shared"


def test_request_id_that_could_forge_a_log_line_is_replaced(server):
    answer = classify(server, jpeg(), headers={"X-Request-Id": 'x" evil="1'})
    assert answer.headers["X-Request-Id"].isalnum()


def test_server_timing_names_every_stage(server):
    entries = classify(server, jpeg()).headers["Server-Timing"].split(", ")
    assert [entry.partition(";")[0] for entry in entries] == [
        "receive", "queue", "decode", "preprocess", "infer", "postprocess", "respond",
    ]  # fmt: skip
    assert all(float(entry.partition("dur=")[2]) >= 0 for entry in entries)


def test_multipart_gives_the_same_answer_as_a_raw_body(server):
    raw = classify(server, jpeg()).json()["predictions"]
    form = httpx.post(
        f"{server.url}/v1/classify", files={"file": ("cat.jpg", jpeg(), "image/jpeg")}, data={"note": "a cat"}
    )
    assert form.json()["predictions"] == raw


def test_chunked_body_gives_the_same_answer(server):
    data = jpeg()
    chunks = (data[start : start + 1000] for start in range(0, len(data), 1000))
    assert classify(server, chunks).json()["predictions"] == classify(server, data).json()["predictions"]


@pytest.mark.parametrize("content_type", ["image/png", "text/html", "application/x-www-form-urlencoded", ""])
def test_bytes_decide_whatever_the_content_type_claims(server, content_type):
    assert classify(server, jpeg(), headers={"Content-Type": content_type}).status_code == 200


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (5, 5), (1000, 1000)])
def test_top_k_says_how_many_labels(server, asked, given):
    answer = classify(server, jpeg(), params={"top_k": asked}).json()
    scores = [found["score"] for found in answer["predictions"]]
    assert len(scores) == given
    assert scores == sorted(scores, reverse=True)


VALID = {
    "PNG": encoded(photo(), "PNG"),
    "WebP": encoded(photo(), "WEBP", quality=95),
    "BMP": encoded(photo(), "BMP"),
    "TIFF": encoded(photo(), "TIFF"),
    "CMYK JPEG": encoded(photo().convert("CMYK"), "JPEG", quality=95),
    "progressive JPEG": jpeg(progressive=True),
    "rotated by EXIF": encoded(photo().rotate(90, expand=True), "JPEG", quality=95, exif=exif(6)),
    "animated WebP": encoded(photo(), "WEBP", save_all=True, append_images=[photo("coffee", (451, 300))], quality=95),
    "with alpha": encoded(photo().convert("RGBA"), "PNG"),
    "16-bit gray": deep_png(),
    "palette": encoded(photo().quantize(256), "PNG"),
    "animated GIF": encoded(photo(), "GIF", save_all=True, append_images=[photo("coffee", (451, 300))]),
}


@pytest.mark.parametrize("name", VALID)
def test_cat_is_a_cat_in_every_form_of_file(server, name):
    labels = [found["label"] for found in classify(server, VALID[name]).json()["predictions"]]
    assert any("cat" in label for label in labels), labels


@pytest.mark.parametrize("size", [(1, 1), (65500, 1), (1, 65500), (4000, 3000)])
def test_unusual_sizes_are_answered(server, size):
    assert classify(server, encoded(Image.new("RGB", size, "gray"), "JPEG")).status_code == 200


def test_model_route_tells_pack_and_limits(server, base_pack):
    told = httpx.get(f"{server.url}/v1/model").json()
    assert told["digest"] == base_pack.digest
    assert told["uri"] == "builtin:efficientnet-lite0-fp32"
    assert (told["classes"], told["workers"], told["cpu_limit_millicores"]) == (1000, 2, 2000)
    assert told["manifest"]["preprocess"]["crop"] == 224
    assert set(told) >= {"name", "precision", "memory_limit_bytes", "cpu_features"}


def test_openapi_document_describes_the_route(server):
    document = httpx.get(f"{server.url}/openapi.json").json()
    post = document["paths"]["/v1/classify"]["post"]
    assert "image/jpeg" in post["requestBody"]["content"]
    assert "429" in post["responses"]


@pytest.mark.shared_data
def test_labels_of_labelled_photos_are_those_of_the_two_step_form(server, engine, base_pack, shared_data):
    from support.images import two_step

    differing = []
    for file in sorted((shared_data / "photos").glob("*.jpg"))[::2]:
        found = classify(server, file.read_bytes()).json()["predictions"][0]["index"]
        with Image.open(io.BytesIO(file.read_bytes())) as image:
            pixels = two_step(image.convert("RGB"), 256, 224, Image.Resampling.BICUBIC)
        if found not in {int(np.argmax(engine.infer(form[None])[0])) for form in pixels}:
            differing.append(file.name)
    assert json.dumps(differing) == "[]"

"""The Open Inference Protocol, spoken by its own client and by hand."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException

from assay.inference.engine import Engine
from assay.inference.postprocess import softmax, top_k
from assay.vision.preprocess import load
from support.images import PHOTOS, bomb, jpeg
from support.server import running, wait_until
from support.tensors import NAME, assert_refused, files, infer, one


@pytest.fixture(scope="module")
def client(server):
    client = InferenceServerClient(server.url.removeprefix("http://"), network_timeout=60.0)
    yield client
    client.close()


@pytest.fixture(scope="module")
def pixels(base_pack):
    return np.stack([load(jpeg(name), base_pack.manifest.preprocess) for name in PHOTOS])


@pytest.fixture(scope="module")
def expected(base_pack, pixels):
    """(class index, score) of each photo, best first, from the engine itself."""
    return [top_k(scores, 3) for scores in softmax(Engine(base_pack).infer(pixels))]


def tensor(name, values, datatype, binary=True):
    given = InferInput(name, list(values.shape), datatype)
    given.set_data_from_numpy(values, binary_data=binary)
    return given


def encoded(*files):
    return tensor("encoded", np.array(files, dtype=np.object_), "BYTES")


def assert_expected(result, expected, labels):
    indices, scores, texts = (result.as_numpy(name) for name in ("indices", "scores", "labels"))
    assert (scores.dtype, indices.dtype) == (np.float32, np.int32)
    assert indices.tolist() == [[index for index, _ in best] for best in expected]
    np.testing.assert_allclose(scores, [[score for _, score in best] for best in expected], atol=1e-5)
    texts = [[text.decode() if isinstance(text, bytes) else text for text in row] for row in texts.tolist()]
    assert texts == [[labels[index] for index, _ in best] for best in expected]


def test_client_finds_server_and_model_alive_and_ready(client, base_pack):
    assert client.is_server_live()
    assert client.is_server_ready()
    for name in (NAME, "assay"):
        assert client.is_model_ready(name)
        assert client.is_model_ready(name, base_pack.digest)
    assert not client.is_model_ready("another")
    assert not client.is_model_ready(NAME, "1")


def test_client_reads_the_metadata(client, base_pack):
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    metadata = client.get_model_metadata(NAME)
    assert (metadata["name"], metadata["versions"]) == (NAME, [base_pack.digest])
    assert metadata["inputs"] == [
        {"name": "images", "datatype": "UINT8", "shape": [-1, 224, 224, 3]},
        {"name": "encoded", "datatype": "BYTES", "shape": [-1]},
    ]
    assert {found["name"]: found["datatype"] for found in metadata["outputs"]} == {
        "scores": "FP32",
        "labels": "BYTES",
        "indices": "INT32",
    }


@pytest.mark.parametrize("binary", [True, False])
def test_client_infers_from_pixels(client, base_pack, pixels, expected, binary):
    count = len(pixels) if binary else 1
    result = client.infer(NAME, [tensor("images", pixels[:count], "UINT8", binary)], request_id="my-id")
    assert_expected(result, expected[:count], base_pack.labels)
    response = result.get_response()
    assert (response["model_name"], response["model_version"], response["id"]) == (NAME, base_pack.digest, "my-id")


def test_client_infers_from_encoded_images(client, base_pack, expected):
    result = client.infer("assay", [encoded(*(jpeg(name) for name in PHOTOS))], model_version=base_pack.digest)
    assert_expected(result, expected, base_pack.labels)


def test_client_chooses_outputs_and_how_they_come(client, base_pack, expected):
    wanted = [InferRequestedOutput("labels", binary_data=False), InferRequestedOutput("scores", binary_data=True)]
    result = client.infer(NAME, [encoded(jpeg())], outputs=wanted)
    assert result.as_numpy("labels").tolist() == [[base_pack.labels[index] for index, _ in expected[0]]]
    assert result.as_numpy("scores").shape == (1, 3)
    assert result.as_numpy("indices") is None


def test_parameter_asks_for_every_class(client):
    scores = client.infer(NAME, [encoded(jpeg())], parameters={"top_k": 1000}).as_numpy("scores")
    assert scores.shape == (1, 1000)
    assert scores.sum() == pytest.approx(1, abs=1e-4)


def test_client_shows_the_reason_of_a_refusal(client):
    with pytest.raises(InferenceServerException, match=r"\[415\] Image 1: Expected an image") as caught:
        client.infer(NAME, [encoded(jpeg(), b"no image")])
    assert caught.value.status() == "415"


def test_json_takes_files_as_base64_and_answers_in_json(server, base_pack, expected):
    message = one("encoded", [1], "BYTES", [base64.b64encode(jpeg()).decode()])
    answer = httpx.post(f"{server.url}/v2/models/assay/infer", json=message)
    assert "Inference-Header-Content-Length" not in answer.headers
    outputs = {found["name"]: found for found in answer.json()["outputs"]}
    assert outputs["labels"]["data"] == [base_pack.labels[index] for index, _ in expected[0]]
    assert outputs["indices"]["data"] == [index for index, _ in expected[0]]
    assert outputs["scores"]["shape"] == [1, 3]


def test_nested_and_flat_numbers_give_the_same_answer(server, pixels):
    answers = [
        httpx.post(
            f"{server.url}/v2/models/assay/infer", json=one("images", [1, 224, 224, 3], "UINT8", data), timeout=60
        )
        for data in (pixels[:1].tolist(), pixels[0].ravel().tolist())
    ]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


def test_images_share_the_limit_on_pixels(server):
    small = bomb(1900)  # 3.6 MP each, of 16 in all
    data = files(*[small] * 5)
    answer = infer(server, one("encoded", [5], "BYTES", binary_data_size=len(data)), data)
    assert_refused(answer, 413, "TooManyPixels")
    assert infer(server, one("encoded", [1], "BYTES", binary_data_size=len(files(small))), files(small)).is_success


def test_broken_file_in_the_middle_fails_the_request_and_leaves_no_price_behind(server):
    data = files(jpeg(), jpeg()[:5000], jpeg())
    answer = infer(server, one("encoded", [3], "BYTES", binary_data_size=len(data)), data)
    assert_refused(answer, 422, "ImageBroken")
    assert answer.json()["detail"].startswith("Image 1: ")
    wait_until("an empty queue", lambda: server.metrics()["assay_queue_cost_seconds"] == 0)


def test_images_of_a_request_pass_through_the_same_stages_and_counters(server):
    before = server.metrics()
    answer = infer(
        server, one("encoded", [2], "BYTES", binary_data_size=len(files(jpeg(), jpeg()))), files(jpeg(), jpeg())
    )
    after = server.metrics()
    names = [entry.partition(";")[0] for entry in answer.headers["Server-Timing"].split(", ")]
    assert names == ["receive", "queue", "decode", "preprocess", "infer", "postprocess", "respond"]

    def grown(name):
        return after[name] - before.get(name, 0)

    assert grown("assay_requests_total/200") == 1
    assert grown("assay_image_pixels_count") == 2
    stages = sum(grown(f"assay_stage_duration_seconds_sum/{name}") for name in names)
    assert stages == pytest.approx(grown("assay_request_duration_seconds_sum/200"), rel=0.05)


def test_images_beyond_the_deadline_are_dropped(builtin_dir):
    photo = jpeg("coffee", (4000, 3000), progressive=True)  # takes longer than the deadline, but may begin before it
    with running(builtin_dir, workers=1, deadline_ms=50) as slow:
        slow.wait_ready()
        data = files(photo)
        alone = one("encoded", [1], "BYTES", binary_data_size=len(data))
        wait_until("one in time", lambda: infer(slow, alone, files(photo)).status_code == 200)
        before = slow.metrics().get("assay_rejected_total/DeadlineExceeded", 0)
        data = files(photo, jpeg(), jpeg())
        answer = infer(slow, one("encoded", [3], "BYTES", binary_data_size=len(data)), data)
        assert_refused(answer, 504, "DeadlineExceeded")
        wait_until("an empty queue", lambda: slow.metrics()["assay_queue_cost_seconds"] == 0)
        assert slow.metrics()["assay_rejected_total/DeadlineExceeded"] == before + 1


def test_full_queue_refuses_all_images_of_a_request_or_none(builtin_dir):
    with running(builtin_dir, workers=1, queue_budget_ms=1, deadline_ms=60_000) as server:
        server.wait_ready()
        data = files(*[jpeg()] * 32)
        message = one("encoded", [32], "BYTES", binary_data_size=len(data))
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(infer, server, message, data)
            wait_until("the images to wait", lambda: server.metrics()["assay_queue_cost_seconds"] > 0)
            refused = infer(server, message, data)
            assert first.result().status_code == 200
        assert_refused(refused, 429, "Overloaded")
        assert int(refused.headers["Retry-After"]) >= 1
        assert server.metrics()["assay_queue_cost_seconds"] == 0


def test_encoded_images_of_a_request_are_stored_with_a_result_each(builtin_dir, tmp_path):
    photos = [jpeg(), jpeg("coffee")]
    with running(builtin_dir, store_uri=tmp_path.as_uri()) as server:
        server.wait_ready()
        data = files(*photos)
        message = one("encoded", [2], "BYTES", binary_data_size=len(data))
        assert infer(server, message, data, **{"X-Request-Id": "both"}).status_code == 200
        server.terminate()
        assert server.wait() == 0
    results = {path: json.loads(path.read_bytes()) for path in tmp_path.rglob("*-both-*.json")}
    assert {path.with_suffix(".jpg").read_bytes() for path in results} == set(photos)
    for path, result in results.items():
        best = "tiger cat" if path.with_suffix(".jpg").read_bytes() == photos[0] else "espresso"
        assert result["predictions"][0]["label"] == best


def test_example_of_the_manual_prints_the_labels(root, server, tmp_path, monkeypatch, capsys):
    (tmp_path / "photo.jpg").write_bytes(jpeg("coffee"))
    monkeypatch.chdir(tmp_path)
    example = (root / "service" / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    code = example.replace("127.0.0.1:8000", server.url.removeprefix("http://"))
    exec(f"{code}client.close()\n", {})
    assert "espresso" in capsys.readouterr().out

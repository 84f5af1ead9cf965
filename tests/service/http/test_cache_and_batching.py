"""A server that remembers answers, and one that batches: the same answers, the same accounts, the same end."""

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from support.images import PHOTOS, jpeg
from support.server import running, wait_until


def classify(server, data, **options):
    return httpx.post(f"{server.url}/v1/classify", content=data, timeout=60, **options)


def stages_of(answer):
    return [entry.partition(";")[0] for entry in answer.headers["Server-Timing"].split(", ")]


def spent(server):
    """What is counted, and the CPU time of the process."""
    metrics = server.metrics()
    stages = sum(value for name, value in metrics.items() if name.startswith("assay_stage_duration_seconds_sum/"))
    total = metrics.get("assay_request_duration_seconds_sum/200", 0)
    return stages, total, metrics["assay_request_cost_seconds_sum"], metrics["process_cpu_seconds_total"]


def added(server, bodies, clients):
    """What these requests have added to it; every one is answered."""
    before = spent(server)
    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(lambda body: client.post(f"{server.url}/v1/classify", content=body), bodies))
    assert {answer.status_code for answer in answers} == {200}
    return [after - then for after, then in zip(spent(server), before, strict=True)]


@pytest.fixture(scope="module")
def caching(builtin_dir):
    with running(builtin_dir, cache_bytes=1_000_000, cpu_limit_millicores=2000) as started:
        yield started.wait_ready()
        assert [event for event in started.events if event["level"] in ("warning", "error")] == []


@pytest.fixture(scope="module")
def batching(builtin_dir):
    with running(
        builtin_dir, batching=True, cpu_limit_millicores=1000, workers=1, queue_budget_ms=5000, deadline_ms=60_000
    ) as started:
        yield started.wait_ready()
        assert [event for event in started.events if event["level"] in ("warning", "error")] == []


def test_answer_comes_again_without_being_computed(caching):
    first, again = (classify(caching, jpeg("rocket"), headers={"X-Request-Id": name}) for name in ("one", "two"))
    assert again.json() == first.json() | {"request_id": "two"}
    assert stages_of(first) == [
        "receive", "cache", "queue", "decode", "preprocess", "infer", "postprocess", "respond",
    ]  # fmt: skip
    assert stages_of(again) == ["receive", "cache", "respond"]


def test_other_number_of_labels_is_another_answer(caching):
    answers = [classify(caching, jpeg("coffee"), params={"top_k": count}).json() for count in (2, 5, 2)]
    assert [len(answer["predictions"]) for answer in answers] == [2, 5, 2]


def test_answer_is_the_same_by_way_of_the_inference_protocol(caching):
    answer = classify(caching, jpeg("flower")).json()
    hits = caching.metrics()["assay_cache_hits_total"]
    head = {"inputs": [{"name": "encoded", "datatype": "BYTES", "shape": [1], "parameters": {}}]}
    data = jpeg("flower")
    head["inputs"][0]["parameters"]["binary_data_size"] = len(data) + 4
    text = json.dumps(head).encode()
    found = httpx.post(
        f"{caching.url}/v2/models/assay/infer",
        content=text + len(data).to_bytes(4, "little") + data,
        headers={"Inference-Header-Content-Length": str(len(text))},
    ).json()
    scores = next(output["data"] for output in found["outputs"] if output["name"] == "scores")
    assert scores == pytest.approx([one["score"] for one in answer["predictions"]], abs=1e-6)
    assert caching.metrics()["assay_cache_hits_total"] == hits + 1


def test_broken_image_is_refused_each_time(caching):
    before = caching.metrics()["assay_cache_bytes"]
    codes = [classify(caching, jpeg("china")[:-500]).json()["code"] for _ in range(2)]
    assert codes == ["ImageBroken"] * 2
    assert caching.metrics()["assay_cache_bytes"] == before


def test_stages_and_costs_add_up_with_a_cache(caching):
    bodies = [jpeg(name, quality=quality) for name in PHOTOS for quality in (70, 80) for _ in range(6)]
    stages, total, cost, cpu = added(caching, bodies, clients=2)
    assert stages == pytest.approx(total, rel=0.05)
    assert cost == pytest.approx(cpu, rel=0.25)
    metrics = caching.metrics()
    assert metrics["assay_cache_hits_total"] >= len(bodies) * 5 / 6
    # One answer is kept for each miss but the two broken images'.
    assert metrics["assay_cache_bytes"] >= (metrics["assay_cache_misses_total"] - 2) * 500


def test_batched_answers_are_those_of_a_server_without(batching, server):
    bodies = [jpeg(name) for name in PHOTOS] * 3
    alone = {body: classify(server, body).json()["predictions"] for body in bodies}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: classify(batching, body), bodies))
    for body, answer in zip(bodies, answers, strict=True):
        found, expected = answer.json()["predictions"], alone[body]
        assert [one["index"] for one in found] == [one["index"] for one in expected]
        assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-5)
    assert stages_of(answers[0]) == [
        "receive", "queue", "decode", "preprocess", "batch_wait", "infer", "postprocess", "respond",
    ]  # fmt: skip
    metrics = batching.metrics()
    assert metrics["assay_batch_size_sum"] > metrics["assay_batch_size_count"]


def test_stages_and_costs_add_up_with_batches(batching):
    stages, total, cost, cpu = added(batching, [jpeg(name) for name in PHOTOS] * 10, clients=4)
    assert stages == pytest.approx(total, rel=0.05)
    assert cost == pytest.approx(cpu, rel=0.25)
    metrics = batching.metrics()
    assert metrics["assay_queue_cost_seconds"] == 0


def test_what_waits_for_a_batch_is_answered_before_the_end(builtin_dir):
    settings = {"batching": True, "cpu_limit_millicores": 2000, "queue_budget_ms": 60_000, "deadline_ms": 60_000}
    body = jpeg("coffee")  # once: encoded for each request, it is no faster than the server, and nothing waits
    with running(builtin_dir, **settings) as server, httpx.Client(timeout=60) as client:
        server.wait_ready()
        with ThreadPoolExecutor(30) as pool:
            sent = [pool.submit(client.post, f"{server.url}/v1/classify", content=body) for _ in range(60)]
            wait_until("requests to wait", lambda: server.metrics()["assay_queue_cost_seconds"] > 0.05)
            server.terminate()
            answers = [one.result() for one in sent if one.exception() is None]
        assert server.wait() == 0
        served = [answer for answer in answers if answer.status_code == 200]
        assert len(served) == server.event("Every request that came in")["requests"]
        assert {answer.status_code for answer in answers} <= {200, 503}
        assert server.event("One thread computes all batches") is not None


def test_pack_quantised_dynamically_is_served_without_batches(builtin_dir, base_pack, tmp_path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from assay.packs.archive import write_pack

    (tmp_path / "plain.onnx").write_bytes(base_pack.model)
    quantize_dynamic(tmp_path / "plain.onnx", tmp_path / "dynamic.onnx", weight_type=QuantType.QUInt8)
    pack = tmp_path / "dynamic.tar"
    write_pack(pack, base_pack.manifest, (tmp_path / "dynamic.onnx").read_bytes(), base_pack.labels)
    with running(builtin_dir, "--model", str(pack), batching=True) as server:
        server.wait_ready()
        assert "batch_wait" not in stages_of(classify(server, jpeg()))
        assert server.event("Images change each other's scores")["level"] == "warning"

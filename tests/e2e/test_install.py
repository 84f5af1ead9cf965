"""After `helm install`: photos are classified, and the release is what the chart says."""

import io

import httpx
import pytest
from PIL import Image

from support.photos import chelsea_jpeg


def test_photo_is_classified_through_the_service(cluster, base_serving):
    with cluster.forwarded("service/assay", 80) as url:
        answer = httpx.post(f"{url}/v1/classify", content=chelsea_jpeg(), headers={"Content-Type": "image/jpeg"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert "cat" in body["predictions"][0]["label"]
    assert len(body["predictions"]) == 3
    assert body["model"]["precision"] == "FP32"
    assert "infer" in answer.headers["Server-Timing"]


def test_threads_follow_the_cpu_limit_of_the_pod(variants, base_serving):
    for model in variants.served():
        assert model["cpu_limit_millicores"] == 2000
        assert model["workers"] == 2
        assert model["memory_limit_bytes"] == 2 * 1024**3


def test_too_many_pixels_are_refused_before_they_are_decoded(cluster, base_serving):
    bomb = io.BytesIO()
    Image.new("1", (20000, 20000)).save(bomb, "PNG")
    with cluster.forwarded("service/assay", 80) as url:
        answer = httpx.post(f"{url}/v1/classify", content=bomb.getvalue(), headers={"Content-Type": "image/png"})
    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_helm_test_passes(cluster, base_serving):
    assert "Succeeded" in cluster.helm("test", "assay")


@pytest.mark.parametrize("sample", ["base", "int8", "own-model", "refused"])
def test_samples_are_valid_to_the_api_server(cluster, root, sample):
    cluster.kubectl("apply", "--dry-run=server", "-f", str(root / "k8s" / "samples" / f"{sample}.yaml"))


def test_workloads_meet_the_restricted_pod_security_standard(cluster):
    warned = cluster.kubectl(
        "label", "--dry-run=server", "--overwrite", "namespace", cluster.namespace,
        "pod-security.kubernetes.io/enforce=restricted",
    )  # fmt: skip
    assert "violate" not in warned

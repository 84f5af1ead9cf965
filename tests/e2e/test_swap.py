"""A model that passes its check takes the traffic; nothing is lost on the way there or back."""

import json

from support.kube import wait_for
from support.load_pod import load

# Beside a check and two service pods on two cores, so few that nothing queues.
LOAD_RATE = 5
# A check, a rollout of two pods with drains, and the soak; the load must outlast them.
LOAD_SECONDS = 240


def annotations(cluster):
    template = cluster.get("deployment", "assay")["spec"]["template"]
    return {
        key: value for key, value in template["metadata"].get("annotations", {}).items() if key.startswith("assay.dev/")
    }


def forget_checks(cluster):
    """Without its Job a verdict has no evidence: the next swap must check again."""
    cluster.kubectl("delete", "jobs", "--selector=app.kubernetes.io/component=check", "--wait")


def test_int8_passes_its_check_and_rolls_out_without_a_failed_request(cluster, variants, base_serving, root):
    forget_checks(cluster)
    with load(cluster, root, rate=LOAD_RATE, seconds=LOAD_SECONDS) as run:
        variants.apply_sample("int8")
        settled = variants.settle()
        assert not run.finished(), "the load ended before the rollout did"
        summary = run.summary(LOAD_SECONDS + 150)

    status = settled["status"]
    assert variants.condition("Ready", settled)["status"] == "True", variants.explain()
    assert status["lastCheck"]["verdict"] == "Pass"
    assert status["lastCheck"]["images"] >= 500
    assert status["lastCheck"]["containmentLowerPermille"] >= 980
    assert status["serving"]["precision"] == "INT8"
    served = variants.served()
    assert len(served) == cluster.get("deployment", "assay")["spec"]["replicas"]
    for model in served:
        assert model["precision"] == "INT8"
        assert model["digest"] == status["serving"]["digest"] == annotations(cluster)["assay.dev/model-digest"]

    print(json.dumps({key: value for key, value in summary.items() if key != "log"}))
    assert summary["requests"] > 0.8 * LOAD_RATE * LOAD_SECONDS
    assert summary["failed"] == 0, summary["log"]
    assert summary["checksFailed"] == 0, summary["log"]


def test_fault_36_helm_upgrade_keeps_the_swapped_model(cluster, variants, int8_serving, root):
    before = annotations(cluster)
    assert before["assay.dev/model-precision"] == "INT8"
    # Another pod annotation makes the upgrade a real one: every pod is replaced.
    revision = cluster.get("deployment", "assay")["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    cluster.helm(
        "upgrade", "assay", str(root / "charts" / "assay"), "--reuse-values",
        "--set", f"podAnnotations.example\\.com/revision=after-{revision}", "--wait",
    )  # fmt: skip
    assert annotations(cluster) == before
    assert {model["precision"] for model in variants.served()} == {"INT8"}
    settled = variants.settle()
    assert variants.condition("Ready", settled)["status"] == "True", variants.explain()


def test_way_back_to_base_needs_no_new_check(cluster, variants, int8_serving):
    before = {job["metadata"]["uid"] for job in variants.check_jobs()}
    variants.apply_sample("base")
    settled = variants.settle()
    assert variants.condition("Ready", settled)["status"] == "True", variants.explain()
    assert {job["metadata"]["uid"] for job in variants.check_jobs()} <= before
    assert {model["precision"] for model in variants.served()} == {"FP32"}
    assert annotations(cluster) == {}


def test_fault_1_operator_killed_in_mid_check_makes_no_second_job_and_reaches_the_verdict(
    cluster, variants, base_serving, operator_pod
):
    forget_checks(cluster)
    variants.apply_sample("int8")

    def check_runs():
        return [job for job in variants.check_jobs() if job["status"].get("active")]

    (job,) = wait_for("a running check", check_runs, 120, variants.explain)
    cluster.kubectl("delete", "pod", operator_pod, "--grace-period=0", "--force", "--wait=false")
    settled = variants.settle()
    assert variants.condition("Ready", settled)["status"] == "True", variants.explain()
    assert [other["metadata"]["uid"] for other in variants.check_jobs()] == [job["metadata"]["uid"]]
    assert settled["status"]["lastCheck"]["jobUID"] == job["metadata"]["uid"]
    assert settled["status"]["lastCheck"]["verdict"] == "Pass"

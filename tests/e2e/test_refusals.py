"""A model that does not prove itself is refused with numbers, and the workload is not touched."""

import pytest


@pytest.fixture
def deployment_untouched(cluster, base_serving):
    """Fails the test where the Deployment changed in any way under it."""
    before = cluster.get("deployment", "assay")
    yield
    after = cluster.get("deployment", "assay")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert after["spec"] == before["spec"]


def refusal(variants, settled):
    """The condition that tells why, of a variant that is refused for good."""
    ready = variants.condition("Ready", settled)
    assert ready["status"] == "False", variants.explain()
    assert variants.condition("Stalled", settled)["status"] == "True"
    assert variants.condition("Available", settled)["status"] == "True"
    return ready


def served_by(pack_server, packs, name, **changes):
    pack = packs[name]
    return {"uri": f"{pack_server}/{pack.path.name}", "digest": pack.digest, "precision": pack.precision} | changes


@pytest.mark.parametrize("spoilt", ["scrambled", "permuted"])
def test_fault_20_44_wrong_model_is_refused_with_numbers(variants, pack_server, packs, deployment_untouched, spoilt):
    variants.ask_for(served_by(pack_server, packs, spoilt))
    settled = variants.settle()
    ready = refusal(variants, settled)
    assert ready["reason"] == "AccuracyBelowThreshold"
    check = settled["status"]["lastCheck"]
    assert check["verdict"] == "Fail"
    assert check["top3Contained"] < check["images"] // 2
    wide = variants.wide()
    assert f"{check['top3Contained']}" in wide
    assert "AccuracyBelowThreshold" in wide
    assert {model["precision"] for model in variants.served()} == {"FP32"}


def test_pack_with_another_digest_is_refused(variants, pack_server, packs, deployment_untouched):
    variants.ask_for(served_by(pack_server, packs, "good", digest=packs["dynamic"].digest), maxAttempts=1)
    settled = variants.settle()
    ready = refusal(variants, settled)
    assert ready["reason"] == "DigestMismatch"
    assert packs["dynamic"].digest[:19] in ready["message"]


def test_fault_20_dynamically_quantised_model_is_refused_for_its_cost(
    variants, pack_server, packs, deployment_untouched
):
    # The bars are lowered so that nothing but the cost decides.
    lowered = {"minTop3ContainmentPermille": 500, "minTop1AgreementPermille": 500}
    variants.ask_for(served_by(pack_server, packs, "dynamic"), **lowered)
    settled = variants.settle()
    ready = refusal(variants, settled)
    assert ready["reason"] == "CostAboveThreshold"
    assert settled["status"]["lastCheck"]["costRatioLowerPermille"] > 1000


def test_fault_43_candidate_cannot_be_its_own_yardstick(variants, pack_server, packs, deployment_untouched):
    model = served_by(pack_server, packs, "scrambled")
    jobs = {job["metadata"]["uid"] for job in variants.check_jobs()}
    variants.ask_for(model, compareWith={"uri": model["uri"], "digest": model["digest"]})
    settled = variants.settle()
    assert refusal(variants, settled)["reason"] == "YardstickNotApproved"
    assert {job["metadata"]["uid"] for job in variants.check_jobs()} <= jobs


def test_refused_sample_keeps_the_base_serving(variants, deployment_untouched):
    variants.apply_sample("refused")
    settled = variants.settle()
    assert refusal(variants, settled)["reason"] in ("AccuracyBelowThreshold", "AccuracyNotProven")
    assert {model["precision"] for model in variants.served()} == {"FP32"}

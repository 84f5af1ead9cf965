"""Models that passed and do not hold: rolled back, while what served before serves on."""

import pytest

from support.kube import wait_for

REPLICAS = {"changed": 1, "hanging": 2, "crashing": 1, "tomorrow": 1, "adopted": 1}
ADOPTED = "slow/8"  # long enough to see it unverified


@pytest.fixture(scope="module")
def trials(crowd):
    """Targets that serve the base, and a variant of each that asks for something which passes its check."""
    for name, replicas in REPLICAS.items():
        crowd.target(name, replicas=replicas)
    for name in REPLICAS:
        crowd.cluster.kubectl("rollout", "status", f"deployment/{name}", "--timeout=180s")
    asked = {
        "changed": (crowd.once("changed"), {}, ""),
        "hanging": (crowd.once("hanging"), {"progressDeadlineSeconds": 30}, ""),
        "crashing": (crowd.model("good"), {"soakSeconds": 600}, ""),
        "tomorrow": (model := crowd.model("tomorrow"), {}, model["digest"]),
        "adopted": (crowd.model("good", ADOPTED), {}, ""),
    }
    before = {name: {pod["metadata"]["uid"] for pod in crowd.pods(name)} for name in REPLICAS}
    crowd.ask_all(
        {
            name: crowd.body(model, target=name, rollout=rollout, skip_check=skipped)
            for name, (model, rollout, skipped) in asked.items()
        }
    )
    return crowd, before


def rolled_back(bench, name, reason):
    """The message of a variant whose rollout was undone for this reason, while the base served on."""
    variant = bench.variant(name)
    settled = variant.settle()
    assert variant.condition("Stalled", settled)["status"] == "True", variant.explain()
    assert settled["status"]["rejected"][0]["reason"] == reason, variant.explain()
    assert variant.condition("RolledOut", settled)["reason"] == "RolledBack", variant.explain()
    assert variant.condition("Available", settled)["status"] == "True", variant.explain()
    assert bench.annotations(name) == {}
    assert bench.served(name) == {bench.packs["base"].digest}
    return settled["status"]["rejected"][0]["message"]


def test_fault_23_bytes_that_change_after_the_check_are_never_served(trials):
    bench, before = trials
    # The pod's own last words: they are gone with it, and with them the reason, but for what is told of them.
    message = rolled_back(bench, "changed", "DigestMismatch")
    assert "ended with exit code 78" in message
    assert bench.packs["good"].digest[:19] in message
    assert {pod["metadata"]["uid"] for pod in bench.pods("changed")} == before["changed"], "the old pod was replaced"


def test_fault_46_pack_for_another_cpu_is_rolled_back_even_if_its_check_is_skipped(trials):
    bench, before = trials
    message = rolled_back(bench, "tomorrow", "CpuFeatureMissing")
    assert "ended with exit code 78" in message
    assert "avx4096" in message
    assert bench.jobs("tomorrow") == []
    assert len(bench.events("CheckBypassed", "tomorrow")) == 1
    assert len(bench.events("CpuFeatureMissing", "tomorrow")) == 1
    assert {pod["metadata"]["uid"] for pod in bench.pods("tomorrow")} == before["tomorrow"], "the old pod was replaced"


def test_fault_25_pods_that_crash_in_the_soak_are_rolled_back(trials):
    bench, _ = trials
    variant = bench.variant("crashing")

    def soaking():
        return variant.condition("RolledOut").get("reason") == "Soaking"

    wait_for("the soak", soaking, 180, variant.explain)
    stop = "import os, signal; os.kill(1, signal.SIGTERM)"
    victim = bench.candidates("crashing")[0]["metadata"]["name"]
    bench.cluster.kubectl("exec", victim, "--container=classifier", "--", "python", "-c", stop)
    rolled_back(bench, "crashing", "SoakFailed")


def test_fault_24_pods_that_never_become_ready_are_rolled_back_at_the_deadline(trials):
    bench, before = trials
    message = rolled_back(bench, "hanging", "ProgressDeadlineExceeded")
    assert "0 of 2 replicas" in message
    assert {pod["metadata"]["uid"] for pod in bench.pods("hanging")} == before["hanging"], "an old pod was replaced"


def test_fault_45_variant_made_anew_under_another_name_adopts_what_serves(trials):
    bench, _ = trials
    variant = bench.variant("adopted")
    settled = variant.settle()
    assert variant.condition("Ready", settled)["status"] == "True", variant.explain()
    generation = bench.deployment("adopted")["metadata"]["generation"]
    pods = {pod["metadata"]["uid"] for pod in bench.candidates("adopted")}
    bench.cluster.kubectl("delete", "modelvariant", "adopted", "--wait")

    renamed = bench.ask(bench.model("good", ADOPTED), name="renamed", target="adopted")
    available = wait_for("a word on what serves", lambda: renamed.condition("Available"), 60, renamed.explain)
    assert (available["status"], available["reason"]) == ("False", "Unverified")
    settled = renamed.settle()
    assert renamed.condition("Ready", settled)["status"] == "True", renamed.explain()
    assert renamed.condition("Available", settled)["status"] == "True"
    assert len(bench.jobs("renamed")) == 1
    assert bench.deployment("adopted")["metadata"]["generation"] == generation
    assert {pod["metadata"]["uid"] for pod in bench.candidates("adopted")} == pods

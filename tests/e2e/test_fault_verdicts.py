"""Models that compute something else than the base, and attempts to have them compared with themselves."""

import pytest

REFUSED = {"wrong": "AccuracyBelowThreshold", "rotated": "AccuracyBelowThreshold", "renamed": "LabelsDiffer"}
YARDSTICKS = {"itself": "wrong", "repack": "repacked"}


@pytest.fixture(scope="module")
def candidates(crowd):
    """All of them, on targets of their own; and those targets as they were before, by name."""
    bodies = {name: crowd.body(crowd.model(name), target=name, check={"maxAttempts": 3}) for name in REFUSED}
    for name, pack in YARDSTICKS.items():
        wanted = {key: value for key, value in crowd.model(pack).items() if key != "precision"}
        bodies[name] = crowd.body(crowd.model("wrong"), target=name, check={"compareWith": wanted})
    for name in bodies:
        crowd.target(name)
    before = {name: crowd.deployment(name) for name in bodies}
    crowd.ask_all(bodies)
    return crowd, before


def refused(candidates, name, reason):
    """The status of a variant that stands refused while its target was not touched."""
    bench, before = candidates
    variant = bench.variant(name)
    settled = variant.settle()
    assert variant.condition("Stalled", settled)["status"] == "True", variant.explain()
    assert variant.condition("Ready", settled)["reason"] == reason, variant.explain()
    after = bench.deployment(name)
    assert after["metadata"]["generation"] == before[name]["metadata"]["generation"]
    assert after["spec"] == before[name]["spec"]
    return settled["status"]


@pytest.mark.parametrize("name", REFUSED)
def test_fault_20_44_model_that_answers_otherwise_is_refused_with_one_event(candidates, name):
    status = refused(candidates, name, REFUSED[name])
    bench, _ = candidates
    assert status["lastCheck"]["verdict"] == "Fail"
    assert len(bench.jobs(name)) == 1, "a Fail is final, however many attempts there are"
    assert len(bench.events(REFUSED[name], name)) == 1


@pytest.mark.parametrize("name", YARDSTICKS)
def test_fault_43_candidate_is_no_yardstick_for_itself_nor_is_its_repack(candidates, name):
    refused(candidates, name, "YardstickNotApproved")
    bench, _ = candidates
    assert bench.jobs(name) == []

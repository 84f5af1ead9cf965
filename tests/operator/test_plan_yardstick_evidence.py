"""What makes a pack that is not the last good one a yardstick: a Job of this variant's own that passed it, here."""

from dataclasses import replace

import pytest

from support.packs import GOOD, OTHER, result
from support.world import World

OTHERS = "sha256:" + "8" * 64


def told(job, **changes):
    """The finished Job with another result."""
    pod = job.pods[0]
    ended = replace(pod.ended, message=result(job, **{"verdict": "Pass", **changes}))
    return replace(job, pods=(replace(pod, ended=ended),))


def of_another_image(job):
    pod = job.template["spec"]
    containers = [{**pod["containers"][0], "image": "localhost/another:1"}, *pod["containers"][1:]]
    return replace(job, template={**job.template, "spec": {**pod, "containers": containers}})


def compare_with_good(change, *, image_id="sha256:image"):
    """A variant whose check of GOOD passed and was never rolled out, and that is now to compare OTHER with it.

    image_id: what the target's pods run since.
    """
    world = World()
    world.reconcile()
    job = world.finish("Pass")
    world.jobs[job.name] = change(job)
    world.image_id = image_id
    world.roll()
    world.edit(
        model=dict(OTHER),
        check={"compareWith": {"uri": GOOD["uri"], "digest": GOOD["digest"]}},
    )
    world.reconcile()
    return world


def test_pack_that_a_check_of_this_variant_passed_is_a_yardstick():
    world = compare_with_good(lambda job: job)
    assert world.reason("Stalled").startswith("False")
    assert world.created == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda job: replace(job, owner_uid="somebody-else"),
        lambda job: replace(job, complete=False),
        lambda job: replace(job, pods=()),
        lambda job: told(job, verdict="Fail"),
        lambda job: told(job, verdict="Inconclusive"),
        lambda job: told(job, jobUID="another"),
        lambda job: told(job, inputsHash=OTHERS),
        of_another_image,
    ],
    ids=[
        "another's Job",
        "a Job that did not complete",
        "no result",
        "a refusal",
        "an open end",
        "a result of another Job",
        "a result of other inputs",
        "another image",
    ],
)
def test_fault_43_what_is_no_evidence_makes_no_yardstick(change):
    world = compare_with_good(change)
    assert world.reason("Stalled") == "True YardstickNotApproved"
    assert (world.created, world.written) == (1, [])


def test_fault_43_pass_in_another_environment_makes_no_yardstick():
    world = compare_with_good(lambda job: job, image_id="sha256:rebuilt")
    assert world.reason("Stalled") == "True YardstickNotApproved"
    assert (world.created, world.written) == (1, [])


def test_fault_43_variant_made_anew_does_not_inherit_the_evidence_of_another():
    world = compare_with_good(lambda job: job)
    later = World(spec=world.spec)
    later.jobs = {name: replace(job, owner_uid="the-first-variant") for name, job in world.jobs.items()}
    later.reconcile()
    assert later.reason("Stalled") == "True YardstickNotApproved"

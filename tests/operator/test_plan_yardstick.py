"""The yardstick, suspending, and breaking the glass.

Names of fault rows are those of the operator's fault table.
"""

from dataclasses import replace

import pytest

from assay_operator.plan import plan
from support.packs import (
    BAD,
    BASE_URI,
    BUILTIN,
    GOOD,
    GOOD_MODEL,
    OTHER,
    OTHER_MODEL,
    served,
    spec,
)
from support.world import World


@pytest.mark.parametrize(
    "yardstick", [{"uri": GOOD["uri"], "digest": GOOD["digest"]}, {"uri": BAD["uri"], "digest": BAD["digest"]}]
)
def test_fault_43_unapproved_yardstick_means_no_check_and_no_rollout(yardstick):
    world = World(spec=spec(check={"compareWith": yardstick}))
    world.settle()
    assert world.reason("Stalled") == "True YardstickNotApproved"
    assert (world.created, world.written) == (0, [])


@pytest.mark.parametrize(
    "yardstick",
    [
        {"uri": "https://packs.example/repack.tar", "digest": "sha256:" + "9" * 64},
        {"uri": GOOD["uri"], "digest": "sha256:" + "9" * 64},  # other bytes where a pack was that has passed
        {"uri": "builtin:never"},
    ],
    ids=["the candidate's repack", "the last good one's repack", "no digest"],
)
def test_fault_43_what_never_passed_is_no_yardstick(swapped, yardstick):
    swapped.edit(model=dict(OTHER), check={"compareWith": yardstick})
    swapped.settle()
    assert swapped.reason("Stalled") == "True YardstickNotApproved"


def test_built_in_pack_that_has_passed_may_be_named_without_its_digest(swapped):
    swapped.edit(model=dict(BUILTIN))
    swapped.settle()
    swapped.edit(model=dict(OTHER), check={"compareWith": {"uri": BUILTIN["uri"]}})
    swapped.settle()
    assert swapped.ready() == "True Serving"


def test_last_good_and_the_base_may_be_the_yardstick(swapped):
    swapped.edit(model=dict(OTHER), check={"compareWith": {"uri": GOOD["uri"], "digest": GOOD["digest"]}})
    swapped.settle()
    assert swapped.ready() == "True Serving"
    swapped.edit(model=dict(GOOD), check={"compareWith": {"uri": BASE_URI}})
    swapped.settle()
    assert swapped.ready() == "True Serving"


def test_fault_42_suspended_variant_writes_nothing_and_goes_on_telling():
    world = World()
    world.reconcile()
    world.finish("Pass")
    world.edit(suspend=True)
    world.settle()
    assert world.written == []
    assert world.ready() == "False Suspended"
    assert world.reason("CheckPassed") == "True CheckPassed"
    world.edit(suspend=False)
    world.settle()
    assert world.ready() == "True Serving"


def test_broken_glass_rolls_out_but_never_becomes_last_good(swapped):
    swapped.edit(model=dict(OTHER))
    swapped.skip_check = OTHER["digest"]
    swapped.settle()
    assert served(swapped.model) == served(OTHER_MODEL)
    assert swapped.reason("CheckPassed") == "False CheckBypassed"
    assert swapped.ready() == "False CheckBypassed"
    assert served(swapped.status.last_good) == served(GOOD_MODEL)
    assert swapped.created == 1


def test_deleted_variant_is_left_alone(swapped):
    gone = replace(swapped.variant(), deleting=True)
    assert plan(gone, swapped.observe()).steps == ()

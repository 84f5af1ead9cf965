"""The plan comes to rest and writes nothing unproved, whatever happens to it."""

import os

import pytest
from hypothesis import HealthCheck, settings

from support.packs import spec
from support.plan_machine import ALIVE, PACKS, VERDICTS, PlanMachine
from support.world import World

TestPlan = PlanMachine.TestCase
TestPlan.settings = settings(
    max_examples=int(os.environ.get("PLAN_EXAMPLES", "25")),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("pack", PACKS)
def test_every_pack_alone_comes_to_rest(pack):
    world = World(spec=spec(pack))
    world.settle(passes=100, verdicts=VERDICTS, alive=ALIVE)
    assert world.ready() == "True Serving" or world.reason("Stalled").startswith("True")

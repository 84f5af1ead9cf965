"""What the tests of plans share."""

import pytest

from support.world import World


@pytest.fixture
def swapped() -> World:
    """A target that serves GOOD, which passed and soaked."""
    world = World()
    world.settle()
    assert world.ready() == "True Serving"
    return world

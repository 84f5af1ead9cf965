"""A result that says Pass is held to its figures: each limit is one for the operator too, not for the check alone."""

import json

import pytest

from support.packs import result, spec
from support.world import World

LIMITS = {
    "minTop3ContainmentPermille": 980,
    "minTop1AgreementPermille": 900,
    "maxTop1DropPermille": 20,
    "maxCostRatioPermille": 1000,
}
AT_THE_LIMITS = {
    "containmentLowerPermille": 980,
    "agreementLowerPermille": 900,
    "top1DropUpperPermille": 20,
    "costRatioUpperPermille": 1000,
}


def after(change, limits=LIMITS):
    """A variant whose check says Pass with figures at each limit, but for a change; two passes later."""
    world = World(spec=spec(check=limits))
    world.reconcile()
    told = json.loads(result(world.job(), "Pass", **AT_THE_LIMITS))
    change(told)
    world.finish(message=json.dumps(told))
    world.reconcile()
    world.reconcile()
    return world


def test_figures_at_the_limits_pass():
    world = after(lambda _: None)
    assert world.reason("CheckPassed") == "True CheckPassed"
    assert len(world.written) == 1


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("containmentLowerPermille", 979),
        ("agreementLowerPermille", 899),
        ("top1DropUpperPermille", 21),
        ("costRatioUpperPermille", 1001),
        *((figure, None) for figure in AT_THE_LIMITS),
    ],
)
def test_fault_16_pass_that_its_own_figures_deny_opens_nothing(figure, value):
    world = after(lambda told: told.update({figure: value}))
    assert world.written == []
    assert "the result says Pass, and yet its" in world.message()
    if value is not None:
        assert str(value) in world.message()


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told["candidate"].update(precision="FP32"),
        lambda told: told["candidate"].update(digest=None),
        lambda told: told["candidate"].update(digest="sha256:" + "7" * 64),
        lambda told: told["yardstick"].update(digest=None),
        lambda told: told["dataset"].update(images=0),
    ],
    ids=["another precision", "no digest", "other bytes", "no yardstick", "no image"],
)
def test_fault_16_pass_of_something_else_opens_nothing(change):
    world = after(change)
    assert world.written == []
    assert world.ready().startswith("False")


def test_pass_without_a_cost_is_no_pass_even_where_none_is_asked_for():
    world = after(lambda told: told.update(costRatioUpperPermille=None), {"maxCostRatioPermille": None})
    assert world.written == []

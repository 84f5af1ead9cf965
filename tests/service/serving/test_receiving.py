"""All bodies together are bounded; when there is no room, the largest that is still arriving yields."""

import pytest

from assay.serving.errors import OverloadedError
from assay.serving.receiving import ReceivingBudget


def test_what_a_request_held_comes_back():
    budget = ReceivingBudget(100)
    for _ in range(3):
        with budget.allowance() as mine:
            mine.take(100)


def test_largest_body_that_is_still_arriving_yields_to_a_small_one():
    budget, woken = ReceivingBudget(100), []
    with budget.allowance() as large, budget.allowance() as larger, budget.allowance() as small:
        for one in (large, larger, small):
            one.receive(lambda one=one: woken.append(one))
        large.take(45)
        larger.take(50)
        small.take(10)
        assert woken == [larger]
        assert larger.revoked
        with pytest.raises(OverloadedError):
            larger.take(1)
        small.take(45)
        with pytest.raises(OverloadedError):
            small.take(1)  # now it is the largest itself


def test_body_that_is_complete_is_not_taken_back():
    budget = ReceivingBudget(100)
    with budget.allowance() as complete, budget.allowance() as late:
        complete.receive(lambda: None)
        complete.take(95)
        complete.received()
        late.receive(lambda: None)
        with pytest.raises(OverloadedError, match="100 bytes"):
            late.take(10)
        assert not complete.revoked

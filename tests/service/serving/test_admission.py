"""The queue is bounded by the CPU time it stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.serving.admission import Admission
from assay.serving.errors import OverloadedError


def test_requests_are_admitted_until_the_budget_is_spent():
    admission = Admission(budget_ms=100, limit_cores=2)
    for _ in range(6):
        admission.admit(15)
    with pytest.raises(OverloadedError, match="90 CPU-ms are waiting, of 100"):
        admission.admit(15)
    admission.admit(10)


def test_empty_queue_admits_what_is_dearer_than_the_budget():
    admission = Admission(budget_ms=100, limit_cores=2)
    admission.admit(400)
    with pytest.raises(OverloadedError):
        admission.admit(1)


def test_leaving_makes_room():
    admission = Admission(budget_ms=100, limit_cores=2)
    admission.admit(90)
    admission.leave(90)
    admission.admit(90)
    assert admission.waiting_ms == 90


def test_request_that_waits_for_the_rest_of_its_work_holds_the_rest_of_its_price():
    admission = Admission(budget_ms=100, limit_cores=2)
    admission.admit(80)
    admission.begin(50)
    assert admission.waiting_ms == pytest.approx(30)
    admission.admit(70)
    with pytest.raises(OverloadedError):
        admission.admit(1)
    admission.leave(30)
    assert admission.waiting_ms == pytest.approx(70)


@pytest.mark.parametrize(("cores", "seconds"), [(1, 5), (2, 3), (8, 1)])
def test_time_to_try_again_is_when_the_queue_will_be_worked_off(cores, seconds):
    admission = Admission(budget_ms=5000, limit_cores=cores)
    admission.admit(4999)
    with pytest.raises(OverloadedError) as refused:
        admission.admit(15)
    assert refused.value.retry_after_s == seconds


@given(st.lists(st.tuples(st.booleans(), st.floats(0.1, 500)), max_size=100))
def test_waiting_cost_is_that_of_the_requests_that_wait(steps):
    admission = Admission(budget_ms=300, limit_cores=2)
    waiting: list[float] = []
    for comes, price in steps:
        if comes:
            try:
                admission.admit(price)
            except OverloadedError:
                assert waiting
                assert sum(waiting) + price > 300 * 0.999
            else:
                waiting.append(price)
        elif waiting:
            admission.leave(waiting.pop(0))
        assert admission.waiting_ms == pytest.approx(sum(waiting), abs=1e-6)
        assert not waiting or sum(waiting[1:]) <= 300.001

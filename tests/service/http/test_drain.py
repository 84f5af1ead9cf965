"""The end of a process under an open loop; tests/measure/drain.py does the same many more times."""

import pytest

from support.drain import drained


@pytest.mark.parametrize("seed", [1, 5, 7])
def test_sigterm_at_a_random_moment_loses_no_request_that_came_in(builtin_dir, seed):
    found = drained(builtin_dir, rate=30, seed=seed)
    assert found.faults == []
    assert found.came_in > 0

"""Which recipe is kept, and the sentence that says why."""

import pytest

from assay.building.choice import Goal, Trial, choose
from assay.building.recipes import RECIPES
from assay.check import agreement, cost
from assay.check.agreement import Outcome
from assay.check.cost import Block
from assay.packs.archive import Pack
from support.small_packs import LABELS, manifest


def trial(name, agreed, ratio, contained=100, images=100, noise=0.0):
    """A recipe as it was measured: so many images agreed of a hundred, so much of FP32's cost."""
    outcomes = [Outcome(f"g{i}", i < agreed, i < contained, True) for i in range(images)]
    blocks = [Block((ratio * (1 + noise * (i % 2)),) * 2, (1.0, 1.0)) for i in range(60)]
    pack = Pack(manifest(), b"", LABELS, "")
    return Trial(RECIPES[name], pack, agreement.summarise(outcomes, 0.95), cost.summarise(blocks, 0.95))


def test_the_cheapest_that_is_right_is_kept():
    tried = [trial("static", 80, 0.4), trial("static-reduce-range", 95, 0.7), trial("static-percentile", 96, 0.5)]
    found = choose(tried, Goal(0.9, 0.98))
    assert found.chosen is tried[2]
    assert found.wins
    assert found.reason == "static-percentile is the cheapest of 2 that reach the goal"


def test_where_costs_are_alike_the_one_that_agrees_more_is_kept():
    tried = [trial("static", 97, 0.52), trial("static-reduce-range", 95, 0.5), trial("static-percentile", 99, 0.6)]
    found = choose(tried, Goal(0.9, 0.98))
    assert found.chosen is tried[0]
    assert "agrees more than static-reduce-range, the cheapest of 3" in found.reason


def test_containment_counts_before_agreement():
    tried = [trial("static", 99, 0.5, contained=98), trial("static-percentile", 95, 0.5, contained=100)]
    assert choose(tried, Goal(0.9, 0.98)).chosen is tried[1]


@pytest.mark.parametrize(("ratio", "noise"), [(1.2, 0.0), (0.95, 0.4)])
def test_what_is_right_and_not_certainly_cheaper_does_not_win(ratio, noise):
    found = choose([trial("static", 95, ratio, noise=noise)], Goal(0.9, 0.98))
    assert found.reached
    assert not found.wins
    assert found.reason.startswith("FP32 is better here: static is the best (the only one that reaches the goal)")


def test_where_none_is_right_the_nearest_is_kept_and_does_not_win():
    tried = [trial("static", 60, 0.4), trial("static-reduce-range", 70, 0.9)]
    found = choose(tried, Goal(0.9, 0.98))
    assert found.chosen is tried[1]
    assert not found.wins
    assert found.reason == ("FP32 is better here: no recipe reaches the goal; static-reduce-range comes nearest")


def test_what_this_cpu_cannot_run_is_kept_unjudged():
    pack = Pack(manifest(requires_cpu=("quantum-dots",)), b"", LABELS, "")
    found = choose([Trial(RECIPES["static"], pack, None, None)], Goal())
    assert not found.wins
    assert found.reason == "nothing was judged: this CPU lacks quantum-dots"

"""The verdict: one word, one reason; Pass only on evidence."""

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.check import agreement, cost
from assay.check.agreement import Outcome
from assay.check.cost import Block
from assay.check.verdict import Criteria, default_cost_ratio, judge, labels_differ
from assay.errors import SettingsError


def accuracy(contained=600, images=600, *, groups=600, agreed=None, lost=0, gained=0, bad=0, labelled=False):
    agreed = contained if agreed is None else agreed
    seen = [
        Outcome(
            group=str(i % groups),
            agreed=i < agreed,
            contained=i < contained,
            finite=i >= bad,
            candidate_right=(i >= lost) if labelled else None,
            yardstick_right=not lost <= i < lost + gained if labelled else None,
        )
        for i in range(images)
    ]
    return agreement.summarise(seen, 0.95)


def price(ratio=0.5, spread=0.0, blocks=100):
    """Noise as of a busy machine: the two halves of a block differ as much as blocks do."""
    rng = random.Random(1)
    halves = [[ratio * (1 + spread * (rng.random() - 0.5)) for _ in range(2)] for _ in range(blocks)]
    return cost.summarise([Block((first, second), (1.0, 1.0)) for first, second in halves], 0.95)


def uneven(share, slower, blocks=200):
    """No noise, and a candidate that takes ``slower`` times as long on a share of the images."""
    slow = round(blocks * share)
    return cost.summarise([Block((r, r), (1.0, 1.0)) for r in [1.0] * (blocks - slow) + [slower] * slow], 0.95)


def reason(criteria=None, seen=None, paid=None):
    verdict = judge(criteria or Criteria(), seen or accuracy(), paid or price())
    return verdict.verdict, verdict.reason


def test_good_figures_pass():
    assert reason() == ("Pass", "CheckPassed")


@pytest.mark.parametrize(
    ("contained", "expected"),
    [
        (600, ("Pass", "CheckPassed")),
        (595, ("Pass", "CheckPassed")),  # lower bound 98.26 %
        (593, ("Fail", "AccuracyNotProven")),  # 98.83 % seen, at least 97.8 %
        (584, ("Fail", "AccuracyNotProven")),  # below the threshold, perhaps by chance
        (580, ("Fail", "AccuracyBelowThreshold")),  # at most 97.8 %
        (500, ("Fail", "AccuracyBelowThreshold")),
        (0, ("Fail", "AccuracyBelowThreshold")),
    ],
)
def test_containment_decides_by_its_bounds(contained, expected):
    assert reason(seen=accuracy(contained)) == expected


def test_what_is_not_proven_says_how_many_images_would_settle_it():
    message = judge(Criteria(), accuracy(100, 100), price()).message
    assert "proves only 970 permille" in message
    assert "about 149 images would settle it" in message


def test_agreement_asked_for_in_full_is_refused_at_the_first_disagreement():
    asked = Criteria(min_top1_agreement=1000)
    assert reason(asked, accuracy(600, agreed=599)) == ("Fail", "AccuracyBelowThreshold")
    assert reason(asked, accuracy(600, agreed=600)) == ("Fail", "AccuracyNotProven")


def test_the_drop_of_labelled_images_decides_by_its_bounds():
    asked = Criteria(min_top3_containment=0, max_top1_drop=20)
    assert reason(asked, accuracy(labelled=True)) == ("Pass", "CheckPassed")
    assert reason(asked, accuracy(labelled=True, lost=10)) == ("Fail", "AccuracyNotProven")
    assert reason(asked, accuracy(labelled=True, lost=60)) == ("Fail", "AccuracyBelowThreshold")
    with pytest.raises(ValueError, match="needs labels"):
        reason(asked)


def test_one_nan_fails_however_many_agree():
    verdict = judge(Criteria(), accuracy(9999, 10_000, bad=1), price())
    assert (verdict.verdict, verdict.reason) == ("Fail", "AccuracyBelowThreshold")
    assert "NaN or infinity for 1 of 10000" in verdict.message


@pytest.mark.parametrize(
    ("paid", "expected"),
    [
        (price(0.5), ("Pass", "CheckPassed")),
        (price(1.0), ("Pass", "CheckPassed")),  # at the limit is within it
        (price(1.2), ("Fail", "CostAboveThreshold")),
        (price(1.0, spread=0.08), ("Inconclusive", "CheckInconclusive")),  # the interval spans the limit
        (price(0.5, spread=0.5), ("Inconclusive", "CheckInconclusive")),  # too noisy for a lucky Pass
        (price(3.0, spread=0.5), ("Inconclusive", "CheckInconclusive")),  # nor for an unlucky Fail
        (uneven(0.1, 5), ("Fail", "CostAboveThreshold")),  # the median is 1
        (uneven(0.4, 5), ("Fail", "CostAboveThreshold")),  # images differ, and each says the same twice
        (uneven(0.4, 0.5), ("Inconclusive", "CheckInconclusive")),  # cheap enough, but too uneven to be sure of
        (uneven(0.01, 20), ("Inconclusive", "CheckInconclusive")),  # two images: perhaps, perhaps not
    ],
)
def test_cost_decides_by_its_interval(paid, expected):
    assert reason(Criteria(max_cost_ratio=1000), paid=paid) == expected


def test_accuracy_comes_first_and_the_cost_is_still_told():
    verdict = judge(Criteria(), accuracy(100), price(5.0))
    assert verdict.reason == "AccuracyBelowThreshold"
    assert "cost 5000 permille" in verdict.message


def test_a_smoke_set_is_called_one_in_every_message():
    for seen, paid in (
        (accuracy(groups=4), price()),
        (accuracy(100, groups=4), price()),
        (accuracy(groups=4), price(9)),
    ):
        assert "smoke set, 4 groups: not proof" in judge(Criteria(), seen, paid).message
    assert "smoke" not in judge(Criteria(), accuracy(), price()).message


@pytest.mark.parametrize(
    ("candidate", "yardstick", "said"),
    [
        (("cat", "dog", "ox"), ("cat", "dog"), "3 and 2 of them; only the candidate knows 'ox'"),
        (("cat", "dog"), ("cat", "dog", "ox"), "2 and 3 of them; only the yardstick knows 'ox'"),
        (("cat", "dog", "dog"), ("cat", "cat", "dog"), "some stand more often in one"),
        (("cat", "Dog"), ("cat", "dog"), "in case or white space only, such as 'Dog'"),
        (("cat", "guide  dog "), ("cat", "guide dog"), "in case or white space only, such as 'guide  dog '"),
        (("x" * 500,), ("y",), f"'{'x' * 60}…'"),
    ],
)
def test_different_labels_fail_and_are_named(candidate, yardstick, said):
    verdict = labels_differ(candidate, yardstick)
    assert (verdict.verdict, verdict.reason) == ("Fail", "LabelsDiffer")
    assert said in verdict.message
    assert "the yardstick's label texts" in verdict.message


def test_the_same_labels_in_another_order_do_not_differ():
    assert labels_differ(("cat", "dog", "crane", "crane"), ("crane", "dog", "crane", "cat")) is None


def seeing(winners, **figures):
    """All agree; ``winners`` are what the yardstick sees, in turn."""
    outcomes = [Outcome(str(i), True, True, True, winner=winners[i % len(winners)], **figures) for i in range(600)]
    return agreement.summarise(outcomes, 0.95)


def test_figures_that_a_fixed_answer_would_reach_prove_nothing():
    assert reason(seen=seeing("abcd")) == ("Pass", "CheckPassed")
    verdict = judge(Criteria(), seeing("abc"), price())
    assert (verdict.verdict, verdict.reason) == ("Fail", "AccuracyNotProven")
    assert "three labels would reach 1000 permille" in verdict.message
    assert "ask for top-1 agreement" in verdict.message
    # Asked for what a fixed answer cannot give, the same photos do.
    assert reason(Criteria(min_top1_agreement=900), seeing("abc")) == ("Pass", "CheckPassed")
    only = Criteria(min_top3_containment=0, min_top1_agreement=900)
    assert reason(only, seeing("a")) == ("Fail", "AccuracyNotProven")
    right = seeing("abc", candidate_right=True, yardstick_right=True)
    assert reason(Criteria(max_top1_drop=20), right) == ("Pass", "CheckPassed")


def test_every_message_says_what_was_seen_what_was_asked_and_what_to_do():
    asked = Criteria(max_cost_ratio=1000)
    said = {
        "below the 980 required: more images would not help": judge(asked, accuracy(500), price()),
        "permille of the 980 required: about": judge(asked, accuracy(100, 100), price()),
        "above the limit of 1000 permille: a cheaper candidate": judge(asked, accuracy(), price(1.2)),
        "spans the limit of 1000 permille: check again": judge(asked, accuracy(), price(1.0, spread=0.08)),
        "more than 100: the machine is too busy": judge(asked, accuracy(), price(0.5, spread=0.5)),
        "within 1000 permille": judge(asked, accuracy(), price()),
        "at most 1000 on half of them: it is slow on some": judge(asked, accuracy(), uneven(0.1, 5)),
    }
    for part, verdict in said.items():
        assert part in verdict.message
    drop = Criteria(min_top3_containment=0, max_top1_drop=20)
    for lost, part in ((8, "about 1702 images would settle it"), (60, "more images would not help")):
        seen = accuracy(labelled=True, lost=lost)
        assert f"above the 20 allowed: {part}" in judge(drop, seen, price()).message


def test_int8_must_not_cost_more_than_fp32_and_others_little_more():
    assert default_cost_ratio("INT8", "FP32") == 1000
    assert {default_cost_ratio(*pair) for pair in (("FP32", "FP32"), ("INT8", "INT8"), ("FP32", "INT8"))} == {1100}


@pytest.mark.parametrize(
    "changed",
    [
        {"confidence_percent": 79},
        {"confidence_percent": 100},
        {"min_top3_containment": 1001},
        {"min_top1_agreement": -1},
        {"max_top1_drop": 1001},
        {"max_cost_ratio": 0},
        {"max_noise": 0},
        {"min_top3_containment": 0},
    ],
)
def test_criteria_out_of_range_or_all_off_are_refused(changed):
    with pytest.raises(SettingsError):
        Criteria(**changed)


OUTCOME = st.builds(
    Outcome,
    group=st.sampled_from([str(i) for i in range(40)]),
    agreed=st.booleans(),
    contained=st.booleans(),
    finite=st.sampled_from([True] * 9 + [False]),
    candidate_right=st.booleans(),
    yardstick_right=st.booleans(),
)

CRITERIA = st.builds(
    Criteria,
    confidence_percent=st.integers(80, 99),
    min_top3_containment=st.integers(1, 1000),
    min_top1_agreement=st.integers(0, 1000),
    max_top1_drop=st.none() | st.integers(0, 1000),
    max_cost_ratio=st.integers(1, 3000),
    max_noise=st.integers(1, 1000),
)


@settings(deadline=None, max_examples=300)
@given(
    criteria=CRITERIA,
    outcomes=st.lists(OUTCOME, min_size=1, max_size=80),
    good=st.integers(0, 400),
    ratios=st.lists(st.floats(0.05, 5), min_size=20, max_size=60),
)
def test_a_pass_always_has_every_piece_of_evidence(criteria, outcomes, good, ratios):
    outcomes += [Outcome(str(i % 37), True, True, True, True, True) for i in range(good)]
    seen = agreement.summarise(outcomes, criteria.confidence)
    paid = cost.summarise([Block((r, r), (1.0, 1.0)) for r in ratios], criteria.confidence)
    verdict = judge(criteria, seen, paid)
    evidence = (
        all(outcome.finite for outcome in outcomes)
        and seen.contained.lower * 1000 >= criteria.min_top3_containment
        and (not criteria.min_top1_agreement or seen.agreed.lower * 1000 >= criteria.min_top1_agreement)
        and (criteria.max_top1_drop is None or seen.drop.upper * 1000 <= criteria.max_top1_drop)
        and paid.upper * 1000 <= criteria.max_cost_ratio
        and paid.median.upper * 1000 <= criteria.max_cost_ratio
        and paid.total.upper * 1000 <= criteria.max_cost_ratio
        and paid.noise * 1000 <= criteria.max_noise
    )
    assert (verdict.verdict == "Pass") == evidence
    assert (verdict.verdict == "Pass") == (verdict.reason == "CheckPassed")
    assert verdict.message


@settings(deadline=None, max_examples=100)
@given(outcomes=st.lists(OUTCOME, min_size=1, max_size=60), position=st.integers(0, 59))
def test_turning_a_good_image_bad_never_makes_a_pass(outcomes, position):
    outcomes += [Outcome(f"h{i}", True, True, True, True, True) for i in range(300)]
    worse = list(outcomes)
    index = position % len(worse)
    worse[index] = dataclasses.replace(worse[index], agreed=False, contained=False, finite=False, candidate_right=False)
    criteria, paid = Criteria(min_top3_containment=900), price()
    before = judge(criteria, agreement.summarise(outcomes, 0.95), paid)
    after = judge(criteria, agreement.summarise(worse, 0.95), paid)
    assert after.verdict != "Pass" or before.verdict == "Pass"

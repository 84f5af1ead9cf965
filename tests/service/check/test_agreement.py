"""What images show: by label text, by group, and never by accident."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.check.agreement import Outcome, Share, compare, design_effect, same_labels, summarise

A = ("cat", "dog", "crane", "crane", "car")


def logits(*values):
    return np.array(values, np.float32)


def test_labels_are_compared_by_text_whatever_their_order():
    seen = compare(logits(0, 0, 9, 1, 2), ("car", "crane", "cat", "dog", "crane"), logits(9, 0, 0, 0, 1), A, "g", "cat")
    assert seen == Outcome("g", True, True, True, True, True, "cat")


def test_a_label_that_stands_twice_counts_as_one_text():
    assert compare(logits(0, 0, 9, 0, 0), A, logits(0, 0, 0, 9, 0), A, "g", None).agreed


def test_the_yardsticks_winner_must_be_among_the_candidates_three_best():
    yardstick = logits(9, 0, 0, 0, 0)
    assert compare(logits(1, 2, 3, 0, 0), A, yardstick, A, "g", None) == Outcome("g", False, True, True, winner="cat")
    assert compare(logits(1, 2, 3, 4, 0), A, yardstick, A, "g", None) == Outcome("g", False, False, True, winner="cat")


def test_labels_are_ranked_by_logits_even_where_their_scores_are_all_zero():
    # As float32 scores these are 0, 0.5, 0.5, 0, 0: by score, the cat would be third.
    labels = ("cat", "dog", "crane", "car", "bus")
    seen = compare(logits(-900, 900, 900, 0, 0), labels, logits(9, 0, 0, 0, 0), A, "g", None)
    assert not seen.contained


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_candidate_that_is_not_finite_agrees_with_nothing(bad):
    seen = compare(logits(9, 0, 0, 0, bad), A, logits(9, 0, 0, 0, 0), A, "g", "cat")
    assert seen == Outcome("g", False, False, False, False, True, "cat")


def test_a_yardstick_that_is_not_finite_judges_nothing():
    with pytest.raises(ValueError, match="cannot judge"):
        compare(logits(9, 0, 0, 0, 0), A, logits(9, 0, 0, 0, np.nan), A, "g", None)


def test_one_score_for_every_class_ranks_nothing():
    seen = compare(logits(7, 7, 7, 7, 7), A, logits(9, 0, 0, 0, 0), A, "g", "cat")
    assert seen == Outcome("g", False, False, True, False, True, "cat")
    with pytest.raises(ValueError, match="same score"):
        compare(logits(9, 0, 0, 0, 0), A, logits(7, 7, 7, 7, 7), A, "g", None)
    assert compare(logits(7), ("cat",), logits(7), ("cat",), "g", None).agreed


def test_the_best_fixed_answer_is_known():
    seen = [Outcome(str(i), True, True, True, winner="aaaabbcde"[i % 9]) for i in range(90)]
    accuracy = summarise(seen, 0.95)
    assert (accuracy.fixed_agreed, accuracy.fixed_contained) == pytest.approx((4 / 9, 7 / 9))
    assert summarise(outcomes([1] * 40, lambda _g, _i: True), 0.95).fixed_contained == 0


def test_label_sets_are_equal_with_their_multiplicities():
    assert same_labels(A, ("crane", "car", "crane", "dog", "cat"))
    assert not same_labels(A, ("crane", "car", "cat", "dog", "cat"))
    assert not same_labels(A, A[:-1])


def outcomes(groups, hit):
    """One outcome per (group, image); ``hit`` says whether it is contained."""
    return [Outcome(f"g{g}", True, hit(g, i), True) for g, size in enumerate(groups) for i in range(size)]


def contained(outcome):
    return outcome.contained


def test_images_of_their_own_count_fully():
    seen = outcomes([1] * 200, lambda g, _: g % 50 != 0)
    # The estimate of independent images is 1 but for the divisor n - 1.
    assert design_effect(seen, contained) == pytest.approx(200 / 199)


def test_groups_that_agree_within_count_as_one_image_each():
    seen = outcomes([10] * 40, lambda g, _: g % 4 != 0)
    assert design_effect(seen, contained) == pytest.approx(10 * 40 / 39)
    assert Share.of(seen, contained, 0.95).effective == pytest.approx(39)


def test_a_least_correlation_is_assumed_even_where_none_shows():
    assert design_effect(outcomes([11] * 40, lambda _g, _i: True), contained) == pytest.approx(2.0)
    assert design_effect(outcomes([11] * 40, lambda _g, i: i != 0), contained) == pytest.approx(2.0)


def test_few_groups_count_as_independent_and_are_called_a_smoke_set():
    seen = outcomes([150] * 4, lambda _g, _i: True)
    assert design_effect(seen, contained) == 1.0
    assert summarise(seen, 0.95).smoke
    assert not summarise(outcomes([5] * 30, lambda _g, _i: True), 0.95).smoke


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=300))
def test_the_design_effect_lies_between_one_and_the_number_of_images(drawn):
    seen = [Outcome(str(group), True, hit, True) for group, hit in drawn]
    assert 1 <= design_effect(seen, contained) <= len(seen)
    share = Share.of(seen, contained, 0.95)
    assert share.lower <= share.rate <= share.upper


def labelled(candidate, yardstick):
    return Outcome(f"{candidate}{yardstick}", True, True, True, candidate, yardstick)


def test_the_drop_counts_what_only_one_of_them_gets_right():
    seen = [labelled(True, True)] * 80 + [labelled(False, True)] * 10 + [labelled(True, False)] * 4
    seen += [labelled(False, False)] * 6
    drop = summarise(seen, 0.95).drop
    assert drop.seen == pytest.approx(0.06)
    assert drop.lower < 0.06 < drop.upper
    assert drop.upper > 0.1


def test_without_a_label_on_every_image_there_is_no_drop():
    assert summarise([labelled(True, True), Outcome("g", True, True, True)], 0.95).drop is None
    with pytest.raises(ValueError, match="nothing was measured"):
        summarise([], 0.95)


@pytest.mark.parametrize("images", [47, 48, 70, 102, 109, 152])
def test_rounding_never_makes_more_hits_than_trials(images):
    # Over 30 groups, design effects such that n * (n / effect) / n is above n / effect by the last bit of a float.
    outcomes = [Outcome(str(image % 30), True, True, True, None, None) for image in range(images)]
    share = Share.of(outcomes, lambda outcome: outcome.contained, 0.8)
    assert share.count == share.trials
    assert share.upper == 1

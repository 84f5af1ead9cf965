"""Scores: softmax and ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from assay.inference.postprocess import best_classes, softmax, top_k

FINITE = st.floats(-(2.0**100), 2.0**100, width=32)


@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 50)), elements=FINITE))
def test_scores_are_a_distribution_in_the_order_of_the_logits(logits):
    scores = softmax(logits)
    assert scores.shape == logits.shape
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores.sum(-1), 1, rtol=1e-5)
    assert (scores >= 0).all()
    for row, score in zip(logits, scores, strict=True):
        assert score[row.argmax()] == score.max()


@given(arrays.arrays(np.float32, st.integers(1, 60), elements=st.sampled_from([0, 1, 2, 3, 0.5])), st.integers(1, 70))
def test_the_best_come_first_and_ties_by_index(scores, k):
    found = top_k(scores, k)
    expected = sorted(((int(i), float(s)) for i, s in enumerate(scores)), key=lambda pair: (-pair[1], pair[0]))
    assert found == expected[:k]


def test_scores_of_several_images_or_no_labels_are_refused():
    with pytest.raises(ValueError, match="one image's scores"):
        top_k(np.zeros((2, 3), np.float32), 1)
    with pytest.raises(ValueError, match="k >= 1"):
        top_k(np.zeros(3, np.float32), 0)


def test_classes_whose_probability_underflows_keep_the_order_of_their_logits():
    logits = np.array([-400.0, 0.0, -300.0, -200.0], dtype=np.float32)
    assert [index for index, _ in best_classes(logits, 4)] == [1, 3, 2, 0]
    assert softmax(logits)[2] == softmax(logits)[0] == 0.0

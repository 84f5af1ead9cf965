"""From logits to ranked scores."""

import numpy as np
from numpy.typing import NDArray


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return probabilities along the last axis, in the shape given; the largest logit is subtracted first."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    scores: NDArray[np.float32] = shifted / shifted.sum(axis=-1, keepdims=True)
    return scores


def top_k(scores: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
    """Return the ``k`` best of one image's scores as (class index, score), best first; equal scores by index.

    Takes logits as well, and ranks them better: scores of a very sure model underflow to ties at zero.

    ``k`` is at least 1; more than there are classes gives all of them.
    """
    if scores.ndim != 1 or k < 1:
        raise ValueError(f"top_k takes one image's scores and k >= 1, not shape {scores.shape} and k={k}")
    k = min(k, len(scores))
    # The k-th best value bounds the candidates, ties included; only those are sorted.
    threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
    candidates = np.flatnonzero(scores >= threshold)
    order = candidates[np.argsort(-scores[candidates], kind="stable")][:k]
    return [(int(index), float(scores[index])) for index in order]


def best_classes(logits: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
    """Return the ``k`` best classes of one image's logits as (class index, probability), best first.

    Ranked by logits, as the check ranks them, so that service and check never name another order: float32
    probabilities of a very sure model underflow to ties at zero, where the lower index would win.
    """
    scores = softmax(logits)
    return [(index, float(scores[index])) for index, _ in top_k(logits, k)]

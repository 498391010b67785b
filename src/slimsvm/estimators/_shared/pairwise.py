"""Scores of each pair of classes, as scikit-learn reads them."""

from __future__ import annotations

import numpy as np
from sklearn.utils.multiclass import _ovr_decision_function

from slimsvm import tasks

Array = np.ndarray


def pair_scores(scores: Array, n_classes: int, shape: str) -> Array:
    """What scikit-learn's decision function returns, of scores for each pair that are positive for the lower class."""
    return scores if shape == "ovo" else _ovr_decision_function(scores < 0, -scores, n_classes)


def pair_labels(scores: Array, n_classes: int, shape: str, break_ties: bool) -> Array:
    """Codes of the classes with most votes, or with ``break_ties`` of the largest decision value."""
    if not break_ties:
        return tasks.OneVsOne(n_classes).decode(scores, np.zeros(0))
    if shape == "ovo":
        raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
    return np.argmax(pair_scores(scores, n_classes, shape), axis=1)

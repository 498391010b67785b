"""Scores and coefficients of each pair of classes, as scikit-learn reads them."""

from __future__ import annotations

from itertools import combinations
from math import isqrt

import numpy as np

from slimsvm import tasks
from slimsvm.deploy.decisions import ARRAYS, pair_confidences

Array = np.ndarray


def pair_scores(scores: Array, n_classes: int, shape: str) -> Array:
    """What scikit-learn's decision function returns, of scores for each pair that are positive for the lower class."""
    return scores if shape == "ovo" else pair_confidences(ARRAYS, scores, n_classes)


def pair_labels(scores: Array, n_classes: int, shape: str, break_ties: bool) -> Array:
    """Codes of the classes with most votes, or with ``break_ties`` of the largest decision value."""
    if not break_ties:
        return tasks.OneVsOne(n_classes).decode(scores, np.zeros(0))
    return np.argmax(pair_scores(scores, n_classes, shape), axis=1)


def lines_of_pairs(coef: Array, classes: Array) -> Array | None:
    """LIBSVM's table (n_classes − 1, n_vectors) of coefficients (n_vectors, n_pairs): in a vector's column are its
    coefficients against the other classes, in their order. None where a vector counts in pairs of other classes, too.
    """
    n_classes = (1 + isqrt(1 + 8 * coef.shape[1])) // 2
    lines, n_counted = np.zeros((n_classes - 1, len(coef))), 0
    for pair, (a, b) in enumerate(combinations(range(n_classes), 2)):
        for own, other in ((a, b - 1), (b, a)):
            of_own = classes == own
            lines[other, of_own] = coef[of_own, pair]
        n_counted += int(np.count_nonzero(coef[(classes == a) | (classes == b), pair]))
    return lines if n_counted == np.count_nonzero(coef) else None


def pairs_of_lines(lines: Array, classes: Array) -> Array:
    """Coefficients (n_vectors, n_pairs) of LIBSVM's table: see `lines_of_pairs`."""
    n_classes = len(lines) + 1
    coef = np.zeros((lines.shape[1], n_classes * (n_classes - 1) // 2))
    for pair, (a, b) in enumerate(combinations(range(n_classes), 2)):
        for own, other in ((a, b - 1), (b, a)):
            of_own = classes == own
            coef[of_own, pair] = lines[other, of_own]
    return coef

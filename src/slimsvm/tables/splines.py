"""Cubic splines of numbers that are normal deviates of ranks, with knots at the quartiles."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

# Beyond END curves are constant.
END, DEGREE = 3.0, 3
QUARTILE = 0.6744897501960817
KNOTS = np.array([-END] * (DEGREE + 1) + [-QUARTILE, 0.0, QUARTILE] + [END] * (DEGREE + 1))
N_SPLINES = len(KNOTS) - DEGREE - 1


def spline_values(numbers: Array) -> tuple[Array, Array]:
    """The DEGREE + 1 splines that are not 0 at each number (n, 4), and the place of the first of them (n,).

    de Boor: A Practical Guide to Splines, 1978, the recurrence over degrees.
    """
    x = np.clip(np.asarray(numbers, np.float64), -END, END)
    at = np.clip(np.searchsorted(KNOTS, x, side="right") - 1, DEGREE, N_SPLINES - 1)
    values = [np.ones(len(x))]
    for degree in range(1, DEGREE + 1):
        carried, raised = np.zeros(len(x)), []
        for r in range(degree):
            above, below = KNOTS[at + r + 1], KNOTS[at + r + 1 - degree]
            part = values[r] / (above - below)
            raised.append(carried + (above - x) * part)
            carried = (x - below) * part
        values = [*raised, carried]
    return np.column_stack(values), at - DEGREE


def additive_scores(X: Array, weights: Array, intercept: Array, are_flags: Array) -> Array:
    """Scores (n, n_outputs) of an additive model: flags times weights, and the splines of each number in turn.

    A row has the same score in any batch.
    """
    n_flags = int(np.count_nonzero(are_flags))
    flags = np.asarray(X[:, are_flags], np.float64)
    scores: Array = intercept + np.einsum("ij,jk->ik", flags, weights[:n_flags])
    for place, column in enumerate(X[:, ~are_flags].T):
        values, first = spline_values(column)
        rows = (n_flags + N_SPLINES * place + first)[:, None] + np.arange(DEGREE + 1)
        scores += np.einsum("ij,ijk->ik", values, weights[rows])
    return scores

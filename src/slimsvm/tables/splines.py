"""Normal deviates of ranks, and cubic splines of these with knots at the quartiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray

# Beyond END curves are constant.
END, DEGREE = 3.0, 3
QUARTILE = 0.6744897501960817
KNOTS = np.array([-END] * (DEGREE + 1) + [-QUARTILE, 0.0, QUARTILE] + [END] * (DEGREE + 1))
N_SPLINES = len(KNOTS) - DEGREE - 1


def normal_deviates(column: Array, weights: Array | None, most: int) -> tuple[Array, Array]:
    """Distinct values of a column, ascending, and Φ⁻¹ of the share of weights below each, with half of its own.

    Of more than ``most`` those at equal distances in their order are kept.
    """
    from scipy.special import ndtri  # which prediction without SciPy does not need

    values, codes = np.unique(column, return_inverse=True)
    counts = np.bincount(codes.ravel(), weights, len(values))
    below = np.cumsum(counts) - 0.5 * counts
    total = counts.sum()
    if len(values) > most:
        kept = np.unique(np.linspace(0, len(values) - 1, most).round().astype(np.int64))
        values, below = values[kept], below[kept]
    return values, ndtri(below / total)


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


def every_spline(numbers: Array) -> Array:
    """All splines at each number, shape (n, N_SPLINES)."""
    values, first = spline_values(numbers)
    splines = np.zeros((len(values), N_SPLINES))
    np.put_along_axis(splines, first[:, None] + np.arange(DEGREE + 1), values, axis=1)
    return splines


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Scores of encoded rows, a column for each output: flags times weights, and the splines of each number in turn.

    Parameters
    ----------
    weights : float64 ndarray of shape (n_splines, n_outputs)
    intercept : float64 ndarray of shape (n_outputs,)
    are_flags : bool ndarray of shape (n_features,)
        Which features are 0 or 1.
    """

    weights: Array
    intercept: Array
    are_flags: Array

    def scores(self, X: Array, n_jobs: int | None = None) -> Array:
        """Scores (n, n_outputs) of encoded rows; a row has the same in any batch."""
        n_flags = int(np.count_nonzero(self.are_flags))
        flags = np.asarray(X[:, self.are_flags], np.float64)
        scores: Array = self.intercept + np.einsum("ij,jk->ik", flags, self.weights[:n_flags])
        for place, column in enumerate(X[:, ~self.are_flags].T):
            values, first = spline_values(column)
            rows = (n_flags + N_SPLINES * place + first)[:, None] + np.arange(DEGREE + 1)
            scores += np.einsum("ij,ijk->ik", values, self.weights[rows])
        return scores

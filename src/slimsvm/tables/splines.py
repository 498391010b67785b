"""Normal deviates of ranks, and cubic splines of these with knots at the quartiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

# Beyond END curves are constant.
END, DEGREE = 3.0, 3
QUARTILE = 0.6744897501960817
KNOTS = np.array([-END] * (DEGREE + 1) + [-QUARTILE, 0.0, QUARTILE] + [END] * (DEGREE + 1))
N_SPLINES = len(KNOTS) - DEGREE - 1
# Numbers whose splines are computed together.
NUMBERS_AT_ONCE = 10_000


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
    """The DEGREE + 1 splines that are not 0 at each number (..., 4), and the place of the first of them (...).

    de Boor: A Practical Guide to Splines, 1978, the recurrence over degrees.
    """
    x = np.clip(np.asarray(numbers, np.float64), -END, END)
    at = np.clip(np.searchsorted(KNOTS, x, side="right") - 1, DEGREE, N_SPLINES - 1)
    values = [np.ones(x.shape)]
    for degree in range(1, DEGREE + 1):
        carried, raised = np.zeros(x.shape), []
        for r in range(degree):
            above, below = KNOTS[at + r + 1], KNOTS[at + r + 1 - degree]
            part = values[r] / (above - below)
            raised.append(carried + (above - x) * part)
            carried = (x - below) * part
        values = [*raised, carried]
    return np.stack(values, axis=-1), at - DEGREE


def splines_of_columns(X: Array) -> Iterator[tuple[Array, Array]]:
    """The `spline_values` of each column, computed for several at once where these are short."""
    at_once = max(1, NUMBERS_AT_ONCE // max(1, len(X)))
    for lo in range(0, X.shape[1], at_once):
        values, first = spline_values(X[:, lo : lo + at_once].T)
        yield from zip(values, first, strict=True)


def every_spline(values: Array, first: Array) -> Array:
    """All splines (n, N_SPLINES) at numbers of these `spline_values`."""
    splines = np.zeros((len(values), N_SPLINES))
    np.put_along_axis(splines, first[:, None] + np.arange(DEGREE + 1), values, axis=1)
    return splines


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Scores of encoded rows, a column for each output: flags times weights, and the splines of each number in turn."""

    weights: Array  # (n_splines, n_outputs)
    intercept: Array
    are_flags: Array  # which features are 0 or 1; all of a linear model, which are as they are

    @property
    def n_features(self) -> int:
        """How many features the model sees."""
        return len(self.are_flags)

    def scores(self, X: Array, n_jobs: int | None = None) -> Array:
        """Scores (n, n_outputs) of encoded rows; a row has the same in any batch."""
        n_flags = int(np.count_nonzero(self.are_flags))
        flags = np.asarray(X[:, self.are_flags], np.float64)
        scores: Array = self.intercept + np.einsum("ij,jk->ik", flags, self.weights[:n_flags])
        for place, (values, first) in enumerate(splines_of_columns(X[:, ~self.are_flags])):
            rows = (n_flags + N_SPLINES * place + first)[:, None] + np.arange(DEGREE + 1)
            scores += np.einsum("ij,ijk->ik", values, self.weights[rows])
        return scores

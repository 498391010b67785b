"""A cut: one linear lower bound on the mean loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimsvm.lazy import made_once

Array = np.ndarray


@dataclass(frozen=True)
class Cut:
    """The constraint c − ⟨w, g⟩ ≤ ξ; it keeps g as coefficients over rows.

    Parameters
    ----------
    c : float
        The constant.
    rows : int64 ndarray of shape (u,)
        The distinct rows g lies on, in increasing order.
    coef : float64 ndarray of shape (u, n_outputs)
        Coefficients of g over (row, output column).
    plain : float64 ndarray of shape (n_plain,)
        g's part over the plain parameters.
    """

    c: float
    rows: Array
    coef: Array
    plain: Array

    @made_once
    def intercept(self) -> Array:
        """Return g's part over the constant feature of every output column."""
        found: Array = self.coef.sum(axis=0)
        return found


def weighted_sum(cuts: Sequence[Cut], weights: Array) -> Cut:
    """Return Σ_j weights_j (c_j, g_j) as one cut over the union of the rows."""
    rows = np.concatenate([cut.rows for cut in cuts])
    coef = np.concatenate([weight * cut.coef for cut, weight in zip(cuts, weights)])
    distinct, where = np.unique(rows, return_inverse=True)
    total = np.zeros((len(distinct), coef.shape[1]))
    np.add.at(total, where, coef)
    plain = sum((weight * cut.plain for cut, weight in zip(cuts, weights)), np.zeros_like(cuts[0].plain))
    return Cut(float(sum(weight * cut.c for cut, weight in zip(cuts, weights))), distinct, total, plain)


def n_distinct_rows(cuts: Sequence[Cut], n_rows: int) -> int:
    """Return how many distinct rows the cuts have coefficients on."""
    n_listed = sum(len(cut.rows) for cut in cuts)
    if n_rows > 64 * n_listed:  # if cuts have few rows, the work must not grow with the data
        return len(np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(cut.rows for cut in cuts)])))
    found = np.zeros(n_rows, dtype=bool)
    for cut in cuts:
        found[cut.rows] = True
    return int(np.count_nonzero(found))

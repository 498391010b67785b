"""Outlying rows: a centre that they do not pull, kernel values between rows far from it, and the bulk of the rows, over
which means and squares are taken.

A kernel of distances takes them from norms about a centre, which must be small against 1 / ε of the type. The mean of
the rows serves, unless a few rows are very far away: then it is near none. And a row that is far from the centre may
have others of its kind next to it, as where a large number stands for "missing".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.core.clock import check_time
from slimsvm.kernels.kernel import Folding
from slimsvm.rows import Rows, as_rows, in_pieces, is_sparse, taken

# The evenly spaced rows that show whether a mean is near any of them; if it is not, their median is taken.
LOOKED_AT, MEDIAN_OF = 64, 1024
# A mean is doubted if exponents about it reach the first number. The median replaces it if the mean is farther from it
# than FARTHER times the distance of half of the rows.
DOUBTED, FARTHER = 50.0, 100.0
# The share of rows (without those at the median itself) whose distance from the median is multiplied by FARTHER.
MOST = 0.75
# The number of rows' values that are processed together.
BLOCK_VALUES = 1 << 20
# From this half exponent about the centre on, kernel values are computed about another centre: float64 then holds
# exponents to 4e-6, float32 to 0.06. The second number is the most such centres.
FAR = {np.dtype(np.float32): 2.0**20, np.dtype(np.float64): 2.0**34}
MOST_CENTRES = 256
# Differences of features that are computed together.
DIFFERENCES = 1 << 18


def exponents(folding: Folding, X: Any, centre: np.ndarray) -> np.ndarray:
    """Return |x'|^2 or |x'|_1 of rows X folded about a centre (sparse rows: about 0), infinite beyond float64."""
    with np.errstate(over="ignore"):
        if is_sparse(X):
            folded = abs(X * folding.row_scale)
            return np.asarray((folded if folding.manhattan else folded.power(2)).sum(axis=1)).ravel()
        folded = (X - centre) * folding.row_scale
        return np.abs(folded).sum(axis=1) if folding.manhattan else np.einsum("ij,ij->i", folded, folded)


@dataclass(frozen=True)
class Bulk:
    """The region where most rows are, however far away the others: means and squares are taken over the rows in it.

    A row is outside if its squared distance from the median is over FARTHER times that of MOST rows, and if a kernel of
    distances sees nothing of the median there.
    """

    folding: Folding  # units of the features
    centre: np.ndarray  # float64 (d,): the centre; sparse rows have none, since they are taken about 0
    limit: float  # exponent about the centre up to which rows are in it
    apart: float  # variance of all its entries together over that about the centre; 1 for sparse rows
    variances: np.ndarray  # float64 (d,): the variance of each feature in it; sparse rows have none

    @classmethod
    def of(cls, rows: Rows, folding: Folding | None = None) -> Bulk:
        """Find the region of some rows, in the units that a kernel takes features in (None: as they are)."""
        folding = Folding(core.IDENTITY) if folding is None else folding
        some: Any = taken(rows, _drawn(rows.n_rows, MEDIAN_OF), np.float64)
        centre = np.zeros(0) if is_sparse(some) else by_columns(np.median, some)
        distance, limit, apart = distances(folding, some, centre), np.inf, 1.0
        variances = np.zeros(len(centre))
        if distance.any():
            limit = FARTHER * np.quantile(distance[distance > 0.0], MOST, method="lower")
            if not is_sparse(some):
                is_near = distance <= limit
                near = some if is_near.all() else some[is_near]
                with np.errstate(over="ignore", invalid="ignore"):
                    mean = _total(near, lambda part: part) / near.size
                    apart = _total(near, lambda part: np.square(part - mean))
                    apart /= _total(near, lambda part: np.square(part - centre))
                    variances = by_columns(np.var, near)
        return cls(folding, centre, max(limit, DOUBTED) if folding.shift_invariant else limit, apart, variances)

    def holds(self, X: Any) -> np.ndarray:
        """Return which of some rows are in the region."""
        held: np.ndarray = distances(self.folding, X, self.centre) <= self.limit
        return held


def distances(folding: Folding, X: Any, centre: np.ndarray) -> np.ndarray:
    """Return `exponents` of many rows, a piece of them at a time."""
    width = X.nnz // max(1, X.shape[0]) if is_sparse(X) else X.shape[1]
    out = np.empty(X.shape[0])
    for part in in_pieces(len(out), BLOCK_VALUES // max(1, width)):
        check_time()
        out[part] = exponents(folding, X[part], centre)
    return out


def by_columns(reduction: Callable[..., np.ndarray], X: np.ndarray) -> np.ndarray:
    """Return a reduction of each column of X, a piece of the columns at a time."""
    out = np.empty(X.shape[1])
    for part in in_pieces(len(out), BLOCK_VALUES // max(1, len(X))):
        check_time()
        out[part] = reduction(X[:, part], axis=0)
    return out


def _total(X: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the sum of a function of all entries of X, a piece of the rows at a time."""
    total = 0.0
    for part in in_pieces(len(X), BLOCK_VALUES // max(1, X.shape[1])):
        check_time()
        total += float(np.sum(function(X[part])))
    return total


def centre_of(folding: Folding, rows: Rows, mean: np.ndarray) -> np.ndarray:
    """Return the mean of dense rows, or the median of some if the mean is far from nearly all."""
    if not rows.n_rows:
        return mean
    some: Any = rows.take(np.zeros(1, np.int64), np.float64)  # usually the first row decides
    if are_near(folding, some, mean):
        return mean
    some = rows.take(_spaced(rows.n_rows, LOOKED_AT), np.float64)
    if are_near(folding, some, mean):
        return mean
    some = taken(rows, _spaced(rows.n_rows, MEDIAN_OF), np.float64)
    median = by_columns(np.median, some)
    half = np.median(distances(folding, some, median))
    return median if exponents(folding, mean[None], median)[0] > FARTHER * half else mean


def centre_of_basis(folding: Folding | None, X: Any, Z: Any) -> np.ndarray:
    """Return the centre for rows X that are scored against the basis Z; of X it uses the width only."""
    is_centred = folding is not None and folding.shift_invariant and not is_sparse(X)
    if folding is None or not is_centred or is_sparse(Z) or Z.ndim != 2 or Z.shape[1] != X.shape[1] or not len(Z):
        return np.zeros(X.shape[1])
    points = np.asarray(Z, np.float64)
    mean = points.sum(axis=0) / len(points)
    # Usually the first vector shows that the mean will do.
    return mean if are_near(folding, points[:1], mean) else centre_of(folding, as_rows(Z), mean)


def are_near(folding: Folding, some: np.ndarray, mean: np.ndarray) -> bool:
    """Whether one of some rows is so near to the mean that it is not doubted."""
    return not exponents(folding, some, mean).min() > DOUBTED


def _drawn(n: int, most: int) -> np.ndarray:
    """Draw positions of rows at random, or return all of few: equal spacing could coincide with the rows' order."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _spaced(n: int, most: int) -> np.ndarray:
    return np.arange(min(n, most)) * n // min(n, most)


def far_from_centre(folding: Folding, half: np.ndarray) -> np.ndarray:
    """Return the positions of folded rows that are far from their centre."""
    return (half <= -FAR[half.dtype]).nonzero()[0] if folding.norms else np.empty(0, np.int64)


def values_between(kernel: Any, X: Any, Z: Any) -> np.ndarray:
    """Compute kernel values of far rows in float64, about centres among the Z, or by differences if those are many."""
    from slimsvm.kernels.kernel_rows import KernelRows

    X, Z = (np.asarray(part.toarray() if is_sparse(part) else part, np.float64) for part in (X, Z))
    folding, left, values = kernel.folding(X.shape[1]), np.arange(len(Z)), np.zeros((len(X), len(Z)))
    for _ in range(MOST_CENTRES):
        if not len(left):
            break
        centre = Z[left[0]]
        with np.errstate(over="ignore"):
            near = exponents(folding, Z[left], centre) < 2.0 * FAR[np.dtype(np.float64)]
        rows = KernelRows(kernel, X, dtype=np.float64, n_jobs=1, memory_limit=0, centre=centre)
        values[:, left[near]] = rows.block(rows.points_of(Z[left[near]]))
        left = left[~near]
    step = max(1, DIFFERENCES // max(1, X.size))
    for lo in range(0, len(left), step):
        part = left[lo : lo + step]
        with np.errstate(over="ignore"):
            differences = (X[:, None] - Z[part]) * folding.row_scale
            halves = -0.5 * np.einsum("ijk,ijk->ij", differences, differences)
        values[:, part] = folding.map_with_slopes(halves)[0]
    return values

"""``gamma="scale"``, and the gamma that searches begin with."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from slimsvm.kernels.far import Bulk
from slimsvm.rows import ColumnSums, Rows, as_rows, in_pieces, is_sparse, keep_sums, parts_of

# Values of a block in which the variance for gamma="scale" is summed. How many times the features' own variance that of
# all entries together may be, before a search for gamma begins with a larger one.
BLOCK_VALUES, APART = 1 << 20, 4.0


def scale_gamma(
    X: Any, weights: np.ndarray | None, bulk: Bulk | None = None, block_values: int = BLOCK_VALUES
) -> float:
    """scikit-learn's ``gamma="scale"``, 1 / (n_features · variance of all entries), of weighted rows, or only of those
    in a bulk. One pass adds up means and squared deviations of blocks of so many values (Chan, Golub, LeVeque 1983).
    """
    n, d = X.shape
    sparse = X.is_sparse if isinstance(X, Rows) else is_sparse(X)
    n_stored = (X.n_stored if isinstance(X, Rows) else X.nnz) if sparse else n * d
    step = max(1, block_values // max(1, -(-n_stored // n)))  # by values of a row, zeros of sparse rows are none
    bounds = parts_of(n)
    if not isinstance(X, Rows) and len(bounds) == 1 and n <= step and bulk is None:
        total, _, squares = _moments_of(X.astype(np.float64), weights)
    else:
        parts = [slice(*each) for each in bounds]
        owned = [None if weights is None else weights[part] for part in parts]
        if isinstance(X, Rows):
            adds = not (X.in_memory or X.is_sparse)
            both = X.map(partial(_moments_and_sums, step, adds, bulk), owned)
            found = [moments for moments, _ in both]
            if adds:  # which a kernel will want
                keep_sums(X, [sums for _, sums in both])
        else:
            found = [
                _moments(step, X if len(parts) == 1 else X[part], own, bulk=bulk) for part, own in zip(parts, owned)
            ]
        total, _, squares = _put_together(found)
    variance = squares / total
    if not 0 < (gamma := 1.0 / (d * variance) if variance > 0 else 1.0) < np.inf:
        raise ValueError(
            f"gamma='scale' is 1 / (n_features · variance of X), found a variance of {variance:.3g}: scale X, or give "
            "gamma as a number"
        )
    return gamma


def typical_gamma(X: Any, weights: np.ndarray | None) -> float:
    """The gamma that searches begin with: ``gamma="scale"`` without the rows that are far from all others, and larger
    if features are farther from each other than they are wide.
    """
    bulk = Bulk.of(as_rows(X))
    return scale_gamma(X, weights, bulk) * max(1.0, bulk.apart / APART)


def _put_together(moments: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of several sets together."""
    if len(moments) == 1:
        return moments[0]
    total, mean, squares = np.zeros(3)  # NumPy's numbers, which may be infinite
    for weight, own_mean, own_squares in moments:
        if weight > 0:
            off, before = own_mean - mean, total
            total += weight
            mean += off * (weight / total)
            squares += own_squares
            if before > 0:
                squares += off**2 * (weight * (before / total))
    return total, mean, squares


def _moments_and_sums(
    step: int, adds: bool, bulk: Bulk | None, X: Rows, weights: np.ndarray | None
) -> tuple[tuple[float, float, float], ColumnSums]:
    sums = ColumnSums(X.n_features, has_box=True)
    return _moments(step, X, weights, sums if adds else None, bulk), sums


def _moments(
    step: int, X: Any, weights: np.ndarray | None, sums: ColumnSums | None = None, bulk: Bulk | None = None
) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of all entries, of rows in a bulk if it is given, ``step`` rows at a
    time. The rows are added to ``sums``.
    """
    found = []
    for part in in_pieces(X.shape[0], step):
        block: Any = X.slice(part.start, part.stop, X.exact_dtype) if isinstance(X, Rows) else X[part]
        if sums is not None:
            sums.add(block)
        block, own = block.astype(np.float64), None if weights is None else weights[part]
        if bulk is not None and not (held := bulk.holds(block)).all():
            block, own = block[held], None if own is None else own[held]
        found.append(_moments_of(block, own))
    return _put_together(found)


def _moments_of(block: Any, weights: np.ndarray | None) -> tuple[float, float, float]:
    total = (block.shape[0] if weights is None else float(weights.sum())) * float(block.shape[1])
    if not total:
        return 0.0, 0.0, 0.0
    if is_sparse(block):
        sums = [_weighted(weights, np.asarray(part.sum(axis=1)).ravel()) for part in (block, block.power(2))]
        return total, sums[0] / total, sums[1] - sums[0] ** 2 / total
    mean = _weighted(weights, block.sum(axis=1)) / total
    block -= mean
    with np.errstate(over="ignore"):  # an infinite variance is an error of its own
        return total, mean, _weighted(weights, np.square(block, out=block).sum(axis=1))


def _weighted(weights: np.ndarray | None, values: np.ndarray) -> float:
    """Σ weights · values, without BLAS, whose sums depend on how many threads it has."""
    return float((values if weights is None else weights * values).sum())

"""Nearest neighbours of rows, by scikit-learn, over fixed tiles: the same answer for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from slimsvm.core.threads import one_blas_thread, resolve_n_jobs, run_tiles
from slimsvm.rows.columns import Columns

Array = np.ndarray

ROWS_PER_TILE = 1024


def nearest_rows(X: Any, k: int, queries: Any = None, n_jobs: int | None = None, index: Any = None) -> Array:
    """Positions of the k rows of X that are nearest to each query.

    Which of several rows at one distance comes first is left to `sklearn.neighbors.NearestNeighbors`.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    k : int
        At most n, or n − 1 where the queries are the rows of X.
    queries : ndarray or csr_array of shape (q, d) or None
        None: the rows of X, each among the others.
    n_jobs : int or None
    index : estimator with ``kneighbors``, or None
        None: `NearestNeighbors`, in Euclidean distance.

    Returns
    -------
    int64 ndarray of shape (q, k)
    """
    own = queries is None
    queries = X if own else queries
    columns = Columns.of(X, queries) if index is None else None
    if columns is not None:
        X, queries = columns.narrow(X), columns.narrow(queries)
    with one_blas_thread():
        index = (NearestNeighbors(n_jobs=1) if index is None else clone(index)).fit(X)
    n = queries.shape[0]
    found = np.empty((n, k), np.int64)

    def search(first: int, last: int) -> None:
        with one_blas_thread():
            for tile in range(first, last):
                lo, hi = tile * ROWS_PER_TILE, min(n, (tile + 1) * ROWS_PER_TILE)
                near = index.kneighbors(queries[lo:hi], k + own, return_distance=False)
                found[lo:hi] = _without(near, np.arange(lo, hi)) if own else near

    run_tiles(search, -(-n // ROWS_PER_TILE), resolve_n_jobs(n_jobs))
    return found


def _without(near: Array, rows: Array) -> Array:
    """Neighbours of rows without the rows themselves; where equal rows have crowded a row out, without the last."""
    itself = near == rows[:, None]
    itself[~itself.any(axis=1), -1] = True
    return near[~itself].reshape(len(near), -1)

"""Edited nearest neighbours: discard the rows that their neighbours outvote.

Problem: rows x_i of classes y_i that overlap; find a subset whose nearest neighbours classify new rows better.
Wilson, "Asymptotic properties of nearest neighbor rules using edited data", 1972:

    for each row i:  discard i if another class than y_i has more rows among the k nearest of the n − 1 others

All rows are judged by the unedited set, so their order has no meaning, and one pass ends it. With k = 1 it is the rule
that Bakır, Bottou and Weston (2004) describe; Wilson has k = 3.

Parts: `nearest_rows`, scikit-learn's `NearestNeighbors` over fixed tiles of rows, so that the answer is the same for
any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from slimsvm.core.threads import one_blas_thread, resolve_n_jobs, run_tiles
from slimsvm.rows.columns import Columns

Array = np.ndarray


def edited_nearest_neighbours(
    X: Any,
    codes: Array,
    n_neighbors: int = 3,
    n_jobs: int | None = None,
    unanimous: bool = False,
    index: Any = None,
) -> Array:
    """Positions of the rows that stay.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    codes : int64 ndarray of shape (n,)
        Classes 0, 1, ….
    n_neighbors : int
        As many as there are others where it is more.
    n_jobs : int or None
    unanimous : bool
        Whether a row is discarded as soon as one neighbour has another class.
    index : estimator with ``kneighbors``, or None
        What finds the neighbours.

    Returns
    -------
    int64 ndarray, ascending
        Ties stay: a row is discarded only if a single other class has more votes than its own.
    """
    n = len(codes)
    k = min(n_neighbors, n - 1)
    if k == 0:
        return np.arange(n)
    labels = codes[nearest_rows(X, k, n_jobs=n_jobs, index=index)]
    if unanimous:
        return np.flatnonzero((labels == codes[:, None]).all(axis=1))
    votes = np.stack([(labels == c).sum(axis=1) for c in range(int(codes.max()) + 1)], axis=1)
    return np.flatnonzero(votes[np.arange(n), codes] == votes.max(axis=1))


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

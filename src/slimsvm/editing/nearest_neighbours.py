"""Editing by nearest neighbours: the edited, the multi-edited and the condensed set.

Problem: rows x_i of classes y_i that overlap; find a subset whose nearest neighbours classify new rows better (the
first two), or few rows whose nearest neighbours classify all rows as all rows would (the last).

Edited nearest neighbours. Wilson, "Asymptotic properties of nearest neighbor rules using edited data", 1972:

    for each row i:  discard i if another class than y_i has more rows among the k nearest of the n − 1 others

The unedited set judges all rows, so their order has no meaning, and one pass ends it. With k = 1 it is the rule that
Bakır, Bottou and Weston (2004) describe; Wilson has k = 3.

MultiEdit. Devijver and Kittler, Pattern Recognition: A Statistical Approach, 1982, section 3.11; algorithm 2 of Bakır,
Bottou and Weston:

    repeat
        divide the rows at random into s parts S_1 … S_s
        discard all rows of S_i whose nearest row of S_{i+1 mod s} has another class
    until nothing was discarded in T rounds in a row

In the limit of many rows what remains is separable, with the Bayes rule's boundary.

Condense. Hart, "The condensed nearest neighbor rule", 1968; algorithm 1 of Bakır, Bottou and Weston:

    store = {first row}
    repeat
        for each row not in the store, in order: add it if its nearest row of the store has another class
    until a pass adds nothing

It reads rows in blocks. Each block remembers how much of the store it has seen, so that the distance of a row from a
row of the store is computed once in all passes together: n · |store| distances.

Parts: scikit-learn's `NearestNeighbors` over fixed tiles of rows, so that the answer is the same for any number of
threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances
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
    """Return the positions of the rows that stay.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    codes : int64 ndarray of shape (n,)
        Classes 0, 1, ….
    n_neighbors : int
        The number of neighbours, limited by the number of other rows.
    unanimous : bool
        Whether a row is discarded as soon as one neighbour has another class.
    index : estimator with ``kneighbors``, or None
        Finds the neighbours.

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
    """Return the positions of the k rows of X that are nearest to each query.

    Which of several rows at one distance comes first is left to `sklearn.neighbors.NearestNeighbors`.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    k : int
        At most n, or n − 1 where the queries are the rows of X.
    queries : ndarray or csr_array of shape (q, d) or None
        None: the rows of X, each among the others.
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
    """Remove rows from their own neighbours; a row that equal rows have crowded out loses its last neighbour."""
    itself = near == rows[:, None]
    itself[~itself.any(axis=1), -1] = True
    return near[~itself].reshape(len(near), -1)


def multi_edit(
    X: Any,
    codes: Array,
    n_splits: int,
    n_stable: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    may_go: Array | None = None,
) -> Array:
    """Return the positions of the rows that stay.

    Parameters
    ----------
    X, codes
        The same as in `edited_nearest_neighbours`.
    n_splits : int
        The paper's s, at least 2. Fewer rows than that are left as they are.
    n_stable : int
        The paper's T.
    may_go : bool ndarray of shape (n,) or None
        Rows that may be discarded; None: all.

    Returns
    -------
    int64 ndarray, ascending
        It may lack a class: one that is nowhere in the majority is discarded whole.
    """
    rows, quiet = np.arange(len(codes)), 0
    while quiet < n_stable and len(rows) >= n_splits:
        parts = np.array_split(rng.permutation(rows), n_splits)
        judges = [*parts[1:], parts[0]]
        kept = []
        for part, judge in zip(parts, judges, strict=True):
            near = nearest_rows(X[judge], 1, X[part], n_jobs)[:, 0]
            stays = codes[judge[near]] == codes[part]
            kept.append(part[stays if may_go is None else stays | ~may_go[part]])
        n_before, rows = len(rows), np.sort(np.concatenate(kept))
        quiet = quiet + 1 if len(rows) == n_before else 0
    return rows


ROWS_PER_BLOCK = 256


class _Block:
    """Some rows, with the squared distance and the class of each row's nearest row in the store so far."""

    def __init__(self, rows: Array):
        self.rows = rows
        self.distance = np.full(len(rows), np.inf)
        self.code = np.full(len(rows), -1)
        self.is_stored = np.zeros(len(rows), bool)
        self.n_seen = 0

    def see(self, distances: Array, codes: Array) -> None:
        """Compare the block with further rows of the store; of equally near ones the first counts."""
        nearest = distances.argmin(axis=1)
        distance = distances[np.arange(len(distances)), nearest]
        closer = distance < self.distance
        self.distance[closer], self.code[closer] = distance[closer], codes[nearest[closer]]


def condense(X: Any, codes: Array, order: Array, kept: Array | None = None) -> Array:
    """Return the positions of the store's rows.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    codes : int64 ndarray of shape (n,)
    order : int64 ndarray
        The order of the rows, on which the store depends.
    kept : int64 ndarray or None
        Rows that the store holds from the beginning; none of ``order``.

    Returns
    -------
    int64 ndarray, ascending
    """
    blocks = [_Block(order[lo : lo + ROWS_PER_BLOCK]) for lo in range(0, len(order), ROWS_PER_BLOCK)]
    store: list[int] = [] if kept is None else kept.tolist()
    n_before = -1
    with one_blas_thread():
        while len(store) > n_before:
            n_before = len(store)
            for block in blocks:
                _pass(X, codes, block, store)
    return np.sort(np.array(store, np.int64))


def _pass(X: Any, codes: Array, block: _Block, store: list[int]) -> None:
    """Bring a block up to date with the store, then go through its rows and add those that are wrong."""
    here = X[block.rows]
    for lo in range(block.n_seen, len(store), ROWS_PER_BLOCK):
        others = np.array(store[lo : lo + ROWS_PER_BLOCK])
        block.see(euclidean_distances(here, X[others], squared=True), codes[others])
    for place, row in enumerate(block.rows.tolist()):
        if block.is_stored[place] or block.code[place] == codes[row]:
            continue
        store.append(row)
        block.is_stored[place] = True
        block.see(euclidean_distances(here, here[place : place + 1], squared=True), codes[row : row + 1])
    block.n_seen = len(store)

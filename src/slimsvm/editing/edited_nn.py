"""Edited nearest neighbours: discard the rows that their neighbours outvote.

Wilson, "Asymptotic properties of nearest neighbor rules using edited data", 1972:

    for each row i:  discard i if another class than y_i has more rows among the k nearest of the n − 1 others

All rows are judged by the unedited set, so their order has no meaning. With k = 1 it is the rule that Bakır, Bottou and
Weston (2004) describe; Wilson has k = 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.editing.neighbours import nearest_rows

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

"""Condense: a subset whose nearest neighbour classifies every other row right.

Problem: rows x_i of classes y_i; find few rows whose nearest neighbours classify all rows as all rows would.
Hart, "The condensed nearest neighbor rule", 1968; algorithm 1 of Bakır, Bottou and Weston (2004):

    store = {first row}
    repeat
        for each row not in the store, in order: add it if its nearest row of the store has another class
    until a pass adds nothing

Rows are looked at in blocks. Each block remembers how much of the store it has seen, so that the distance of a row from
a row of the store is computed once in all passes together: n · |store| distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from slimsvm.core.threads import one_blas_thread

Array = np.ndarray

ROWS_PER_BLOCK = 256


class _Block:
    """Some rows, and for each the squared distance and the class of the nearest row of the store so far."""

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
    """Positions of the store's rows.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    codes : int64 ndarray of shape (n,)
    order : int64 ndarray
        The order in which rows are looked at: the store depends on it.
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

"""MultiEdit: edit by nearest neighbours among rows that took no part in the judgement, again and again.

Problem: rows x_i of classes y_i that overlap; find a subset whose classes do not overlap, with the same boundary.
Devijver and Kittler, Pattern Recognition: A Statistical Approach, 1982, section 3.11; algorithm 2 of Bakır, Bottou and
Weston (2004):

    repeat
        divide the rows at random into s parts S_1 … S_s
        discard all rows of S_i that their nearest row of S_{i+1 mod s} has another class than
    until nothing was discarded in T rounds in a row

In the limit of many rows what remains is separable, with the Bayes rule's boundary.

Parts: `nearest_rows` of `edited_nn`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.editing.edited_nn import nearest_rows

Array = np.ndarray


def multi_edit(
    X: Any,
    codes: Array,
    n_splits: int,
    n_stable: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    may_go: Array | None = None,
) -> Array:
    """Positions of the rows that stay.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    codes : int64 ndarray of shape (n,)
        Classes 0, 1, ….
    n_splits : int
        The paper's s, at least 2. Fewer rows than that are left as they are.
    n_stable : int
        The paper's T.
    rng : numpy.random.Generator
    n_jobs : int or None
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

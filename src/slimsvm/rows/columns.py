"""Columns of many rows: which of wide sparse rows occur, their sums, extremes and ranges.

Hashed text and one-hot codes have up to 2³¹ columns, but few of them occur. `Columns` renumbers these in their order:
work and memory then grow with the numbers stored and not with the width, all sums stay the same, and a model's vectors
get back the numbers of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm import core
from slimsvm.rows.arrays import Rows, SparseRows, as_csr, is_sparse
from slimsvm.sparse_parts import TABLE_SHARE, WIDE_FEATURES, places_of, seen_by

Array = np.ndarray


@dataclass(frozen=True)
class Columns:
    """The columns that occur in some sparse matrices.

    Parameters
    ----------
    index : int64 ndarray, increasing
    n_features : int
        The matrices' width.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from slimsvm.rows.columns import Columns
    >>> X = sp.csr_array(([1.0, 2.0], [7, 4_000_000], [0, 1, 2]), shape=(2, 5_000_000))
    >>> columns = Columns.of(X)
    >>> columns.narrow(X).toarray().tolist(), (columns.widen(columns.narrow(X)) != X).nnz
    ([[1.0, 0.0], [0.0, 2.0]], 0)
    """

    index: Array
    n_features: int

    @classmethod
    def of(cls, *matrices: Any) -> Columns | None:
        """Return the columns that occur in sparse matrices; None if one is dense or narrow, or most columns occur."""
        width = matrices[0].shape[1]
        if width <= WIDE_FEATURES or not all(is_sparse(X) for X in matrices):
            return None
        index = occurring(np.concatenate([as_csr(X).indices for X in matrices]))
        return cls(index, width) if 2 * len(index) <= width else None

    @classmethod
    def of_rows(cls, rows: Rows) -> Columns | None:
        """Return the columns that occur in rows in memory, with `of`'s exceptions."""
        return cls.of(rows.slice(0, rows.n_rows, rows.dtype)) if isinstance(rows, SparseRows) else None

    def narrow(self, X: Any) -> sp.csr_array:
        """Return a matrix with these columns alone; no other column may occur in it."""
        X = as_csr(X)
        return sp.csr_array((X.data, places_of(self.index, X.indices), X.indptr), shape=(X.shape[0], len(self.index)))

    def seen(self, X: Any, foreign: str) -> sp.csr_array:
        """Reduce any rows to these columns, and one more that stands for all others (`seen_by`)."""
        X = as_csr(X)
        parts = seen_by(self.index, foreign, X.data, X.indices, X.indptr)
        return sp.csr_array(parts, shape=(X.shape[0], len(self.index) + 1))

    def widen(self, vectors: Any) -> sp.csr_array:
        """Renumber the columns of vectors to the width of the matrices."""
        X = sp.csr_array(vectors)
        dtype = np.int32 if self.n_features < 1 << 31 else np.int64
        return sp.csr_array((X.data, self.index[X.indices].astype(dtype), X.indptr), (X.shape[0], self.n_features))


def occurring(columns: Array) -> Array:
    """Return the distinct columns of some, int64 and in their order."""
    if (width := 1 + int(columns.max(initial=-1))) > TABLE_SHARE * len(columns):
        return np.unique(columns).astype(np.int64)
    occurs = np.zeros(width, bool)
    occurs[columns] = True
    return np.flatnonzero(occurs)


# The values of rows that are compared side by side.
WIDE_VALUES = 4096


class ColumnSums:
    """Sums of all columns in float64, row after row; on request also the box of least and greatest values."""

    def __init__(self, n_features: int, has_box: bool):
        self.total = np.zeros(n_features)
        self.box = (np.full(n_features, np.inf), np.full(n_features, -np.inf)) if has_box else None

    def add(self, block: np.ndarray) -> None:
        """Count a block of rows, floats."""
        block = np.require(block, requirements=["C", "A"])
        core.add_rows(rows=block, total=self.total)
        if self.box is not None and len(block):
            extremes = _along_columns(np.minimum, block), _along_columns(np.maximum, block)
            self.box = np.minimum(self.box[0], extremes[0]), np.maximum(self.box[1], extremes[1])

    def and_then(self, other: ColumnSums) -> ColumnSums:
        """Return the sums of these rows and of those that follow them."""
        both = ColumnSums(len(self.total), False)
        both.total = self.total + other.total
        if self.box is not None and other.box is not None:
            both.box = np.minimum(self.box[0], other.box[0]), np.maximum(self.box[1], other.box[1])
        return both


def _along_columns(extreme: np.ufunc, block: np.ndarray) -> np.ndarray:
    """Return each column's least or greatest value, with many rows side by side: NumPy is slow on short rows."""
    n, d = block.shape
    width = min(n, max(1, WIDE_VALUES // max(1, d)))
    whole = n - n % width
    wide = extreme.reduce(block[:whole].reshape(-1, width * d), axis=0).reshape(width, d)
    return extreme.reduce(np.concatenate([wide, block[whole:]]), axis=0)


def sums_of(rows: Rows, max_rows: int, has_box: bool) -> ColumnSums:
    """Return column sums of dense rows, read ``max_rows`` at a time."""
    sums = ColumnSums(rows.n_features, has_box)
    for lo, hi in rows.blocks(max_rows):
        block: Any = rows.slice(lo, hi, rows.exact_dtype)
        sums.add(block)
    return sums


def keep_sums(rows: Rows, parts: list[ColumnSums]) -> ColumnSums:
    """Return the sums of all parts, one after the other; rows that are not in memory store them."""
    sums = reduce(ColumnSums.and_then, parts)
    if not rows.in_memory:
        rows.column_sums = sums
    return sums


ROWS_AT_ONCE = 1 << 12
# Features count as scaled if the largest range is at most ALIKE times the smallest, and all are between 1 / WIDE and
# WIDE.
ALIKE, WIDE = 10.0, 100.0


def feature_widths(rows: Rows) -> np.ndarray:
    """Return each feature's largest less smallest value; for sparse rows, the largest magnitude of those that occur."""
    slices = (rows.slice(lo, hi, rows.exact_dtype) for lo, hi in rows.blocks(ROWS_AT_ONCE))
    parts: list[Any] = [X for X in slices if 0 not in X.shape]
    if not parts:
        return np.zeros(0)
    if is_sparse(parts[0]):
        columns = np.concatenate([X.indices for X in parts])
        features = occurring(columns)
        widths = np.zeros(len(features))
        np.maximum.at(widths, places_of(features, columns), np.abs(np.concatenate([X.data for X in parts])))
        return widths
    highest = np.max([X.max(axis=0) for X in parts], axis=0).astype(np.float64)
    return highest - np.min([X.min(axis=0) for X in parts], axis=0)


def advice_to_scale(rows: Rows) -> str:
    """Return advice to scale the features, with their ranges; "" if they are scaled or the rows are not in memory."""
    widths = feature_widths(rows) if rows.in_memory else np.zeros(0)
    widths = widths[(widths > 0) & np.isfinite(widths)]
    if not len(widths) or (widths.min() >= 1 / WIDE and widths.max() <= min(WIDE, ALIKE * widths.min())):
        return ""
    return (
        f"widths of the features (largest minus smallest value) range from {widths.min():.3g} to {widths.max():.3g}: "
        "scale them, for example by sklearn.preprocessing.StandardScaler"
    )

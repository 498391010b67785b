"""Sums of the columns, and a box about the rows: of rows that are not in memory found once, in a pass made anyway."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.rows.arrays import Rows

# Values of rows that are compared side by side.
WIDE_VALUES = 4096


class ColumnSums:
    """Sums of all columns in float64, row after row, and least and greatest values where asked for.

    Attributes
    ----------
    total : float64 ndarray of shape (d,)
    box : (float64 ndarray, float64 ndarray), of shape (d,) each, or None
    """

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
        """The sums of these rows and of those that follow them."""
        both = ColumnSums(len(self.total), False)
        both.total = self.total + other.total
        if self.box is not None and other.box is not None:
            both.box = np.minimum(self.box[0], other.box[0]), np.maximum(self.box[1], other.box[1])
        return both


def _along_columns(extreme: np.ufunc, block: np.ndarray) -> np.ndarray:
    """The least or greatest value of each column, with many rows side by side: NumPy is slow where lines are short."""
    n, d = block.shape
    width = min(n, max(1, WIDE_VALUES // max(1, d)))
    whole = n - n % width
    wide = extreme.reduce(block[:whole].reshape(-1, width * d), axis=0).reshape(width, d)
    return extreme.reduce(np.concatenate([wide, block[whole:]]), axis=0)


def sums_of(rows: Rows, max_rows: int, has_box: bool) -> ColumnSums:
    """Sums over dense rows, by at most so many at a time."""
    sums = ColumnSums(rows.n_features, has_box)
    for lo, hi in rows.blocks(max_rows):
        block: Any = rows.slice(lo, hi, rows.exact_dtype)
        sums.add(block)
    return sums


def keep_sums(rows: Rows, parts: list[ColumnSums]) -> ColumnSums:
    """The sums of all parts, one after the other; rows that are not in memory keep them."""
    sums = reduce(ColumnSums.and_then, parts)
    if not rows.in_memory:
        rows.column_sums = sums
    return sums

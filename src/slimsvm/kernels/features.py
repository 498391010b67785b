"""Rows as features of a linear model: products with weights instead of kernel values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm import core
from slimsvm.core.products import SUM_ROWS, add_transposed, in_calls, multiply_wide
from slimsvm.core.threads import resolve_n_jobs
from slimsvm.lazy import made_once
from slimsvm.rows import Rows, as_rows

# The bytes of a block of dense rows that is converted, and the weights of features that are summed together.
BLOCK_BYTES, GATHERED = 1 << 24, 1 << 16
# About how many stored numbers one thread multiplies with the weights of their features in a microsecond.
STORED_PER_MICROSECOND = 1_000


class FeatureRows:
    """The rows of a linear model with explicit weights W: both products in float64, bitwise the same for any threads.

    Parameters
    ----------
    rows : Rows, ndarray or sparse matrix
    n_jobs : int or None

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import FeatureRows
    >>> rows = FeatureRows(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> rows.scores(np.array([[1.0], [10.0]]))
    array([[21.],
           [30.]])
    >>> rows.gather(np.array([[1.0], [-1.0]]))
    array([[ 1.],
           [-1.]])
    """

    def __init__(self, rows: Any, n_jobs: int | None = None):
        self.rows: Rows = as_rows(rows)
        self.n_jobs = resolve_n_jobs(n_jobs)
        row_bytes = 8 * max(1, self.rows.n_features)
        self._block_rows = -(-max(SUM_ROWS, BLOCK_BYTES // row_bytes) // SUM_ROWS) * SUM_ROWS

    @made_once
    def csr(self) -> core.Structure:
        """Return all rows as ``struct slimsvm_csr`` for compiled code; dense rows are copied.

        Raises
        ------
        ValueError
            The rows are `Blocks`: this would copy them into memory.
        """
        if not self.rows.has_random_access:
            raise ValueError(
                "explicit weights keep sparse rows in memory, found Blocks of them: load the rows into memory, make "
                "the blocks dense, or take solver='low-rank' with max_basis"
            )
        return csr_structure(self.rows.slice(0, self.rows.n_rows, np.float64))

    @made_once
    def _by_feature(self) -> core.Structure:
        rows, shape = self.csr, (self.rows.n_rows, self.rows.n_features)
        return csr_structure(sp.csr_array((rows.values, rows.columns, rows.indptr), shape=shape).tocsc().T)

    def scores(self, W: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """Return X W + bias, shape (n_rows, n_outputs)."""
        W, out = np.ascontiguousarray(W, np.float64), np.empty((self.rows.n_rows, W.shape[1]))
        if self.rows.is_sparse:
            return self._sparse_product(self.csr, out, weights=W, bias=bias)
        for lo, hi in self.rows.blocks(self._block_rows):
            block: Any = self.rows.slice(lo, hi, self.rows.exact_dtype)
            multiply_wide(block, W, out[lo:hi], self.n_jobs)
        return out if bias is None else out + bias

    def scores_of(self, index: np.ndarray, W: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """Return the scores of the rows at ``index``, from `csr`."""
        out = np.empty((len(index), W.shape[1]))
        return self._sparse_product(self.csr, out, index, weights=W, bias=bias)

    def _sparse_product(self, rows: core.Structure, out: np.ndarray, index: Any = None, **weights: Any) -> np.ndarray:
        """Call ``core.sparse_product`` into ``out``."""
        per_row = out.shape[1] * len(rows.values) / max(1, len(rows.indptr) - 1) / STORED_PER_MICROSECOND
        for part in in_calls(len(out), per_row):
            core.sparse_product(
                rows=rows,
                first=part.start if index is None else 0,
                index=None if index is None else index[part],
                out=out[part],
                n_threads=self.n_jobs,
                microseconds=per_row * (part.stop - part.start),
                **weights,
            )
        return out

    def gather(self, coef: np.ndarray) -> np.ndarray:
        """Return Xᵀ coef, shape (n_features, n_outputs)."""
        coef = np.ascontiguousarray(coef, np.float64)
        out = np.zeros((self.rows.n_features, coef.shape[1]))
        if self.rows.is_sparse:
            return self._sparse_product(self._by_feature, out, weights=coef, used=coef.any(axis=1))
        step = max(1, GATHERED // max(1, coef.shape[1]))
        for lo, hi in self.rows.blocks(self._block_rows):
            block: Any = self.rows.slice(lo, hi, self.rows.exact_dtype)
            for first in range(0, len(out), step):
                features = slice(first, first + step)
                add_transposed(block[:, features], coef[lo:hi], out[features], self.n_jobs)
        return out


def csr_structure(X: Any) -> core.Structure:
    """Return a matrix as ``struct slimsvm_csr``: float64 values, and int32 columns if they fit."""
    X = X if sp.issparse(X) else sp.csr_array(X)
    index = np.int32 if max(X.shape) < 1 << 31 else np.int64
    return core.Csr(
        n_columns=X.shape[1],
        values=X.data.astype(np.float64, copy=False),
        columns=X.indices.astype(index, copy=False),
        indptr=X.indptr.astype(np.int64),
    )

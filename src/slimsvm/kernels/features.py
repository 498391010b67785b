"""Rows as features of a linear machine: products with weights instead of kernel values."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.numerics.threads import resolve_n_jobs, run_tiles
from slimsvm.numerics.weights import FEATURES_PER_TILE, ROWS_PER_TILE, gathered_features, weighted_rows
from slimsvm.rows import Rows, as_rows

# Features of a dense block that one thread sums up, and bytes of a block.
DENSE_FEATURES, BLOCK_BYTES = 64, 1 << 24


class FeatureRows:
    """The two products of a linear machine with explicit weights W, in float64, bitwise the same for any threads.

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
        self._block_rows = max(ROWS_PER_TILE, BLOCK_BYTES // (8 * max(1, self.rows.n_features)))

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values (float64), columns and offsets of all rows as CSR, for compiled code; dense rows are copied."""
        return csr_parts(self.rows.slice(0, self.rows.n_rows, np.float64))

    @cached_property
    def _by_feature(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        data, indices, indptr = self.parts
        shape = (self.rows.n_rows, self.rows.n_features)
        return csr_parts(sp.csr_array((data, indices, indptr), shape=shape).tocsc())

    def scores(self, W: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """X W + bias, shape (n_rows, n_outputs)."""
        if self.rows.is_sparse:
            return self.scores_of(np.arange(self.rows.n_rows), W, bias)
        n, m = self.rows.n_rows, W.shape[1]
        out = np.empty((n, m))
        for lo, hi in self.rows.blocks(self._block_rows):
            # Padded to whole tiles, so that a row's bits do not depend on how many there are.
            block = np.zeros((-(-(hi - lo) // ROWS_PER_TILE) * ROWS_PER_TILE, self.rows.n_features))
            dense: Any = self.rows.slice(lo, hi, np.float64)
            block[: hi - lo] = dense
            part = np.empty((len(block), m))

            def multiply(first, last, block=block, part=part):
                for tile in range(first, last):
                    these = slice(tile * ROWS_PER_TILE, (tile + 1) * ROWS_PER_TILE)
                    np.dot(block[these], W, out=part[these])

            run_tiles(multiply, len(block) // ROWS_PER_TILE, self.n_jobs)
            out[lo:hi] = part[: hi - lo]
        return out if bias is None else out + bias

    def scores_of(self, index: np.ndarray, W: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """The same of the rows at ``index``, from `parts`."""
        m = W.shape[1]
        out, bias = np.empty((len(index), m)), np.zeros(m) if bias is None else bias
        run_tiles(
            lambda lo, hi: weighted_rows(*self.parts, index, W, bias, out, lo, hi),
            -(-len(index) // ROWS_PER_TILE),
            self.n_jobs,
        )
        return out

    def gather(self, coef: np.ndarray) -> np.ndarray:
        """Xᵀ coef, shape (n_features, n_outputs)."""
        coef = np.ascontiguousarray(coef, np.float64)
        out = np.zeros((self.rows.n_features, coef.shape[1]))
        if self.rows.is_sparse:
            by_feature, used = self._by_feature, coef.any(axis=1)
            run_tiles(
                lambda lo, hi: gathered_features(*by_feature, coef, used, out, lo, hi),
                -(-len(out) // FEATURES_PER_TILE),
                self.n_jobs,
            )
            return out
        for lo, hi in self.rows.blocks(self._block_rows):
            block = self.rows.slice(lo, hi, np.float64)

            def add(first, last, block=block, part=coef[lo:hi]):
                for tile in range(first, last):
                    these = slice(tile * DENSE_FEATURES, (tile + 1) * DENSE_FEATURES)
                    out[these] += block[:, these].T @ part

            run_tiles(add, -(-len(out) // DENSE_FEATURES), self.n_jobs)
        return out


def csr_parts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, indices and offsets of a matrix as compiled code has them: float64, int32 (where they fit), int64."""
    X = X if sp.issparse(X) else sp.csr_array(X)
    index = np.int32 if max(X.shape) < 1 << 31 else np.int64
    return X.data.astype(np.float64, copy=False), X.indices.astype(index, copy=False), X.indptr.astype(np.int64)

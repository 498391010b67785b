"""Wide sparse rows by the columns that occur: work and memory go by the numbers stored, not by the width.

Hashed text and one-hot codes have up to 2³¹ columns, of which few occur. They are renumbered in their order, so that
all sums are the same; a model's vectors have the rows' own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.rows.arrays import Rows, SparseRows, as_csr, is_sparse
from slimsvm.sparse_parts import WIDE_FEATURES, seen_by

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
        """Those of sparse matrices; None if one is not sparse, or they are not wide, or most columns occur."""
        width = matrices[0].shape[1]
        if width <= WIDE_FEATURES or not all(is_sparse(X) for X in matrices):
            return None
        index = np.unique(np.concatenate([as_csr(X).indices for X in matrices])).astype(np.int64)
        return cls(index, width) if 2 * len(index) <= width else None

    @classmethod
    def of_rows(cls, rows: Rows) -> Columns | None:
        """Those of rows in memory; see `of`."""
        return cls.of(rows.slice(0, rows.n_rows, rows.dtype)) if isinstance(rows, SparseRows) else None

    def narrow(self, X: Any) -> sp.csr_array:
        """A matrix of these columns alone; none of the others occurs in it."""
        X = as_csr(X)
        places = np.searchsorted(self.index, X.indices).astype(np.int32)
        return sp.csr_array((X.data, places, X.indptr), shape=(X.shape[0], len(self.index)))

    def seen(self, X: Any, foreign: str) -> sp.csr_array:
        """Any rows as vectors of these columns see them, with a further column for all others; see `seen_by`."""
        X = as_csr(X)
        parts = seen_by(self.index, foreign, X.data, X.indices, X.indptr)
        return sp.csr_array(parts, shape=(X.shape[0], len(self.index) + 1))

    def widen(self, vectors: Any) -> sp.csr_array:
        """Vectors of these columns with the columns' own numbers."""
        X = sp.csr_array(vectors)
        dtype = np.int32 if self.n_features < 1 << 31 else np.int64
        return sp.csr_array((X.data, self.index[X.indices].astype(dtype), X.indptr), (X.shape[0], self.n_features))

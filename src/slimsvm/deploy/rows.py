"""Rows without SciPy: dense and sparse ones as users give them, and the scaling that belongs to a model."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from slimsvm.dictionaries import check_named, dictionaries_of, parts_of_dictionaries
from slimsvm.sparse_parts import WIDE_FEATURES, check_sparse

Array = np.ndarray


class CsrRows(NamedTuple):
    """Sparse rows as the three arrays of CSR."""

    data: Array
    indices: Array
    indptr: Array
    shape: tuple[int, int]

    def dense(self, lo: int, hi: int) -> Array:
        """The rows lo, …, hi − 1 as a float64 array; entries that occur twice are added up."""
        out, stored = np.zeros((hi - lo, self.shape[1])), slice(self.indptr[lo], self.indptr[hi])
        owner = np.repeat(np.arange(hi - lo), np.diff(self.indptr[lo : hi + 1]))
        np.add.at(out, (owner, self.indices[stored]), self.data[stored])
        return out

    def between(self, lo: int, hi: int) -> CsrRows:
        """The rows lo, …, hi − 1."""
        ends = self.indptr[lo : hi + 1]
        stored = slice(int(ends[0]), int(ends[-1]))
        return CsrRows(self.data[stored], self.indices[stored], ends - ends[0], (hi - lo, self.shape[1]))

    def transposed_product(self, coef: Array) -> Array:
        """Σ_j x_j coef_j, shape (n_features, n_outputs)."""
        out = np.zeros((self.shape[1], coef.shape[1]))
        np.add.at(out, self.indices, self.data[:, None] * np.repeat(coef, np.diff(self.indptr), axis=0))
        return out


def as_rows(X: Any, name: str = "X") -> Array | CsrRows:
    """Rows that a user gave: an array of two dimensions, or the arrays of a SciPy matrix of any format."""
    if isinstance(X, CsrRows):
        return X
    if hasattr(X, "tocsr"):
        check_sparse(X, name)
        X = X.tocsr()
        check_sparse(X, name)
        if X.shape[1] > WIDE_FEATURES and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return CsrRows(X.data, X.indices, X.indptr, X.shape)
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, rows and features; found shape {rows.shape}")
    return rows


def check_names(X: Any, names: list[str] | None, name: str = "X") -> None:
    """A ValueError where rows have names of features, the model too, and they are not the same in the same order."""
    found = list(getattr(X, "columns", ()))
    if not all(isinstance(column, str) for column in found):
        found = list(getattr(X, "column_names", ()))  # as Arrow calls them; numbers are no names
    if names is None or not found or found == names:
        return
    lacking, others = ([each for each in a if each not in b] for a, b in ((names, found), (found, names)))
    difference = "in another order" if not (lacking or others) else f"without {lacking[:20]}, with {others[:20]}"
    raise ValueError(f"{name} must have the columns of training in their order, {names[:20]}; found them {difference}")


def dense_rows(rows: Array | CsrRows, lo: int, hi: int) -> Array:
    """The rows lo, …, hi − 1 as a float64 array."""
    return rows.dense(lo, hi) if isinstance(rows, CsrRows) else np.asarray(rows[lo:hi], np.float64)


def check_finite(block: Array, name: str = "X", first_row: int = 0) -> None:
    """An error that names the first value that is not finite, in rows from that one on."""
    if not np.isfinite(block).all():
        row, column = np.argwhere(~np.isfinite(block))[0]
        raise ValueError(
            f"{name} must hold finite numbers, found {block[row, column]} in row {first_row + row}, column {column}"
        )


def sequences_of(X: Any, lengths: Any, names: list[str] | None = None) -> list[Array | CsrRows]:
    """A list of sequences of rows, or one array cut into pieces of these lengths, each as `as_rows` has it.

    Rows may be dictionaries of features that have these names.
    """
    if (dictionaries := dictionaries_of(X, lengths)) is not None:
        check_named(names)
        lengths = list(map(len, X)) if lengths is None else lengths
        parts, known = parts_of_dictionaries(dictionaries, names)
        return cut(CsrRows(*parts, (len(dictionaries), len(known))), lengths)
    if lengths is None:
        if hasattr(X, "shape") and getattr(X, "dtype", None) != np.dtype(object):
            raise ValueError("X must be a list of sequences, or one array together with lengths; found one array alone")
        return [as_rows(rows, f"sequence {e}") if np.shape(rows) != (0,) else np.zeros((0, 0))
                for e, rows in enumerate(X)]  # fmt: skip
    return cut(as_rows(X), lengths)


def cut(rows: Array | CsrRows, lengths: Any) -> list[Array | CsrRows]:
    """Rows in pieces of these lengths."""
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < 0).any() or lengths.sum() != rows.shape[0]:
        raise ValueError(
            f"lengths must be integers >= 0 that add up to the rows of X, {rows.shape[0]}; found {lengths}"
        )
    ends = np.cumsum(lengths)
    piece = rows.between if isinstance(rows, CsrRows) else partial(dense_rows, rows)
    return [piece(int(end - length), int(end)) for length, end in zip(lengths, ends, strict=True)]


class Scaling(NamedTuple):
    """x'_f = (x_f − offset_f) · factor_f, then no less than low_f and no more than high_f.

    Parameters
    ----------
    offset, factor : float64 ndarrays of shape (n_features,)
        Factors are positive.
    low, high : float64 ndarrays of shape (n_features,), or None
        Bounds of scalers that clip, in the scaled features; infinite where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.deploy.rows import Scaling
    >>> Scaling(np.array([10.0]), np.array([0.5]), None, None).rows(np.array([[12.0], [8.0]]))
    array([[ 1.],
           [-1.]])
    """

    offset: Array
    factor: Array
    low: Array | None
    high: Array | None

    def rows(self, X: Array) -> Array:
        """Scaled rows."""
        scaled = (X - self.offset) * self.factor
        return scaled if self.low is None or self.high is None else np.clip(scaled, self.low, self.high)

    def in_type(self, dtype: Any) -> Scaling:
        """The scaling with numbers of another type."""
        low, high = (None if bound is None else bound.astype(dtype) for bound in (self.low, self.high))
        return Scaling(self.offset.astype(dtype), self.factor.astype(dtype), low, high)

    def unscaled(self, X: Array) -> Array:
        """Rows that these are the scaled ones of, where no bound is met."""
        return X / self.factor + self.offset


def read_scaling(arrays: dict[str, Array], n_features: int) -> Scaling:
    """The scaling that a file's arrays say; ValueError where they do not fit."""
    has_bounds = "scaling_low" in arrays or "scaling_high" in arrays
    names = Scaling._fields if has_bounds else ("offset", "factor")
    parts = [arrays.get(f"scaling_{name}", np.empty(0)) for name in names]
    if any(part.shape != (n_features,) or part.dtype != np.float64 for part in parts):
        raise ValueError(f"the scaling must be float64 arrays of {n_features} numbers, one for each feature")
    offset, factor, *bounds = parts
    is_usable = np.isfinite(offset) & np.isfinite(factor) & (factor > 0)
    if not is_usable.all() or (bounds and not (bounds[0] <= bounds[1]).all()):
        raise ValueError("the scaling's offsets and factors must be finite, factors above 0, and no low above its high")
    return Scaling(offset, factor, *(bounds or (None, None)))

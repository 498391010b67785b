"""Sparse matrices whose index arrays contradict each other: compiled code reads beyond memory by them."""

from typing import Any

import numpy as np

# By format: whether rows are compressed, or else columns.
_COMPRESSED = {"csr": True, "csc": False, "bsr": True}


def check_sparse(X: Any, name: str = "X") -> None:
    """Raise a ValueError that says what is wrong with the index arrays of a sparse matrix; let anything else pass.

    SciPy builds such matrices without looking at their values, and anyone may change these later.

    Parameters
    ----------
    X : scipy sparse matrix or array of any format, or anything else
    name : str, default="X"
        What X is called in messages.
    """
    form = getattr(X, "format", None)
    if not hasattr(X, "tocsr") or form not in (*_COMPRESSED, "coo"):
        return
    n_rows, n_columns = X.shape
    if form == "coo":
        rows, columns = _whole_numbers(X.row, f"{name}.row"), _whole_numbers(X.col, f"{name}.col")
        if not len(rows) == len(columns) == len(X.data):
            raise ValueError(f"{name} is no matrix: it has {len(rows)} rows, {len(columns)} columns and {len(X.data)} "
                             "values of entries")  # fmt: skip
        _check_range(rows, n_rows, f"{name}.row")
        _check_range(columns, n_columns, f"{name}.col")
        return
    height, width = X.blocksize if form == "bsr" else (1, 1)
    lines = n_rows // height, n_columns // width
    n, n_others = lines if _COMPRESSED[form] else lines[::-1]
    ends, indices = _whole_numbers(X.indptr, f"{name}.indptr"), _whole_numbers(X.indices, f"{name}.indices")
    if len(ends) != n + 1:
        raise ValueError(f"{name}.indptr must have {n + 1} entries for shape {X.shape}, found {len(ends)}")
    if ends[0] != 0:
        raise ValueError(f"{name}.indptr must begin with 0, found {ends[0]}")
    falls = ends[1:] < ends[:-1]
    if falls.any():
        at = int(np.argmax(falls)) + 1
        raise ValueError(f"{name}.indptr must not decrease, found {ends[at]} at position {at}, after {ends[at - 1]}")
    if ends[-1] > min(len(indices), len(X.data)):
        at = int(np.argmax(ends > min(len(indices), len(X.data))))
        raise ValueError(f"{name}.indptr must end within the stored values, {len(X.data)} of {len(indices)} indices, "
                         f"found {ends[at]} at position {at}")  # fmt: skip
    _check_range(indices[: ends[-1]], n_others, f"{name}.indices")


def _whole_numbers(values: Any, name: str) -> np.ndarray:
    """One dimension of whole numbers."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers in one dimension, found {values.dtype} of shape {values.shape}")
    return values


def _check_range(values: np.ndarray, n: int, name: str) -> None:
    """An error that names the first value outside 0, …, n − 1."""
    if len(values) and (values.min() < 0 or values.max() >= n):
        at = int(np.argmax((values < 0) | (values >= n)))
        raise ValueError(f"{name} must lie between 0 and {n - 1}, found {values[at]} at position {at}")

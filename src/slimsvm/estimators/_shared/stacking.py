"""Lists of examples, each with its rows, as one array of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from slimsvm.sparse_parts import check_sparse

Array = np.ndarray


def stack_sequences(X: Any, width: int | None, noun: str) -> tuple[Any, Array]:
    """A list of examples as one array of rows, and the number of rows of each.

    Parameters
    ----------
    X : list of array-likes or sparse matrices (length, n_features)
        Of length 0 where an example has no rows.
    width : int or None
        Features that they must have; None: those of the first, and at least one row.
    noun : str
        What an example is called in messages.

    Returns
    -------
    rows : ndarray or csr_array, or None where there is no row
    lengths : int64 ndarray
    """
    if (isinstance(X, np.ndarray) and X.dtype != object) or sp.issparse(X) or hasattr(X, "iloc"):
        raise ValueError(f"X must be a list of {noun}s, or one array together with lengths; found one array alone")
    if not len(X):
        raise ValueError(f"X must hold at least one {noun}, found none")
    rows_needed, parts = width is None, []
    for e, sequence in enumerate(X):
        check_sparse(sequence, f"{noun} {e}")
        part: Any = sequence if sp.issparse(sequence) else np.asarray(sequence)
        if part.ndim == 0 or (part.shape[0] and part.ndim != 2):
            raise ValueError(f"every {noun} must have shape (length, n_features); {noun} {e} has {part.shape}")
        if part.shape[0]:
            width = part.shape[1] if width is None else width
            if part.shape[1] != width:
                raise ValueError(f"{noun} {e} has {part.shape[1]} features, found {width} before")
        parts.append(part)
    filled = [part for part in parts if part.shape[0]]
    lengths = np.array([part.shape[0] for part in parts], dtype=np.int64)
    if not filled:
        if rows_needed:
            raise ValueError(f"X must hold at least one row, found empty {noun}s only")
        return None, lengths
    if sp.issparse(filled[0]):
        stacked: Any = sp.vstack([sp.csr_array(part) for part in filled])
        return sp.csr_array(stacked), lengths
    return np.concatenate([check_array(part, ensure_all_finite=False) for part in filled]), lengths


def check_one_array(X: Any, noun: str) -> None:
    """With lengths, X must be one array of all rows."""
    if isinstance(X, (list, tuple)) and len(X) and (sp.issparse(X[0]) or getattr(X[0], "ndim", 1) == 2):
        raise ValueError(f"X must be a list of {noun}s, or one array together with lengths; found a list and lengths")


def offsets_of(lengths: Any, n_rows: int, noun: str) -> Array:
    """Where each example begins among ``n_rows`` rows below each other, and where the last one ends."""
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or not len(lengths) or lengths.dtype.kind not in "iu" or (lengths < 0).any():
        raise ValueError(f"lengths must be integers >= 0, one for each {noun}; found {lengths!r}")
    if lengths.sum() != n_rows:
        raise ValueError(f"lengths must add up to the rows of X, {n_rows}; found {lengths.sum()}")
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

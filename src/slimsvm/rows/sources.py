"""Files that rows are read from while they are used: whoever writes there destroys them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from slimsvm.rows.arrays import is_sparse


def files_of(X: Any) -> tuple[str, ...]:
    """The files of memory maps, of sparse matrices of such, and of `Blocks`, as far as they are known."""
    if is_sparse(X):
        parts = [getattr(X, name, None) for name in ("data", "indices", "indptr")]
        return tuple(file for part in parts for file in files_of(part))
    if not isinstance(X, np.ndarray):
        return getattr(X, "files", ())
    array: Any = X
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return (os.fspath(array.filename),)
        array = array.base
    return ()

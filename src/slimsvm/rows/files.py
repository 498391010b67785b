"""The files that rows are read from, and whether one has changed since."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.rows.arrays import is_sparse


def files_of(X: Any) -> tuple[str, ...]:
    """Return the files of memory maps, of sparse matrices of such, and of `Blocks`, where they are known."""
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


@dataclass(frozen=True)
class Stamp:
    """Size and time of the last change of a file."""

    path: str
    n_bytes: int
    changed: int

    @classmethod
    def of(cls, path: str | os.PathLike) -> Stamp:
        """Return the stamp that a file has now."""
        found = os.stat(path)
        return cls(os.fspath(path), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that has changed.

        Raises
        ------
        ValueError
            It has another size or was written to.
        FileNotFoundError
            It is gone.
        """
        now = Stamp.of(self.path)
        if now != self:
            raise ValueError(
                f"the file {self.path} has changed since it was first read: it had {self.n_bytes} bytes and has "
                f"{now.n_bytes}"
            )

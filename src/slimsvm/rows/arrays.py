"""Rows held in one dense array (in memory or memory-mapped) or in one CSR matrix, and the files they are read from."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.core.clock import check_time
from slimsvm.sparse_parts import check_sparse

Block = np.ndarray | sp.csr_array
FLOATS = np.dtype(np.float32), np.dtype(np.float64)
# Sparse rows of more features than this are text and the like: optimising dense vectors among them costs too much.
MAX_SPARSE_FEATURES = 1000
# The rows of a part: sums over all rows are made part by part and added in order, wherever parts are processed.
PASS_ROWS = 1 << 18
# The values that are checked together for being finite.
CHECKED_VALUES = 1 << 20
# The values that are copied between two looks at the clock.
TAKEN_VALUES = 1 << 21


class Rows(ABC):
    """The base class of rows of a data matrix, which are read as blocks.

    A block is a C-contiguous array or a ``scipy.sparse.csr_array`` in canonical format, of the dtype asked for. It may
    share memory with the data: nobody writes to a block.

    Attributes
    ----------
    n_rows, n_features : int
        Shape of the whole.
    is_sparse : bool
        Whether blocks are CSR.
    shape : tuple of int
        (n_rows, n_features).
    in_memory : bool
        False where the rows are on disk (a memory map): no copy of the whole may be made.
    has_random_access : bool
        False where rows at random places cost far more than neighbours (`Blocks`).
    is_remote : bool
        Whether passes are made elsewhere, by ``map`` and ``each`` as `slimsvm.dask` has them.
    n_stored : int
        Number of values stored: n_rows * n_features, or that of a sparse matrix's entries.
    dtype : numpy.dtype
        Type the values are stored in.
    feature_names : list of str or None
        The names of the columns, if they have names.
    column_sums : ColumnSums or None
        Kept by a pass over rows that are not in memory; see `slimsvm.rows.columns`.
    largest_norm : float or None
        Greatest squared length of a row, once `slimsvm.kernels` has asked for it.
    """

    feature_names: list[str] | None = None
    column_sums: Any = None
    largest_norm: float | None = None
    n_rows: int
    n_features: int
    is_sparse: bool
    in_memory: bool
    has_random_access: bool = True
    is_remote: bool = False
    n_stored: int
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and of features."""
        return self.n_rows, self.n_features

    @abstractmethod
    def take(self, index: np.ndarray, dtype: Any) -> Block:
        """Return the rows at the positions ``index`` (int64, shape (b,)), in that order, as a block of ``dtype``."""

    @abstractmethod
    def slice(self, lo: int, hi: int, dtype: Any) -> Block:
        """Return the rows lo, …, hi - 1 as a block of ``dtype``."""

    def blocks(self, max_rows: int) -> Iterator[tuple[int, int]]:
        """Yield bounds (lo, hi) of consecutive blocks of at most ``max_rows`` rows that cover all rows."""
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {max_rows}")
        for lo in range(0, self.n_rows, max_rows):
            yield lo, min(self.n_rows, lo + max_rows)

    def parts(self) -> list[tuple[int, int]]:
        """Return the bounds of the parts in which sums over all rows are made."""
        return parts_of(self.n_rows)

    def map(self, function: Callable[..., Any], *items: list[Any], keep: bool = False) -> list[Any]:
        """Return function(rows, *own) for the rows of each part, with its own items. With ``keep``, results of remote
        parts stay where they are made.
        """
        parts = self.parts()
        rows = [self] if len(parts) == 1 else [RowRange(self, lo, hi) for lo, hi in parts]
        return [function(*part) for part in zip(rows, *items, strict=True)]

    def tell(self, listener: Callable[[int, int, str], None] | None) -> None:
        """Tell ``listener`` from now on which block is asked for: its number, how many there are, and what
        messages call it. Rows without blocks have nothing to tell.
        """
        return

    @property
    def exact_dtype(self) -> np.dtype:
        """Return a float type that loses nothing of the stored values: float32 if that holds them, else float64."""
        return np.dtype(np.float32 if np.can_cast(self.dtype, np.float32) else np.float64)


class _SomeRows(Rows):
    """Some of the rows of another object, without a copy."""

    def __init__(self, rows: Rows, n_rows: int):
        self._rows, self.n_rows, self.n_features, self.dtype = rows, n_rows, rows.n_features, rows.dtype
        self.is_sparse, self.in_memory, self.has_random_access = rows.is_sparse, rows.in_memory, rows.has_random_access
        self.n_stored = rows.n_stored * n_rows // max(1, rows.n_rows)

    def tell(self, listener: Callable[[int, int, str], None] | None) -> None:
        """Tell the listener of the blocks of those other rows."""
        self._rows.tell(listener)


class RowRange(_SomeRows):
    """The rows lo, …, hi − 1 of other rows."""

    def __init__(self, rows: Rows, lo: int, hi: int):
        super().__init__(rows, hi - lo)
        self._lo = lo

    def take(self, index: np.ndarray, dtype: Any) -> Block:
        """Return rows at positions within the range."""
        return self._rows.take(np.asarray(index) + self._lo, dtype)

    def slice(self, lo: int, hi: int, dtype: Any) -> Block:
        """Return neighbouring rows within the range."""
        return self._rows.slice(self._lo + lo, self._lo + hi, dtype)


class ChosenRows(_SomeRows):
    """Rows of another object at chosen positions."""

    def __init__(self, rows: Rows, index: np.ndarray):
        super().__init__(rows, len(index))
        self._index = index

    def take(self, index: np.ndarray, dtype: Any) -> Block:
        """Return some of the chosen rows."""
        return self._rows.take(self._index[index], dtype)

    def slice(self, lo: int, hi: int, dtype: Any) -> Block:
        """Return chosen rows that stand one after another."""
        return self._rows.take(self._index[lo:hi], dtype)


class DenseRows(Rows):
    """Rows of a 2-D array of any real dtype and memory order, `numpy.memmap` included; converted block by block."""

    is_sparse = False

    def __init__(self, X: np.ndarray):
        self._X = X
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype
        self.in_memory = _map_of(X) is None
        self.n_stored = self.n_rows * self.n_features

    def look(self) -> None:
        """Refuse a memory map whose file has become shorter: to read on would end the process."""
        look_at_map(self._X)

    def take(self, index: np.ndarray, dtype: Any) -> np.ndarray:
        """Return rows at the positions of ``index``, in that order."""
        if not self.in_memory:
            self.look()
        return np.ascontiguousarray(self._X[index], dtype=dtype).view(np.ndarray)

    def slice(self, lo: int, hi: int, dtype: Any) -> np.ndarray:
        """Return rows lo, …, hi − 1."""
        if not self.in_memory:
            self.look()
        return np.ascontiguousarray(self._X[lo:hi], dtype=dtype).view(np.ndarray)

    def plain(self) -> np.ndarray | None:
        """Return the array itself if compiled code can read it without a copy; otherwise None."""
        return plain_floats(self._X)


class SparseRows(Rows):
    """Rows of a CSR matrix with sorted, distinct columns in each row."""

    is_sparse = True
    in_memory = True

    def __init__(self, X: sp.csr_array):
        self._X = X
        self.n_rows, self.n_features = X.shape
        self.n_stored, self.dtype = X.nnz, X.dtype

    def take(self, index: np.ndarray, dtype: Any) -> sp.csr_array:
        """Return rows at the positions of ``index``, in that order."""
        return self._X[index].astype(dtype, copy=False)

    def slice(self, lo: int, hi: int, dtype: Any) -> sp.csr_array:
        """Return rows lo, …, hi − 1."""
        X, start, stop = self._X, self._X.indptr[lo], self._X.indptr[hi]
        parts = (X.data[start:stop].astype(dtype, copy=False), X.indices[start:stop], X.indptr[lo : hi + 1] - start)
        return sp.csr_array(parts, shape=(hi - lo, self.n_features))


def find_not_finite(X: Any) -> tuple[int, int, Any] | None:
    """Return row, column and value of the first NaN or infinity of an array or CSR matrix, or None; read in blocks."""
    if is_sparse(X):
        bad: Any = np.flatnonzero(~np.isfinite(X.data)) if X.data.dtype.kind == "f" else ()
        if not len(bad):
            return None
        return int(np.searchsorted(X.indptr, bad[0], side="right")) - 1, int(X.indices[bad[0]]), X.data[bad[0]]
    if X.dtype.kind != "f":
        return None
    step = max(1, CHECKED_VALUES // max(1, X.shape[1]))
    for lo in range(0, X.shape[0], step):
        look_at_map(X)
        block = X[lo : lo + step]
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum()  # a sum of large finite values may be infinite
        if not np.isfinite(total) and not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            return lo + int(row), int(column), block[row, column]
    return None


def say_not_finite(
    found: tuple[int, Any, Any], first: int = 0, where: str = "", names: Any = None, of: str = "X"
) -> str:
    """Return the message about a number that `find_not_finite` found.

    Of a part of the rows ``first`` is the number of its first row among all rows, ``where`` its name. ``names`` are
    those of the columns, if they have names; a column that is None is not told.
    """
    row, column, value = found
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    column = "" if column is None else f", column {(column if names is None else names[column])!r}"
    part = f", which is row {row} of {where}" if where else ""
    return f"{of} contains {what} at row {first + row}{column}{part}; only finite numbers are accepted"


def in_pieces(n: int, size: int) -> Iterator[slice]:
    """Yield slices of at most ``size`` of n numbers (one if ``size`` is 0), one after another."""
    size = max(1, size)
    for lo in range(0, n, size):
        yield slice(lo, min(n, lo + size))


def taken(rows: Rows, index: np.ndarray, dtype: Any) -> Block:
    """Return rows at the positions of ``index`` as `Rows.take` does, and look at the clock between pieces."""
    width = rows.n_stored // max(1, rows.n_rows) if rows.is_sparse else rows.n_features
    pieces = list(in_pieces(len(index), TAKEN_VALUES // max(1, width)))
    if len(pieces) <= 1:
        return rows.take(index, dtype)
    parts = list[Any]()
    out = np.empty((0 if rows.is_sparse else len(index), rows.n_features), dtype)
    for part in pieces:
        check_time()
        found = rows.take(index[part], dtype)
        if rows.is_sparse:
            parts.append(found)
        else:
            out[part] = found
    return sp.csr_array(sp.vstack(parts, format="csr")) if rows.is_sparse else out


def parts_of(n: int) -> list[tuple[int, int]]:
    """Return the bounds of the parts in which sums over n rows are made; no rows are one part."""
    return [(part.start, part.stop) for part in in_pieces(n, PASS_ROWS)] or [(0, 0)]


def plain_floats(X: np.ndarray) -> np.ndarray | None:
    """Return X if compiled code can read it without a copy (C-contiguous floats); otherwise None.

    Compiled code has one version for each type of float; one more for arrays that may not be written to is spared. Of
    a memory map None: its file is looked at before each block.
    """
    flags = X.flags
    is_plain = X.dtype in FLOATS and flags.c_contiguous and flags.aligned and flags.writeable and _map_of(X) is None
    return X.view(np.ndarray) if is_plain else None


is_sparse: Callable[[Any], bool] = sp.issparse


def is_text(X: Any) -> bool:
    """Whether X, an array or `Rows`, is sparse with more than `MAX_SPARSE_FEATURES` features, as words are counted."""
    sparse, d = (X.is_sparse, X.n_features) if isinstance(X, Rows) else (is_sparse(X), X.shape[1])
    return bool(sparse and d > MAX_SPARSE_FEATURES)


def as_csr(X: Any) -> sp.csr_array:
    """Return X as CSR with sorted, distinct columns in each row; without a copy if it is so already."""
    check_sparse(X)
    converted: Any = sp.csr_array(X)
    if X.format not in ("csr", "csc", "coo"):
        check_sparse(converted)
    if not converted.has_canonical_format:
        converted = converted.copy() if X.format == "csr" else converted
        converted.sum_duplicates()
    return converted


def _map_of(X: np.ndarray) -> mmap.mmap | np.memmap | None:
    """Return the memory map that holds an array's values, or the `numpy.memmap` itself if its file is not known."""
    base: Any = X
    found = None
    while base is not None:
        if isinstance(base, mmap.mmap):
            return base
        found = base if isinstance(base, np.memmap) else found
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return found


def look_at_map(X: np.ndarray) -> None:
    """Refuse an array in a memory map whose file has become shorter: to read on would end the process."""
    found = _map_of(X)
    if not isinstance(found, mmap.mmap):
        return
    try:
        size = found.size()
    except (OSError, ValueError):  # there is no file, or it is not known
        return
    if size < len(found):
        raise ValueError(
            f"the file of a memory map has become shorter while it was in use: it has {size} bytes, {len(found)} are "
            "mapped"
        )


def check_mask(X: Any, name: str = "X") -> None:
    """Refuse a masked array in which an entry is masked: its values would be taken for numbers."""
    if isinstance(X, np.ma.MaskedArray) and (mask := np.ma.getmaskarray(X)).any():
        row, *column = np.argwhere(mask)[0].tolist()
        where = f"row {row}" + "".join(f", column {each}" for each in column)
        raise ValueError(f"{name} contains a masked entry at {where}; only finite numbers are accepted")


def as_rows(X: Any) -> Rows:
    """Return the rows of a data matrix.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d), or Rows
        Dense: any real dtype (bool, integer, float16 and up), C or F order, memory maps too; never copied whole.
        Sparse: CSR is kept (64-bit indices too) if its columns are sorted and distinct in each row; otherwise, and for
        other formats, a CSR copy is made.

    Returns
    -------
    Rows
        `Rows` objects come back as they are.

    Raises
    ------
    TypeError
        Values are not real numbers.
    ValueError
        Not two-dimensional, or an entry is masked.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.rows import as_rows
    >>> rows = as_rows(np.arange(6).reshape(3, 2))
    >>> rows.n_rows, rows.n_features, list(rows.blocks(2))
    (3, 2, [(0, 2), (2, 3)])
    >>> rows.take(np.array([2, 0]), np.float64)
    array([[4., 5.],
           [0., 1.]])
    """
    if isinstance(X, Rows):
        return X
    sparse = is_sparse(X)
    if not sparse:
        X = np.asanyarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, features), got {X.ndim}")
    check_mask(X)
    if X.dtype.kind not in "buif":
        raise TypeError(f"X must hold real numbers, got dtype {X.dtype}")
    return SparseRows(as_csr(X)) if sparse else DenseRows(X)


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
        """Refuse a file that has another size or was written to; a FileNotFoundError says that it is gone."""
        now = Stamp.of(self.path)
        if now != self:
            raise ValueError(
                f"the file {self.path} has changed since it was first read: it had {self.n_bytes} bytes and has "
                f"{now.n_bytes}"
            )

"""Rows as a sequence of blocks, each made when it is needed: data of any size can be read without holding it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.core.threads import renew_lock_after_fork
from slimsvm.rows.arrays import (
    CHECKED_VALUES,
    Block,
    DenseRows,
    Rows,
    as_rows,
    files_of,
    find_not_finite,
    is_sparse,
    say_not_finite,
)
from slimsvm.rows.labels import Labelled, made_by, read_labels, where_is

CACHE_BYTES = 256_000_000


class Blocks(Rows):
    """Rows as a sequence of blocks, each made when it is needed, for data that do not fit in memory.

    Results do not depend on where one block ends and the next begins. Every block is checked when it is made: it must
    have the first block's number of columns and dtype, the same number of rows as last time, and only finite numbers.

    Blocks are made one at a time, whichever thread asks; the first ones that fit are kept. A pass over all rows makes
    every other block once; a thread makes the next one while this one is processed. Reading single rows
    makes all blocks that contain them, so solvers that need all rows in memory refuse `Blocks`.

    Parameters
    ----------
    blocks : sequence of (array, CSR matrix or callable)
        Two-dimensional arrays (also memory maps) or sparse matrices of real numbers, used without a copy, or
        functions without arguments that return one. A function must always return the same rows. Blocks may have no
        rows.
    n_rows : sequence of int or None, default=None
        Number of rows of every block. None: functions are called once each to count.
    names : sequence of str or None, default=None
        Names of the blocks for messages, such as their files.
    columns : sequence of str or None, default=None
        Names of the features, for messages and for ``feature_names_in_`` of the fitted estimator. Data frames and Arrow
        tables have their own.
    n_stored : int or None, default=None
        Number of values stored in all blocks, if these are sparse. None: if ``n_rows`` is given, all are made once to
        count.
    cache_bytes : int, default=256_000_000
        Blocks made by functions are kept up to this many bytes, besides the last one used.

    Attributes
    ----------
    n_blocks : int
    bounds : int64 ndarray of shape (n_blocks + 1,)
        Block i has the rows bounds[i], …, bounds[i + 1] − 1.
    n_rows, n_features, shape
        Sizes of all blocks together.
    is_sparse : bool
        Whether blocks are CSR.
    dtype : numpy.dtype
        Type of every block.
    feature_names : list of str or None
        The given ``columns``, or those of the data frames or Arrow tables that the blocks are.
    files : tuple of str
        Files that blocks are read from, as far as they are known: Parquet, LIBSVM text, memory maps. Fitted estimators
        refuse to write onto them.

    Raises
    ------
    TypeError
        A block contains something else than real numbers.
    ValueError
        There are no rows; or a block is not a matrix, has other columns, another dtype or another number of rows than
        it should, or a NaN or an infinity. The message names the block, and the row counted from the first block's
        first row.
    RuntimeError
        A function failed with another error than a ValueError; that error is the cause.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SVC, Blocks
    >>> rng = np.random.default_rng(0)
    >>> X = Blocks([rng.normal(size=(n, 2)) for n in (300, 0, 700)])
    >>> X.shape, X.bounds.tolist()
    ((1000, 2), [0, 300, 300, 1000])
    >>> y = X.slice(0, 1000, np.float64).prod(axis=1) > 0
    >>> clf = SVC(max_basis=20, C=10.0, random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.95)
    True
    """

    in_memory = False
    has_random_access = False
    _listener: Callable[[int, int, str], None] | None = None

    def __init__(
        self,
        blocks: Iterable[Any],
        n_rows: Sequence[int] | None = None,
        *,
        names: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        n_stored: int | None = None,
        cache_bytes: int = CACHE_BYTES,
    ):
        blocks = list(blocks)
        _check_cache(cache_bytes)
        self._columns_of_frames: list[Any] | None = None if columns is None else list(columns)
        self.feature_names = None if columns is None else list(columns)
        self.files = tuple(dict.fromkeys(file for source in blocks for file in files_of(source)))
        self._sources = [source if callable(source) else self._held(source, i) for i, source in enumerate(blocks)]
        _check_entries("n_rows", n_rows, len(self._sources))
        _check_sizes(n_rows)
        _check_entries("names", names, len(self._sources))
        self._names = names
        self._store = BlockStore(self._made, len(self._sources), cache_bytes)
        self._is_checked = np.zeros(len(self._sources), bool)
        self.bounds = np.zeros(1, np.int64)
        self._like: Rows | None = None
        self._count(n_rows, n_stored)

    @classmethod
    def with_labels(
        cls,
        blocks: Iterable[Any],
        *,
        names: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> Any:
        """Return rows, labels (and weights) of blocks that contain all of them: ``fit(*Blocks.with_labels(blocks))``.

        Parameters
        ----------
        blocks : sequence of (tuple or callable)
            (X, y) or (X, y, weights) of some rows, or functions without arguments that return one. All are read
            once for labels and weights, which stay in memory; functions are called again when their rows are read.
        names, columns, cache_bytes
            The same as in `Blocks`.

        Returns
        -------
        (Blocks, labels) or (Blocks, labels, weights)

        Raises
        ------
        ValueError
            As in `Blocks`; or a block does not have one label (and weight) for each of its rows, or has labels of
            another kind than the blocks before it.

        Examples
        --------
        >>> import numpy as np
        >>> from slimsvm import SVC, Blocks
        >>> def block(seed):
        ...     X = np.random.default_rng(seed).normal(size=(500, 2))
        ...     return X, np.where(X[:, 0] * X[:, 1] > 0, "in", "out")
        >>> X, y = Blocks.with_labels([lambda seed=seed: block(seed) for seed in range(3)])
        >>> X, y.shape
        (Blocks(1500 rows, 2 features, 3 dense blocks of float64), (1500,))
        >>> bool(SVC(max_basis=20, C=10.0, random_state=0).fit(X, y).score(X, y) > 0.95)
        True
        """
        blocks = list(blocks)
        _check_entries("names", names, len(blocks))
        found = read_labels(blocks, names)
        return found.beside(cls(found.blocks, found.n_rows, **found.options, columns=columns, cache_bytes=cache_bytes))

    @classmethod
    def from_parquet(
        cls, paths: str | os.PathLike | Iterable[str | os.PathLike],
        columns: Sequence[str] | None = None, label: str | None = None, weight: str | None = None, *,
        cache_bytes: int = CACHE_BYTES,
    ) -> Any:  # fmt: skip
        """Return rows of Parquet files, each row group a block; needs ``pip install 'slimsvm[parquet]'``.

        Parameters
        ----------
        paths : str or path-like, or several
            Files in order, and folders, whose files ending in ``.parquet`` are taken in the order of their names.
        columns : sequence of str or None, default=None
            The features. None: all columns except ``label``, ``weight`` and those in which pandas keeps an index.
        label, weight : str or None, default=None
            Columns that are returned as arrays: labels (numbers or strings), and weights of rows.
        cache_bytes : int, default=256_000_000
            The same as in `Blocks`.

        Returns
        -------
        Blocks, or (Blocks, labels) or (Blocks, labels, weights) if these are asked for
            The dtype is NumPy's common type of all features.

        Raises
        ------
        ImportError
            pyarrow is not installed.
        ValueError
            A file is not a Parquet file; or a column is missing, has other types in other files, contains something
            else than numbers (booleans, integers, floats), or contains a null.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import numpy as np
        >>> import pyarrow
        >>> from pyarrow import parquet
        >>> from slimsvm import Blocks
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "rows.parquet"
        ...     table = pyarrow.table({"size": [1.5, 2.0, 0.5], "age": [3, 1, 2], "kind": ["a", "b", "a"]})
        ...     parquet.write_table(table, path, row_group_size=2)
        ...     X, y = Blocks.from_parquet(path, label="kind")
        ...     rows = X.slice(0, 3, np.float64)
        >>> X, X.feature_names, y.tolist(), rows[2].tolist()
        (Blocks(3 rows, 2 features, 2 dense blocks of float64), ['size', 'age'], ['a', 'b', 'a'], [0.5, 2.0])
        """
        arrow = _arrow()
        files = tuple(map(os.fspath, arrow.parquet_files(paths)))
        return cls._of_parts(arrow.blocks_of(arrow.parquet_parts(files), columns, label, weight), cache_bytes, files)

    @classmethod
    def from_arrow(
        cls, tables: Any,
        columns: Sequence[str] | None = None, label: str | None = None, weight: str | None = None, *,
        cache_bytes: int = CACHE_BYTES,
    ) -> Any:  # fmt: skip
        """Return rows of one or several tables or record batches of pyarrow, each batch a block.

        Parameters
        ----------
        tables : pyarrow.Table, pyarrow.RecordBatch, or several
        columns, label, weight, cache_bytes
            The same as in `from_parquet`.

        Returns
        -------
        Blocks, or (Blocks, labels) or (Blocks, labels, weights) if these are asked for

        Raises
        ------
        ImportError
            pyarrow is not installed.
        TypeError
            Something among the tables is no table.
        ValueError
            The same as in `from_parquet`.
        """
        arrow = _arrow()
        return cls._of_parts(arrow.blocks_of(arrow.table_parts(tables), columns, label, weight), cache_bytes)

    @classmethod
    def _of_parts(cls, found: Labelled, cache_bytes: int, files: tuple[str, ...] = ()) -> Any:
        blocks = cls(found.blocks, found.n_rows, **found.options, cache_bytes=cache_bytes)
        blocks.files = files
        return found.beside(blocks)

    @property
    def n_blocks(self) -> int:
        """Return the number of blocks."""
        return len(self._sources)

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        return f"Blocks({self.n_rows} rows, {self.n_features} features, {self.n_blocks} {kind} blocks of {self.dtype})"

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        raise TypeError(
            f"{self!r} are read block by block and not made into an array: this place takes arrays only; "
            "Blocks.slice(lo, hi, dtype) is the array of some rows"
        )

    def tell(self, listener: Callable[[int, int, str], None] | None) -> None:
        """Call ``listener`` from now on with each block that is asked for."""
        self._listener = listener

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_listener"}

    def take(self, index: np.ndarray, dtype: Any) -> Block:
        """Return the rows at the positions of ``index``: every block that holds some of them is made once."""
        index = np.asarray(index, np.int64)
        if len(index) and not (index.min() >= 0 and index.max() < self.n_rows):
            raise IndexError(f"rows must be in 0..{self.n_rows - 1}, found {index.min()}..{index.max()}")
        owner = np.searchsorted(self.bounds, index, side="right") - 1
        order = np.argsort(owner, kind="stable")
        ends = np.flatnonzero(np.diff(owner[order], append=-1)) + 1
        pieces = []
        for places in np.split(order, ends[:-1]) if len(index) else []:
            i = int(owner[places[0]])
            pieces.append((places, self._block(i).take(index[places] - self.bounds[i], dtype)))
        return self._joined(pieces, len(index), dtype)

    def slice(self, lo: int, hi: int, dtype: Any) -> Block:
        """Return the rows lo, …, hi − 1; without a copy if they lie in one block of the dtype asked for."""
        hi = min(hi, self.n_rows)
        first, last = np.searchsorted(self.bounds, [lo, hi - 1], side="right") - 1
        pieces = []
        for i in range(first, last + 1 if hi > lo else first):
            start, stop = max(lo, self.bounds[i]), min(hi, self.bounds[i + 1])
            if start < stop:
                part = self._block(i).slice(int(start - self.bounds[i]), int(stop - self.bounds[i]), dtype)
                pieces.append((slice(start - lo, stop - lo), part))
        if len(pieces) == 1:
            return pieces[0][1]
        return self._joined(pieces, max(0, hi - lo), dtype)

    def _joined(self, pieces: list[tuple[Any, Block]], n: int, dtype: Any) -> Block:
        """Return one block of n rows, joined from pieces and their places in it."""
        if not self.is_sparse:
            out = np.empty((n, self.n_features), dtype)
            for places, piece in pieces:
                out[places] = piece
            return out
        if not pieces:
            return sp.csr_array((n, self.n_features), dtype=dtype)
        parts: Any = [piece for _, piece in pieces]
        stacked = sp.csr_array(sp.vstack(parts, format="csr"))
        if isinstance(pieces[0][0], slice):
            return stacked
        return stacked[np.argsort(np.concatenate([places for places, _ in pieces]))]

    # -- one block ----------------------------------------------------------------------------------------------

    def _count(self, n_rows: Sequence[int] | None, all_stored: int | None) -> None:
        """Find the bounds, dtype and form of all blocks; makes blocks only where nothing else tells."""
        sizes, n_stored = np.zeros(self.n_blocks, np.int64), 0
        for i in range(self.n_blocks):
            known = None if n_rows is None else int(n_rows[i])
            # If dense blocks' sizes are given, the first one with rows tells the dtype of the rest.
            is_known = self._like is not None and (not self._like.is_sparse or all_stored is not None)
            if known is not None and callable(self._sources[i]) and (not known or is_known):
                sizes[i] = known
                continue
            block = self._checked(i, known, int(sizes.sum()))
            sizes[i] = block.n_rows
            n_stored += block.n_stored
            if callable(self._sources[i]):
                self._store.put(i, block)
        if self._like is None or not sizes.sum():
            raise ValueError(f"Blocks must have rows, found {self.n_blocks} blocks without any")
        self.bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n_rows, self.n_features = int(self.bounds[-1]), self._like.n_features
        self.is_sparse, self.dtype = self._like.is_sparse, self._like.dtype
        n_stored = n_stored if all_stored is None else all_stored
        self.n_stored = n_stored if self.is_sparse else self.n_rows * self.n_features

    def _block(self, i: int) -> Rows:
        """Return block i, given, kept or made again."""
        source, listener = self._sources[i], self._listener
        if listener is not None:
            listener(i, self.n_blocks, where_is(i, self._names))
        if callable(source):
            return self._store.get(i)
        if isinstance(source, DenseRows):
            try:
                source.look()
            except ValueError as error:
                raise ValueError(f"{where_is(i, self._names)}: {error}") from None
        return source if self._is_checked[i] else self._made(i)

    def _made(self, i: int) -> Rows:
        return self._checked(i, int(self.bounds[i + 1] - self.bounds[i]), int(self.bounds[i]))

    def _held(self, source: Any, i: int) -> Rows:
        """Return the given block i, as rows."""
        self._check_columns(source, f"block {i}")
        try:
            return as_rows(source)
        except (TypeError, ValueError) as error:
            raise type(error)(f"block {i}: {str(error).removeprefix('X ')}") from None

    def _checked(self, i: int, n_rows: int | None, first: int) -> Rows:
        """Make and check block i; ``first`` is the number of its first row."""
        source = self._sources[i]
        where = where_is(i, self._names)
        made = source
        if callable(source):
            made = made_by(source, where)
            made = self._found(made, where)
        if n_rows is not None and made.n_rows != n_rows:
            raise ValueError(
                f"{where} has {made.n_rows} rows, expected are {n_rows}: blocks must stay as they are while they are "
                "in use"
            )
        if made.n_rows:
            self._check_like_others(made, where)
            self._check_finite(made, where, first)
        self._is_checked[i] = True
        return made

    def _check_finite(self, block: Rows, where: str, first: int) -> None:
        for lo, hi in block.blocks(max(1, CHECKED_VALUES // block.n_features)):
            found = find_not_finite(block.slice(lo, hi, block.dtype))
            if found is not None:
                row, column, value = found
                whole = lo + row, column, value
                raise ValueError(say_not_finite(whole, first, where, self.feature_names))

    def _found(self, made: Any, where: str) -> Rows:
        """Return the result of a function, as rows."""
        self._check_columns(made, where)
        try:
            return as_rows(made if is_sparse(made) else np.asanyarray(made))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}: {str(error).removeprefix('X ')}") from None

    def _check_columns(self, block: Any, where: str) -> None:
        """Refuse a data frame that has not the columns of those before it, or not in their order."""
        found: Any = getattr(block, "column_names", getattr(block, "columns", None))  # Arrow's columns are the data
        if found is None:
            return
        if self._columns_of_frames is None:
            self._columns_of_frames = list(found)
            self.feature_names = list(found) if all(isinstance(name, str) for name in found) else None
        found, expected = list(map(str, found)), list(map(str, self._columns_of_frames))
        if found != expected:
            raise ValueError(f"{where} has the columns {found}, expected are {expected}, in this order")

    def _check_like_others(self, block: Rows, where: str) -> None:
        """Refuse a block that differs from the first one with rows in columns, dtype or form."""
        if self._like is None:
            if block.n_features == 0:
                raise ValueError(f"{where} has no columns")
            if self.feature_names is not None and len(self.feature_names) != block.n_features:
                raise ValueError(
                    f"columns must have a name for each feature, found {len(self.feature_names)} for the "
                    f"{block.n_features} of {where}"
                )
            self._like = as_rows(block.slice(0, 0, block.dtype))
        like = self._like
        for what, found, expected in (
            ("columns", block.n_features, like.n_features),
            ("dtype", block.dtype, like.dtype),
            ("form", _form(block), _form(like)),
        ):
            if found != expected:
                raise ValueError(
                    f"{where} has another {what} than the blocks before it: found {found}, expected is {expected}"
                )


def _check_entries(what: str, given: Sequence[Any] | None, n_blocks: int) -> None:
    if given is not None and np.size(given) != n_blocks:
        raise ValueError(f"{what} must have an entry for each of the {n_blocks} blocks, found {np.size(given)}")


def _check_sizes(n_rows: Sequence[Any] | None) -> None:
    for i, n in enumerate(() if n_rows is None else n_rows):
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 0:
            raise ValueError(f"n_rows must be whole numbers >= 0, found {n!r} for block {i}")


def _check_cache(cache_bytes: Any) -> None:
    if isinstance(cache_bytes, bool) or not isinstance(cache_bytes, Real):
        raise ValueError(f"cache_bytes must be a number of bytes, found {cache_bytes!r}")


def _arrow() -> Any:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("Arrow tables and Parquet files need pyarrow: pip install 'slimsvm[parquet]'") from error
    from slimsvm.rows import arrow

    return arrow


def _form(rows: Rows) -> str:
    return "CSR" if rows.is_sparse else "dense"


# -- which blocks are kept ---------------------------------------------------------------------------------------------

# There is no block.
NONE: tuple[int, Rows | None] = -2, None


class BlockStore:
    """Blocks by number, which ``make(i)`` makes, one at a time.

    The first blocks that fit in ``max_bytes`` are kept for good, so that every pass over all blocks finds the same ones
    there; keeping the blocks used last would help no pass. Beside them the last two blocks used are kept where they are
    neighbours. Who asks for one block after another gets the next from a thread that makes it ahead.
    """

    def __init__(self, make: Callable[[int], Rows], n_blocks: int, max_bytes: int):
        self._make, self.n_blocks, self.max_bytes = make, n_blocks, max_bytes
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        renew_lock_after_fork(self)
        self._kept: dict[int, Rows] = {}
        self._bytes = 0
        self._last = self._before = NONE
        self._ahead: _Ahead | None = None

    def get(self, i: int) -> Rows:
        """Return block i."""
        with self._lock:
            last, block = self._last[0], self._kept.get(i)
            if block is None and i == self._before[0]:
                self._last, self._before = self._before, self._last
                block = self._last[1]
            elif block is None:
                block = self._last[1] if i == last else None
            if block is None:
                self._before = NONE  # freed before another is made
                block = self._awaited(i) or self._make(i)
                self._keep(i, block)
            self._use(i, block)
            if i == last + 1 and i + 1 < self.n_blocks and i + 1 not in self._kept and self._ahead is None:
                self._ahead = _Ahead(self._make, i + 1)
            return block

    def put(self, i: int, block: Rows) -> None:
        """Keep a block that was made elsewhere."""
        with self._lock:
            self._keep(i, block)
            self._last, self._before = (i, block), NONE

    def _use(self, i: int, block: Rows) -> None:
        """Remember the block as the last one used, and keep the one used before it where that is its neighbour."""
        if i != self._last[0]:
            self._before = self._last if i == self._last[0] + 1 else NONE
            self._last = i, block

    def _keep(self, i: int, block: Rows) -> None:
        size = bytes_of(block)
        if self._bytes + size <= self.max_bytes:
            self._kept[i] = block
            self._bytes += size

    def _awaited(self, i: int) -> Rows | None:
        """Return the block made ahead if it is block i; None if the thread failed, and the caller makes it."""
        if self._ahead is None:
            return None
        ahead, self._ahead = self._ahead, None
        block = ahead.wait()
        return block if ahead.i == i else None

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "n_blocks": self.n_blocks, "max_bytes": self.max_bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()


class _Ahead:
    """A block that a thread is making."""

    def __init__(self, make: Callable[[int], Rows], i: int):
        self.i = i
        self._make = make
        self._made: Rows | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name="slimsvm-next-block")
        self._thread.start()

    def _work(self) -> None:
        try:
            self._made = self._make(self.i)
        except Exception:  # the caller that needs the block meets the error again
            self._made = None

    def wait(self) -> Rows | None:
        """Wait for the block and return it, or None if it could not be made."""
        self._thread.join()
        return self._made


def bytes_of(rows: Rows) -> int:
    """Return about how many bytes a block takes."""
    return rows.n_stored * (rows.dtype.itemsize + (8 if rows.is_sparse else 0))

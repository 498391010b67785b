"""The rows of a fit seen through a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.core import ROWS_PER_TILE
from slimsvm.core.clock import check_time
from slimsvm.core.threads import renew_lock_after_fork, resolve_n_jobs, run_tiles
from slimsvm.kernels.kernel import Folding, Kernel, Selection
from slimsvm.kernels.operands import (
    MAP_WORK,
    SPARSE_WORK,
    DenseFolder,
    FoldedRows,
    Operand,
    Points,
    RawRows,
    RawScorer,
    Sized,
    folded_csr_rows,
    points_for_csr,
    points_for_dense,
    points_of_folded,
)
from slimsvm.kernels.outlying_rows import Bulk, centre_of, centre_of_basis, far_from_centre, values_between
from slimsvm.lazy import made_once
from slimsvm.rows import DenseRows, Rows, as_rows, keep_sums, sums_of

BLOCK_BYTES = 1 << 22  # bytes of raw rows that are folded together
MEMORY_LIMIT = 1 << 30
# All rows lie within a radius if a box about them reaches this share of it: folded rows are rounded.
BOX_SHARE = 0.99

RowChoice = tuple[int, int] | np.ndarray | None
PartFunction = Callable[[Operand, int, Selection, int], None]


class EvalCounter:
    """An exact count of kernel evaluations: rows times points, without padding.

    Examples
    --------
    >>> from slimsvm.kernels import EvalCounter
    >>> counter = EvalCounter()
    >>> counter.add(6)
    >>> counter.n
    6
    """

    def __init__(self) -> None:
        self.n = 0
        self._lock = threading.Lock()
        renew_lock_after_fork(self)

    def add(self, n: int) -> None:
        """Count n more (from any thread)."""
        with self._lock:
            self.n += int(n)


class KernelRows(Sized):
    """The rows of a problem seen through a kernel, folded once if they fit in memory.

    Results are bitwise the same for any number of threads, and a row's scores are bitwise the same in any selection of
    rows.

    Parameters
    ----------
    kernel : Kernel
    rows : Rows, ndarray or sparse matrix
    dtype : float32 or float64
        Type kernel values are computed in; sums over chunks of points are in float64 anyway.
    n_jobs : int or None
        Threads (None: all cores).
    memory_limit : int
        Bytes that the folded copy of the rows may take. Above it, and for memory maps, blocks are folded on each pass.
    counter : EvalCounter or None
        Counter to add to (None: a new one).
    centre : ndarray of shape (d,) or None
        What shift-invariant kernels on dense rows subtract first, against cancellation. None: the mean of the rows, or
        where a few far rows pull it away from all others a median (`slimsvm.kernels.outlying_rows`).
        Scores are the same bits in two objects only if centre and points are.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : numpy.dtype
    counter : EvalCounter
    may_be_infinite : bool
        False once all rows have been seen to be finite on the way (by `scores`, where there is `raw`).

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Linear, KernelRows
    >>> rows = KernelRows(Linear(), np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> points = rows.points(np.array([1]))
    >>> rows.scores(points, np.ones((1, 1)))
    array([[11.],
           [25.]], dtype=float32)
    >>> rows.counter.n
    2
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Any,
        *,
        dtype: Any = np.float32,
        n_jobs: int | None = None,
        memory_limit: int = MEMORY_LIMIT,
        counter: EvalCounter | None = None,
        centre: np.ndarray | None = None,
    ):
        self.kernel = kernel
        self.rows: Rows = as_rows(rows)
        self.n_rows, self.n_features = self.rows.n_rows, self.rows.n_features
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype}")
        self.n_jobs = resolve_n_jobs(n_jobs)
        self.counter = EvalCounter() if counter is None else counter
        self._folding = kernel.folding(self.n_features)
        self._block_rows = max(4 * ROWS_PER_TILE, BLOCK_BYTES // (8 * max(1, self.n_features)))
        self._radius: float | None = None
        self._box: tuple[np.ndarray, np.ndarray] | None = None
        self.may_be_infinite = True
        self._centred = self._folding is not None and self._folding.shift_invariant and not self.rows.is_sparse
        if not self._centred:
            centre = np.zeros(self.n_features)
        self.centre = self._centre() if centre is None else np.asarray(centre, np.float64)
        self._kept: FoldedRows | None = None
        self._folders: list[DenseFolder] = []  # folders that are not in use
        if self._folding is not None and self.rows.in_memory and self._folded_bytes() <= memory_limit:
            self._kept = self._folded(Selection(self.n_rows))

    @classmethod
    def for_basis(
        cls,
        kernel: Kernel,
        X: Any,
        Z: Any,
        *,
        dtype: Any,
        n_jobs: int | None,
        centre: np.ndarray | None = None,
        memory_limit: int = 0,
    ) -> KernelRows:
        """Return rows X for scoring against the basis Z. Z gives the centre, so that rows do not affect each other.

        ``centre`` is that of an earlier call with the same Z and as many features, which need not be computed again.
        Folded rows are kept where they take no more than ``memory_limit`` bytes.
        """
        if centre is None:
            centre = centre_of_basis(kernel.folding(X.shape[1]), X, Z)
        return cls(kernel, X, dtype=dtype, n_jobs=n_jobs, memory_limit=memory_limit, centre=centre)

    @property
    def precision(self) -> str:
        """Return the name of ``dtype``, which NumPy is slow to tell."""
        return "float32" if self.dtype == np.float32 else "float64"

    @made_once
    def raw(self) -> np.ndarray | None:
        """Return the rows in a form that compiled code folds in passing; None if there is none, or they are folded."""
        is_kept = self._kept is not None or self._folding is None
        return self.rows.plain() if isinstance(self.rows, DenseRows) and not is_kept else None

    def scorer(self, points: Points, coef: np.ndarray, intercept: np.ndarray) -> RawScorer | None:
        """Return a scorer of rows with as many features, in the form of `raw`; None if the kernel has no folding."""
        if self._folding is None or self.rows.is_sparse:
            return None
        coef = np.require(coef, self.dtype, ["C", "W", "A"])
        return RawScorer(self._folding, self.centre, points, coef, np.array([0, len(points)]), intercept)

    @made_once
    def bulk(self) -> Bulk:
        """Return the region where most rows are, over which means and squares are taken."""
        return Bulk.of(self.rows, self._folding)

    @property
    def radius(self) -> float:
        """Return the greatest ``|x - centre|^2 / 2`` of folded rows times `Folding.steepness`; 0 without a metric.

        For RBF kernels that is ``gamma |x - centre|^2``. Above 500, float32 kernel values are in doubt.
        """
        if self._radius is None:
            self._radius = 0.0
            if self._folding is not None and self._folding.norms:
                if self._kept is not None:
                    farthest = _farthest(self._kept)
                else:  # part by part, since rows may be in other processes
                    farthest = max(self.rows.map(partial(_farthest_of, self.kernel, self.dtype, self.centre)))
                self._radius = farthest * self._folding.steepness
        return self._radius

    def is_wider_than(self, radius: float) -> bool:
        """Whether ``self.radius`` is above this number: a pass over the rows, unless a box about them all tells it."""
        folding = self._folding
        if self._radius is None and self._box is not None and folding is not None and folding.norms:
            corner = np.maximum(self.centre - self._box[0], self._box[1] - self.centre) * folding.row_scale
            if 0.5 * float(corner @ corner) * folding.steepness <= BOX_SHARE * radius:
                return False
        return self.radius > radius

    @property
    def half_norms(self) -> np.ndarray | None:
        """Return ``-|x - centre|^2 / 2`` of folded rows; None if they are not kept, or have no norms."""
        has_norms = self._folding is not None and self._folding.norms
        return self._kept.rows.half if self._kept is not None and has_norms else None

    def points(self, index: np.ndarray) -> Points:
        """Return the rows at ``index`` as basis points."""
        index = self._check_index(index)
        vectors = partial(self.kernel.basis, self.rows, index)
        if self._kept is not None and not self.rows.is_sparse:
            points = points_of_folded(self._kept, vectors, index)
            if points is not None:
                return points
        return self.points_of(vectors())

    def points_of(self, basis: Any) -> Points:
        """Return any vectors as basis points: ndarray of shape (k, d) or CSR."""
        basis = self.kernel.check_basis(basis, self.n_features)
        if self._folding is None:
            return Points(basis, basis.shape[0], data=self.kernel.prepared(basis, self.dtype))
        if self.rows.is_sparse:
            return points_for_csr(self._folding, basis, self.dtype)
        return points_for_dense(self._folding, basis, self.centre, self.dtype)

    def basis(self, index: np.ndarray) -> Any:
        """Return the rows at ``index`` in the form that a model stores: ndarray of shape (k, d) or CSR."""
        return self.kernel.basis(self.rows, self._check_index(index))

    def scores(
        self,
        points: Points,
        coef: np.ndarray,
        rows: RowChoice = None,
        segments: np.ndarray | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return sum_j k(x_i, p_j) coef[j, c], without storing the kernel values.

        Parameters
        ----------
        points : result of `points` or `points_of`; k of them
        coef : ndarray of shape (k, m)
        rows : None, (lo, hi) or int64 array
            Which rows: all, a range, or those at an index.
        segments : None or int64 array of shape (s + 1,)
            Offsets 0 = o_0 <= … <= o_s = k that cut the points into s groups, each summed apart.
        out : ndarray of the result's shape and type, C-contiguous, or None

        Returns
        -------
        ndarray of shape (b, m), or (b, s, m) with segments, of type `dtype`
        """
        coef = np.require(coef, self.dtype, ["C", "W", "A"])
        k = points.k
        if coef.ndim != 2 or len(coef) != k:
            raise ValueError(f"coef must have shape ({k}, m), got {coef.shape}")
        offsets = np.array([0, k]) if segments is None else _check_segments(segments, k)
        n, choice = self._choice(rows)
        shape = (n, len(offsets) - 1, coef.shape[1])
        result_shape = (shape[0], shape[2]) if segments is None else shape
        out = _result(out, result_shape, self.dtype)
        table = out.reshape(shape)
        if rows is None and self.raw is not None and not len(points.far):
            assert self._folding is not None
            scorer = RawScorer(self._folding, self.centre, points, coef, offsets)
            self.may_be_infinite = scorer.sums(self.raw, table, self.n_jobs) > 0
            self.counter.add(n * k)
            return out

        def sum_up(operand: Operand, at: int, selection: Selection, n_jobs: int) -> None:
            part = table[at : at + selection.n]
            operand.scores(selection, points, coef, offsets, part, n_jobs)
            if len(points.far):
                far, found, values = self._far_values(operand, selection, choice, at, points)
                change = values - found
                for s, (lo, hi) in enumerate(pairwise(offsets)):
                    own = (points.far >= lo) & (points.far < hi)
                    of_points = coef[points.far[own]]
                    for row, own_change in zip(far, np.ascontiguousarray(change[:, own]), strict=True):
                        # A row's scores have the same bits in any batch.
                        part[row, s] += (own_change @ of_points).astype(self.dtype)

        self._for_parts(choice, k, sum_up, coef.shape[1])
        return out

    def block(self, points: Points, rows: RowChoice = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return kernel values of rows and points, shape (b, k); rows and ``out`` are as in `scores`."""
        n, choice = self._choice(rows)
        out = _result(out, (n, points.k), self.dtype)
        if self._kept is not None and not len(points.far) and n * points.k * self.value_work <= self.sizes.call_work:
            self._kept.block(choice, points, out, self.n_jobs)  # small fits ask for it again and again
            self.counter.add(n * points.k)
            return out

        def fill(operand: Operand, at: int, selection: Selection, n_jobs: int) -> None:
            operand.block(selection, points, out[at : at + selection.n], n_jobs)
            if len(points.far):
                far, _, values = self._far_values(operand, selection, choice, at, points)
                out[at + far[:, None], points.far] = values

        self._for_parts(choice, points.k, fill)
        return out

    def diag(self, rows: RowChoice = None) -> np.ndarray:
        """Return k(x_i, x_i) of rows (as in `scores`), exact, float64, shape (b,)."""
        n, choice = self._choice(rows)
        out = np.empty(n)
        for at, part in self._cut(choice):
            positions = part.index if len(part.index) else np.arange(part.first, part.first + part.n)
            out[at : at + part.n] = self.kernel.diag_at(self._raw(part), positions)
        return out

    @made_once
    def value_work(self) -> int:
        """Return how many multiply-adds of dense rows take about as long as one kernel value."""
        n_stored = SPARSE_WORK * self.rows.n_stored // max(1, self.n_rows) if self.rows.is_sparse else self.n_features
        return MAP_WORK + min(n_stored, self.n_features)

    @property
    def is_kept(self) -> bool:
        """Whether the folded rows are kept in memory."""
        return self._kept is not None

    def folded_rows(self, index: np.ndarray) -> tuple[core.Structure, np.ndarray]:
        """Return folded rows for compiled code that moves basis vectors, and where in them the rows at ``index`` are.

        All rows where they are kept, otherwise a copy of those at ``index``.
        """
        if self._kept is not None:
            return self._kept.rows, index
        return self._folded(Selection(len(index), 0, index)).rows, np.arange(len(index))

    def _far_values(
        self, operand: Any, selection: Selection, choice: Selection, at: int, points: Points
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which selected rows are far from the centre, and their computed and exact values with the far
        points.
        """
        own = selection.index if len(selection.index) else np.arange(selection.first, selection.first + selection.n)
        assert self._folding is not None
        far = far_from_centre(self._folding, operand.rows.half[own])
        found = np.zeros((len(far), len(points.far)), self.dtype)
        if not len(far):
            return far, found, found
        operand.block(Selection(len(far), 0, own[far]), self.points_of(points.raw[points.far]), found, 1)
        index = choice.index[at + far] if len(choice.index) else choice.first + at + far
        return far, found, values_between(self.kernel, self.rows.take(index, np.float64), points.raw[points.far])

    def _centre(self) -> np.ndarray:
        assert self._folding is not None
        return centre_of(self._folding, self.rows, self._mean())

    def _mean(self) -> np.ndarray:
        sums = self.rows.column_sums
        if sums is None:  # for rows in memory the radius costs less than the box
            work = partial(sums_of, max_rows=self._block_rows, has_box=not self.rows.in_memory)
            sums = keep_sums(self.rows, self.rows.map(work))
        self._box = sums.box
        return sums.total / max(1, self.n_rows)

    def _check_index(self, index: np.ndarray) -> np.ndarray:
        index = np.asarray(index)
        if index.size and index.dtype.kind not in "iu":
            raise TypeError(f"an index of rows must be integers, got {index.dtype}")
        if index.dtype != np.int64 or not index.flags.carray:
            index = np.require(index, np.int64, ["C", "W", "A"])
        if index.ndim != 1:
            raise ValueError(f"an index of rows must be 1-D, got shape {index.shape}")
        if index.size and not index.view(np.uint64).max() < self.n_rows:  # negative numbers become the largest
            raise IndexError(f"row indices must be in 0..{self.n_rows - 1}, got {index.min()}..{index.max()}")
        return index

    def _choice(self, rows: RowChoice) -> tuple[int, Selection]:
        if rows is None:
            return self.n_rows, Selection(self.n_rows)
        if isinstance(rows, tuple):
            lo, hi = rows
            if not 0 <= lo <= hi <= self.n_rows:
                raise IndexError(f"rows must be a range within 0..{self.n_rows}, got ({lo}, {hi})")
            return hi - lo, Selection(hi - lo, lo)
        index = self._check_index(rows)
        return len(index), Selection(len(index), 0, index)

    def _cut(self, choice: Selection, max_rows: int | None = None) -> list[tuple[int, Selection]]:
        """Cut a choice into parts, each with its place in the choice."""
        max_rows = self._block_rows if max_rows is None else max_rows
        parts = []
        for at in range(0, choice.n, max_rows):
            n = min(max_rows, choice.n - at)
            parts.append((at, Selection(n, choice.first + at, choice.index[at : at + n])))
        return parts

    def _raw(self, part: Selection) -> Any:
        if len(part.index):
            return self.rows.take(part.index, self.rows.exact_dtype)
        return self.rows.slice(part.first, part.first + part.n, self.rows.exact_dtype)

    def _folded_bytes(self) -> int:
        entries = self.rows.n_stored if self.rows.is_sparse else self.n_rows * self.n_features
        return self.dtype.itemsize * (entries + self.n_rows) + 8 * self.n_rows

    def _folded(self, choice: Selection) -> FoldedRows:
        assert self._folding is not None
        if self.rows.is_sparse:
            return folded_csr_rows(self._folding, self._raw(choice), self.dtype)
        folder = DenseFolder(self._folding, self.centre, choice.n, self.dtype)
        for at, part in self._cut(choice):
            folder.add(self._raw(part), at)
        return folder.operand()

    def _for_parts(self, choice: Selection, n_points: int, function: PartFunction, n_outputs: int = 0) -> None:
        """Go through the chosen rows, count evaluations, and look at the clock now and then.

        A value is multiplied by ``n_outputs`` coefficients.
        """
        per_row, tile = max(1, n_points) * (self.value_work + n_outputs), self.sizes.tile_rows
        n_rows = self.sizes.call_work // per_row
        n_rows = max(1, n_rows // tile) * tile
        for start, part in [(0, choice)] if 0 < choice.n <= n_rows else self._cut(choice, n_rows):
            if self._kept is not None:
                function(self._kept, start, part, self.n_jobs)  # a call of the core checks the time limit itself
            else:
                check_time()
                self._for_operands(part, start, n_points, function)
            self.counter.add(part.n * n_points)

    def _for_operands(self, choice: Selection, start: int, n_points: int, function: PartFunction) -> None:
        """Call ``function(operand, at, selection, n_jobs)`` for operands that together hold the chosen rows: at which
        place the part begins (the choice begins at ``start``), which of the operand's rows it is, and the threads left
        for it.
        """
        if self._folding is None:
            for at, part in self._cut(choice, max(1, BLOCK_BYTES // (8 * max(1, n_points, self.n_features)))):
                raw = RawRows(self.kernel, self._raw(part), self.dtype)
                function(raw, start + at, Selection(part.n), self.n_jobs)
        elif self.rows.is_sparse:
            for at, part in self._cut(choice):
                function(self._folded(part), start + at, Selection(part.n), self.n_jobs)
        else:
            self._for_folded_parts(self._folding, choice, start, n_points, function)

    def _for_folded_parts(
        self, folding: Folding, choice: Selection, start: int, n_points: int, function: PartFunction
    ) -> None:
        """Call ``function`` on dense rows folded in passing: every thread folds as many as its cache holds."""
        is_little = choice.n * n_points * (self.n_features + 16) < self.sizes.small_work
        n_jobs = 1 if is_little else self.n_jobs
        n_parts = 1 if n_jobs == 1 else 2 * n_jobs  # each part costs about as much Python as 100 rows
        row_bytes, tile = self.dtype.itemsize * max(1, self.n_features), self.sizes.tile_rows
        step = max(1, -(-min(self.sizes.folded_bytes // row_bytes, -(-choice.n // n_parts)) // tile)) * tile
        parts = self._cut(choice, step)
        n_rows = min(step, choice.n)
        # Rows that are made block by block are read in one piece: threads would ask for different blocks in turn.
        read = None if self.rows.has_random_access else self._raw(choice)

        def work(lo: int, hi: int) -> None:
            folder = self._folder(folding, n_rows)  # one for each thread at work
            for at, part in parts[lo:hi]:
                folder.add(self._raw(part) if read is None else read[at : at + part.n], 0)
                function(folder.operand(part.n), start + at, Selection(part.n), 1)
            self._folders.append(folder)

        run_tiles(work, len(parts), n_jobs)

    def _folder(self, folding: Folding, n_rows: int) -> DenseFolder:
        """Return a folder for so many rows, a used one if there is one: new memory takes as long as folding."""
        try:
            folder = self._folders.pop()
        except IndexError:
            folder = None
        if folder is None or len(folder.half) < n_rows:
            folder = DenseFolder(folding, self.centre, n_rows, self.dtype)
        return folder


def _farthest(folded: FoldedRows) -> float:
    """Return ``|x - centre|^2 / 2`` of the farthest of some folded rows."""
    half = folded.rows.half
    return float(-half.min()) if len(half) else 0.0


def _farthest_of(kernel: Kernel, dtype: Any, centre: np.ndarray, rows: Rows) -> float:
    own = KernelRows(kernel, rows, dtype=dtype, n_jobs=1, memory_limit=0, centre=centre)
    return max((_farthest(own._folded(part)) for _, part in own._cut(Selection(own.n_rows))), default=0.0)


def _check_segments(segments: np.ndarray, k: int) -> np.ndarray:
    offsets = np.require(segments, np.int64, ["C", "W", "A"])
    if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] or offsets[-1] != k or (np.diff(offsets) < 0).any():
        raise ValueError(f"segments must be offsets that rise from 0 to {k}, got {offsets}")
    return offsets


def _result(out: np.ndarray | None, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if out is None:
        return np.empty(shape, dtype)
    if out.shape != shape or out.dtype != dtype or not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError(f"out must be a writeable C-contiguous array of shape {shape} and dtype {dtype}")
    return out

"""Rows and points folded for one kernel, and the compiled calls on them.

A kernel that is a function of inner products (or of |x - z|_1) says how in a `Folding`. Rows and points are folded by
it once: centred, scaled, with their norms. What is left per pair is an inner product, two additions and a map. Sparse
and dense meet here and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from slimsvm import core
from slimsvm.core import (
    CSC_INNER,
    CSC_MANHATTAN,
    CSR_INNER,
    CSR_MANHATTAN,
    EXP2,
    EXP2_SCALE_FLOAT32,
    INNER,
    MANHATTAN,
    ROWS_PER_TILE,
    aligned_zeros,
    panel_of,
)
from slimsvm.core.threads import one_blas_thread, resolve_n_jobs
from slimsvm.kernels.kernel import Folding, Selection
from slimsvm.kernels.outlying_rows import far_from_centre
from slimsvm.lazy import made_once
from slimsvm.rows import Block, is_sparse

WORK_PER_MICROSECOND = 40_000  # about how many multiply-adds one thread does
CALL_THREADS = 4  # a call has this much work for each of its threads
# The multiply-adds that take as long as mapping a kernel value into new memory, and, for sparse rows, as one of theirs:
# 10 if vectors are dense by feature, 200 if each feature has a list of its vectors.
MAP_WORK, SPARSE_WORK = 48, 64
# The share of nonzero entries, for each byte of a number, above which dense points on CSR rows are faster than sparse
# ones, and the bytes beyond which they are read from memory and it is twice as large
# (docs/experiments/compiled_loops_and_threads.md).
DENSE_ENOUGH, CACHED_BYTES = 1 / 64, 1 << 21
FOLD_NUMBERS = 1 << 24  # numbers folded in one compiled call, some 10 ms
DENSE_BYTES = 1 << 28  # the most bytes of sparse points made dense for CSR rows


@dataclass(frozen=True)
class RowSizes:
    """Settings of how many rows are processed together. Chosen, not measured."""

    # The multiply-adds that take about as long as waking another thread.
    small_work: int = 4_000_000
    # The multiply-adds in one compiled call, 5 to 30 ms of one core: Ctrl-C and the time limit are checked between
    # calls.
    call_work: int = 1 << 28
    # The bytes of folded dense rows that a thread makes and uses up in one piece.
    folded_bytes: int = 1 << 20
    # The fewest rows that a thread takes.
    tile_rows: int = ROWS_PER_TILE
    # Up to this many bytes, vectors are folded in one piece, not part by part in several threads.
    few_bytes: int = 1 << 20


class Sized:
    """The base class of what processes parts of rows: it has the sizes of these parts, which tests override."""

    sizes: ClassVar[RowSizes] = RowSizes()


class Points:
    """Basis points prepared as the right-hand side of rows.

    Parameters
    ----------
    vectors : ndarray or CSR of shape (k, d), or callable
        The vectors that they are made from, or a function that returns these: few callers need them.
    k : int
        How many there are.

    Attributes
    ----------
    form : int
        Which product they are laid out for: INNER, … of `slimsvm.core`; -1 for none.
    data : core.Structure (points), or another object
        The operand for compiled code; for a kernel without folding, what its `Kernel.prepared` returned.
    far : int64 ndarray
        Positions of those that are far from the centre: their values with rows that are, too, are not what they should.
    """

    def __init__(self, vectors: Any, k: int, form: int = -1, data: Any = None, far: np.ndarray | None = None):
        self._vectors, self.k, self.form, self.data = vectors, k, form, data
        self.far = np.empty(0, np.int64) if far is None else far

    def __len__(self) -> int:
        return self.k

    @made_once
    def raw(self) -> Any:
        """Return the vectors themselves, ndarray or CSR of shape (k, d)."""
        return self._vectors() if callable(self._vectors) else self._vectors


class Operand(ABC):
    """Rows in the form from which a kernel's values are computed."""

    @abstractmethod
    def scores(
        self, rows: Selection, points: Points, coef: np.ndarray, segments: np.ndarray, out: np.ndarray, n_jobs: int
    ) -> None:
        """Set out[i, s] = sum over the points j of segment s of k(x_i, p_j) coef[j], for the selected rows."""

    @abstractmethod
    def block(self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int) -> None:
        """Set out[i, j] = k(x_i, p_j) for the selected rows."""


class FoldedRows(Operand):
    """Rows folded for a kernel, dense or CSR; ``rows`` is what compiled code reads."""

    def __init__(self, folding: Folding, rows: core.Structure):
        self.folding, self.rows = folding, rows
        self._width = rows.n_features + 16  # about the multiply-adds of a kernel value

    def scores(
        self, rows: Selection, points: Points, coef: np.ndarray, segments: np.ndarray, out: np.ndarray, n_jobs: int
    ) -> None:
        """Set out to sums over segments of points."""
        self.block(rows, points, out.reshape(rows.n, -1), n_jobs, cut_weights(coef, segments))

    def block(
        self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int, weights: core.Structure | None = None
    ) -> None:
        """Set out to kernel values, or with ``weights`` to their sums."""
        if not out.size:
            return
        cost = rows.n * points.k * self._width / WORK_PER_MICROSECOND
        chosen = {"index": rows.index} if len(rows.index) else {}
        core.scores(
            rows=self.rows,
            points=points.data,
            weights=_no_weights(out.dtype) if weights is None else weights,
            first=rows.first,
            code=self.folding.code,
            degree=self.folding.degree,
            n_threads=n_jobs,
            microseconds=cost,
            out=out,
            **chosen,
        )


@cache
def _no_weights(dtype: np.dtype) -> core.Structure:
    """Return the argument that asks for kernel values in place of sums."""
    return core.Weights(n_segments=1, n_outputs=0, values=np.empty(0, dtype), first=np.zeros(1, np.int64))


def cut_weights(coef: np.ndarray, segments: np.ndarray) -> core.Structure:
    """Return coefficients (k, m) as compiled code multiplies them, cut at the bounds of panels and segments."""
    (k, m), panel, n_segments = coef.shape, panel_of(coef.dtype), len(segments) - 1
    n_entries = -(-k // panel) + n_segments
    values = aligned_zeros(n_entries * m * panel, coef.dtype)
    owner = np.zeros(n_entries, np.int64)
    first = np.zeros(-(-k // panel) + 1, np.int64)
    core.cut_weights(coef=coef, offsets=segments, values=values, first=first, segments=owner)
    return core.Weights(n_segments=n_segments, n_outputs=m, values=values, first=first, segments=owner)


def _scale(folding: Folding, dtype: np.dtype) -> float:
    """Return the constant factor that computed kernel values still have."""
    return EXP2_SCALE_FLOAT32 if folding.code == EXP2 and dtype == np.float32 else 1.0


def folding_arguments(
    folding: Folding, centre: np.ndarray, scale: float | np.ndarray, dtype: np.dtype
) -> dict[str, Any]:
    """Return the arguments for folding dense rows, except the rows and their numbers."""
    aligned_centre, feature_scale = aligned_zeros(len(centre), np.float64), aligned_zeros(len(centre), np.float64)
    aligned_centre[:], feature_scale[:] = centre, scale
    norm = core.SQUARED if folding.norms else core.NO_NORM
    return {"centre": aligned_centre, "feature_scale": feature_scale, "norm": norm, "scale": _scale(folding, dtype)}


class RawScorer(Sized):
    """A scorer of dense C-contiguous rows of floats, which it folds in passing: scores and labels.

    What rows have no part in is done here once, so that little of Python is left where a model is asked for few rows.

    Parameters
    ----------
    centre : ndarray of shape (d,)
    points : Points
        The k points as `points_for_dense` makes them.
    coef : ndarray of shape (k, m), C-contiguous
    segments : int64 ndarray of shape (s + 1,)
        Coefficients as in `FoldedRows.scores`; (0, k) for `scores` and `labels`.
    intercept : float64 ndarray of shape (m,) or None
        Added by `scores` and `labels`.
    """

    def __init__(
        self,
        folding: Folding,
        centre: np.ndarray,
        points: Points,
        coef: np.ndarray,
        segments: np.ndarray,
        intercept: np.ndarray | None = None,
    ):
        n_outputs, n_segments = coef.shape[1], len(segments) - 1
        self._call = core.score_rows.prepare(
            points=points.data,
            weights=cut_weights(coef, segments),
            columns=n_segments * n_outputs,
            code=folding.code,
            degree=folding.degree,
            intercept=np.zeros(n_outputs) if intercept is None else np.require(intercept, np.float64, ["C", "A"]),
            **folding_arguments(folding, np.ascontiguousarray(centre), folding.row_scale, coef.dtype),
        )
        self._row_work = max(1, len(points) * (len(centre) + 16 + n_outputs))
        self._n_outputs = n_outputs
        # The classes of the last call, as words, and whether these are the classes themselves.
        self._words = np.empty(0), np.empty((0, 1), np.int64), False

    def sums(self, raw: np.ndarray, out: np.ndarray, n_jobs: int | None) -> int:
        """Compute `FoldedRows.scores`; return how many of the rows may not be finite: 0 if all are."""
        return self._run(raw, n_jobs, {"sums": out.reshape(len(raw), -1) if out.size else out.reshape(0, 0)})

    def scores(self, raw: np.ndarray, n_jobs: int | None) -> tuple[np.ndarray, int]:
        """Return scores of shape (n, m), float64, and how many of the rows may not be finite."""
        scores = np.empty((len(raw), self._n_outputs))
        return scores, self._run(raw, n_jobs, {"scores": scores})

    def labels(self, raw: np.ndarray, classes: np.ndarray, n_jobs: int | None) -> tuple[np.ndarray, int]:
        """Return the class of each row's greatest score, or the only score's sign, and how many rows may not be finite.

        Compiled code copies classes of whole words itself.
        """
        known, words, is_copied = self._words
        if known is not classes:
            is_copied = classes.dtype.itemsize % 8 == 0 and not classes.dtype.hasobject
            lines = classes if is_copied else np.arange(len(classes))
            words = np.ascontiguousarray(lines).view(np.int64).reshape(len(classes), -1)
            self._words = classes, words, is_copied
        labels = np.empty((len(raw), words.shape[1]), np.int64)
        n_far = self._run(raw, n_jobs, {"labels": labels}, classes=words)
        return labels.reshape(-1).view(classes.dtype) if is_copied else classes[labels[:, 0]], n_far

    def _run(self, raw: np.ndarray, n_jobs: int | None, results: dict[str, np.ndarray], **others: Any) -> int:
        n, work = len(raw), len(raw) * self._row_work
        if work < self.sizes.small_work:  # few Python calls for a single row
            others |= results
            return self._call(raw=raw, n_threads=1, microseconds=work / WORK_PER_MICROSECOND, **others) if n else 0
        threads = resolve_n_jobs(n_jobs)
        # Threads wait for each other at the end of every call, so several threads get more rows per call.
        step = max(ROWS_PER_TILE, min(threads, CALL_THREADS) * self.sizes.call_work // self._row_work)
        n_far = 0
        for lo in range(0, n, step):
            part = {name: array[lo : lo + step] for name, array in results.items()}
            rows = raw[lo : lo + step]
            microseconds = len(rows) * self._row_work / WORK_PER_MICROSECOND
            n_far += self._call(raw=rows, n_threads=threads, microseconds=microseconds, **part, **others)
        return n_far


class DenseFolder:
    """A folder of blocks of dense rows, one after another, into one operand, in one thread: memory is the limit."""

    def __init__(self, folding: Folding, centre: np.ndarray, n_rows: int, dtype: np.dtype):
        self.folding, self.centre = folding, centre
        self.values = np.empty((n_rows, len(centre)), dtype)
        self.half, self.factor = np.empty(n_rows, dtype), np.empty(n_rows)

    def add(self, raw: np.ndarray, at: int, scale: float | np.ndarray | None = None) -> None:
        """Fold a block into the places from ``at`` on; by ``scale`` in place of that of rows."""
        if not (raw.flags.c_contiguous and raw.flags.aligned):
            raw = np.require(raw, requirements=["C", "A"])
        places = slice(at, at + len(raw))
        out, half, factor = self.values[places], self.half[places], self.factor[places]
        scale = self.folding.row_scale if scale is None else scale
        arguments = folding_arguments(self.folding, self.centre, scale, self.values.dtype)
        step = max(1, FOLD_NUMBERS // max(1, len(self.centre)))
        for lo in range(0, len(raw), step):
            part = slice(lo, lo + step)
            core.fold_rows(raw=raw[part], out=out[part], half=half[part], factor=factor[part], **arguments)

    def operand(self, n: int | None = None) -> FoldedRows:
        """Return the operand of the first n rows (None: all), after they were folded."""
        values, half, factor = self.values[:n].reshape(-1), self.half[:n], self.factor[:n]
        return FoldedRows(self.folding, core.Rows(n_features=len(self.centre), values=values, half=half, factor=factor))


def _fold_csr(raw: sp.csr_array, scale: Any, folding: Folding, dtype: np.dtype) -> core.Structure:
    """Fold CSR rows."""
    index_type = np.int32 if raw.shape[1] <= np.iinfo(np.int32).max else np.int64
    columns = np.require(raw.indices, index_type, ["C", "A"])
    indptr = np.require(raw.indptr, np.int64, ["C", "A"])
    values, half, factor = np.empty(raw.nnz, dtype), np.empty(raw.shape[0], dtype), np.empty(raw.shape[0])
    norm = core.SQUARED if folding.norms else core.ABSOLUTE if folding.manhattan else core.NO_NORM
    core.fold_csr(
        norm=norm,
        scale=_scale(folding, dtype),
        raw=np.require(raw.data[: raw.nnz], requirements=["C", "A"]),
        columns=columns[: raw.nnz],
        indptr=indptr,
        feature_scale=np.array(scale, np.float64, ndmin=1),
        out=values,
        half=half,
        factor=factor,
    )
    return core.Rows(
        n_features=raw.shape[1], values=values, half=half, factor=factor, columns=columns[: raw.nnz], indptr=indptr
    )


def folded_csr_rows(folding: Folding, raw: sp.csr_array, dtype: np.dtype) -> FoldedRows:
    """Return the operand of CSR rows."""
    return FoldedRows(folding, _fold_csr(raw, folding.row_scale, folding, dtype))


def _base(folding: Folding, half: np.ndarray, n_panels: int, panel: int) -> np.ndarray:
    base = aligned_zeros(n_panels * panel, half.dtype)
    base[: len(half)] = half if folding.norms or folding.manhattan else folding.shift
    return base


def points_for_dense(folding: Folding, raw: Any, centre: np.ndarray, dtype: np.dtype) -> Points:
    """Fold vectors as points for dense rows."""
    array = raw.toarray() if is_sparse(raw) else raw
    folder = DenseFolder(folding, centre, len(array), dtype)
    folder.add(array, 0, folding.point_scale)
    return _packed(folding, raw, folder.values, folder.half)


def points_of_folded(rows: FoldedRows, vectors: Callable[[], np.ndarray], index: np.ndarray | slice) -> Points | None:
    """Return dense rows at ``index`` as points, made of ``vectors()``; None if points are folded in another way."""
    folding, folded = rows.folding, rows.rows
    if folding.point_scale is not folding.row_scale:
        return None
    return _packed(folding, vectors, folded.values.reshape(-1, folded.n_features)[index], folded.half[index])


def _packed(folding: Folding, vectors: Any, values: np.ndarray, half: np.ndarray) -> Points:
    (k, d), panel = values.shape, panel_of(values.dtype)
    n_panels, form = -(-k // panel), MANHATTAN if folding.manhattan else INNER
    panels = aligned_zeros(n_panels * panel * d, values.dtype)
    core.pack_dense(values=values, panels=panels)
    base = _base(folding, half, n_panels, panel)
    data = core.Points(form=form, n_features=d, panels=panels, base=base)
    return Points(vectors, k, form, data, far_from_centre(folding, half))


def points_for_csr(folding: Folding, raw: Any, dtype: np.dtype) -> Points:
    """Fold vectors as points for CSR rows: dense by feature, or CSC if few of them share a feature."""
    (k, d), panel = raw.shape, panel_of(dtype)
    folded = _fold_csr(raw if is_sparse(raw) else sp.csr_array(raw), folding.point_scale, folding, dtype)
    n_panels = -(-k // panel)
    base, far = _base(folding, folded.half, n_panels, panel), far_from_centre(folding, folded.half)
    if not is_sparse(raw) or _mostly_dense(folded.columns, k, d, dtype.itemsize):
        panels = aligned_zeros(n_panels * panel * d, dtype)
        core.pack_csr(n_features=d, values=folded.values, columns=folded.columns, indptr=folded.indptr, panels=panels)
        form = CSR_MANHATTAN if folding.manhattan else CSR_INNER
        return Points(raw, k, form, core.Points(form=form, n_features=d, panels=panels, base=base), far)
    csc = sp.csr_array((folded.values, folded.columns, folded.indptr), shape=(k, d)).tocsc()
    form = CSC_MANHATTAN if folding.manhattan else CSC_INNER
    points = core.Points(
        form=form,
        n_features=d,
        panels=csc.data,
        base=base,
        indices=csc.indices.astype(np.int32),
        indptr=csc.indptr.astype(np.int64),
    )
    return Points(raw, k, form, points, far)


def _mostly_dense(indices: np.ndarray, k: int, d: int, itemsize: int) -> bool:
    """Whether a feature of a row, if rows are like the points, is on average in many of the points."""
    size = d * k * itemsize
    if size > DENSE_BYTES:
        return False
    shared = np.bincount(indices, minlength=1).astype(np.float64)
    enough = DENSE_ENOUGH * itemsize * (1 if size <= CACHED_BYTES else 2)
    return float(shared @ shared) >= enough * k * max(1.0, shared.sum())


class RawRows(Operand):
    """Rows without folding, for kernels that only have `block`."""

    def __init__(self, kernel: Any, raw: Block, dtype: np.dtype):
        self.kernel, self.raw, self.dtype = kernel, raw, dtype

    def scores(
        self, rows: Selection, points: Points, coef: np.ndarray, segments: np.ndarray, out: np.ndarray, n_jobs: int
    ) -> None:
        """Set out to sums over segments of points, for all rows of the block."""
        K = np.empty((rows.n, points.k), self.dtype)
        self.block(rows, points, K, n_jobs)
        core.sum_rows(K=K, coef=np.ascontiguousarray(coef.T, K.dtype), offsets=segments, out=out)

    def block(self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int) -> None:
        """Set out to kernel values of all rows of the block."""
        with one_blas_thread():
            self.kernel.fill(self.raw, points.data, out, n_jobs)

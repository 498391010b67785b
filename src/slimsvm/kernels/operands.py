"""Rows and points folded for one kernel, and the compiled calls on them.

A kernel that is a function of inner products (or of |x - z|_1) says how in a `Folding`. Rows and points are folded by
it once: centred, scaled, with their norms. What is left per pair is an inner product, two additions and a map. Sparse
and dense meet here and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.kernels.folding import EXP2, Folding, Selection
from slimsvm.numerics import folding as fold
from slimsvm.numerics import pipeline, vectors
from slimsvm.numerics.crew import share
from slimsvm.numerics.panels import (
    CSC_INNER,
    CSC_MANHATTAN,
    CSR_INNER,
    CSR_MANHATTAN,
    INNER,
    MANHATTAN,
    ROWS_PER_TILE,
    PanelData,
    Weights,
    near_from,
    share_kernel_tiles,
    sum_rows,
)
from slimsvm.numerics.threads import one_blas_thread, run_together
from slimsvm.numerics.tiles import RowData
from slimsvm.numerics.vectors import panel_of
from slimsvm.rows import Block, is_sparse

WORK_PER_MICROSECOND = 40_000  # multiply-adds of one thread, about
SMALL_WORK = 4_000_000  # multiply-adds that take about as long as it does to have another thread help
CALL_WORK = 1 << 38  # multiply-adds in one compiled call, some seconds of one core: Ctrl-C is heard between two
DENSE_ENOUGH = 1 / 16  # of the features that matter: above it, dense points on CSR rows are faster than sparse ones
DENSE_BYTES = 1 << 28  # that sparse points may take when made dense for CSR rows

_NO_INDICES, _NO_INDPTR = np.empty(0, np.int32), np.empty(0, np.int64)


class Points:
    """Basis points prepared as the right-hand side of rows.

    Attributes
    ----------
    raw : ndarray or CSR of shape (k, d)
        The vectors themselves.
    form : int
        Which product of `slimsvm.numerics.panels` they are laid out for.
    data : PanelData
        What compiled code reads.
    """

    def __init__(self, raw: Any, form: int = -1, data: Any = None):
        self.raw, self.form, self.data = raw, form, data

    def __len__(self) -> int:
        return self.raw.shape[0]


class Operand(ABC):
    """Rows in the form that a kernel's values are computed from."""

    @abstractmethod
    def scores(
        self, rows: Selection, points: Points, coef: np.ndarray, segments: np.ndarray, out: np.ndarray, n_jobs: int
    ) -> None:
        """Set out[i, s] = sum over the points j of segment s of k(x_i, p_j) coef[j], for the selected rows."""

    @abstractmethod
    def block(self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int) -> None:
        """Set out[i, j] = k(x_i, p_j) for the selected rows."""


class FoldedRows(Operand):
    """Rows folded for a kernel, dense or CSR; ``data`` is what compiled code reads."""

    def __init__(self, folding: Folding, data: RowData):
        self.folding, self.data = folding, data

    def scores(
        self, rows: Selection, points: Points, coef: np.ndarray, segments: np.ndarray, out: np.ndarray, n_jobs: int
    ) -> None:
        """See `Operand.scores`."""
        weights = Weights(*fold.cut_weights(coef, segments, panel_of(coef.dtype)))
        n_segments, n_outputs = len(segments) - 1, coef.shape[1]
        near_half = near_from(points.data.base, weights.values, points.form, self.folding.code, n_segments * n_outputs)
        operands = (self.data, points.data, rows.index, rows.first, weights, n_segments, n_outputs)
        self._run(operands, near_half, rows.n, points, out, n_jobs)

    def block(self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int) -> None:
        """See `Operand.block`."""
        nothing = Weights(np.empty(0, out.dtype), _NO_INDPTR, _NO_INDPTR)
        operands = (self.data, points.data, rows.index, rows.first, nothing, 1, 0)
        self._run(operands, np.inf, rows.n, points, out[:, None], n_jobs)

    def _run(self, operands: Any, near_half: float, n_rows: int, points: Points, out: np.ndarray, n_jobs: int) -> None:
        cost = n_rows * len(points) * (self.data.n_features + 16) / WORK_PER_MICROSECOND
        fixed = (*operands, points.form, self.folding.code, self.folding.degree, near_half)
        share(share_kernel_tiles, fixed, (out,), -(-n_rows // ROWS_PER_TILE), n_jobs, cost)


def _scale(folding: Folding, dtype: np.dtype) -> float:
    """Constant that kernel values come out too large by."""
    return vectors.EXP2_SCALE_FLOAT32 if folding.code == EXP2 and dtype == np.float32 else 1.0


def folding_operands(folding: Folding, centre: np.ndarray, scale: float | np.ndarray, dtype: np.dtype) -> tuple:
    """What `fold.fold_rows` takes between the rows and their numbers."""
    feature_scale = np.empty(len(centre))
    feature_scale[:] = scale
    return centre, feature_scale, fold.SQUARED if folding.norms else fold.NO_NORM, _scale(folding, dtype)


class RawScorer:
    """Scores and labels of dense rows of floats, C-contiguous, that are folded on the way.

    What rows have no part in is done here once, so that little of Python is left where a model is asked for few rows.

    Parameters
    ----------
    folding : Folding
    centre : ndarray of shape (d,)
    points : Points
        As `points_for_dense` makes them, k of them.
    coef : ndarray of shape (k, m), C-contiguous
    segments : int64 ndarray of shape (s + 1,)
        As in `FoldedRows.scores`; (0, k) for `scores` and `labels`.
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
        panels, base, _, _ = points.data
        weights = fold.cut_weights(coef, segments, panel_of(coef.dtype))
        operands = *folding_operands(folding, centre, folding.row_scale, coef.dtype), panels, base, *weights
        near_half = near_from(base, weights[0], points.form, folding.code, n_segments * n_outputs)
        codes = n_segments, n_outputs, points.form, folding.code, folding.degree, near_half
        added = np.zeros(n_outputs) if intercept is None else np.require(intercept, np.float64, ["C", "W", "A"])
        self._fixed = *operands, *codes, added
        self._row_work = max(1, len(points) * (len(centre) + 16))
        self._no_sums = np.empty((0, n_segments, n_outputs), coef.dtype)
        self._no_scores, self._no_labels = np.empty((0, n_outputs)), np.empty((0, 1), np.int64)

    def sums(self, raw: np.ndarray, out: np.ndarray, n_jobs: int) -> int:
        """`FoldedRows.scores`; returns how many of the rows may not be finite: 0 if all are."""
        return self._run(raw, n_jobs, out, self._no_scores, self._no_labels, self._no_labels)

    def scores(self, raw: np.ndarray, n_jobs: int) -> tuple[np.ndarray, int]:
        """Scores of shape (n, m), float64, and how many of the rows may not be finite."""
        scores = np.empty((len(raw), self._no_scores.shape[1]))
        return scores, self._run(raw, n_jobs, self._no_sums, scores, self._no_labels, self._no_labels)

    def labels(self, raw: np.ndarray, classes: np.ndarray, n_jobs: int) -> tuple[np.ndarray, int]:
        """Class of the greatest score of each row, or of the only score's sign, and how many may not be finite.

        Compiled code copies classes of whole words itself.
        """
        is_copied = classes.dtype.itemsize % 8 == 0 and not classes.dtype.hasobject
        lines = classes if is_copied else np.arange(len(classes))
        words = np.array(lines).view(np.int64).reshape(len(classes), -1)
        labels = np.empty((len(raw), words.shape[1]), np.int64)
        n_far = self._run(raw, n_jobs, self._no_sums, self._no_scores, words, labels)
        return labels.reshape(-1).view(classes.dtype) if is_copied else classes[labels[:, 0]], n_far

    def _run(
        self,
        raw: np.ndarray,
        n_jobs: int,
        out: np.ndarray,
        scores: np.ndarray,
        classes: np.ndarray,
        labels: np.ndarray,
    ) -> int:
        n_far, step = 0, max(ROWS_PER_TILE, CALL_WORK // self._row_work)
        compiled: Any = pipeline.score_rows
        for lo in range(0, len(raw), step):
            part, sync = slice(lo, lo + step), pipeline.new_counter()
            rows = raw[part]
            n_tiles = -(-len(rows) // ROWS_PER_TILE)
            threads = 1 if len(rows) * self._row_work < SMALL_WORK else min(n_jobs, n_tiles)
            operands = rows, *self._fixed, threads, sync, out[part], scores[part], classes, labels[part]
            run_together(
                lambda: compiled(*operands),  # noqa: B023
                threads,
                lambda: pipeline.all_done(sync, n_tiles),  # noqa: B023
            )
            n_far += int(sync[pipeline.FAR])
        return n_far


class DenseFolder:
    """Folds blocks of dense rows one after another into one operand, by one thread: memory is the limit."""

    def __init__(self, folding: Folding, centre: np.ndarray, n_rows: int, dtype: np.dtype):
        self.folding, self.centre = folding, centre
        self.values = np.empty((n_rows, len(centre)), dtype)
        self.half, self.factor = np.empty(n_rows, dtype), np.empty(n_rows)

    def add(self, raw: np.ndarray, at: int, scale: float | np.ndarray | None = None) -> None:
        """Fold a block into the places from ``at`` on; by ``scale`` in place of that of rows."""
        raw = np.require(raw, requirements=["C", "W", "A"])  # one compiled version for read-only and other arrays
        n = len(raw)
        places = slice(at, at + n)
        out, half, factor = self.values[places], self.half[places], self.factor[places]
        scale = self.folding.row_scale if scale is None else scale
        operands = raw, *folding_operands(self.folding, self.centre, scale, self.values.dtype)
        compiled: Any = fold.fold_rows
        compiled(*operands, 0, n, out, half, factor)

    def operand(self, n: int | None = None) -> FoldedRows:
        """The operand of the first n rows (None: all), once they are in."""
        values, half, factor = self.values[:n].reshape(-1), self.half[:n], self.factor[:n]
        return FoldedRows(self.folding, RowData(values, half, factor, _NO_INDICES, _NO_INDPTR, len(self.centre)))


def _fold_csr(raw: sp.csr_array, scale: Any, folding: Folding, dtype: np.dtype) -> RowData:
    """Folded values, half norms, factors, columns and offsets of CSR rows."""
    index_type = np.int32 if raw.shape[1] <= np.iinfo(np.int32).max else np.int64
    indices = np.require(raw.indices, index_type, ["C", "W", "A"])
    indptr = np.require(raw.indptr, np.int64, ["C", "W", "A"])
    values, half, factor = np.empty(raw.nnz, dtype), np.empty(raw.shape[0], dtype), np.empty(raw.shape[0])
    norm = fold.SQUARED if folding.norms else fold.ABSOLUTE if folding.manhattan else fold.NO_NORM
    feature_scale = np.array(scale, np.float64, ndmin=1)
    raw_values = np.require(raw.data, requirements=["C", "W", "A"])
    fold.fold_csr(raw_values, indices, indptr, feature_scale, norm, _scale(folding, dtype), values, half, factor)
    return RowData(values, half, factor, indices, indptr, raw.shape[1])


def folded_csr_rows(folding: Folding, raw: sp.csr_array, dtype: np.dtype) -> FoldedRows:
    """Operand of CSR rows."""
    return FoldedRows(folding, _fold_csr(raw, folding.row_scale, folding, dtype))


def _base(folding: Folding, half: np.ndarray, n_panels: int, panel: int) -> np.ndarray:
    base = np.zeros(n_panels * panel, half.dtype)
    base[: len(half)] = half if folding.norms or folding.manhattan else folding.shift
    return base


def points_for_dense(folding: Folding, raw: Any, centre: np.ndarray, dtype: np.dtype) -> Points:
    """Vectors folded as points for dense rows."""
    array = raw.toarray() if is_sparse(raw) else raw
    folder = DenseFolder(folding, centre, len(array), dtype)
    folder.add(array, 0, folding.point_scale)
    (k, d), panel = folder.values.shape, panel_of(dtype)
    n_panels = -(-k // panel)
    panels = np.zeros(n_panels * panel * d, dtype)
    fold.pack_dense(folder.values, d, panel, panels)
    data = PanelData(panels, _base(folding, folder.half, n_panels, panel), _NO_INDICES, _NO_INDPTR)
    return Points(raw, MANHATTAN if folding.manhattan else INNER, data)


def points_for_csr(folding: Folding, raw: Any, dtype: np.dtype) -> Points:
    """Vectors folded as points for CSR rows: dense by feature, or CSC where few of them share a feature."""
    (k, d), panel = raw.shape, panel_of(dtype)
    folded = _fold_csr(raw if is_sparse(raw) else sp.csr_array(raw), folding.point_scale, folding, dtype)
    n_panels = -(-k // panel)
    base = _base(folding, folded.half, n_panels, panel)
    if not is_sparse(raw) or _mostly_dense(folded.indices, k, d, dtype.itemsize):
        panels = np.zeros(n_panels * panel * d, dtype)
        fold.pack_csr(folded.values, folded.indices, folded.indptr, d, panel, panels)
        form = CSR_MANHATTAN if folding.manhattan else CSR_INNER
        return Points(raw, form, PanelData(panels, base, _NO_INDICES, _NO_INDPTR))
    csc = sp.csr_array((folded.values, folded.indices, folded.indptr), shape=(k, d)).tocsc()
    form = CSC_MANHATTAN if folding.manhattan else CSC_INNER
    return Points(raw, form, PanelData(csc.data, base, csc.indices.astype(np.int32), csc.indptr.astype(np.int64)))


def _mostly_dense(indices: np.ndarray, k: int, d: int, itemsize: int) -> bool:
    """Whether a feature of a row, if rows are like the points, is on average in many of the points."""
    if d * k * itemsize > DENSE_BYTES:
        return False
    shared = np.bincount(indices, minlength=1).astype(np.float64)
    return float(shared @ shared) >= DENSE_ENOUGH * k * max(1.0, shared.sum())


class RawRows(Operand):
    """Rows as they are, for kernels that only have `block`."""

    def __init__(self, kernel: Any, raw: Block, dtype: np.dtype):
        self.kernel, self.raw, self.dtype = kernel, raw, dtype

    def _values(self, points: Points) -> np.ndarray:
        with one_blas_thread():
            return np.require(self.kernel.block(self.raw, points.raw, self.dtype), self.dtype, ["C", "W", "A"])

    def scores(
        self, rows: Selection, points: Points, coef: np.ndarray, segments: np.ndarray, out: np.ndarray, n_jobs: int
    ) -> None:
        """See `Operand.scores`; the rows are all of the block's."""
        sum_rows(self._values(points), np.ascontiguousarray(coef.T), segments, out)

    def block(self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int) -> None:
        """See `Operand.block`; the rows are all of the block's."""
        out[:] = self._values(points)

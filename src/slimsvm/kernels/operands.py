"""Rows and points folded for one kernel, and the compiled calls on them.

A kernel that is a function of inner products (or of |x - z|_1) says how in a `Folding`. Rows and points are folded by
it once: centred, scaled, with their norms. What is left per pair is an inner product, two additions and a map. Sparse
and dense meet here and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.kernels.folding import Chunks, Folding, Selection
from slimsvm.numerics import folding as fold
from slimsvm.numerics import tiles
from slimsvm.numerics.threads import run_tiles
from slimsvm.rows import Block, is_sparse

SMALL_WORK = 100_000  # multiply-adds below which handing tiles to threads costs more than it saves
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
        Which product of `slimsvm.numerics.tiles` they are laid out for.
    data : PointData
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
        self, rows: Selection, points: Points, coef: np.ndarray, chunks: Chunks, out: np.ndarray, n_jobs: int
    ) -> None:
        """Set out[i, s] = sum over the points j of segment s of k(x_i, p_j) coef[j], for the selected rows."""

    @abstractmethod
    def block(self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int) -> None:
        """Set out[i, j] = k(x_i, p_j) for the selected rows."""


class FoldedRows(Operand):
    """Rows folded for a kernel, dense or CSR.

    Attributes
    ----------
    data : RowData
        What compiled code reads.
    half : ndarray of shape (n,)
        -|x'|^2 / 2 of the folded rows where the kernel uses norms.
    """

    def __init__(self, folding: Folding, data: tiles.RowData):
        self.folding, self.data = folding, data
        self.half = data.half

    def scores(
        self, rows: Selection, points: Points, coef: np.ndarray, chunks: Chunks, out: np.ndarray, n_jobs: int
    ) -> None:
        """See `Operand.scores`."""
        operands = (self.data, points.data, rows.index, rows.first, coef, chunks.cuts, chunks.owner)
        kind = (points.form, self.folding.code, self.folding.degree)
        out[:, chunks.empty] = 0
        self._run(lambda lo, hi: tiles.score_tiles(*operands, *kind, lo, hi, out), rows.n, len(points), n_jobs)

    def block(self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int) -> None:
        """See `Operand.block`."""
        operands = (self.data, points.data, rows.index, rows.first)
        kind = (points.form, self.folding.code, self.folding.degree)
        self._run(lambda lo, hi: tiles.block_tiles(*operands, *kind, lo, hi, out), rows.n, len(points), n_jobs)

    def _run(self, function: Callable[[int, int], None], n_rows: int, n_points: int, n_jobs: int) -> None:
        if n_rows * n_points * (self.data.n_features + 8) < SMALL_WORK:
            n_jobs = 1
        run_tiles(function, -(-n_rows // tiles.TILE), n_jobs)


class DenseFolder:
    """Folds blocks of dense rows one after another into one operand."""

    def __init__(self, folding: Folding, centre: np.ndarray, n_rows: int, dtype: np.dtype, n_jobs: int):
        self.folding, self.centre, self.n_jobs = folding, centre, n_jobs
        self.values, self.half = np.empty((n_rows, len(centre)), dtype), np.empty(n_rows, dtype)

    def add(self, raw: np.ndarray, at: int) -> None:
        """Fold a block into the places from ``at`` on."""
        out, half = self.values[at : at + len(raw)], self.half[at : at + len(raw)]
        fold_dense(raw, self.centre, self.folding.row_scale, self.folding.norms, out, half, self.n_jobs)

    def operand(self) -> FoldedRows:
        """The operand, once all blocks are in."""
        data = tiles.RowData(self.values.reshape(-1), self.half, _NO_INDICES, _NO_INDPTR, len(self.centre))
        return FoldedRows(self.folding, data)


def fold_dense(raw: Any, centre: np.ndarray, scale: Any, norms: bool, out: np.ndarray, half: np.ndarray, n_jobs: int):
    """Fold dense rows into ``out`` and ``half``, by threads."""
    raw = np.require(raw, requirements=["C", "W", "A"])  # one compiled version for read-only and other arrays
    scale = np.broadcast_to(np.asarray(scale, np.float64), centre.shape).copy()
    norm = fold.SQUARED if norms else fold.NO_NORM
    n, step = len(raw), max(1, SMALL_WORK // max(1, raw.shape[1]))
    run_tiles(
        lambda lo, hi: fold.fold_rows(raw, centre, scale, norm, lo * step, min(n, hi * step), out, half),
        -(-n // step),
        n_jobs,
    )


def fold_csr(raw: sp.csr_array, scale: Any, folding: Folding, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Folded values, half norms, columns and offsets of CSR rows."""
    index_type = np.int32 if raw.shape[1] <= np.iinfo(np.int32).max else np.int64
    indices = np.require(raw.indices, index_type, ["C", "W", "A"])
    indptr = np.require(raw.indptr, np.int64, ["C", "W", "A"])
    values, half = np.empty(raw.nnz, dtype), np.empty(raw.shape[0], dtype)
    norm = fold.SQUARED if folding.norms else fold.MANHATTAN_NORM if folding.manhattan else fold.NO_NORM
    scale = np.broadcast_to(np.asarray(scale, np.float64), raw.shape[1]).copy()
    raw_values = np.require(raw.data, requirements=["C", "W", "A"])
    fold.fold_csr(raw_values, indices, indptr, scale, norm, values, half)
    return values, half, indices, indptr


def folded_csr_rows(folding: Folding, raw: sp.csr_array, dtype: np.dtype) -> FoldedRows:
    """Operand of CSR rows."""
    values, half, indices, indptr = fold_csr(raw, folding.row_scale, folding, dtype)
    return FoldedRows(folding, tiles.RowData(values, half, indices, indptr, raw.shape[1]))


def points_for_dense(folding: Folding, raw: Any, centre: np.ndarray, dtype: np.dtype) -> Points:
    """Vectors folded as points for dense rows."""
    array = raw.toarray() if is_sparse(raw) else raw
    values, half = np.empty(array.shape, dtype), np.empty(len(array), dtype)
    fold_dense(array, centre, folding.point_scale, folding.norms, values, half, 1)
    if not folding.norms:
        half[:] = folding.shift
    form = tiles.GEMM
    if folding.manhattan:
        form, values = tiles.MANHATTAN, np.ascontiguousarray(values.T)
    return Points(raw, form, tiles.PointData(values.reshape(-1), half, _NO_INDICES, _NO_INDPTR))


def points_for_csr(folding: Folding, raw: Any, dtype: np.dtype) -> Points:
    """Vectors folded as points for CSR rows: dense by feature, or CSC where few of them share a feature."""
    k, d = raw.shape
    csr = raw if is_sparse(raw) else sp.csr_array(raw)
    values, half, indices, indptr = fold_csr(csr, folding.point_scale, folding, dtype)
    folded = sp.csr_array((values, indices, indptr), shape=(k, d))
    if not (folding.norms or folding.manhattan):
        half[:] = folding.shift
    if not is_sparse(raw) or _mostly_dense(indices, k, d, dtype.itemsize):
        form = tiles.CSR_MANHATTAN if folding.manhattan else tiles.CSR_INNER
        by_feature = np.ascontiguousarray(folded.toarray().T)
        return Points(raw, form, tiles.PointData(by_feature.reshape(-1), half, _NO_INDICES, _NO_INDPTR))
    form = tiles.CSR_CSC_MANHATTAN if folding.manhattan else tiles.CSR_CSC_INNER
    csc = folded.tocsc()
    data = tiles.PointData(csc.data, half, csc.indices.astype(np.int32), csc.indptr.astype(np.int64))
    return Points(raw, form, data)


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
        return np.require(self.kernel.block(self.raw, points.raw, self.dtype), self.dtype, ["C", "W", "A"])

    def scores(
        self, rows: Selection, points: Points, coef: np.ndarray, chunks: Chunks, out: np.ndarray, n_jobs: int
    ) -> None:
        """See `Operand.scores`; the rows are all of the block's."""
        out[:, chunks.empty] = 0
        by_output = np.ascontiguousarray(coef.T)
        tiles.sum_rows(self._values(points), by_output, chunks.cuts, chunks.owner, out)

    def block(self, rows: Selection, points: Points, out: np.ndarray, n_jobs: int) -> None:
        """See `Operand.block`; the rows are all of the block's."""
        out[:] = self._values(points)

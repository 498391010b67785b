"""Kernel values between basis vectors themselves, in float64, for every kernel alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.kernels.kernel_rows import KernelRows
from slimsvm.kernels.operands import (
    MAP_WORK,
    DenseFolder,
    Selection,
    points_for_dense,
    points_of_folded,
)
from slimsvm.kernels.outlying_rows import centre_of_basis
from slimsvm.rows import is_sparse

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def between(kernel_rows: KernelRows, A: Any, B: Any = None) -> np.ndarray:
    """Return k(a_i, b_j) of raw basis vectors as a float64 array (len(A), len(B)); B None stands for A.

    A precomputed kernel's vectors are positions of training rows: their values are read off the rows' matrix.
    """
    if not kernel_rows.kernel.has_features:
        points = kernel_rows.points_of(A if B is None else B)
        return kernel_rows.block(points, rows=np.asarray(A)[:, 0].astype(np.int64)).astype(np.float64)
    values = _of_few(kernel_rows, A, B)
    if values is not None:
        kernel_rows.counter.add(values.size)
        return values
    B = A if B is None else B
    rows = KernelRows.for_basis(
        kernel_rows.kernel, A, B, dtype=np.float64, n_jobs=kernel_rows.n_jobs, memory_limit=kernel_rows.sizes.few_bytes
    )
    rows.counter = kernel_rows.counter
    return rows.block(rows.points_of(B))


def _of_few(kernel_rows: KernelRows, A: Any, B: Any) -> np.ndarray | None:
    """Compute `between` for few dense vectors, to the same bits in half the time; None for other or far vectors."""
    folding, other = kernel_rows.kernel.folding(A.shape[1]), A if B is None else B
    if folding is None or is_sparse(A) or is_sparse(other) or A.dtype not in FLOATS or other.dtype not in FLOATS:
        return None
    (n, d), k, sizes = A.shape, len(other), kernel_rows.sizes
    if 8 * n * d > sizes.few_bytes or n * k * (d + MAP_WORK) > sizes.call_work:
        return None
    centre = centre_of_basis(folding, A, other)
    folder = DenseFolder(folding, centre, n, FLOATS[1])
    folder.add(A, 0)
    rows = folder.operand()
    points = points_of_folded(rows, lambda: A, slice(None)) if B is None else None
    if points is None:
        points = points_for_dense(folding, other, centre, FLOATS[1])
    if len(points.far):
        return None
    values = np.empty((n, k))
    rows.block(Selection(n), points, values, kernel_rows.n_jobs)
    return values


def squared_lengths(kernel_rows: KernelRows, A: Any) -> np.ndarray:
    """Return k(a_i, a_i) of raw basis vectors, float64."""
    if not kernel_rows.kernel.has_features:
        return kernel_rows.diag(np.asarray(A)[:, 0].astype(np.int64))
    return kernel_rows.kernel.diag(A)

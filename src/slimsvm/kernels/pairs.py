"""Kernel values between basis vectors themselves, in float64, for every kernel alike; of few ones with rows, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.core import EXP2
from slimsvm.core.clock import check_time
from slimsvm.kernels.kernel import NO_INDEX
from slimsvm.kernels.kernel_rows import KernelRows
from slimsvm.kernels.operands import (
    MAP_WORK,
    DenseFolder,
    Selection,
    points_for_dense,
    points_of_folded,
)
from slimsvm.kernels.outlying_rows import centre_of_basis, far_from_centre
from slimsvm.rows import is_sparse

# The most kernel values of few vectors with rows.
MOST = 1 << 17
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


def with_few(kernel_rows: KernelRows, basis: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return kernel values of few dense vectors with each other, float64 (k, k), and with all rows (n, k).

    By NumPy, in a third of the time of the core's calls, and to other last bits. None for other kernels than RBF, rows
    that are not kept in memory, vectors far from these, and more than MOST values.
    """
    kernel, n, k = kernel_rows.kernel, kernel_rows.n_rows, basis.shape[0]
    if not (kernel.is_gaussian and kernel_rows.is_kept) or kernel_rows.rows.is_sparse:
        return None
    if n * k > MOST or (n + k) * k * kernel_rows.value_work > kernel_rows.sizes.call_work:
        return None
    check_time()
    folding, (rows, _), dtype = kernel.folding(basis.shape[1]), kernel_rows.folded_rows(NO_INDEX), kernel_rows.dtype
    assert folding is not None
    assert folding.code == EXP2
    own = (basis - kernel_rows.centre) * folding.row_scale
    gram = own @ own.T
    half = -0.5 * gram.diagonal()
    if len(far_from_centre(folding, half.astype(dtype))):
        return None
    gram += half
    gram += half[:, None]
    values = rows.values.reshape(n, -1) @ own.T.astype(dtype)
    values += half.astype(dtype)
    values += rows.half[:, None]
    kernel_rows.counter.add(gram.size + values.size)
    return np.exp2(gram, out=gram), np.exp2(values, out=values)


def squared_lengths(kernel_rows: KernelRows, A: Any) -> np.ndarray:
    """Return k(a_i, a_i) of raw basis vectors, float64."""
    if not kernel_rows.kernel.has_features:
        return kernel_rows.diag(np.asarray(A)[:, 0].astype(np.int64))
    return kernel_rows.kernel.diag(A)

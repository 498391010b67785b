"""Kernel values between basis vectors themselves, in float64, for every kernel alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.kernels.kernel_rows import KernelRows

# Folded vectors up to which they are folded at once, and not part by part by several threads.
FEW_BYTES = 1 << 20


def between(kernel_rows: KernelRows, A: Any, B: Any) -> np.ndarray:
    """k(a_i, b_j) of raw basis vectors as a float64 array (len(A), len(B)).

    A precomputed kernel's vectors are positions of training rows: their values are read off the rows' matrix.
    """
    if not kernel_rows.kernel.has_features:
        block = kernel_rows.block(kernel_rows.points_of(B), rows=np.asarray(A)[:, 0].astype(np.int64))
        return block.astype(np.float64)
    kernel_rows.counter.add(A.shape[0] * B.shape[0])
    rows = KernelRows.for_basis(
        kernel_rows.kernel, A, B, dtype=np.float64, n_jobs=kernel_rows.n_jobs, memory_limit=FEW_BYTES
    )
    return rows.block(rows.points_of(B))


def squared_lengths(kernel_rows: KernelRows, A: Any) -> np.ndarray:
    """k(a_i, a_i) of raw basis vectors, float64."""
    if not kernel_rows.kernel.has_features:
        return kernel_rows.diag(np.asarray(A)[:, 0].astype(np.int64))
    return kernel_rows.kernel.diag(A)

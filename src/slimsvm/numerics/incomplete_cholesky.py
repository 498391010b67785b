"""One step of the pivoted Cholesky factorisation of a kernel matrix of which only columns are ever seen."""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.maps import SUMS

ROWS_PER_TILE = 1024


@njit(cache=True, nogil=True, fastmath=SUMS)
def add_column(kernel_column, pivot_row, root, t, factor, residual, largest, where, lo, hi):
    """Column t of the factor, and the residual diagonal without it, for the tiles lo, …, hi - 1.

    factor[i, t] = (k(x_i, p) - <factor[i, :t], pivot_row>) / root, residual[i] -= factor[i, t]**2. Rows with a negative
    residual are pivots already and are left out. largest and where say for each tile which residual is largest (the
    first of equal ones) and at which row.
    """
    n = residual.shape[0]
    for tile in range(lo, hi):
        largest[tile], where[tile] = -1.0, -1
        for i in range(tile * ROWS_PER_TILE, min(n, (tile + 1) * ROWS_PER_TILE)):
            row = factor[i]
            total = np.float64(kernel_column[i])
            for s in range(t):
                total -= row[s] * pivot_row[s]
            value = total / root
            row[t] = value
            if residual[i] >= 0:
                residual[i] = max(0.0, residual[i] - value * value)
                if residual[i] > largest[tile]:
                    largest[tile], where[tile] = residual[i], i

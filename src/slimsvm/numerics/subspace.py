"""Products with the kernel values of rows and basis vectors, in their own type, summed in float64.

Rows are met in order and columns apart, so that neither threads nor cutting the rows into blocks (of a multiple of
SUB_BLOCK) changes a bit of the result.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.copying import copy_row, copy_rows
from slimsvm.numerics.maps import SUMS

SUB_BLOCK = 32  # rows turned into float64 at a time
PANEL = 64  # columns that one call of `transposed_panels` sums at a time


@njit(cache=True, nogil=True, fastmath=SUMS)
def times_tiles(values, coef, lo, hi, out):
    """out[i, c] = sum_j values[i, j] coef[j, c], for the tiles of SUB_BLOCK rows lo, …, hi - 1.

    values may have more columns than coef has rows: the first ones count.
    """
    n, (k, m) = values.shape[0], coef.shape
    wide, part = np.empty((SUB_BLOCK, k)), np.empty((SUB_BLOCK, m))
    weights = coef[:, 0].copy()
    for tile in range(lo, hi):
        start = tile * SUB_BLOCK
        size = min(SUB_BLOCK, n - start)
        if m == 1:
            for i in range(start, start + size):
                row, total = values[i, :k], 0.0
                for j in range(k):
                    total += row[j] * weights[j]
                out[i, 0] = total
        else:
            for i in range(size):
                copy_row(values[start + i, :k], wide[i])
            np.dot(wide[:size], coef, part[:size])
            copy_rows(part[:size], out[start : start + size])


@njit(cache=True, nogil=True, fastmath=SUMS)
def transposed_panels(values, coef, lo, hi, out):
    """out[j, c] += sum_i values[i, j] coef[i, c], for the panels of PANEL columns lo, …, hi - 1.

    values may have more columns than out has rows: the first ones count.
    """
    n, (k, m) = values.shape[0], out.shape
    wide, total = np.empty((SUB_BLOCK, PANEL)), np.empty((PANEL, m))
    first, last = lo * PANEL, min(k, hi * PANEL)
    sums = out[first:last, 0].copy()
    for start in range(0, n, SUB_BLOCK):
        stop = min(n, start + SUB_BLOCK)
        if m == 1:  # whole rows while they come from memory
            for i in range(start, stop):
                weight = coef[i, 0]
                if weight != 0.0:
                    row = values[i, first:last]
                    for j in range(sums.size):
                        sums[j] += weight * row[j]
        elif np.any(coef[start:stop] != 0.0):
            for a in range(first, last, PANEL):
                size = min(PANEL, last - a)
                for i in range(stop - start):
                    copy_row(values[start + i, a : a + size], wide[i, :size])
                np.dot(wide[: stop - start].T, coef[start:stop], total)
                for j in range(size):
                    for c in range(m):
                        out[a + j, c] += total[j, c]
    if m == 1:
        copy_row(sums, out[first:last, 0])

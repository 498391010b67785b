"""Products with the kernel values of rows and basis vectors, in their own type, summed in float64.

Rows are met in order, and sums over rows cut at the same places, so that neither threads nor cutting the rows into
blocks (of a multiple of SUM_ROWS) changes a bit of the result.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.copying import copy_row, copy_rows
from slimsvm.numerics.crew import share_out
from slimsvm.numerics.maps import SUMS

SUB_BLOCK = 32  # rows turned into float64 at a time
SUM_ROWS = 512  # rows that `transposed_tiles` sums over at a time; a multiple of SUB_BLOCK
PANEL = 64  # columns turned into float64 at a time


@njit(nogil=True, fastmath=SUMS)
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


@njit(cache=True, nogil=True)
def share_times_tiles(work, before, after):
    """`times_tiles` by a crew."""
    share_out(times_tiles, work, before, after)


@njit(nogil=True, fastmath=SUMS)
def transposed_tiles(values, coef, lo, hi, sums):
    """sums[t, j, c] = sum_i values[i, j] coef[i, c] over the rows i of the tiles t of SUM_ROWS rows lo, …, hi - 1.

    values may have more columns than the k of sums (n_tiles, k, m): the first ones count.
    """
    n, k, m = values.shape[0], sums.shape[1], sums.shape[2]
    flat = sums.reshape(sums.shape[0], k * m)
    chosen, wide, total = np.empty(SUM_ROWS, np.int64), np.empty((SUB_BLOCK, PANEL)), np.empty((PANEL, m))
    for t in range(lo, hi):
        first, last = t * SUM_ROWS, min(n, (t + 1) * SUM_ROWS)
        out = flat[t]
        out[:] = 0.0
        if m == 1:
            size = 0
            for i in range(first, last):
                if coef[i, 0] != 0.0:
                    chosen[size] = i
                    size += 1
            whole = size // 4 * 4
            for s in range(0, whole, 4):  # four rows for each time that the sums are read and written
                a, b, c, d = chosen[s], chosen[s + 1], chosen[s + 2], chosen[s + 3]
                row_a, row_b, row_c, row_d = values[a, :k], values[b, :k], values[c, :k], values[d, :k]
                w_a, w_b, w_c, w_d = coef[a, 0], coef[b, 0], coef[c, 0], coef[d, 0]
                for j in range(out.size):
                    out[j] += (w_a * row_a[j] + w_b * row_b[j]) + (w_c * row_c[j] + w_d * row_d[j])
            for s in range(whole, size):
                row, weight = values[chosen[s], :k], coef[chosen[s], 0]
                for j in range(out.size):
                    out[j] += weight * row[j]
            continue
        for start in range(first, last, SUB_BLOCK):
            stop = min(last, start + SUB_BLOCK)
            if not np.any(coef[start:stop] != 0.0):
                continue
            for a in range(0, k, PANEL):
                size = min(PANEL, k - a)
                for i in range(stop - start):
                    copy_row(values[start + i, a : a + size], wide[i, :size])
                np.dot(wide[: stop - start].T, coef[start:stop], total)
                for j in range(size):
                    for c in range(m):
                        out[(a + j) * m + c] += total[j, c]


@njit(cache=True, nogil=True)
def share_transposed_tiles(work, before, after):
    """`transposed_tiles` by a crew."""
    share_out(transposed_tiles, work, before, after)


@njit(cache=True, nogil=True)
def add_tiles(sums, out):
    """Add the sums of every tile to out, one tile after another."""
    flat = out.reshape(out.size)
    for t in range(sums.shape[0]):
        part = sums[t].reshape(out.size)
        for j in range(flat.size):
            flat[j] += part[j]

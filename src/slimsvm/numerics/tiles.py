"""Folded rows as arrays, and tiles of them next to points laid out feature after feature."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.copying import copy_row
from slimsvm.numerics.maps import SUMS

GEMM, MANHATTAN = range(2)  # forms of dense rows

# Flat arrays: dense rows one after another, or the values, columns and offsets of CSR; half and factor as
# `slimsvm.numerics.folding` makes them.
RowData = namedtuple("RowData", ["values", "half", "factor", "indices", "indptr", "n_features"])
PointData = namedtuple("PointData", ["values", "half", "indices", "indptr"])


@njit(nogil=True)
def gather(rows, index, first, n, lo, form, chosen, tile, tile_half):
    """Numbers, norms and (dense) values of rows lo, … of the n selected ones; past the end, row -1 and zeros.

    Selected are the rows at ``index``, or if that is empty consecutive ones from ``first``.
    """
    for i in range(chosen.size):
        if lo + i < n:
            row = index[lo + i] if index.size else first + lo + i
            chosen[i] = row
            tile_half[i] = rows.half[row]
            if form <= MANHATTAN:
                copy_row(rows.values[row * rows.n_features : (row + 1) * rows.n_features], tile[i])
        else:
            chosen[i] = -1
            tile_half[i] = 0
            tile[i] = 0


@njit(nogil=True, fastmath=SUMS)
def csr_dense(rows, chosen, points, k, a, is_inner, S):
    """Inner products of CSR rows with dense points, or for |.|_1 what shared features add: |x| + |z| - |x - z|."""
    S[:] = 0
    for i in range(chosen.size):
        if chosen[i] >= 0:
            row = S[i]
            for t in range(rows.indptr[chosen[i]], rows.indptr[chosen[i] + 1]):
                x, c = rows.values[t], np.int64(rows.indices[t])
                p = points.values[c * k + a : c * k + a + row.size]
                if is_inner:
                    for j in range(row.size):
                        row[j] += x * p[j]
                else:
                    for j in range(row.size):
                        row[j] += abs(x) + abs(p[j]) - abs(x - p[j])

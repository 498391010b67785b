"""Kernel values of tiles of TILE rows times chunks of points, mapped and summed while in cache.

The last tile is padded, so that every row goes through products of the same shape: a row's values do not depend on the
rows computed with it.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from slimsvm.numerics.maps import SUMS, map_sum, map_tile

TILE = 48  # rows: a multiple of every BLAS's register block, so that no row of a tile is at an edge
CHUNK = 256  # points: TILE x CHUNK float32 stay in the nearest caches

# What stands in S before the map, by the kinds of rows and points.
GEMM, MANHATTAN, CSR_INNER, CSR_MANHATTAN, CSR_CSC_INNER, CSR_CSC_MANHATTAN = range(6)

# Flat arrays. Rows: dense ones after one another, or the values, columns and offsets of CSR. Points: dense ones after
# one another (GEMM) or feature after feature (n_features x k), or the values, points and offsets by feature of CSC.
RowData = namedtuple("RowData", ["values", "half", "indices", "indptr", "n_features"])
PointData = namedtuple("PointData", ["values", "half", "indices", "indptr"])


@njit(nogil=True)
def gather(rows, index, first, n, lo, form, chosen, tile, tile_half):
    """Numbers, norms and (dense) values of rows lo, … of the n selected ones; past the end, row -1 and zeros.

    Selected are the rows at ``index``, or if that is empty consecutive ones from ``first``.
    """
    d = rows.n_features
    for i in range(chosen.size):
        if lo + i < n:
            row = index[lo + i] if index.size else first + lo + i
            chosen[i] = row
            tile_half[i] = rows.half[row]
            if form <= MANHATTAN:
                tile[i] = rows.values[row * d : (row + 1) * d]
        else:
            chosen[i] = -1
            tile_half[i] = 0
            tile[i] = 0


@njit(nogil=True, fastmath=SUMS)
def manhattan(tile, points, k, a, S):
    """S[i, j] = -sum_c |tile[i, c] - point a + j, c|."""
    S[:] = 0
    for i in range(tile.shape[0]):
        row = S[i]
        for c in range(tile.shape[1]):
            x, p = tile[i, c], points.values[c * k + a : c * k + a + row.size]
            for j in range(row.size):
                row[j] -= abs(x - p[j])


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


@njit(nogil=True, fastmath=SUMS)
def csr_csc(rows, chosen, points, a, is_inner, S):
    """The same with sparse points by feature: only features that both sides have cost anything."""
    S[:] = 0
    b = a + S.shape[1]
    for i in range(chosen.size):
        if chosen[i] >= 0:
            row = S[i]
            for t in range(rows.indptr[chosen[i]], rows.indptr[chosen[i] + 1]):
                x, c = rows.values[t], np.int64(rows.indices[t])
                lo, hi = points.indptr[c], points.indptr[c + 1]
                if a > 0:
                    lo += np.searchsorted(points.indices[lo:hi], a)
                while lo < hi and points.indices[lo] < b:
                    p = points.values[lo]
                    if is_inner:
                        row[points.indices[lo] - a] += x * p
                    else:
                        row[points.indices[lo] - a] += abs(x) + abs(p) - abs(x - p)
                    lo += 1


@njit(nogil=True)
def products(form, tile, rows, chosen, points, a, S):
    """S[i, j]: what the map is applied to, without the norms, for the chosen rows and the points from a on."""
    d, k = rows.n_features, points.half.size
    b = a + S.shape[1]
    if form == GEMM:
        np.dot(tile, points.values[a * d : b * d].reshape(b - a, d).T, S)
    elif form == MANHATTAN:
        manhattan(tile, points, k, a, S)
    elif form <= CSR_MANHATTAN:
        csr_dense(rows, chosen, points, k, a, form == CSR_INNER, S)
    else:
        csr_csc(rows, chosen, points, a, form == CSR_CSC_INNER, S)


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def score_tiles(rows, points, index, first, coef, cuts, owner, form, code, degree, lo, hi, out):
    """out[i, s, c] = sum over the points j of segment s of k(x_i, p_j) coef[j, c], for the tiles lo, …, hi - 1.

    Chunk q is the points cuts[q], …, cuts[q + 1] - 1 and belongs to segment owner[q]; chunks of a segment follow one
    another. Sums run in the working type inside a chunk, in float64 over chunks.
    """
    m, dtype = coef.shape[1], rows.values.dtype
    chosen, tile_half = np.empty(TILE, np.int64), np.empty(TILE, dtype)
    tile = np.empty((TILE, rows.n_features if form <= MANHATTAN else 0), dtype)
    scratch, part = np.empty(TILE * CHUNK, dtype), np.empty((TILE, m), dtype)
    total, flat = np.zeros((TILE, m)), coef.reshape(coef.size)
    for t in range(lo, hi):
        start = t * TILE
        gather(rows, index, first, out.shape[0], start, form, chosen, tile, tile_half)
        for q in range(owner.size):
            a, b = cuts[q], cuts[q + 1]
            S = scratch[: TILE * (b - a)].reshape(TILE, b - a)
            products(form, tile, rows, chosen, points, a, S)
            if m == 1:
                map_sum(S, tile_half, points.half[a:b], flat[a:b], code, degree, total.reshape(TILE))
            else:
                map_tile(S, tile_half, points.half[a:b], code, degree)
                np.dot(S, coef[a:b], part)
                total += part
            if q + 1 == owner.size or owner[q + 1] != owner[q]:
                for i in range(min(TILE, out.shape[0] - start)):
                    for c in range(m):
                        out[start + i, owner[q], c] = total[i, c]
                total[:] = 0


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def block_tiles(rows, points, index, first, form, code, degree, lo, hi, out):
    """out[i, j] = k(x_i, p_j), for the tiles lo, …, hi - 1."""
    k, dtype = points.half.size, rows.values.dtype
    chosen, tile_half = np.empty(TILE, np.int64), np.empty(TILE, dtype)
    tile = np.empty((TILE, rows.n_features if form <= MANHATTAN else 0), dtype)
    scratch = np.empty(TILE * CHUNK, dtype)
    for t in range(lo, hi):
        start = t * TILE
        gather(rows, index, first, out.shape[0], start, form, chosen, tile, tile_half)
        for a in range(0, k, CHUNK):
            b = min(k, a + CHUNK)
            S = scratch[: TILE * (b - a)].reshape(TILE, b - a)
            products(form, tile, rows, chosen, points, a, S)
            map_tile(S, tile_half, points.half[a:b], code, degree)
            for i in range(min(TILE, out.shape[0] - start)):
                out[start + i, a:b] = S[i]


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def sum_rows(K, coef, cuts, owner, out):
    """out[i, s, c] = sum over the columns j of segment s of K[i, j] coef[c, j]: the last step alone."""
    n, m = K.shape[0], coef.shape[0]
    for i in range(n):
        for c in range(m):
            out[i, :, c] = 0
            weights, total = coef[c], 0.0
            for q in range(owner.size):
                part = K.dtype.type(0)
                for j in range(cuts[q], cuts[q + 1]):
                    part += K[i, j] * weights[j]
                total += part
                if q + 1 == owner.size or owner[q + 1] != owner[q]:
                    out[i, owner[q], c] = total
                    total = 0.0

"""Kernel values of dense rows: tiles of TILE rows times chunks of points, mapped and summed while in cache."""

from __future__ import annotations

import numpy as np
from numba import njit

from slimsvm.numerics.maps import SUMS, map_sum, map_tile

TILE = 48  # rows: a multiple of every BLAS's register block, so that no row of a tile is at an edge
CHUNK = 256  # points: TILE x CHUNK float32 stay in the nearest caches


@njit(nogil=True)
def gather(data, half, index, first, n, lo, tile, tile_half):
    """Copy rows lo, … of the n selected (``index``, or consecutive ones from ``first``) into a tile; zeros past the end."""
    for i in range(tile.shape[0]):
        if lo + i < n:
            row = index[lo + i] if index.size else first + lo + i
            tile[i] = data[row]
            tile_half[i] = half[row]
        else:
            tile[i] = 0
            tile_half[i] = 0


@njit(nogil=True, fastmath=SUMS)
def products(tile, points, manhattan, S):
    """S = tile @ points.T, or S[i, j] = -|tile[i] - points[j]|_1."""
    if not manhattan:
        np.dot(tile, points.T, S)
        return
    for i in range(tile.shape[0]):
        for j in range(points.shape[0]):
            total = S.dtype.type(0)
            for c in range(points.shape[1]):
                total -= abs(tile[i, c] - points[j, c])
            S[i, j] = total


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def score_tiles(data, half, index, first, points, half_points, coef, cuts, owner, manhattan, code, degree, lo, hi, out):
    """out[i, s, c] = sum over the points j of segment s of k(x_i, p_j) coef[j, c], for the tiles lo, …, hi - 1.

    Chunk q is the points cuts[q], …, cuts[q + 1] - 1 and belongs to segment owner[q]; chunks of a segment follow one
    another. Sums run in the working type inside a chunk, in float64 over chunks.
    """
    d, m = data.shape[1], coef.shape[1]
    tile, tile_half = np.empty((TILE, d), data.dtype), np.empty(TILE, data.dtype)
    scratch, part = np.empty(TILE * CHUNK, data.dtype), np.empty((TILE, m), data.dtype)
    total, flat = np.zeros((TILE, m)), coef.reshape(coef.size)
    for t in range(lo, hi):
        start = t * TILE
        rows = min(TILE, out.shape[0] - start)
        gather(data, half, index, first, out.shape[0], start, tile, tile_half)
        for q in range(owner.size):
            a, b = cuts[q], cuts[q + 1]
            S = scratch[: TILE * (b - a)].reshape(TILE, b - a)
            products(tile, points[a:b], manhattan, S)
            if m == 1:
                map_sum(S, tile_half, half_points[a:b], flat[a:b], code, degree, total.reshape(TILE))
            else:
                map_tile(S, tile_half, half_points[a:b], code, degree)
                np.dot(S, coef[a:b], part)
                total += part
            if q + 1 == owner.size or owner[q + 1] != owner[q]:
                for i in range(rows):
                    for c in range(m):
                        out[start + i, owner[q], c] = total[i, c]
                total[:] = 0


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def block_tiles(data, half, index, first, points, half_points, manhattan, code, degree, lo, hi, out):
    """out[i, j] = k(x_i, p_j), for the tiles lo, …, hi - 1."""
    k = points.shape[0]
    tile, tile_half = np.empty((TILE, data.shape[1]), data.dtype), np.empty(TILE, data.dtype)
    scratch = np.empty(TILE * CHUNK, data.dtype)
    for t in range(lo, hi):
        start = t * TILE
        gather(data, half, index, first, out.shape[0], start, tile, tile_half)
        for a in range(0, k, CHUNK):
            b = min(k, a + CHUNK)
            S = scratch[: TILE * (b - a)].reshape(TILE, b - a)
            products(tile, points[a:b], manhattan, S)
            map_tile(S, tile_half, half_points[a:b], code, degree)
            for i in range(min(TILE, out.shape[0] - start)):
                out[start + i, a:b] = S[i]


@njit(cache=True, nogil=True, error_model="numpy")
def fold_rows(raw, centre, scale, with_norms, lo, hi, out, half):
    """out = (raw - centre) * scale in the type of out, half = -|out row|^2 / 2 (0 without norms), for rows lo, …, hi - 1."""
    for i in range(lo, hi):
        norm = 0.0
        for c in range(raw.shape[1]):
            value = out.dtype.type((np.float64(raw[i, c]) - centre[c]) * scale[c])
            out[i, c] = value
            norm += np.float64(value) * np.float64(value)
        half[i] = -0.5 * norm if with_norms else 0.0

"""Kernel values of tiles of rows times panels of points, mapped and summed while in the nearest caches.

A kernel value is map(z), z = base_j + <x_i, p_j>. The RBF kernel's map is 2**(z + h_i), with base_j = -|p_j|^2 / 2 and
h_i = -|x_i|^2 / 2: the integer part of h_i goes into the number that rounds z, the rest into the row's ``factor``. Of
rows near all the points it goes into the factor too: the same bits, by fewer instructions.

Every row goes through the same instructions wherever it stands, and sums are cut the same way: a row's values do not
depend on the rows computed with it, nor on threads. Functions here must not allow reassociation, which undoes rounding.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.copying import copy_row
from slimsvm.numerics.crew import share_out
from slimsvm.numerics.maps import EXP2, POWER, TANH
from slimsvm.numerics.simd import (
    ROWS,
    csr_inner_row,
    csr_shared_row,
    exp2_panel,
    exp2_store_tile,
    exp2_sum_tile,
    exp2_tile,
    flush_tile,
    inner_tile,
    manhattan_tile,
    narrow_inner_tile,
    near_sum_tile,
    sum_tile,
)
from slimsvm.numerics.vectors import EXP2_FLOAT32, EXP2_FLOAT64, PANEL_FLOAT32, PANEL_FLOAT64, SCALES, VECTORS

ROWS_PER_TILE = 8 * ROWS  # what one thread takes at least: rows that share a chunk of points in the second cache
CHUNK_PANELS = 8  # panels whose sums stay in the working type; at most so many bytes of points as:
CHUNK_BYTES = 1 << 18

# Products, by the rows and points: both dense; CSR rows, dense points; CSR rows, CSC points.
INNER, MANHATTAN, CSR_INNER, CSR_MANHATTAN, CSC_INNER, CSC_MANHATTAN = range(6)

# Panels of points, feature after feature, or the values, points and offsets by feature of CSC; base by panels.
PanelData = namedtuple("PanelData", ["panels", "base", "indices", "indptr"])
# Coefficients by entry, output and lane. Entry e takes part in segment segments[e]; those of panel q are first[q], ….
Weights = namedtuple("Weights", ["values", "first", "segments"])

_MAGIC32, _MAGIC64 = EXP2_FLOAT32[1], EXP2_FLOAT64[1]
_LOWEST32, _LOWEST64 = EXP2_FLOAT32[2], EXP2_FLOAT64[2]
_NEAR, _NEAR_WEIGHT = 1.0 + EXP2_FLOAT32[2], 2.0**40


@njit(nogil=True)
def aligned(n, like):
    """Array of n zeros at the start of a cache line."""
    memory = np.zeros(n + 64 // like.itemsize, like.dtype)
    skip = (-memory.ctypes.data // like.itemsize) % (64 // like.itemsize)
    return memory[skip : skip + n]


@njit(cache=True, nogil=True)
def near_from(base, weight, form, code, columns):
    """The h from which on no row has an exponent below the least: (|x| + |p|)^2 / 2 is less for all points.

    The sums are then below 2**(40 - `_NEAR`) times the number of points, and finite. Infinite if there is no such h, or
    `kernel_tiles` does not ask.
    """
    if not SCALES or base.itemsize != 4 or form != INNER or code != EXP2 or columns != 1:
        return np.inf
    far, heavy = 0.0, 0.0
    for j in range(base.size):
        far = min(far, base[j])
    for j in range(weight.size):
        heavy = max(heavy, abs(weight[j]))
    left = np.sqrt(-2.0 * _NEAR) - np.sqrt(-2.0 * far)
    return -0.5 * left * left if left > 0 and heavy < _NEAR_WEIGHT else np.inf


@njit(nogil=True)
def kernel_tiles(rows, points, index, first, weights, n_segments, m, form, code, degree, near_half, lo, hi, out):
    """Scores, or kernel values if m is 0, of the tiles lo, …, hi - 1 of the selected rows.

    Selected are the rows at ``index``, or if that is empty consecutive ones from ``first``; out has a line for each.
    Scores: out[i, s, c] = sum over the points j of segment s of k(x_i, p_j) coef[j, c]. Sums run lane by lane in the
    working type inside a chunk of points, in float64 over lanes and chunks. Values: out[i, 0, j] = k(x_i, p_j).
    ``near_half`` is of `near_from`.

    One long function, because arrays passed on to another, or taken out of a tuple, have their references counted: that
    costs more than a tile.
    """
    values, half, factor, indices, indptr, n_features = rows
    panels, base, p_indices, p_indptr = points
    weight, entries, entry_segment = weights
    is_single = half.itemsize == 4
    panel, magic, low = PANEL_FLOAT64, _MAGIC64, _LOWEST64
    if is_single:
        panel, magic, low = PANEL_FLOAT32, _MAGIC32, _LOWEST32
    lanes = panel // VECTORS
    n, n_panels, columns, is_csc = out.shape[0], base.size // panel, n_segments * m, form >= CSC_INNER
    stride = n_panels * panel if is_csc else panel
    chunk = n_panels if is_csc else min(CHUNK_PANELS, max(1, CHUNK_BYTES // max(1, panel * n_features * half.itemsize)))
    zero = half.dtype.type(0)
    is_plain = form == INNER and code == EXP2 and columns == 1
    chosen, offsets = np.empty(ROWS_PER_TILE, np.int64), np.empty(ROWS_PER_TILE, np.int64)
    rounders, lowest = aligned(ROWS_PER_TILE, half), aligned(ROWS_PER_TILE, half)
    S, sums = aligned(ROWS * stride, half), aligned(ROWS_PER_TILE * m * lanes, half)  # sums stay 0 between uses
    totals, flat = np.empty(ROWS_PER_TILE * columns), out.reshape(out.size)
    shift, is_near = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE // ROWS, np.bool_)
    for tile in range(lo, hi):
        start, n_rows = tile * ROWS_PER_TILE, min(ROWS_PER_TILE, n - tile * ROWS_PER_TILE)
        totals[:] = 0
        for r in range(n_rows):
            chosen[r] = index[start + r] if index.size else first + start + r
        chosen[n_rows:] = chosen[0]  # past the end: any row
        for r in range(ROWS_PER_TILE):
            offsets[r] = chosen[r] * n_features
            whole = np.rint(half[chosen[r]]) if m > 0 else zero
            rounders[r], lowest[r] = magic + whole, low - whole
            shift[r] = factor[chosen[r]]
        for b in range(0, n_rows if is_plain else 0, ROWS):
            is_near[b // ROWS] = True
            for r in range(b, b + ROWS):
                is_near[b // ROWS] &= half[chosen[r]] >= near_half
            for r in range(b, b + ROWS if is_near[b // ROWS] else b):  # times 2**whole
                shift[r] *= np.int64(np.int64(1023 + rounders[r]) << 52).view(np.float64)
        for q_lo in range(0, n_panels, chunk):
            q_hi = min(n_panels, q_lo + chunk)
            segment = np.int64(0) if m == 0 else entry_segment[entries[q_lo]]
            for b in range(0, n_rows, ROWS):
                sums_at = b * m * lanes
                if is_plain and is_near[b // ROWS]:
                    for q in range(q_lo, q_hi):
                        at = q * panel
                        inner_tile(values, offsets, b, panels, at * n_features, base, at, n_features, S)
                        near_sum_tile(S, weight, at, sums, sums_at)
                    continue
                if is_plain:  # the usual case, without the questions that the others ask at every panel
                    for q in range(q_lo, q_hi):
                        at = q * panel
                        inner_tile(values, offsets, b, panels, at * n_features, base, at, n_features, S)
                        exp2_sum_tile(S, 0, stride, rounders, lowest, b, weight, at, sums, sums_at)
                    continue
                if is_csc:  # only features that both sides have cost anything
                    for r in range(ROWS):
                        for j in range(stride):
                            S[r * stride + j] = base[j]
                        for t in range(indptr[chosen[b + r]], indptr[chosen[b + r] + 1]):
                            x, f = values[t], indices[t]
                            for u in range(p_indptr[f], p_indptr[f + 1]):
                                p, j = panels[u], r * stride + p_indices[u]
                                S[j] += x * p if form == CSC_INNER else abs(x) + abs(p) - abs(x - p)
                segment = np.int64(0) if m == 0 else entry_segment[entries[q_lo]]
                for q in range(q_lo, q_hi):
                    at, base_at, S_at = q * panel * n_features, q * panel, q * panel if is_csc else 0
                    if form == INNER and m == 0 and out.shape[2] - base_at <= lanes:
                        narrow_inner_tile(values, offsets, b, panels, at, base, base_at, n_features, S)
                    elif form == INNER:
                        inner_tile(values, offsets, b, panels, at, base, base_at, n_features, S)
                    elif form == MANHATTAN:
                        manhattan_tile(values, offsets, b, panels, at, base, base_at, n_features, S)
                    elif form == CSR_INNER:
                        for r in range(ROWS):
                            t, u = indptr[chosen[b + r]], indptr[chosen[b + r] + 1]
                            csr_inner_row(values, indices, t, u, panels, at, base, base_at, S, r * panel)
                    elif form == CSR_MANHATTAN:
                        for r in range(ROWS):
                            t, u = indptr[chosen[b + r]], indptr[chosen[b + r] + 1]
                            csr_shared_row(values, indices, t, u, panels, at, base, base_at, S, r * panel)
                    e_lo, e_hi = (0, 0) if m == 0 else (entries[q], entries[q + 1])
                    fused = code == EXP2 and m == 1 and e_hi == e_lo + 1
                    if m == 0 and code == EXP2 and b + ROWS <= n_rows and base_at + panel <= out.shape[2]:
                        place = (start + b) * out.shape[2] + base_at
                        exp2_store_tile(S, S_at, stride, half, chosen, b, flat, place, out.shape[2])
                        continue
                    if m == 0 and code == EXP2:  # exponents added in full, so that a row has the value 1 with itself
                        for r in range(ROWS):
                            exp2_panel(S, S_at + r * stride, half, chosen[b + r])
                    elif code == EXP2 and not fused:
                        exp2_tile(S, S_at, stride, rounders, lowest, b)
                    elif code == TANH:
                        for r in range(ROWS):
                            for j in range(S_at + r * stride, S_at + r * stride + panel):
                                S[j] = np.tanh(S[j])
                    elif code == POWER:
                        for r in range(ROWS):
                            for j in range(S_at + r * stride, S_at + r * stride + panel):
                                z = S[j]
                                value = z
                                for _ in range(1, degree):
                                    value = value * z
                                S[j] = value
                    for e in range(e_lo, e_hi):
                        if entry_segment[e] != segment or (q % CHUNK_PANELS == 0 and e == e_lo):
                            for c in range(m):
                                place = b * columns + segment * m + c
                                flush_tile(sums, sums_at + c * ROWS * lanes, totals, place, columns)
                            segment = entry_segment[e]
                        if fused:
                            exp2_sum_tile(S, S_at, stride, rounders, lowest, b, weight, e * panel, sums, sums_at)
                        else:
                            for c in range(m):
                                at = sums_at + c * ROWS * lanes
                                sum_tile(S, S_at, stride, weight, (e * m + c) * panel, sums, at)
                    if m == 0:
                        for r in range(min(ROWS, n_rows - b)):
                            place = (start + b + r) * out.shape[2] + base_at
                            size, begin = min(panel, out.shape[2] - base_at), S_at + r * stride
                            copy_row(S[begin : begin + size], flat[place : place + size])
            for b in range(0, n_rows, ROWS):
                for c in range(m):
                    place = b * columns + segment * m + c
                    flush_tile(sums, (b * m + c * ROWS) * lanes, totals, place, columns)
        for r in range(n_rows):
            scale = shift[r]
            if columns == 1:
                flat[start + r] = totals[r] * scale
            else:
                for j in range(columns):
                    flat[(start + r) * columns + j] = totals[r * columns + j] * scale


@njit(cache=True, nogil=True)
def share_kernel_tiles(work, before, after):
    """`kernel_tiles` by a crew."""
    share_out(kernel_tiles, work, before, after)


@njit(cache=True, nogil=True)
def sum_rows(K, coef, segments, out):
    """Ready kernel values K: out[i, s, c] = sum over the columns j of segment s of K[i, j] coef[c, j], in float64."""
    for i in range(K.shape[0]):
        for c in range(coef.shape[0]):
            for s in range(segments.size - 1):
                total = 0.0
                for j in range(segments[s], segments[s + 1]):
                    total += np.float64(K[i, j]) * np.float64(coef[c, j])
                out[i, s, c] = total

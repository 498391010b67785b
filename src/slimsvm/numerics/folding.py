"""Folding: rows centred, scaled, with their norms, once per fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.maps import NO_REORDER
from slimsvm.numerics.vectors import EXP2_FLOAT64, LANES_FLOAT64, Vectors, pointers

NO_NORM, SQUARED, ABSOLUTE = range(3)
# Beyond this -half, float32 (float64) holds z = half + … no more exactly enough to be rounded to an integer.
FAR_FLOAT32, FAR_FLOAT64 = float(2**20), float(2**50)
C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11 = EXP2_FLOAT64[0]


def _fold_long_row(typing_context, raw, at, centre, feature_scale, counted, n_features, out):
    """Numbers at, … of out = (raw - centre) * feature_scale; returns their squared length.

    The last numbers go as a vector that ends with the row: of it only those count that ``counted`` has 1 for. Left to
    itself LLVM works on the rest of a row number by number, which took longer than the vectors.
    """

    def generate(context, builder, signature, arguments):
        vectors = Vectors(context, builder, types.float64)
        raw_kind, out_kind = signature.args[0].dtype, signature.args[6].dtype
        raw_type, out_type = (ir.VectorType(context.get_value_type(k), vectors.lanes) for k in (raw_kind, out_kind))
        raw, at, centre, feature_scale, counted, n_features, out = pointers(context, builder, signature, arguments)
        raw, out = builder.gep(raw, [at]), builder.gep(out, [at])
        total = cgutils.alloca_once_value(builder, vectors.constant(0.0))

        def wide(value):
            return value if value.type == vectors.vector else builder.fpext(value, vectors.vector)

        def fold(c):
            place = builder.bitcast(builder.gep(raw, [c]), raw_type.as_pointer())
            value = wide(builder.load(place, align=raw_kind.bitwidth // 8))
            value = builder.fmul(builder.fsub(value, vectors.load(centre, c)), vectors.load(feature_scale, c))
            value = value if out_type == vectors.vector else builder.fptrunc(value, out_type)
            target = builder.bitcast(builder.gep(out, [c]), out_type.as_pointer())
            builder.store(value, target, align=out_kind.bitwidth // 8)
            return wide(value)

        lanes = ir.Constant(n_features.type, vectors.lanes)
        with cgutils.for_range(builder, builder.udiv(n_features, lanes)) as loop:
            value = fold(builder.mul(loop.index, lanes))
            builder.store(vectors.multiply_add(value, value, builder.load(total)), total)
        with builder.if_then(cgutils.is_not_null(builder, builder.urem(n_features, lanes))):
            value = fold(builder.sub(n_features, lanes))
            value_once = builder.fmul(value, vectors.load(counted, lanes.type(0)))
            builder.store(vectors.multiply_add(value_once, value, builder.load(total)), total)
        return vectors.total(builder.load(total))

    return types.float64(raw, types.int64, centre, feature_scale, counted, types.int64, out), generate


fold_long_row: Callable = intrinsic(_fold_long_row)


@njit(nogil=True, error_model="numpy")
def _fold_short_row(raw, i, centre, feature_scale, out):
    """The same for row i, of fewer numbers than a vector holds.

    Its sum is in order: where it may be reordered, LLVM makes two versions and chooses by where the arrays lie, so that
    a row's last bit would depend on that.
    """
    total = 0.0
    for c in range(centre.size):
        value = out.dtype.type((np.float64(raw[i, c]) - centre[c]) * feature_scale[c])
        out[i, c] = value
        total += np.float64(value) * np.float64(value)
    return total


@njit(nogil=True, fastmath=NO_REORDER, error_model="numpy")
def _finish(norm, scale, half, factor):
    """Half norms of rows from -half in ``factor``, which gets 2**(half - its nearest integer) / scale; returns how many
    are too far out, or not finite.

    Loops from 0 to the arrays' size: Numba makes vectors of no others, since an index might be negative.
    """
    n_far, inverse = 0, 1.0 / scale
    if norm == NO_NORM:
        for i in range(factor.size):
            n_far += 0 if factor[i] < np.inf else 1
        half[:] = 0
        factor[:] = inverse
        return n_far
    far = FAR_FLOAT32 if half.itemsize == 4 else FAR_FLOAT64
    for i in range(factor.size):
        is_near = factor[i] < far  # not so for NaN
        total = factor[i] if is_near else 0.0
        rounded = np.float64(half.dtype.type(-total))
        r = -np.rint(rounded) - total
        p = C11 * r + C10
        p = p * r + C9
        p = p * r + C8
        p = p * r + C7
        p = p * r + C6
        p = p * r + C5
        p = p * r + C4
        p = p * r + C3
        p = p * r + C2
        p = p * r + C1
        p = p * r + C0
        half[i] = rounded if is_near else -far
        factor[i] = p * inverse if is_near else 0.0
    for i in range(factor.size):
        n_far += 1 if factor[i] == 0 else 0
    return n_far


@njit(cache=True, nogil=True, error_model="numpy")
def fold_rows(raw, centre, feature_scale, norm, scale, lo, hi, out, half, factor):
    """Set out = (raw - centre) * feature_scale and half = -|out|^2 / 2 (SQUARED) or 0, for rows lo, …, hi - 1.

    ``factor`` gets 2**half short of its integer part, over ``scale``. A row too far out for its type gets zeros, and a
    factor of 0. Returns how many these are, rows with numbers that are not finite among them.
    """
    d = centre.size
    counted = np.zeros(LANES_FLOAT64)
    counted[LANES_FLOAT64 - d % LANES_FLOAT64 :] = 1
    for i in range(lo, hi):
        if d >= LANES_FLOAT64:
            total = fold_long_row(raw, i * d, centre, feature_scale, counted, d, out)
        else:
            total = _fold_short_row(raw, i, centre, feature_scale, out)
        factor[i] = 0.5 * total
    n_far = _finish(norm, scale, half[lo:hi], factor[lo:hi])
    if n_far:
        for i in range(lo, hi):
            if factor[i] == 0:
                out[i] = 0
    return n_far


@njit(cache=True, nogil=True, error_model="numpy")
def fold_csr(raw, indices, indptr, feature_scale, norm, scale, out, half, factor):
    """The same for CSR values, not centred; ABSOLUTE gives half = -|out|_1. One number in feature_scale is for all."""
    last = feature_scale.size - 1
    for i in range(half.size):
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            value = out.dtype.type(np.float64(raw[t]) * feature_scale[min(indices[t], last)])
            out[t] = value
            total += abs(np.float64(value)) if norm == ABSOLUTE else 0.5 * np.float64(value) * np.float64(value)
        factor[i] = total
    if _finish(norm, scale, half, factor):
        for i in range(half.size):
            if factor[i] == 0:
                out[indptr[i] : indptr[i + 1]] = 0


@njit(cache=True, nogil=True)
def cut_weights(coef, segments, panel):
    """Coefficients (k x m) cut at the bounds of panels and segments, each piece padded with zeros to a whole panel.

    Returns the values by piece, output and place in the panel; the pieces of each panel; the segment of each piece.
    """
    (k, m), n_segments = coef.shape, segments.size - 1
    n_panels = -(-k // panel)
    first, owner = np.zeros(n_panels + 1, np.int64), np.empty(n_panels + n_segments, np.int64)
    values = np.zeros((n_panels + n_segments) * m * panel, coef.dtype)
    piece, segment = -1, 0
    for j in range(k):
        is_new = j % panel == 0
        if is_new:
            first[j // panel] = piece + 1
        while segments[segment + 1] <= j:
            segment += 1
            is_new = True
        if is_new:
            piece += 1
            owner[piece] = segment
        for c in range(m):
            values[(piece * m + c) * panel + j % panel] = coef[j, c]
    first[n_panels] = piece + 1
    return values, first, owner


@njit(cache=True, nogil=True)
def pack_dense(values, n_features, panel, panels):
    """Points one after another (k x n_features) to panels of ``panel`` points, feature after feature."""
    for j in range(values.shape[0]):
        start = (j // panel) * panel * n_features + j % panel
        for c in range(n_features):
            panels[start + c * panel] = values[j, c]


@njit(cache=True, nogil=True)
def pack_csr(values, indices, indptr, n_features, panel, panels):
    """The same for points in CSR; ``panels`` is zero before."""
    for j in range(indptr.size - 1):
        start = (j // panel) * panel * n_features + j % panel
        for t in range(indptr[j], indptr[j + 1]):
            panels[start + np.int64(indices[t]) * panel] = values[t]


@njit(cache=True, nogil=True)
def add_rows(rows, total):
    """Add Σ_i rows[i] to total (d,), float64, row after row; NumPy's sum of float32 numbers takes twice as long."""
    for i in range(len(rows)):
        row = rows[i]
        for j in range(total.size):
            total[j] += row[j]

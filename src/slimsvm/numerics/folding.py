"""Folding: rows centred, scaled, with their norms, once per fit."""

from __future__ import annotations

import numpy as np
from numba import njit

from slimsvm.numerics.maps import SUMS

NO_NORM, SQUARED, ABSOLUTE = range(3)
# Beyond this -half, float32 (float64) holds z = half + … no more exactly enough to be rounded to an integer.
FAR_FLOAT32, FAR_FLOAT64 = float(2**20), float(2**50)


@njit(nogil=True)
def _finish(total, norm, scale, i, half, factor):
    """Set row i's half norm and the factor 2**(half - its nearest integer) / scale; True if it is too far out."""
    far = FAR_FLOAT32 if half.itemsize == 4 else FAR_FLOAT64
    if norm == NO_NORM:
        half[i], factor[i] = 0.0, 1.0 / scale
        return False
    if not total < far:
        half[i], factor[i] = -far, 0.0
        return True
    half[i] = -total
    factor[i] = 2.0 ** (np.rint(half[i]) * -1.0 - total) / scale
    return False


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def _fold_row(raw, centre, feature_scale, out):
    """Set out = (raw - centre) * feature_scale; returns |out|^2."""
    total = 0.0
    for c in range(raw.size):
        value = out.dtype.type((np.float64(raw[c]) - centre[c]) * feature_scale[c])
        out[c] = value
        total += np.float64(value) * np.float64(value)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def fold_rows(raw, centre, feature_scale, norm, scale, lo, hi, out, half, factor):
    """Set out = (raw - centre) * feature_scale and half = -|out|^2 / 2 (SQUARED) or 0, for rows lo, …, hi - 1.

    ``factor`` gets 2**half short of its integer part, over ``scale``. A row too far out for its type gets zeros, and a
    factor of 0.
    """
    for i in range(lo, hi):
        total = _fold_row(raw[i], centre, feature_scale, out[i])
        if _finish(0.5 * total, norm, scale, i, half, factor):
            out[i] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def fold_csr(raw, indices, indptr, feature_scale, norm, scale, out, half, factor):
    """The same for CSR values, not centred; ABSOLUTE gives half = -|out|_1."""
    for i in range(half.size):
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            value = out.dtype.type(np.float64(raw[t]) * feature_scale[indices[t]])
            out[t] = value
            total += abs(np.float64(value)) if norm == ABSOLUTE else 0.5 * np.float64(value) * np.float64(value)
        if _finish(total, norm, scale, i, half, factor):
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

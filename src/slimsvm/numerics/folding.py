"""Folding: rows centred, scaled, with their norms, once per fit."""

from __future__ import annotations

import numpy as np
from numba import njit

NO_NORM, SQUARED, MANHATTAN_NORM = range(3)


@njit(cache=True, nogil=True, error_model="numpy")
def fold_rows(raw, centre, scale, norm, lo, hi, out, half):
    """Set out = (raw - centre) * scale, and half = -|out|^2 / 2 if norm is SQUARED or 0, for rows lo, …, hi - 1."""
    for i in range(lo, hi):
        total = 0.0
        for c in range(raw.shape[1]):
            value = out.dtype.type((np.float64(raw[i, c]) - centre[c]) * scale[c])
            out[i, c] = value
            total += np.float64(value) * np.float64(value)
        half[i] = -0.5 * total if norm == SQUARED else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def fold_csr(raw, indices, indptr, scale, norm, out, half):
    """The same for CSR values, not centred; MANHATTAN_NORM gives half = -|out|_1."""
    for i in range(half.size):
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            value = out.dtype.type(np.float64(raw[t]) * scale[indices[t]])
            out[t] = value
            total += abs(np.float64(value)) if norm == MANHATTAN_NORM else 0.5 * np.float64(value) * np.float64(value)
        half[i] = 0.0 if norm == NO_NORM else -total

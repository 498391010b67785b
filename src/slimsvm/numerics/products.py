"""The saved products A[slot, i·m + c] = ⟨g_j, φ(x_i)⟩_c of the live cuts: combining them and reading G off them."""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit

ROWS_PER_TILE = 2048


@njit(cache=True, nogil=True)
def combine_tiles(products, slots, alpha, out, lo, hi):
    """out[i] = Σ_j alpha_j products[slots_j, i] over the tiles lo to hi, in float64."""
    n = out.shape[0]
    total = np.empty(ROWS_PER_TILE)
    for tile in range(lo, hi):
        start = tile * ROWS_PER_TILE
        size = min(ROWS_PER_TILE, n - start)
        total[:] = 0.0
        for j in range(slots.shape[0]):
            weight = alpha[j]
            if weight != 0.0:
                row = products[slots[j], start : start + size]
                for i in range(size):
                    total[i] += weight * row[i]
        for i in range(size):
            out[start + i] = total[i]


@njit(cache=True, nogil=True)
def gram_row(products, slots, rows, coef, out, lo, hi):
    """out[j] = Σ_u,c coef[u, c] products[slots_j, rows_u·m + c] for the live cuts lo to hi."""
    n_outputs = coef.shape[1]
    for j in range(lo, hi):
        total = 0.0
        for u in range(rows.shape[0]):
            base = rows[u] * n_outputs
            for c in range(n_outputs):
                total += coef[u, c] * products[slots[j], base + c]
        out[j] = total

"""Products of sparse rows with explicit weights, W of shape (features, outputs) and F-th row that of feature F.

Every row's scores and every feature's sums are added up by one thread in the order they are stored in, so that the bits
do not depend on the tiles they came in.
"""

from __future__ import annotations

from slimsvm.numerics.compiling import njit

ROWS_PER_TILE, FEATURES_PER_TILE = 256, 4096


@njit(cache=True, nogil=True)
def weighted_rows(data, indices, indptr, rows, W, bias, out, lo, hi):
    """out[k] = bias + Σ_f x[rows_k, f] W[f] for the tiles lo to hi of ``rows``."""
    m = W.shape[1]
    for k in range(lo * ROWS_PER_TILE, min(rows.shape[0], hi * ROWS_PER_TILE)):
        for c in range(m):
            out[k, c] = bias[c]
        for at in range(indptr[rows[k]], indptr[rows[k] + 1]):
            value, f = data[at], indices[at]
            for c in range(m):
                out[k, c] += value * W[f, c]


@njit(cache=True, nogil=True)
def gathered_features(data, indices, indptr, coef, is_used, out, lo, hi):
    """out[f] = Σ_i x[i, f] coef[i] over the used rows i, for features in tiles lo to hi; stored by column."""
    m = coef.shape[1]
    for f in range(lo * FEATURES_PER_TILE, min(out.shape[0], hi * FEATURES_PER_TILE)):
        for c in range(m):
            out[f, c] = 0.0
        for at in range(indptr[f], indptr[f + 1]):
            i = indices[at]
            if is_used[i]:
                value = data[at]
                for c in range(m):
                    out[f, c] += value * coef[i, c]

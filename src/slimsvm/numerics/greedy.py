"""Vectors chosen one after another, each by what it explains of what those before it leave over."""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.maps import SUMS


@njit(cache=True, nogil=True, fastmath=SUMS)
def greedy_picks(rho, gram, own, tolerance, n):
    """Positions of up to n of s vectors, each of the greatest Σ_c rho_jc² / rest_j; rho (s, m) is overwritten.

    ``gram`` (s, s) are the vectors' products outside the span of a basis, rest_j what is left of gram_jj outside of the
    vectors chosen too. Not chosen are vectors of which no more than ``tolerance`` times own_j is left, or that explain
    nothing.
    """
    s, m = rho.shape
    chosen = np.empty(min(n, s), np.int64)
    # Rows: columns of the Cholesky factor of what is left of the products, one for each vector chosen.
    columns, rest, is_free = np.empty((chosen.size, s)), np.empty(s), np.empty(s, np.bool_)
    for j in range(s):
        rest[j], is_free[j] = gram[j, j], own[j] > 0.0
    for t in range(chosen.size):
        at, most = -1, 0.0
        for j in range(s):
            if is_free[j] and rest[j] > tolerance * own[j]:
                total = 0.0
                for c in range(m):
                    total += rho[j, c] * rho[j, c]
                if total > most * rest[j]:
                    at, most = j, total / rest[j]
        if at < 0:
            return chosen[:t]
        chosen[t], is_free[at] = at, False
        column, pivot = columns[t], np.sqrt(rest[at])
        for j in range(s):
            column[j] = gram[at, j]
        for u in range(t):
            earlier = columns[u]
            weight = earlier[at]
            for j in range(s):
                column[j] -= weight * earlier[j]
        for j in range(s):
            column[j] /= pivot
            rest[j] -= column[j] * column[j]
        for c in range(m):
            weight = rho[at, c] / pivot
            for j in range(s):
                rho[j, c] -= weight * column[j]
    return chosen

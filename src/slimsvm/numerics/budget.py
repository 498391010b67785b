"""Budget rules in compiled code: a row comes into the model, and what is too many goes.

Names are those of `slimsvm.numerics.points`.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.maps import EXP2, SUMS
from slimsvm.numerics.merge_rule import is_simple, merge, merge_row
from slimsvm.numerics.points import (
    ADDED,
    DEGRADATION,
    GIVEN,
    MERGE,
    PROJECT,
    PROJECTED,
    REMOVED,
    add_row,
    drop,
    is_at_zero,
    smallest,
)

# A point whose part outside the span of the others is below this share of its own k(x, x), or below the rounding errors
# of the sums it comes from, is projected, not added.
SPAN_SHARE32, SPAN_SHARE64 = 1e-5, 1e-9
ROUNDING32, ROUNDING64 = 1e-5, 1e-11


@njit(nogil=True, fastmath=SUMS)
def span(points, n, k_ii, v):
    """What of a new point, k_ii - k'Q k, is outside the span of the n used ones (k its kernel values); v = Q k.

    0 where what is outside cannot be told from rounding errors.
    """
    Q, k, outside, size = points.inverse, points.k, k_ii, k_ii
    for i in range(n):
        row, total = Q[i], 0.0
        for j in range(n):
            total += row[j] * k[j]
        v[i] = total
    for i in range(n):
        outside -= v[i] * k[i]
        size += abs(v[i] * k[i])
    share, rounding = SPAN_SHARE64, ROUNDING64
    if k.itemsize == 4:
        share, rounding = SPAN_SHARE32, ROUNDING32
    return outside if outside > max(share * k_ii, rounding * size) else 0.0


@njit(nogil=True)
def extend_inverse(points, n, outside, v):
    """Q after point n came in, v = Q k and what of it is outside the span from `span`."""
    Q = points.inverse
    for i in range(n):
        for j in range(n):
            Q[i, j] += v[i] * v[j] / outside
        Q[i, n] = -v[i] / outside
        Q[n, i] = Q[i, n]
    Q[n, n] = 1.0 / outside


@njit(nogil=True)
def project(points, counts, unit):
    """The point whose projection onto the span of the others loses least goes, its coefficients to the others."""
    Q, beta, sums, n = points.inverse, points.beta, points.sums, points.used[0]
    m = beta.shape[0]
    best, r = np.inf, 0
    for j in range(n):
        loss = 0.0
        for c in range(m):
            loss += beta[c, j] * beta[c, j]
        loss /= max(Q[j, j], 1e-300)
        if loss < best:
            best, r = loss, j
    pivot = max(Q[r, r], 1e-300)
    for c in range(m):
        share, share_of_sums = beta[c, r] / pivot, sums[c, r] / pivot
        for j in range(n):
            if j != r:
                beta[c, j] -= share * Q[r, j]
                sums[c, j] -= share_of_sums * Q[r, j]
    for j in range(n):
        points.v[j] = Q[r, j]
    for i in range(n):
        for j in range(n):
            Q[i, j] -= points.v[i] * points.v[j] / pivot
    drop(points, r)
    counts[DEGRADATION] += best * unit * unit
    counts[PROJECTED] += 1


@njit(nogil=True, forceinline=True)
def keep_within(points, rule, diagonal, counts, unit):
    """Apply the rule until there are at most rule.max_points points; ``unit`` scales the coefficients of the report."""
    while points.used[0] > rule.max_points:
        if rule.code == MERGE:
            merge(points, rule, counts, unit)
        elif rule.code == PROJECT:
            project(points, counts, unit)
        else:
            r, size = smallest(points, diagonal)
            if not is_at_zero(points.beta, r):
                counts[DEGRADATION] += size * unit * unit
                counts[REMOVED] += 1
            drop(points, r)


@njit(nogil=True, forceinline=True)
def add(rows, at, i, points, rule, form, code, diagonal, delta, counts, unit):
    """Add delta_c times row i (folded at ``at``, its kernel values in points.k) to the model, within the budget.

    Returns the number of points that made room.
    """
    m, slot, units = points.beta.shape[0], np.int64(points.slot_of[i]), points.mean[0]
    if slot >= 0:
        for c in range(m):
            points.beta[c, slot] += delta[c]
            points.sums[c, slot] += delta[c] * units
            if abs(points.beta[c, slot]) <= 1e-12 * abs(delta[c]):
                points.beta[c, slot] = 0
        points.least[0] = min(points.least[0], abs(points.beta[0, slot]))
        if rule.code != PROJECT and is_at_zero(points.beta, slot) and is_at_zero(points.sums, slot):
            drop(points, slot)
        return 0
    k_ii = diagonal[i]
    if k_ii <= 0:
        return 0
    n = points.used[0]
    if rule.code == MERGE and n == rule.max_points and is_simple(rule, m) and 0 < abs(delta[0]) <= points.least[0]:
        merge_row(rows, at, points, rule, form, delta[0], counts, unit)
        return 1
    if rule.code == PROJECT:
        outside = span(points, n, k_ii, points.v)
        if outside == 0.0:
            for c in range(m):
                for j in range(n):
                    points.beta[c, j] += delta[c] * points.v[j]
                    points.sums[c, j] += delta[c] * points.v[j] * units
            counts[PROJECTED] += 1
            return 0
        extend_inverse(points, n, outside, points.v)
    base = rows.half[at]
    if code != EXP2 and form != GIVEN:
        base = points.base[points.base.size - 1]  # the constant of the kernel, which the last, unused slot holds
    slot = add_row(rows, at, i, points, form, base)
    for c in range(m):
        points.beta[c, slot] = delta[c]
        points.sums[c, slot] = delta[c] * units
    counts[ADDED] += 1
    if n < rule.max_points:
        points.least[0] = min(points.least[0], abs(delta[0]))
        return 0
    keep_within(points, rule, diagonal, counts, unit)
    return n + 1 - points.used[0]

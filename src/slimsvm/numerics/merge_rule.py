"""The budget rule that makes one point of two: the search for the partner, the merger itself."""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.extremes import any_below, least_losses
from slimsvm.numerics.maps import exp2
from slimsvm.numerics.merging import LEAST_SHARE, MOST_SHARE, golden_section, look_up, polished
from slimsvm.numerics.points import (
    DEGRADATION,
    EVALS,
    MERGED,
    REMOVED,
    drop,
    is_at_zero,
    read_slot,
    slot_values,
    smallest,
    write_slot,
)
from slimsvm.numerics.simd import LANES_FLOAT32, LANES_FLOAT64

TINY = 1e-25  # folded features below count as 0


@njit(nogil=True, forceinline=True)
def best_partner(points, rule, r):
    """The slot that a merger of r, the smallest point, costs least with, by the table; -1 if none. One output only.

    Losses are looked up where a bound of theirs is below the best so far, beginning with the least bound.
    """
    k, values, bounds, n = points.k, points.beta[0], points.bounds, points.used[0]
    lanes, own = LANES_FLOAT32 if k.itemsize == 4 else LANES_FLOAT64, values[r]
    limit, least, partner = least_losses(k, values, n, own, bounds), np.inf, -1
    if limit == np.inf:
        return -1
    for _ in range(2):  # the slot of the least bound, then all that may be better
        for start in range(0, n, lanes):
            if not any_below(bounds, start, limit):
                continue
            for j in range(start, start + lanes):
                if bounds[j] <= limit:
                    u = min(max(own / (own + values[j]), LEAST_SHARE), MOST_SHARE)
                    loss = look_up(rule.table, 0, u, min(1.0, float(k[j])))
                    if loss < least:
                        least, partner = loss, j
        limit = least
    return partner


@njit(nogil=True, forceinline=True)
def are_merged(product, a, b, m):
    """Whether points whose coefficients have this inner product and the norms a <= b are merged."""
    return product > 0 or (m == 1 and product < 0 and b >= 2.0 * a)


@njit(nogil=True)
def merge_losses(points, rule, r):
    """points.v[j] = ‖Δ‖² of a merger of r, the smallest point, with j; infinite where the two are not merged."""
    beta, k, v = points.beta, points.k, points.v
    m, n = beta.shape[0], points.used[0]
    square_r, best = 0.0, np.inf
    for c in range(m):
        square_r += beta[c, r] * beta[c, r]
    norm_r = np.sqrt(square_r)
    for j in range(n):
        product, square = 0.0, 0.0
        for c in range(m):
            product += beta[c, r] * beta[c, j]
            square += beta[c, j] * beta[c, j]
        norm, v[j] = np.sqrt(square), np.inf
        a, b = min(norm_r, norm), max(norm_r, norm)
        if j == r or not a > 0 or not are_merged(product, a, b, m):  # squares of tiny numbers may be 0
            continue
        kappa = min(1.0, max(1e-300, float(k[j])))
        side = 1.0 if product > 0 else -1.0
        if rule.by_table:
            # With several outputs: what coefficients along one line would lose, which is no more than these lose.
            v[j] = (a * look_up(rule.table, 0, side * a / (side * a + b), kappa)) ** 2
        if not rule.by_table or (m > 1 and v[j] < best):
            cosine = side if m == 1 else product / (norm_r * norm)
            _, kept = golden_section(a, b, cosine, np.log(kappa))
            v[j] = square_r + square + 2.0 * product * kappa - kept
        best = min(best, v[j])


@njit(nogil=True, forceinline=True)
def merge_two(points, rule, r, j):
    """Slot r merges into slot j, their kernel value in points.k[j]; r stays, to be dropped. Returns ‖Δ‖².

    Returns -1, and changes nothing, where the two are not merged.
    """
    beta, sums, x, y = points.beta, points.sums, points.x, points.y
    m = beta.shape[0]
    read_slot(points, r, x)
    read_slot(points, j, y)
    same = True
    for f in range(x.size):
        same = same and x[f] == y[f]
    if same:
        for c in range(m):
            beta[c, j] += beta[c, r]
            sums[c, j] += sums[c, r]
        return 0.0
    kappa = min(1.0, max(1e-300, float(points.k[j])))
    product, square_r, square = 0.0, 0.0, 0.0
    for c in range(m):
        product += beta[c, r] * beta[c, j]
        square_r += beta[c, r] * beta[c, r]
        square += beta[c, j] * beta[c, j]
    a, b = np.sqrt(min(square_r, square)), np.sqrt(max(square_r, square))
    if not a > 0 or not are_merged(product, a, b, m):
        return -1.0
    exponent, side = np.log2(kappa), 1.0 if product > 0 else -1.0
    if rule.by_table and m == 1:
        place = look_up(rule.table, 1, max(side * a / (side * a + b), LEAST_SHARE), kappa)
        t = polished(side * a, b, exponent, place)
    else:
        t, _ = golden_section(a, b, side if m == 1 else product / (a * b), np.log(kappa))
    if square_r > square:
        t = 1.0 - t
    # t is now how far from slot j towards slot r.
    from_j, from_r = exp2(exponent * t * t), exp2(exponent * (1.0 - t) * (1.0 - t))
    kept, half = 0.0, 0.0
    for c in range(m):
        beta[c, j] = beta[c, j] * from_j + beta[c, r] * from_r
        sums[c, j] = sums[c, j] * from_j + sums[c, r] * from_r
        kept += beta[c, j] * beta[c, j]
    for f in range(x.size):
        z = y[f] + y.dtype.type(t) * (x[f] - y[f])
        # What merger after merger shrinks must not end among the denormal numbers, which slow every later product down.
        y[f] = z if abs(z) > TINY else 0
        half += float(y[f]) * float(y[f])
    write_slot(points, j, y)
    points.base[j] = -0.5 * half
    if points.origin[j] >= 0:
        points.slot_of[points.origin[j]] = -1
        points.origin[j] = -1
    return max(0.0, square_r + square + 2.0 * product * kappa - kept)


@njit(nogil=True)
def pair_value(points, i, j):
    """points.k[j] = RBF kernel value of the slots i and j."""
    read_slot(points, i, points.x)
    read_slot(points, j, points.y)
    z = float(points.base[i]) + float(points.base[j])
    for f in range(points.x.size):
        z += float(points.x[f]) * float(points.y[f])
    points.k[j] = exp2(min(z, 0.0))


@njit(nogil=True)
def merge_idle(points, r):
    """Slot r, whose coefficients are 0, goes; what the mean has of it goes to the nearest point.

    That is what mergers come to as a coefficient goes to 0: t to 0, and the partner to the one that κ is largest with.
    """
    k, sums, nearest = points.k, points.sums, -1
    for j in range(points.used[0]):
        if j != r and (nearest < 0 or k[j] > k[nearest]):
            nearest = j
    if nearest >= 0:
        for c in range(sums.shape[0]):
            sums[c, nearest] += k[nearest] * sums[c, r]
    drop(points, r)


@njit(nogil=True, forceinline=True)
def merge(points, rule, counts, unit):
    """The smallest point merges with its best partner, and what comes of it with the next best, pair after pair."""
    r, size = smallest(points, points.v[:0])
    if r != points.used[0] - 1:  # of the newest point points.k has them
        slot_values(points, r)
        counts[EVALS] += points.used[0]
    if is_at_zero(points.beta, r):
        merge_idle(points, r)
        return
    n_merged, is_simple = 0, rule.by_table and rule.pairs == 1 and points.beta.shape[0] == 1
    if not is_simple:
        merge_losses(points, rule, r)
    while n_merged < rule.pairs:
        if is_simple:
            points.k[r] = -1
            partner = best_partner(points, rule, r)
            if partner < 0:
                break
        else:
            partner = 0
            for j in range(points.used[0]):
                if points.v[j] < points.v[partner]:
                    partner = j
            if points.v[partner] == np.inf:
                break
        if n_merged > 0:
            pair_value(points, r, partner)
            counts[EVALS] += 1
        loss = merge_two(points, rule, r, partner)
        points.v[partner] = np.inf
        if loss < 0:
            points.k[partner] = -1
            continue
        n_merged += 1
        counts[DEGRADATION] += loss * unit * unit
        counts[MERGED] += 1
        last = points.used[0] - 1
        drop(points, r)
        points.v[r] = points.v[last]
        r = r if partner == last else partner
    if n_merged == 0:
        counts[DEGRADATION] += size * unit * unit
        counts[REMOVED] += 1
        drop(points, r)

"""The budget rule that makes one point of two: the search for the partner, the merger itself."""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.extremes import LIGHT_LOSS, greatest_of, light_below, lowest_bit
from slimsvm.numerics.maps import SUMS, exp2
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
from slimsvm.numerics.vectors import LANES_FLOAT32, LANES_FLOAT64, PANEL_FLOAT32, PANEL_FLOAT64

TINY = 1e-25  # folded features below count as 0
# A point that merges with one at least as heavy, of its sign, loses less than this times LIGHT_LOSS.
NEAR = 1.02


@njit(nogil=True, forceinline=True)
def are_merged(product, a, b, m):
    """Whether points whose coefficients have this inner product and the norms a <= b are merged."""
    return product > 0 or (m == 1 and product < 0 and b >= 2.0 * a)


@njit(nogil=True, forceinline=True)
def light_loss(kappa):
    """LIGHT_LOSS of one kernel value."""
    return (1.0 - kappa) * (LIGHT_LOSS[0] + kappa * (LIGHT_LOSS[1] + kappa * LIGHT_LOSS[2]))


@njit(nogil=True, forceinline=True)
def best_partner(points, rule, r):
    """The slot that a merger of r, the smallest point, costs least with, by the table; -1 if none. One output only.

    With a the mass of r, and ``least`` that of the lightest other, a merger loses at least (1 - a / (a + least)) times
    what a light point would at this kernel value: the table is asked where that is not above the best loss so far.
    """
    k, values, n = points.k, points.beta[0], points.used[0]
    panel, lanes = (PANEL_FLOAT32, LANES_FLOAT32) if k.itemsize == 4 else (PANEL_FLOAT64, LANES_FLOAT64)
    own, k[r] = values[r], -1
    share = 1.0 - abs(own) / (abs(own) + max(abs(own), points.least[0])) if own != 0 else 1.0
    nearest = greatest_of(k, n)
    for j in range(n // lanes * lanes, n):
        nearest = max(nearest, float(k[j]))
    least, partner = np.inf, -1
    limit = NEAR * light_loss(min(nearest, 1.0)) / share
    while True:
        bound = limit
        for start in range(0, n, panel):
            below = light_below(k, start, bound)
            while below != 0:
                j = start + lowest_bit(below)
                below &= below - 1
                if j >= n or k[j] < 0 or not are_merged(own * values[j], abs(own), abs(values[j]), 1):
                    continue
                u = min(max(own / (own + values[j]), LEAST_SHARE), MOST_SHARE)
                loss = look_up(rule.table, 0, u, min(1.0, float(k[j])))
                if loss < least:
                    least, partner = loss, j
                    bound = min(bound, least / share)
        if least <= limit * share or limit > 1.0:  # no other is better, or there is no other
            return partner
        limit = 1.5 * limit + 0.01  # the nearest are of the other sign


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


@njit(nogil=True, fastmath=SUMS, forceinline=True)
def apart(x, y):
    """Σ |x - y|, 0 where both are the same."""
    total = x.dtype.type(0)
    for f in range(x.size):
        total += abs(x[f] - y[f])
    return total


@njit(nogil=True, fastmath=SUMS, forceinline=True)
def moved(x, y, t):
    """Put y + t (x - y) into y; returns its squared norm."""
    square = 0.0
    for f in range(x.size):
        z = y[f] + t * (x[f] - y[f])
        # What merger after merger shrinks must not end among the denormal numbers, which slow every later product down.
        z = z if abs(z) > TINY else x.dtype.type(0)
        y[f] = z
        square += np.float64(z) * np.float64(z)
    return square


@njit(nogil=True, forceinline=True)
def merge_two(points, rule, r, j):
    """Slot r, whose numbers are in points.x, merges into slot j, their kernel value in points.k[j]; r is left to drop.

    Returns ‖Δ‖², or -1, and changes nothing, where the two are not merged.
    """
    beta, sums, x, y = points.beta, points.sums, points.x, points.y
    m = beta.shape[0]
    read_slot(points, j, y)
    if apart(x, y) == 0:
        for c in range(m):
            beta[c, j] += beta[c, r]
            sums[c, j] += sums[c, r]
        points.least[0] = min(points.least[0], abs(beta[0, j]))
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
        t, from_j, from_r = polished(side * a, b, exponent, place)
    else:
        t, _ = golden_section(a, b, side if m == 1 else product / (a * b), np.log(kappa))
        from_j, from_r = exp2(exponent * t * t), exp2(exponent * (1.0 - t) * (1.0 - t))
    # How far from slot j towards slot r, and what each has left there.
    if square_r > square:
        t, from_j, from_r = 1.0 - t, from_r, from_j
    kept = 0.0
    for c in range(m):
        beta[c, j] = beta[c, j] * from_j + beta[c, r] * from_r
        sums[c, j] = sums[c, j] * from_j + sums[c, r] * from_r
        kept += beta[c, j] * beta[c, j]
    points.least[0] = min(points.least[0], abs(beta[0, j]))
    points.base[j] = -0.5 * moved(x, y, y.dtype.type(t))
    write_slot(points, j, y)
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
    if r != points.used[0] - 1:  # of the newest point points.k has them, and points.x its numbers
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

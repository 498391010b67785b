"""The budget rule that makes one point of two: the search for the partner, the merger itself."""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.extremes import greatest_two, lowest_bit, panel_from
from slimsvm.numerics.maps import NO_REORDER, SUMS
from slimsvm.numerics.merging import LEAST_SHARE, LOG_2, MOST_SHARE, golden_section, look_up, polished, power_of_2
from slimsvm.numerics.points import (
    ADDED,
    DEGRADATION,
    EVALS,
    MERGED,
    REMOVED,
    drop,
    is_at_zero,
    place_of,
    read_row,
    read_slot,
    slot_values,
    smallest,
    write_slot,
)
from slimsvm.numerics.vectors import PANEL_FLOAT32, PANEL_FLOAT64

TINY = 1e-25  # folded features below count as 0
# (1 - κ)(c0 + c1 κ + c2 κ²) is at most the root of 1 - κ² (1 - 2 log κ), which a light point of mass 1 loses.
LIGHT_LOSS = (0.9995, 0.66, -0.25)
# A point that merges with one at least as heavy, of its sign, loses less than this times LIGHT_LOSS.
NEAR = 1.02
# 1 - loss (c0 + c1 loss + ...) is the κ where LIGHT_LOSS is that, or up to 1.3 % of 1 - κ below.
FAR = (0.71873, -0.11929347, 1.13222995, -2.01289987, 1.28243041)


@njit(nogil=True, forceinline=True)
def are_merged(product, a, b, m):
    """Whether points whose coefficients have this inner product and the norms a <= b are merged."""
    return (product > 0) | ((m == 1) & (product < 0) & (b >= 2.0 * a))  # the two signs take turns: no branches


@njit(nogil=True, fastmath=NO_REORDER, forceinline=True)
def light_loss(kappa):
    """LIGHT_LOSS of one kernel value."""
    return (1.0 - kappa) * (LIGHT_LOSS[0] + kappa * (LIGHT_LOSS[1] + kappa * LIGHT_LOSS[2]))


@njit(nogil=True, fastmath=NO_REORDER, forceinline=True)
def least_nearness(loss):
    """No κ below this has a LIGHT_LOSS of ``loss`` or less."""
    loss = min(loss, 1.0)
    return max(0.0, 1.0 - loss * (FAR[0] + loss * (FAR[1] + loss * (FAR[2] + loss * (FAR[3] + loss * FAR[4])))))


@njit(nogil=True, forceinline=True)
def loss_with(points, rule, own, j):
    """Loss, by the table and for a coefficient ``own`` that is not above, of a merger with slot j, and its place."""
    u = min(max(own / (own + points.beta[0, j]), LEAST_SHARE), MOST_SHARE)
    return look_up(rule.table, u, min(1.0, float(points.k[j])))


@njit(nogil=True, forceinline=True)
def best_partner(points, rule, own):
    """The slot that a merger of the smallest point, with the coefficient ``own``, costs least with, by the table.

    Returns it, or -1, with the place of the merger. points.k: the smallest point's kernel values, -1 with itself. One
    output only. With a the mass of the point, and b that of another, a merger loses at least (1 - a / (a + b)) times
    what a light point would at this kernel value. So mostly the nearest point is the partner, which is made sure of
    while the merger goes on: no branch waits for it.
    """
    k, a = points.k, abs(own)
    share, (j, next_nearest) = 1.0 - a / (a + max(a, points.least[0])), greatest_two(k, points.used[0])
    if k[j] >= 0 and are_merged(own * points.beta[0, j], a, abs(points.beta[0, j]), 1):
        loss, place = loss_with(points, rule, own, j)
        if next_nearest < least_nearness(loss / share):
            return j, place
        return searched_partner(points, rule, own, share, loss / share, loss, j, place)
    limit = NEAR * light_loss(min(max(float(k[j]), 0.0), 1.0)) / share
    return searched_partner(points, rule, own, share, limit, np.inf, -1, 0.0)


@njit(nogil=True)
def searched_partner(points, rule, own, share, limit, least, partner, place):
    """The same by asking the table about all whose bound is below the limit; ``least`` is what the partner loses."""
    k, values, n, a = points.k, points.beta[0], points.used[0], abs(own)
    panel, number = (PANEL_FLOAT32 if k.itemsize == 4 else PANEL_FLOAT64), k.dtype.type
    while True:
        bound = limit
        for start in range(0, n, panel):
            candidates = panel_from(k, start, number(least_nearness(bound)))
            while candidates != 0:
                j = start + lowest_bit(candidates)
                candidates &= candidates - 1
                if j >= n or not are_merged(own * values[j], a, abs(values[j]), 1):
                    continue
                if light_loss(min(1.0, float(k[j]))) * abs(values[j]) > least * (a + abs(values[j])):
                    continue
                loss, where = loss_with(points, rule, own, j)
                if loss < least:
                    least, partner, place = loss, j, where
                    bound = min(bound, least / share)
        if least <= limit * share or limit > 1.0:  # no other is better, or there is no other
            return partner, place
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
            v[j] = (a * look_up(rule.table, side * a / (side * a + b), kappa)[0]) ** 2
        if not rule.by_table or (m > 1 and v[j] < best):
            cosine = side if m == 1 else product / (norm_r * norm)
            _, kept = golden_section(a, b, cosine, np.log(kappa))
            v[j] = square_r + square + 2.0 * product * kappa - kept
        best = min(best, v[j])


@njit(nogil=True, fastmath=SUMS, forceinline=True)
def square_distance(points, j):
    """Squared distance of points.x from slot j, whose numbers go to points.y. Half of it is -log2 of k(x, y)."""
    x, y, panels, total = points.x, points.y, points.panels, points.x.dtype.type(0)
    panel = PANEL_FLOAT32 if x.itemsize == 4 else PANEL_FLOAT64
    at = place_of(j, x)
    for f in range(x.size):
        number = panels[at + f * panel]
        difference = x[f] - number
        y[f] = number
        total += difference * difference
    return float(total)


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
def merge_two(points, rule, r, j, place):
    """Slot r, whose numbers are in points.x, merges into slot j; r is left to drop. points.y changes.

    ``place`` is the table's, with one output. Returns ‖Δ‖², or -1, and changes nothing, where the two are not merged.
    """
    beta, sums = points.beta, points.sums
    m, distance = beta.shape[0], square_distance(points, j)
    if distance == 0:
        for c in range(m):
            beta[c, j] += beta[c, r]
            sums[c, j] += sums[c, r]
        points.least[0] = min(points.least[0], abs(beta[0, j]))
        return 0.0
    product, square_r, square = 0.0, 0.0, 0.0
    for c in range(m):
        product += beta[c, r] * beta[c, j]
        square_r += beta[c, r] * beta[c, r]
        square += beta[c, j] * beta[c, j]
    a, b = np.sqrt(min(square_r, square)), np.sqrt(max(square_r, square))
    if not a > 0 or not are_merged(product, a, b, m):
        return -1.0
    exponent, side = -0.5 * distance, 1.0 if product > 0 else -1.0
    kappa = power_of_2(exponent)
    if rule.by_table and m == 1:
        t, from_j, from_r = polished(side * a, b, exponent, place)
    else:
        t, _ = golden_section(a, b, side if m == 1 else product / (a * b), exponent * LOG_2)
        from_j, from_r = power_of_2(exponent * t * t), power_of_2(exponent * (1.0 - t) * (1.0 - t))
    # How far from slot j towards slot r, and what each has left there.
    if square_r > square:
        t, from_j, from_r = 1.0 - t, from_r, from_j
    kept = 0.0
    for c in range(m):
        beta[c, j] = beta[c, j] * from_j + beta[c, r] * from_r
        sums[c, j] = sums[c, j] * from_j + sums[c, r] * from_r
        kept += beta[c, j] * beta[c, j]
    points.least[0] = min(points.least[0], abs(beta[0, j]))
    points.base[j] = -0.5 * moved(points.x, points.y, points.y.dtype.type(t))
    write_slot(points, j, points.y)
    if points.origin[j] >= 0:
        points.slot_of[points.origin[j]] = -1
        points.origin[j] = -1
    return max(0.0, square_r + square + 2.0 * product * kappa - kept)


@njit(nogil=True)
def pair_value(points, i, j):
    """points.k[j] = RBF kernel value of the slots i and j; leaves the numbers of i in points.x."""
    read_slot(points, i, points.x)
    points.k[j] = power_of_2(-0.5 * square_distance(points, j))


@njit(nogil=True, forceinline=True)
def place_by_table(points, rule, r, j):
    """Where the slots r and j, of one output, merge, by the table."""
    a, b = points.beta[0, r], points.beta[0, j]
    if abs(a) > abs(b):
        a, b = b, a
    kappa = min(1.0, max(0.0, float(points.k[j])))
    return look_up(rule.table, min(max(a / (a + b), LEAST_SHARE), MOST_SHARE), kappa)[1] if a + b != 0 else 0.0


@njit(nogil=True, forceinline=True)
def is_simple(rule, m):
    """Whether the partner comes of one search, by the table, over coefficients of one output."""
    return rule.by_table and rule.pairs == 1 and m == 1


@njit(nogil=True, forceinline=True)
def merge_row(rows, at, points, rule, form, delta, counts, unit):
    """Row ``at`` comes in with a coefficient, not 0, that none is smaller than, and merges without a slot of its own.

    Its kernel values are in points.k. One output, by the table.
    """
    beta, sums, n = points.beta, points.sums, points.used[0]
    read_row(rows, at, points, form)
    beta[0, n], sums[0, n] = delta, delta * points.mean[0]
    partner, place = best_partner(points, rule, delta)
    loss = -1.0
    if partner >= 0:
        loss = merge_two(points, rule, n, partner, place)
    counts[ADDED] += 1
    counts[MERGED if loss >= 0 else REMOVED] += 1
    counts[DEGRADATION] += (loss if loss >= 0 else delta * delta) * unit * unit
    beta[0, n], sums[0, n] = 0, 0


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
    m, n_merged = points.beta.shape[0], 0
    if not is_simple(rule, m):
        merge_losses(points, rule, r)
    while n_merged < rule.pairs:
        place = 0.0
        if is_simple(rule, m):
            points.k[r] = -1
            partner, place = best_partner(points, rule, points.beta[0, r])
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
            if rule.by_table and m == 1:
                place = place_by_table(points, rule, r, partner)
        loss = merge_two(points, rule, r, partner, place)
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

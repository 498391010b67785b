"""Models of at most so many points in compiled code: kernel values of one row with all of them, and the budget rules.

The points lie in panels, feature after feature, as in `slimsvm.numerics.panels`, one slot each; slots 0, …, n - 1 are
used. A rule's work is O(n d), projection's O(n²).

Names: k the kernel values of one row, beta[c, j] the coefficient of slot j for output c, Q the inverse of the kernel
matrix of the points (project only), r the slot that goes.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from slimsvm.numerics.maps import EXP2, SUMS, exp2
from slimsvm.numerics.merging import golden_section, look_up
from slimsvm.numerics.panels import CSR_INNER, CSR_MANHATTAN
from slimsvm.numerics.simd import PANEL_FLOAT32, PANEL_FLOAT64, exp2_panel, inner_row

GIVEN = 100  # a form beside those of panels: rows of kernel values, points are positions in them
MERGE, PROJECT, REMOVE = range(3)

# Counts of what happened: rows met, rows that changed the model, points added, merged, removed, projected
# away, kernel evaluations; sums:
# squared norm of what the budget took away, weighted losses and errors of the rows as they were met.
STEPS, CHANGED, ADDED, MERGED, REMOVED, PROJECTED, EVALS, DEGRADATION, LOSS, ERRORS = range(10)
N_COUNTS = 10

# A point whose part outside the span of the others is below this share of its own k(x, x), or below the rounding errors
# of the sums it comes from, is projected, not added.
SPAN_SHARE32, SPAN_SHARE64 = 1e-5, 1e-9
ROUNDING32, ROUNDING64 = 1e-5, 1e-11

# panels, base: points (base = h of the point); beta (m, slots); origin: the row a slot is, or -1; used: n in a 1-array;
# inverse: Q; ratio: a point's numbers over a row's; slot_of: slot of every training row, or -1; scratch: x, y (d) and
# k (slots) in the working type, v (slots) in float64.
Points = namedtuple(
    "Points",
    ["panels", "base", "beta", "origin", "used", "inverse", "ratio", "slot_of", "x", "y", "k", "v"],
)
# code of the rule, most points, pairs per merge, whether by the table, the table, its `loss_bounds`.
Rule = namedtuple("Rule", ["code", "max_points", "pairs", "by_table", "table", "bounds"])


@njit(nogil=True)
def read_slot(points, j, x):
    """The folded numbers of slot j into x."""
    panel = PANEL_FLOAT32 if x.itemsize == 4 else PANEL_FLOAT64
    at = (j // panel) * panel * x.size + j % panel
    for f in range(x.size):
        x[f] = points.panels[at + f * panel]


@njit(nogil=True)
def slot_values(points, r):
    """points.k = RBF kernel values of slot r with the used slots; leaves its numbers in points.x."""
    x, panels, base, k = points.x, points.panels, points.base, points.k
    panel = PANEL_FLOAT32 if k.itemsize == 4 else PANEL_FLOAT64
    read_slot(points, r, x)
    for at in range(0, points.used[0], panel):
        inner_row(x, 0, x.size, panels, at * x.size, base, at, k, at)
        exp2_panel(k, at, base, r)


@njit(nogil=True)
def write_slot(points, j, x):
    """Slot j gets the folded numbers x."""
    panel = PANEL_FLOAT32 if x.itemsize == 4 else PANEL_FLOAT64
    at = (j // panel) * panel * x.size + j % panel
    for f in range(x.size):
        points.panels[at + f * panel] = x[f]


@njit(nogil=True)
def add_row(rows, at, i, points, form, base):
    """The row i, folded at ``at``, in a new slot with coefficients 0; ``base`` is its h. Returns the slot."""
    j, d, ratio = points.used[0], points.x.size, points.ratio
    if form in (CSR_INNER, CSR_MANHATTAN):
        for f in range(d):
            points.x[f] = 0
        for t in range(rows.indptr[at], rows.indptr[at + 1]):
            f = rows.indices[t]
            points.x[f] = rows.values[t] * ratio[f]
        write_slot(points, j, points.x)
    elif form != GIVEN:
        for f in range(d):
            points.x[f] = rows.values[at * d + f] * ratio[f]
        write_slot(points, j, points.x)
    points.base[j], points.origin[j], points.slot_of[i] = base, i, j
    for c in range(points.beta.shape[0]):
        points.beta[c, j] = 0
    points.used[0] = j + 1
    return j


@njit(nogil=True)
def drop(points, j):
    """Slot j goes, the last one takes its place."""
    last, Q = points.used[0] - 1, points.inverse
    if points.origin[j] >= 0:
        points.slot_of[points.origin[j]] = -1
    if j != last:
        read_slot(points, last, points.x)
        write_slot(points, j, points.x)
        points.base[j], points.origin[j] = points.base[last], points.origin[last]
        if points.origin[j] >= 0:
            points.slot_of[points.origin[j]] = j
        if Q.size:
            for t in range(last):
                Q[j, t] = Q[last, t]
            for t in range(last):
                Q[t, j] = Q[j, t]
            Q[j, j] = Q[last, last]
    for c in range(points.beta.shape[0]):
        points.beta[c, j] = points.beta[c, last]
        points.beta[c, last] = 0
    points.used[0] = last


@njit(nogil=True)
def smallest(points, diagonal):
    """Slot of the least Σ_c beta², times k(x, x) where ``diagonal`` has it."""
    best, slot = np.inf, 0
    for j in range(points.used[0]):
        size = 0.0
        for c in range(points.beta.shape[0]):
            size += points.beta[c, j] * points.beta[c, j]
        if diagonal.size:
            size *= diagonal[points.origin[j]]
        if size < best:
            best, slot = size, j
    return slot, best


@njit(nogil=True)
def merge_losses(points, rule, r):
    """points.v[j] = ‖Δ‖² of a merger of r, the smallest point, with j; infinite where they do not point the same way.

    Where one partner is enough, by the table, also for those whose kernel value alone tells that another is better.
    """
    beta, k, v = points.beta, points.k, points.v
    m, n = beta.shape[0], points.used[0]
    square_r, best, nearest, first = 0.0, np.inf, -1.0, 0
    for c in range(m):
        square_r += beta[c, r] * beta[c, r]
    norm_r = np.sqrt(square_r)
    can_skip = rule.by_table and rule.pairs == 1
    for j in range(n):
        product = 0.0
        for c in range(m):
            product += beta[c, r] * beta[c, j]
        v[j] = product if j != r and product > 0 else np.inf
        if v[j] < np.inf and k[j] > nearest:
            nearest, first = float(k[j]), j
    for turn in range(n):  # the nearest first: the others are then seldom worth a look
        j = first if turn == 0 else (0 if turn == first else turn)
        product, kappa = v[j], min(1.0, max(1e-300, float(k[j])))
        if product == np.inf:
            continue
        v[j] = np.inf
        if can_skip and rule.bounds[min(int(kappa * rule.bounds.size), rule.bounds.size - 1)] * square_r >= best:
            continue
        square = 0.0
        for c in range(m):
            square += beta[c, j] * beta[c, j]
        norm = np.sqrt(square)
        if not min(norm_r, norm) > 0:  # squares of tiny numbers may be 0
            continue
        a, b = min(norm_r, norm), max(norm_r, norm)
        if rule.by_table:
            # With several outputs: what coefficients along one line would lose, which is no more than these lose.
            v[j] = look_up(rule.table, 0, a / (a + b), kappa) * (a + b) * (a + b)
        if not rule.by_table or (m > 1 and v[j] < best):
            _, kept = golden_section(a, b, product / (norm_r * norm), np.log(kappa))
            v[j] = square_r + square + 2.0 * product * kappa - kept
        best = min(best, v[j])


@njit(nogil=True)
def merge_two(points, rule, r, j):
    """Slot r merges into slot j, their kernel value in points.k[j]; r stays, to be dropped. Returns ‖Δ‖².

    Returns -1, and changes nothing, where the two do not point the same way.
    """
    beta, x, y = points.beta, points.x, points.y
    m = beta.shape[0]
    read_slot(points, r, x)
    read_slot(points, j, y)
    same = True
    for f in range(x.size):
        same = same and x[f] == y[f]
    if same:
        for c in range(m):
            beta[c, j] += beta[c, r]
        return 0.0
    kappa = min(1.0, max(1e-300, float(points.k[j])))
    product, square_r, square = 0.0, 0.0, 0.0
    for c in range(m):
        product += beta[c, r] * beta[c, j]
        square_r += beta[c, r] * beta[c, r]
        square += beta[c, j] * beta[c, j]
    a, b = np.sqrt(min(square_r, square)), np.sqrt(max(square_r, square))
    if not product > 0 or not a > 0:
        return -1.0
    log_kappa = np.log(kappa)
    if rule.by_table and m == 1:
        t = look_up(rule.table, 1, a / (a + b), kappa)
    else:
        t, _ = golden_section(a, b, product / (a * b), log_kappa)
    if square_r > square:
        t = 1.0 - t
    # t is now how far from slot j towards slot r.
    from_j, from_r = np.exp(log_kappa * t * t), np.exp(log_kappa * (1.0 - t) * (1.0 - t))
    kept, half = 0.0, 0.0
    for c in range(m):
        beta[c, j] = beta[c, j] * from_j + beta[c, r] * from_r
        kept += beta[c, j] * beta[c, j]
    for f in range(x.size):
        y[f] = y[f] + y.dtype.type(t) * (x[f] - y[f])
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
def merge(points, rule, counts, unit):
    """The smallest point merges with its best partner, and what comes of it with the next best, pair after pair."""
    r, size = smallest(points, points.v[:0])
    slot_values(points, r)
    merge_losses(points, rule, r)
    counts[EVALS] += points.used[0]
    n_merged = 0
    while n_merged < rule.pairs:
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
    Q, beta, n = points.inverse, points.beta, points.used[0]
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
        share = beta[c, r] / pivot
        for j in range(n):
            if j != r:
                beta[c, j] -= share * Q[r, j]
    for j in range(n):
        points.v[j] = Q[r, j]
    for i in range(n):
        for j in range(n):
            Q[i, j] -= points.v[i] * points.v[j] / pivot
    drop(points, r)
    counts[DEGRADATION] += best * unit * unit
    counts[PROJECTED] += 1


@njit(nogil=True)
def keep_within(points, rule, diagonal, counts, unit):
    """Apply the rule until there are at most rule.max_points points; ``unit`` scales the coefficients of the report."""
    while points.used[0] > rule.max_points:
        if rule.code == MERGE:
            merge(points, rule, counts, unit)
        elif rule.code == PROJECT:
            project(points, counts, unit)
        else:
            r, size = smallest(points, diagonal)
            counts[DEGRADATION] += size * unit * unit
            counts[REMOVED] += 1
            drop(points, r)


@njit(nogil=True)
def add(rows, at, i, points, rule, form, code, diagonal, delta, counts, unit):
    """Add delta_c times row i (folded at ``at``, its kernel values in points.k) to the model, within the budget."""
    m, slot = points.beta.shape[0], np.int64(points.slot_of[i])
    if slot >= 0:
        rest = 0.0
        for c in range(m):
            points.beta[c, slot] += delta[c]
            if abs(points.beta[c, slot]) > 1e-12 * abs(delta[c]):
                rest = 1.0
        if rest == 0.0 and rule.code != PROJECT:
            drop(points, slot)
        return
    k_ii = diagonal[i]
    if k_ii <= 0:
        return
    n = points.used[0]
    if rule.code == PROJECT:
        outside = span(points, n, k_ii, points.v)
        if outside == 0.0:
            for c in range(m):
                for j in range(n):
                    points.beta[c, j] += delta[c] * points.v[j]
            counts[PROJECTED] += 1
            return
        extend_inverse(points, n, outside, points.v)
    base = rows.half[at]
    if code != EXP2 and form != GIVEN:
        base = points.base[points.base.size - 1]  # the constant of the kernel, which the last, unused slot holds
    slot = add_row(rows, at, i, points, form, base)
    for c in range(m):
        points.beta[c, slot] = delta[c]
    counts[ADDED] += 1
    keep_within(points, rule, diagonal, counts, unit)

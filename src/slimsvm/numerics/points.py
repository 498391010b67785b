"""Models of at most so many points in compiled code: slots of points, and what rules do with them.

The points lie in panels, feature after feature, as in `slimsvm.numerics.panels`, one slot each; slots 0, …, n - 1 are
used. A rule's work is O(n d), projection's O(n²).

Names: k the kernel values of one row, beta[c, j] the coefficient of slot j for output c, Q the inverse of the kernel
matrix of the points (project only), r the slot that goes.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.extremes import borrowed, least_of
from slimsvm.numerics.panels import CSR_INNER, CSR_MANHATTAN
from slimsvm.numerics.simd import exp2_panel, inner_row
from slimsvm.numerics.vectors import LANES_FLOAT64, PANEL_FLOAT32, PANEL_FLOAT64

GIVEN = 100  # a form beside those of panels: rows of kernel values, points are positions in them
MERGE, PROJECT, REMOVE = range(3)

# Counts of what happened: rows met, rows that changed the model, points added, merged, removed, projected
# away, kernel evaluations; sums:
# squared norm of what the budget took away, weighted losses and errors of the rows as they were met.
STEPS, CHANGED, ADDED, MERGED, REMOVED, PROJECTED, EVALS, DEGRADATION, LOSS, ERRORS = range(10)
N_COUNTS = 10

# panels, base: points (base = h of the point); beta (m, slots); origin: the row a slot is, or -1; used: n in a 1-array;
# inverse: Q; ratio: a point's numbers over a row's; slot_of: slot of every training row, or -1; scratch: x, y (d), k
# (slots) in the working type, v (slots) in float64. For the mean of the models of all steps since `mean` was
# set to 0: mean[0] the sum A of the units of coefficients, mean[1] the number of steps, -1 where no mean is taken; sums
# (m, slots) and, of the intercept, mean[2:] (m): what came in times A as it was then. The mean is (A beta - sums) /
# steps. A point whose coefficients came back to 0 stays for what the mean has of it, and goes first. least (1): no
# |beta| of a single output is below; a new point that is not above is the smallest one, whatever the others are.
Points = namedtuple(
    "Points",
    [
        "panels",
        "base",
        "beta",
        "origin",
        "used",
        "inverse",
        "ratio",
        "slot_of",
        "x",
        "y",
        "k",
        "v",
        "sums",
        "mean",
        "least",
    ],
)
# code of the rule, most points, pairs per merge, whether by the table, the table.
Rule = namedtuple("Rule", ["code", "max_points", "pairs", "by_table", "table"])


@njit(nogil=True)
def lent(points, rule):
    """Both with arrays that nobody counts references to: that took as long as the merger of two points."""
    panels, base, beta, origin, used, inverse, ratio, slot_of, x, y, k, v, sums, mean, least = points
    code, max_points, pairs, by_table, table = rule
    return Points(
        borrowed(panels), borrowed(base), borrowed(beta), borrowed(origin), borrowed(used), borrowed(inverse),
        borrowed(ratio), borrowed(slot_of), borrowed(x), borrowed(y), borrowed(k), borrowed(v),
        borrowed(sums), borrowed(mean), borrowed(least),
    ), Rule(code, max_points, pairs, by_table, borrowed(table))  # fmt: skip


@njit(nogil=True, forceinline=True)
def place_of(j, x):
    """Where the first number of slot j is, of points with as many numbers as x; the others are a panel apart each."""
    panel = PANEL_FLOAT32 if x.itemsize == 4 else PANEL_FLOAT64
    within = j & (panel - 1)  # panels are powers of two wide
    return (j - within) * x.size + within


@njit(nogil=True, forceinline=True)
def read_slot(points, j, x):
    """The folded numbers of slot j into x."""
    panel = PANEL_FLOAT32 if x.itemsize == 4 else PANEL_FLOAT64
    at = place_of(j, x)
    for f in range(x.size):
        x[f] = points.panels[at + f * panel]


@njit(nogil=True, forceinline=True)
def slot_values(points, r):
    """points.k = RBF kernel values of slot r with the used slots; leaves its numbers in points.x."""
    x, panels, base, k = points.x, points.panels, points.base, points.k
    panel = PANEL_FLOAT32 if k.itemsize == 4 else PANEL_FLOAT64
    read_slot(points, r, x)
    for at in range(0, points.used[0], panel):
        inner_row(x, 0, x.size, panels, at * x.size, base, at, k, at)
        exp2_panel(k, at, base, r)


@njit(nogil=True, forceinline=True)
def write_slot(points, j, x):
    """Slot j gets the folded numbers x."""
    panel = PANEL_FLOAT32 if x.itemsize == 4 else PANEL_FLOAT64
    at = place_of(j, x)
    for f in range(x.size):
        points.panels[at + f * panel] = x[f]


@njit(nogil=True, forceinline=True)
def read_row(rows, at, points, form):
    """The numbers of the row folded at ``at``, as a point has them, into points.x."""
    d, ratio = points.x.size, points.ratio
    if form in (CSR_INNER, CSR_MANHATTAN):
        for f in range(d):
            points.x[f] = 0
        for t in range(rows.indptr[at], rows.indptr[at + 1]):
            f = rows.indices[t]
            points.x[f] = rows.values[t] * ratio[f]
    elif form != GIVEN:
        for f in range(d):
            points.x[f] = rows.values[at * d + f] * ratio[f]


@njit(nogil=True, forceinline=True)
def add_row(rows, at, i, points, form, base):
    """The row i, folded at ``at``, in a new slot with coefficients 0; ``base`` is its h. Returns the slot."""
    j = points.used[0]
    read_row(rows, at, points, form)
    if form != GIVEN:
        write_slot(points, j, points.x)
    points.base[j], points.origin[j], points.slot_of[i] = base, i, j
    for c in range(points.beta.shape[0]):
        points.beta[c, j] = 0
        points.sums[c, j] = 0
    points.used[0] = j + 1
    return j


@njit(nogil=True, forceinline=True)
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
        points.beta[c, j], points.sums[c, j] = points.beta[c, last], points.sums[c, last]
        points.beta[c, last], points.sums[c, last] = 0, 0
    points.used[0] = last


@njit(nogil=True, forceinline=True)
def is_at_zero(values, j):
    """Whether values[c, j] is 0 for every output c."""
    zero = True
    for c in range(values.shape[0]):
        zero = zero and values[c, j] == 0
    return zero


@njit(cache=True, nogil=True)
def drop_idle(points):
    """Every slot with coefficients 0 goes."""
    for j in range(points.used[0] - 1, -1, -1):
        if is_at_zero(points.beta, j):
            drop(points, j)


@njit(nogil=True, forceinline=True)
def least_magnitude(values, n):
    """The least |values[j]| of the first n, infinite if there is none."""
    best = least_of(values, n)
    for j in range(n // LANES_FLOAT64 * LANES_FLOAT64, n):
        best = min(best, abs(values[j]))
    return best


@njit(nogil=True, forceinline=True)
def smallest(points, diagonal):
    """Slot of the least Σ_c beta², times k(x, x) where ``diagonal`` has it, and this number."""
    beta, best, slot = points.beta, np.inf, 0
    if beta.shape[0] == 1 and not diagonal.size:
        slot = points.used[0] - 1
        newest = abs(beta[0, slot])
        if newest > points.least[0]:
            points.least[0] = least_magnitude(beta[0], slot)
            if newest > points.least[0]:
                slot = 0
                while abs(beta[0, slot]) > points.least[0]:
                    slot += 1
        return slot, beta[0, slot] * beta[0, slot]
    for j in range(points.used[0]):
        size = 0.0
        for c in range(beta.shape[0]):
            size += beta[c, j] * beta[c, j]
        if diagonal.size:
            size *= diagonal[points.origin[j]]
        if size < best:
            best, slot = size, j
    return slot, best

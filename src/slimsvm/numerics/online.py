"""Steps of LASVM on the kernel values between the rows that are in play.

G[a, b] holds the kernel values between slots; v, g = t − Kv, lo, hi and the targets t are per slot; ``inside`` marks
the slots of the set S; slots that are not in it have v = 0. With ``balanced`` Σ v stays 0 (a free intercept) and steps
are made in pairs, otherwise one by one on K + offset.

Bordes, Ertekin, Weston, Bottou, "Fast Kernel Classifiers with Online and Active Learning", JMLR 2005, section 3.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.smo import TINY, moved


@njit(cache=True, nogil=True)
def extremes(v, g, lo, hi, inside, top):
    """Slots of S with the largest g that can rise and the smallest that can fall; −1 where there is none."""
    i, j = -1, -1
    for s in range(top):
        if inside[s]:
            if v[s] < hi[s] and (i < 0 or g[s] > g[i]):
                i = s
            if v[s] > lo[s] and (j < 0 or g[s] < g[j]):
                j = s
    return i, j


@njit(nogil=True)
def move_pair(G, v, g, lo, hi, top, i, j):
    """Raise v_i and lower v_j by the same, as far as is best."""
    step = (g[i] - g[j]) / max(float(G[i, i]) + float(G[j, j]) - 2.0 * float(G[i, j]), TINY)
    step = min(step, min(hi[i] - v[i], v[j] - lo[j]))
    v[i], v[j] = moved(v[i], step, lo[i], hi[i]), moved(v[j], -step, lo[j], hi[j])
    line_i, line_j = G[i], G[j]
    for s in range(top):
        g[s] -= step * (line_i[s] - line_j[s])


@njit(nogil=True)
def move_one(G, offset, v, g, lo, hi, top, i):
    """Move v_i to its best value."""
    step = g[i] / max(float(G[i, i]) + offset, TINY)
    step = min(max(step, lo[i] - v[i]), hi[i] - v[i])
    v[i] = moved(v[i], step, lo[i], hi[i])
    line = G[i]
    for s in range(top):
        g[s] -= step * (line[s] + offset)


@njit(cache=True, nogil=True)
def process(G, offset, target, v, g, lo, hi, inside, top, balanced, tol, seeds, k):
    """Take slot k into S if it violates the optimality conditions, and make the step it asks for."""
    value = target[k]
    for s in range(top):
        value -= v[s] * (G[k, s] + offset)
    g[k] = value
    rises = hi[k] > 0.0
    if not balanced:
        if (value if rises else -value) > tol:
            inside[k] = True
            move_one(G, offset, v, g, lo, hi, top, k)
        return
    i, j = extremes(v, g, lo, hi, inside, top)
    partner = j if rises else i
    if partner < 0:  # nothing to make a pair with yet
        inside[k] = np.count_nonzero(inside[:top]) < seeds
    elif (value - g[partner] if rises else g[partner] - value) > tol:
        inside[k] = True
        move_pair(G, v, g, lo, hi, top, k if rises else partner, partner if rises else k)


@njit(nogil=True)
def reprocess(G, offset, v, g, lo, hi, inside, top, balanced, tol):
    """One step on the worst violators in S; False if they violate by no more than tol."""
    i, j = extremes(v, g, lo, hi, inside, top)
    if balanced:
        if i < 0 or j < 0 or g[i] - g[j] <= tol:
            return False
        move_pair(G, v, g, lo, hi, top, i, j)
        return True
    up, down = g[i] if i >= 0 else 0.0, g[j] if j >= 0 else 0.0
    if max(up, 0.0) - min(down, 0.0) <= tol:
        return False
    move_one(G, offset, v, g, lo, hi, top, i if up >= -down else j)
    return True


@njit(cache=True, nogil=True)
def evict(v, g, lo, hi, inside, top, balanced):
    """Let go of slots with v = 0 that no step would move."""
    i, j = extremes(v, g, lo, hi, inside, top)
    if balanced and (i < 0 or j < 0):
        return
    high, low = g[i] if i >= 0 else 0.0, g[j] if j >= 0 else 0.0
    if not balanced:
        high, low = max(high, 0.0), min(low, 0.0)
    for s in range(top):
        if inside[s] and v[s] == 0.0 and (g[s] <= low if hi[s] > 0.0 else g[s] >= high):
            inside[s] = False


@njit(cache=True, nogil=True)
def learn(G, offset, target, v, g, lo, hi, inside, top, balanced, tol, seeds, queue):
    """PROCESS and REPROCESS for every slot of the queue."""
    for k in queue:
        process(G, offset, target, v, g, lo, hi, inside, top, balanced, tol, seeds, k)
        if reprocess(G, offset, v, g, lo, hi, inside, top, balanced, tol):
            evict(v, g, lo, hi, inside, top, balanced)

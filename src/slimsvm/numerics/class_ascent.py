"""Dual coordinate ascent for Crammer and Singer's multiclass problem, on a block of rows.

    max_M  D(M) = −Σ_i Σ_c Δ(y_i, c) M_ic − ½ Σ_c M_c' K M_c,    Σ_c M_ic = 0,   M_ic ≤ C_i [c = y_i]

A row's M_i, all others given, minimises ½ k ‖M_i‖² + q'M_i with k = K_ii and q_c = Δ(y_i, c) + F_ic − k M_ic, F = KM:
M_ic = min(u_c, (β − q_c) / k), with β such that the sum is 0; it is found by sorting.

Crammer, Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", JMLR 2001, section 6;
Keerthi, Sundararajan, Chang, Hsieh, Lin, "A Sequential Dual Method for Large Scale Multi-class Linear SVMs", KDD 2008.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit

TINY = 1e-12


@njit(cache=True, nogil=True)
def violation(label, price, cost, own, scores):
    """How far a row is from optimal: the largest derivative, less the smallest of those that can still rise."""
    top, low = -np.inf, np.inf
    for c in range(own.size):
        value = cost[c] + scores[c]
        top = max(top, value)
        if own[c] < (price if c == label else 0.0):
            low = min(low, value)
    return max(top - low, 0.0)


@njit(nogil=True)
def best_row(label, price, k, q, sorted_rooms, out):
    """The row's best M_i into ``out``."""
    n_classes = q.size
    for c in range(n_classes):
        sorted_rooms[c] = q[c]
    sorted_rooms[label] += k * price
    sorted_rooms.sort()
    total, beta = -k * price, 0.0
    for rank in range(1, n_classes + 1):
        largest = sorted_rooms[n_classes - rank]
        if rank > 1 and largest <= beta:
            break
        total += largest
        beta = total / rank
    rest = 0.0
    for c in range(n_classes):
        if c != label:
            out[c] = min(0.0, (beta - q[c]) / k)
            rest -= out[c]
    if rest > price:
        for c in range(n_classes):
            out[c] *= price / rest
        rest = price
    out[label] = rest


@njit(cache=True, nogil=True)
def ascend_classes(K, offset, labels, price, cost, M, F, share, max_sweeps):
    """Sweeps over a block's rows until no violation is above ``share`` of the largest at first; M and F in place.

    K (b, b) without the constant feature, labels and price (b,), cost (k, k), M and F (b, k).
    """
    n, n_classes = M.shape
    q, rooms, new, change = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    first = 0.0
    for i in range(n):
        first = max(first, violation(labels[i], price[i], cost[labels[i]], M[i], F[i]))
    goal = max(share * first, TINY)
    for _ in range(max_sweeps):
        worst = 0.0
        for i in range(n):
            label = labels[i]
            found = violation(label, price[i], cost[label], M[i], F[i])
            if found <= goal:
                continue
            worst = max(worst, found)
            k = max(K[i, i] + offset, TINY)
            for c in range(n_classes):
                q[c] = cost[label, c] + F[i, c] - k * M[i, c]
            best_row(label, price[i], k, q, rooms, new)
            for c in range(n_classes):
                change[c] = new[c] - M[i, c]
                M[i, c] = new[c]
            for j in range(n):
                factor = K[i, j] + offset
                for c in range(n_classes):
                    F[j, c] += factor * change[c]
        if worst <= goal:
            return

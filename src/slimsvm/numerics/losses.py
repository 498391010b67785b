"""The one-row tasks, compiled: each task's rule for one row once, then the passes over all rows that use it.

``*_augment`` writes the loss-augmented argmax of every row. ``*_along`` sums, over the rows of each tile, the weighted
losses at base + k·direction and the weighted Σ_c coef_c direction_c, minus which is their slope in k.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit

ROWS_PER_TILE = 1024


@njit(inline="always")
def binary_row(y, cost, f):
    """ŷ = −y where cost − y f > 0 (ties to −1): returns c and the coefficient y, since Ψ = ½ y φ; else zeros."""
    slack = cost - y * f
    # Products instead of branches: near the margin a branch is a coin toss.
    active = 1.0 if (slack > 0) | ((slack == 0) & (y > 0)) else 0.0
    return active * cost, active * y


@njit(inline="always")
def epsilon_insensitive_row(y, epsilon, f):
    """Where |y − f| > ε, with s = sign(y − f): c = s y − ε and coefficient s; else zeros."""
    residual = y - f
    sign = (1.0 if residual > epsilon else 0.0) - (1.0 if residual < -epsilon else 0.0)
    return sign * y - abs(sign) * epsilon, sign


@njit(inline="always")
def multiclass_row(label, cost, base, direction, k, i):
    """ŷ = argmax_c cost[label, c] + s_c, ties to the lowest c, at s = base + k·direction."""
    best, value = 0, -np.inf
    for c in range(base.shape[1]):
        candidate = cost[label, c] + (base[i, c] + k * direction[i, c])
        if candidate > value:
            best, value = c, candidate
    return best, value


@njit(cache=True, nogil=True)
def binary_augment(y, cost_negative, cost_positive, scores, delta, coef):
    """Binary hinge loss."""
    for i in range(y.shape[0]):
        cost = cost_positive if y[i] > 0 else cost_negative
        delta[i], coef[i, 0] = binary_row(y[i], cost, scores[i, 0])


@njit(cache=True, nogil=True)
def binary_along(y, cost_negative, cost_positive, weights, base, direction, k, lo, hi, out):
    """Binary hinge loss; out[tile] = (losses, coefficients times direction)."""
    for tile in range(lo, hi):
        loss, gain = 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            cost = cost_positive if y[i] > 0 else cost_negative
            f = base[i, 0] + k * direction[i, 0]
            c, coef = binary_row(y[i], cost, f)
            loss += weights[i] * (c - coef * f)
            gain += weights[i] * coef * direction[i, 0]
        out[tile, 0], out[tile, 1] = loss, gain


@njit(cache=True, nogil=True)
def epsilon_insensitive_augment(y, epsilon, scores, delta, coef):
    """ε-insensitive loss."""
    for i in range(y.shape[0]):
        delta[i], coef[i, 0] = epsilon_insensitive_row(y[i], epsilon, scores[i, 0])


@njit(cache=True, nogil=True)
def epsilon_insensitive_along(y, epsilon, weights, base, direction, k, lo, hi, out):
    """ε-insensitive loss; out[tile] = (losses, coefficients times direction)."""
    for tile in range(lo, hi):
        loss, gain = 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            f = base[i, 0] + k * direction[i, 0]
            c, coef = epsilon_insensitive_row(y[i], epsilon, f)
            loss += weights[i] * (c - coef * f)
            gain += weights[i] * coef * direction[i, 0]
        out[tile, 0], out[tile, 1] = loss, gain


@njit(cache=True, nogil=True)
def multiclass_augment(y, cost, scores, delta, coef):
    """Crammer and Singer's loss: δΨ = φ ⊗ (e_y − e_ŷ)."""
    coef[:] = 0.0
    for i in range(y.shape[0]):
        label = y[i]
        best, _ = multiclass_row(label, cost, scores, scores, 0.0, i)
        delta[i] = cost[label, best]
        if best != label:
            coef[i, label] = 1.0
            coef[i, best] = -1.0


@njit(cache=True, nogil=True)
def multiclass_along(y, cost, weights, base, direction, k, lo, hi, out):
    """Crammer and Singer's loss; out[tile] = (losses, coefficients times direction)."""
    for tile in range(lo, hi):
        loss, gain = 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            label = y[i]
            best, value = multiclass_row(label, cost, base, direction, k, i)
            loss += weights[i] * (value - (base[i, label] + k * direction[i, label]))
            gain += weights[i] * (direction[i, label] - direction[i, best])
        out[tile, 0], out[tile, 1] = loss, gain


@njit(cache=True, nogil=True)
def move_tiles(best, target, k, overshoot, moved, point, lo, hi):
    """Set moved = best + k (target − best) and point = moved + overshoot (target − moved), over tiles of entries."""
    for i in range(lo * ROWS_PER_TILE, min(best.shape[0], hi * ROWS_PER_TILE)):
        moved[i] = best[i] + k * (target[i] - best[i])
        point[i] = moved[i] + overshoot * (target[i] - moved[i])

"""Smoothed losses of the one-row tasks: a soft maximum in place of the maximum, with its first two derivatives.

max_c t_c becomes tau log sum_c exp(t_c / tau), which lies between it and it + tau log(number of terms). Its gradient,
the soft argmax a, is a feasible dual point of the loss itself. One compiled pass over the scores each, in tiles:
residual[i, c] = -d loss / d score, curvature[i, c] = d² loss / d score², both weighted, and sums[tile] = (loss,
smoothed loss, what a makes of the constants of the loss where the residual is positive, the same where it is not).
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.crew import share_out
from slimsvm.numerics.losses import ROWS_PER_TILE
from slimsvm.numerics.maps import SUMS, exp2

FAR = 40.0  # exp(-40) is lost beside 1 in float64: terms this far below the largest are taken as none
LOG2_E = 1.4426950408889634


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def log1p_of_share(e):
    """log(1 + e) for 0 <= e <= 1, as 2 artanh(e / (2 + e)); without branches, for loops over vectors."""
    s = e / (2.0 + e)
    q = s * s
    p = 1.0 / 33.0 * q + 1.0 / 31.0
    p = p * q + 1.0 / 29.0
    p = p * q + 1.0 / 27.0
    p = p * q + 1.0 / 25.0
    p = p * q + 1.0 / 23.0
    p = p * q + 1.0 / 21.0
    p = p * q + 1.0 / 19.0
    p = p * q + 1.0 / 17.0
    p = p * q + 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    return 2.0 * s * (p * q + 1.0)


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def soft(t, tau):
    """Soft version of max(0, t): its value and its slope."""
    x = t / tau
    e = exp2(-LOG2_E * abs(x))
    e = e if abs(x) < FAR else 0.0
    share = 1.0 / (1.0 + e)
    return max(t, 0.0) + tau * log1p_of_share(e), share if x >= 0 else e * share


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def soften(t, weights, tau):
    """Weighted sums of max(0, t) and of its soft version; the latter's slopes in place of t."""
    loss, smoothed = 0.0, 0.0
    for i in range(t.size):
        value, a = soft(t[i], tau)
        loss += weights[i] * max(t[i], 0.0)
        smoothed += weights[i] * value
        t[i] = a
    return loss, smoothed


@njit(nogil=True, fastmath=SUMS, error_model="numpy")
def binary_smooth(y, cost_negative, cost_positive, weights, scores, tau, residual, curvature, sums, lo, hi):
    """Hinge max(0, cost - y f). Short loops over few arrays each: others are not compiled to vector code."""
    for tile in range(lo, hi):
        part = slice(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE))
        label, omega, f = y[part], weights[part], scores.reshape(scores.size)[part]
        r, a = residual.reshape(residual.size)[part], curvature.reshape(curvature.size)[part]
        for i in range(a.size):
            a[i] = (cost_positive if label[i] > 0 else cost_negative) - label[i] * f[i]
        loss, smoothed = soften(a, omega, tau)
        dual, rest = 0.0, 0.0
        for i in range(a.size):
            priced = omega[i] * a[i]
            r[i] = priced * label[i]
            dual += priced * cost_positive if label[i] > 0 else 0.0
            rest += 0.0 if label[i] > 0 else priced * cost_negative
        for i in range(a.size):
            a[i] = omega[i] * a[i] * (1.0 - a[i]) / tau
        sums[tile, 0], sums[tile, 1], sums[tile, 2], sums[tile, 3] = loss, smoothed, dual, rest


@njit(cache=True, nogil=True)
def share_binary_smooth(work, before, after):
    """`binary_smooth` by a crew."""
    share_out(binary_smooth, work, before, after)


@njit(nogil=True)
def epsilon_insensitive_smooth(y, epsilon, weights, scores, tau, residual, curvature, sums, lo, hi):
    """max(0, y - epsilon - f) + max(0, f - y - epsilon), at most one of which is positive."""
    for tile in range(lo, hi):
        loss, smoothed, dual, rest = 0.0, 0.0, 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            above, below = y[i] - epsilon - scores[i, 0], scores[i, 0] - y[i] - epsilon
            value_above, a = soft(above, tau)
            value_below, b = soft(below, tau)
            residual[i, 0] = weights[i] * (a - b)
            curvature[i, 0] = weights[i] * (a * (1.0 - a) + b * (1.0 - b)) / tau
            loss += weights[i] * max(above, below, 0.0)
            smoothed += weights[i] * (value_above + value_below)
            if a > b:
                dual += weights[i] * (a - b) * (y[i] - epsilon)
            else:
                rest += weights[i] * (a - b) * (y[i] + epsilon)
        sums[tile, 0], sums[tile, 1], sums[tile, 2], sums[tile, 3] = loss, smoothed, dual, rest


@njit(cache=True, nogil=True)
def share_epsilon_insensitive_smooth(work, before, after):
    """`epsilon_insensitive_smooth` by a crew."""
    share_out(epsilon_insensitive_smooth, work, before, after)


@njit(nogil=True)
def multiclass_smooth(y, cost, weights, scores, tau, share, residual, curvature, sums, lo, hi):
    """max_c cost[y, c] + s_c - s_y; share[i, c] is the soft argmax, unweighted."""
    n_classes = scores.shape[1]
    for tile in range(lo, hi):
        loss, smoothed, dual, rest = 0.0, 0.0, 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            label, largest, total, constant = y[i], -np.inf, 0.0, 0.0
            for c in range(n_classes):
                share[i, c] = cost[label, c] + scores[i, c] - scores[i, label]
                largest = max(largest, share[i, c])
            for c in range(n_classes):
                x = (share[i, c] - largest) / tau
                share[i, c] = np.exp(x) if x > -FAR else 0.0
                total += share[i, c]
            for c in range(n_classes):
                a = share[i, c] / total
                share[i, c] = a
                residual[i, c] = weights[i] * ((1.0 if c == label else 0.0) - a)
                curvature[i, c] = weights[i] * a * (1.0 - a) / tau
                constant += a * cost[label, c]
            loss += weights[i] * largest
            smoothed += weights[i] * (largest + tau * np.log(total))
            dual += weights[i] * constant
        sums[tile, 0], sums[tile, 1], sums[tile, 2], sums[tile, 3] = loss, smoothed, dual, rest


@njit(cache=True, nogil=True)
def share_multiclass_smooth(work, before, after):
    """`multiclass_smooth` by a crew."""
    share_out(multiclass_smooth, work, before, after)

"""Smoothed losses of the one-row tasks: a soft maximum in place of the maximum, with its first two derivatives.

max_c t_c becomes tau log sum_c exp(t_c / tau), which lies between it and it + tau log(number of terms). Its gradient,
the soft argmax a, is a feasible dual point of the loss itself. One compiled pass over the scores each, in tiles:
residual[i, c] = -d loss / d score, curvature[i, c] = d² loss / d score², both weighted, and sums[tile] = (loss,
smoothed loss, what a makes of the constants of the loss where the residual is positive, the same where it is not).
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.losses import ROWS_PER_TILE

FAR = 40.0  # exp(-40) is lost beside 1 in float64: terms this far below the largest are taken as none


@njit(nogil=True)
def soft(t, tau):
    """Soft version of max(0, t): its value and its slope."""
    x = t / tau
    if x <= -FAR:
        return 0.0, 0.0
    if x >= FAR:
        return t, 1.0
    e = np.exp(-abs(x))
    value = max(t, 0.0) + tau * np.log1p(e)
    return value, (1.0 if x >= 0 else e) / (1.0 + e)


@njit(cache=True, nogil=True)
def binary_smooth(y, cost_negative, cost_positive, weights, scores, tau, residual, curvature, sums, lo, hi):
    """Hinge max(0, cost - y f)."""
    for tile in range(lo, hi):
        loss, smoothed, dual, rest = 0.0, 0.0, 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            cost = cost_positive if y[i] > 0 else cost_negative
            t = cost - y[i] * scores[i, 0]
            value, a = soft(t, tau)
            residual[i, 0] = weights[i] * a * y[i]
            curvature[i, 0] = weights[i] * a * (1.0 - a) / tau
            loss += weights[i] * max(t, 0.0)
            smoothed += weights[i] * value
            if y[i] > 0:
                dual += weights[i] * a * cost
            else:
                rest += weights[i] * a * cost
        sums[tile, 0], sums[tile, 1], sums[tile, 2], sums[tile, 3] = loss, smoothed, dual, rest


@njit(cache=True, nogil=True)
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

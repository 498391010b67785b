"""Epochs of budgeted training: one row at a time, dual coordinate ascent or stochastic subgradient steps.

Names are the papers': alpha the dual variables, f the score of the budgeted model, delta what a step adds to a
coefficient, t the number of steps. Coefficients of the primal method are stored times t: shrinking all of them by
(1 - 1/t) is then no work.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from slimsvm.numerics.budget import add
from slimsvm.numerics.compiling import njit
from slimsvm.numerics.extremes import borrowed, prefetch
from slimsvm.numerics.maps import EXP2, POWER, SUMS, TANH
from slimsvm.numerics.panels import CSR_INNER, CSR_MANHATTAN, INNER, MANHATTAN
from slimsvm.numerics.points import CHANGED, ERRORS, EVALS, GIVEN, LOSS, STEPS, lent
from slimsvm.numerics.simd import (
    csr_inner_row,
    csr_shared_row,
    exp2_panel,
    inner_row,
    manhattan_row,
)
from slimsvm.numerics.tiles import RowData
from slimsvm.numerics.vectors import PANEL_FLOAT32, PANEL_FLOAT64

DUAL, PRIMAL, GIVEN_STEPS = range(3)
HINGE, ONE_VS_REST, TUBE = range(3)
AHEAD = 3  # steps ahead that the numbers of a row are asked for

# method (or given steps), loss; labels -1, +1, classes or numbers in float64; epsilon; costs of the classes -1 and +1;
# price C ω_i of every row; n times it is a gradient's; constant: 1 with an intercept, 0 without; damping: dual steps
# are divided by 1 + damping times the number of points that the budget has taken away.
Steps = namedtuple(
    "Steps", ["method", "loss", "labels", "epsilon", "cost_negative", "cost_positive", "price", "constant", "damping"]
)


@njit(nogil=True)
def map_values(k, n, code, degree):
    """k[j] = tanh(k[j]) or k[j]**degree, in place."""
    for j in range(n):
        z = k[j]
        value = np.tanh(z) if code == TANH else z
        if code == POWER:
            for _ in range(1, degree):
                value = value * z
        k[j] = value


@njit(nogil=True, fastmath=SUMS, forceinline=True)
def weighted_sum(values, weights, n):
    """Σ_j values[j] weights[j] over the first n, in float64."""
    total = 0.0
    for j in range(n):
        total += values[j] * weights[j]
    return total


@njit(nogil=True, forceinline=True)
def hinge_delta(method, y, cost, f, price, k_ii, alpha, n):
    """(y delta, new alpha) for the hinge loss."""
    slack = cost - y * f
    if method == PRIMAL:
        return (y * n * price if slack > 0 else 0.0), alpha
    if k_ii > 0:
        new = min(max(alpha + slack / k_ii, 0.0), price)
    else:
        new = price if slack > 0 else 0.0
    return y * (new - alpha), new


@njit(nogil=True, forceinline=True)
def tube_delta(method, y, epsilon, f, price, k_ii, alpha, n):
    """(delta, new alpha) for the ε-insensitive loss."""
    residual = y - f
    if method == PRIMAL:
        return (np.sign(residual) * n * price if abs(residual) > epsilon else 0.0), alpha
    if k_ii > 0:
        z = alpha * k_ii + residual
        new = np.sign(z) * min(max(abs(z) - epsilon, 0.0) / k_ii, price)
    else:
        new = np.sign(residual) * price if abs(residual) > epsilon else 0.0
    return new - alpha, new


@njit(cache=True, nogil=True)
def take_steps(steps, rows, index, places, points, rule, form, code, degree, diagonal, alpha, intercept, t, counts):
    """One step on each of the rows ``index``, folded at ``places``, in that order.

    alpha: (n, m) of the dual method, which it changes; anything (1, m) for the primal one; what each step adds,
    (steps, m), where steps are given. points, intercept (m), t and counts change; t: steps, points taken away.

    One long function on borrowed arrays: arrays passed on, or taken out of a tuple, have their references counted,
    which costs as much as the kernel values of a small row.
    """
    values, half, factor, indices, indptr, d = rows
    rows = RowData(borrowed(values), borrowed(half), borrowed(factor), borrowed(indices), borrowed(indptr), d)
    points, rule = lent(points, rule)
    index, places, diagonal, counts = borrowed(index), borrowed(places), borrowed(diagonal), borrowed(counts)
    alpha, intercept, t = borrowed(alpha), borrowed(intercept), borrowed(t)
    values, half, _, indices, indptr, d = rows
    panels, base, beta, origin, used, _, _, slot_of, _, _, k, _, _, mean, _ = points
    method, loss, labels, epsilon, cost_negative, cost_positive, price, constant, damping = steps
    labels, price = borrowed(labels), borrowed(price)
    panel = PANEL_FLOAT32 if k.itemsize == 4 else PANEL_FLOAT64
    m, n = alpha.shape[1], labels.size
    scores, delta = np.zeros(m), np.zeros(m)
    for s in range(index.size):
        i, at, n_used, unit, changed = index[s], places[s], used[0], 1.0, True
        if form == INNER and method != GIVEN_STEPS:
            ahead, there = index[min(s + AHEAD, index.size - 1)], places[min(s + AHEAD, index.size - 1)]
            prefetch(labels, ahead)
            prefetch(price, ahead)
            prefetch(diagonal, ahead)
            prefetch(slot_of, ahead)
            prefetch(half, there)
            for f in range(0, d, 16):
                prefetch(values, there * d + f)
            if method == DUAL:
                prefetch(alpha, ahead * m)
        for p in range(0, 0 if form == GIVEN else n_used, panel):
            if form == INNER:
                inner_row(values, at * d, d, panels, p * d, base, p, k, p)
            elif form == CSR_INNER:
                csr_inner_row(values, indices, indptr[at], indptr[at + 1], panels, p * d, base, p, k, p)
            elif form == MANHATTAN:
                manhattan_row(values, at * d, d, panels, p * d, base, p, k, p)
            elif form == CSR_MANHATTAN:
                csr_shared_row(values, indices, indptr[at], indptr[at + 1], panels, p * d, base, p, k, p)
            if code == EXP2:
                exp2_panel(k, p, half, at)
        if form == GIVEN:
            for j in range(n_used):
                k[j] = values[at * d + origin[j]]
        else:
            counts[EVALS] += n_used
            if code in (TANH, POWER):
                map_values(k, n_used, code, degree)
        if method == GIVEN_STEPS:
            for c in range(m):
                delta[c] = alpha[s, c]
        else:
            t[0] += 1
            if method == PRIMAL:
                unit = 1.0 / max(1, t[0] - 1)
            y, row_loss, best, changed = labels[i], 0.0, 0, False
            k_ii = (diagonal[i] + constant) * (1.0 + damping * t[1])
            own = i if method == DUAL else 0
            for c in range(m):
                f = (weighted_sum(k, beta[c], n_used) + constant * intercept[c]) * unit
                if loss == TUBE:
                    delta[c], alpha[own, c] = tube_delta(method, y, epsilon, f, price[i], k_ii, alpha[own, c], n)
                    row_loss += max(0.0, abs(y - f) - epsilon)
                else:
                    sign = y
                    if loss == ONE_VS_REST:
                        sign = 1.0 if c == y else -1.0
                    cost = cost_positive if sign > 0 else cost_negative
                    delta[c], alpha[own, c] = hinge_delta(method, sign, cost, f, price[i], k_ii, alpha[own, c], n)
                    row_loss += max(0.0, cost - sign * f)
                changed = changed or delta[c] != 0
                scores[c] = f
                if f > scores[best]:
                    best = c
            counts[STEPS] += 1
            counts[LOSS] += row_loss * price[i]
            if loss == TUBE:
                counts[ERRORS] += abs(y - scores[0])
            elif loss == HINGE:
                counts[ERRORS] += 1.0 if (scores[0] > 0) != (y > 0) else 0.0
            else:
                counts[ERRORS] += 1.0 if best != y else 0.0
            if method == PRIMAL:
                unit = 1.0 / t[0]
        if changed:
            counts[CHANGED] += 1
            for c in range(m):
                intercept[c] += constant * delta[c]
                mean[2 + c] += constant * delta[c] * mean[0]
            t[1] += add(rows, at, i, points, rule, form, code, diagonal, delta, counts, unit)
        if mean[1] >= 0:
            mean[0] += unit
            mean[1] += 1

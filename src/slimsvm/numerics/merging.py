"""Where two weighted points of an RBF kernel merge into one: by golden section, or by a table made beforehand.

The heavier point at 0, the lighter at 1, masses 1 - m and m <= 1/2, kernel value κ between them: a point at t keeps
s(t) = (1 - m) κ^(t²) + m κ^((1 - t)²). The best t lies in [0, 1/2], where s has one peak; what is lost is
(1 - m)² + m² + 2 m (1 - m) κ - s². With several outputs s² is Σ_c of the squares, and cos the cosine between the two
coefficient vectors.

Wang, Crammer, Vucetic, "Breaking the Curse of Kernelization", JMLR 2012 (merging); Glasmachers, Qaadan, "Speeding Up
Budgeted Stochastic Gradient Descent SVM Training with Precomputed Golden Section Search", 2018 (the table).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from slimsvm.numerics.maps import exp2

LOG_2 = 0.6931471805599453
GOLDEN = 0.6180339887498949
SEARCH_STEPS = 40  # 1/2 times GOLDEN**40 is 2e-9
TABLE_SIZE = 200  # cells by m and by κ: losses are right to 1e-4 of (|a| + |b|)² and to 0.4 % of themselves


@njit(cache=True, nogil=True)
def kept_square(a, b, cosine, log_kappa, t):
    """Squared norm of the coefficients of a point at t that stands for the masses b at 0 and a at 1."""
    first, second = b * np.exp(log_kappa * t * t), a * np.exp(log_kappa * (1.0 - t) * (1.0 - t))
    return first * first + second * second + 2.0 * cosine * first * second


@njit(cache=True, nogil=True)
def golden_section(a, b, cosine, log_kappa):
    """The best place t in [0, 1/2] for the masses b >= a >= 0, and the squared norm kept there."""
    if log_kappa == 0.0:  # every place is as good: the limit of those for κ < 1
        return a / max(a + b, 1e-300), kept_square(a, b, cosine, 0.0, 0.0)
    low, high = 0.0, 0.5
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = kept_square(a, b, cosine, log_kappa, left), kept_square(a, b, cosine, log_kappa, right)
    for _ in range(SEARCH_STEPS):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = kept_square(a, b, cosine, log_kappa, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = kept_square(a, b, cosine, log_kappa, right)
    t = 0.5 * (low + high)
    value = kept_square(a, b, cosine, log_kappa, t)
    for end in (0.0, 0.5):  # golden section comes near the ends and never upon them
        at_end = kept_square(a, b, cosine, log_kappa, end)
        if at_end >= value:
            t, value = end, at_end
    return t, value


@njit(cache=True, nogil=True)
def fill_table(table):
    """table[0] the root of the loss over m, table[1] the place t, at m = i / (2 size) and κ = j / size.

    The root is nearly linear in κ, down to 0 at κ = 1.
    """
    size = table.shape[1] - 1
    for j in range(size + 1):
        kappa = j / size
        log_kappa = np.log(max(kappa, 1e-300))
        # A light point beside a heavy one; t, m κ to first order, saves 2 m² κ² |log κ|.
        table[0, 0, j] = np.sqrt(max(0.0, 1.0 - kappa * kappa * (1.0 - 2.0 * log_kappa)))
        table[1, 0, j] = 0.0
        for i in range(1, size + 1):
            m = 0.5 * i / size
            t, kept = golden_section(m, 1.0 - m, 1.0, log_kappa)
            loss = (1.0 - m) ** 2 + m * m + 2.0 * m * (1.0 - m) * kappa - kept
            table[0, i, j] = np.sqrt(max(0.0, loss)) / m
            table[1, i, j] = t


@njit(nogil=True)
def look_up(table, which, m, kappa):
    """The table between its points, linear along both axes; m in [0, 1/2], kappa in [0, 1]."""
    size = table.shape[1] - 1
    x, y = 2.0 * m * size, kappa * size
    i, j = min(int(x), size - 1), min(int(y), size - 1)
    x, y = x - i, y - j
    low = table[which, i, j] * (1.0 - y) + table[which, i, j + 1] * y
    high = table[which, i + 1, j] * (1.0 - y) + table[which, i + 1, j + 1] * y
    return low * (1.0 - x) + high * x


@njit(nogil=True)
def polished(a, b, exponent, t):
    """The place t in [0, 1/2] for the masses b >= a > 0, with cosine 1 and κ = 2**exponent, after one Newton step."""
    curve = 2.0 * LOG_2 * exponent
    first, second = b * exp2(exponent * t * t), a * exp2(exponent * (1.0 - t) * (1.0 - t))
    slope = first * t - second * (1.0 - t)
    bend = first * (1.0 + curve * t * t) + second * (1.0 + curve * (1.0 - t) * (1.0 - t))
    if not bend > 0:
        return t
    new = min(max(t - slope / bend, 0.0), 0.5)
    kept = b * exp2(exponent * new * new) + a * exp2(exponent * (1.0 - new) * (1.0 - new))
    return new if kept >= first + second else t


@lru_cache(maxsize=1)
def merge_table() -> np.ndarray:
    """The table of this process, not to be written to, shape (2, TABLE_SIZE + 1, TABLE_SIZE + 1)."""
    table = np.empty((2, TABLE_SIZE + 1, TABLE_SIZE + 1))
    fill_table(table)
    return table


@lru_cache(maxsize=1)
def reach() -> np.ndarray:
    """The least κ of a point that can lose less than one whose κ is in [j / TABLE_SIZE, (j + 1) / TABLE_SIZE)."""
    losses = merge_table()[0]
    most, least = losses.max(axis=0), losses.min(axis=0)
    return np.array([np.argmax(least <= most[j]) / TABLE_SIZE for j in range(TABLE_SIZE)]).clip(0, None)

"""Where two weighted points of an RBF kernel merge into one: by golden section, or by a table made beforehand.

The heavier point at 0 with the mass b, the lighter at 1 with a, kernel value κ between them: a point at t keeps
s(t) = b κ^(t²) + a κ^((1 - t)²), and a² + b² + 2 a b κ - s² is lost. All of it depends on κ and u = a / (a + b), the
place of the common centre. Of one sign, u and the best t are in [0, 1/2]. Of two signs they are below 0: what is taken
off the heavier point moves it away from where that was. With b >= 2 |a| they are in [-1, 0]; points whose masses nearly
cancel are not merged. In both intervals s has one peak. With several outputs s² is Σ_c of the squares, and cos the
cosine between the two coefficient vectors.

Wang, Crammer, Vucetic, "Breaking the Curse of Kernelization", JMLR 2012 (merging); Glasmachers, Qaadan, "Speeding Up
Budgeted Stochastic Gradient Descent SVM Training with Precomputed Golden Section Search", 2018 (the table).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.maps import NO_REORDER
from slimsvm.numerics.vectors import EXP2_FLOAT64

LOG_2 = 0.6931471805599453
GOLDEN = 0.6180339887498949
SEARCH_STEPS = 40  # 1/2 times GOLDEN**40 is 2e-9
# Cells of the table by u from -1 to 1/2 and by κ: losses are right to 1e-4 of (|a| + |b|)².
SHARES, NEARNESSES = 600, 200
LEAST_SHARE, MOST_SHARE = -1.0, 0.5  # of u
C, ROUNDER, LOWEST = EXP2_FLOAT64
SHORT_STEP = 0.03  # steps of exponents that a short series serves


@njit(nogil=True)
def kept_square(a, b, cosine, log_kappa, t):
    """Squared norm of the coefficients of a point at t that stands for the masses b at 0 and a at 1."""
    first, second = b * np.exp(log_kappa * t * t), a * np.exp(log_kappa * (1.0 - t) * (1.0 - t))
    return first * first + second * second + 2.0 * cosine * first * second


@njit(nogil=True)
def golden_section(a, b, cosine, log_kappa):
    """The best place t for the masses b >= a >= 0 (b >= 2 a where cosine < 0), and the squared norm kept there."""
    if log_kappa == 0.0:  # every place is as good: the limit of those for κ < 1
        u = a / max(a + b, 1e-300) if cosine > 0 else -a / max(b - a, 1e-300)
        return u, kept_square(a, b, cosine, 0.0, 0.0)
    first, last = (0.0, MOST_SHARE) if cosine > 0 else (LEAST_SHARE, 0.0)
    low, high = first, last
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
    for end in (first, last):  # golden section comes near the ends and never upon them
        at_end = kept_square(a, b, cosine, log_kappa, end)
        if at_end >= value:
            t, value = end, at_end
    return t, value


@njit(cache=True, nogil=True)
def fill_table(table):
    """table[i, j]: the root of the loss over the lighter mass, and the place t, at u = i / SHARES 3 / 2 - 1.

    j is for κ = j / NEARNESSES. The root is nearly linear in κ, down to 0 at κ = 1.
    """
    for j in range(NEARNESSES + 1):
        kappa = j / NEARNESSES
        log_kappa = np.log(max(kappa, 1e-300))
        for i in range(SHARES + 1):
            u = LEAST_SHARE + (MOST_SHARE - LEAST_SHARE) * i / SHARES
            if abs(u) < 1e-9:
                # A light point beside a heavy one; t, u κ to first order, saves 2 u² κ² |log κ|.
                table[i, j, 0] = np.sqrt(max(0.0, 1.0 - kappa * kappa * (1.0 - 2.0 * log_kappa)))
                table[i, j, 1] = 0.0
                continue
            a, b, cosine = abs(u), 1.0 - u, np.sign(u)
            t, kept = golden_section(a, b, cosine, log_kappa)
            loss = a * a + b * b + 2.0 * cosine * a * b * kappa - kept
            table[i, j, 0] = np.sqrt(max(0.0, loss)) / a
            table[i, j, 1] = t


@njit(nogil=True, fastmath=NO_REORDER, forceinline=True)
def look_up(table, u, kappa):
    """Loss and place between the table's points, linear along both axes; u in [-1, 1/2], kappa in [0, 1]."""
    x, y = (u - LEAST_SHARE) * (SHARES / (MOST_SHARE - LEAST_SHARE)), kappa * NEARNESSES
    row, column = min(int(x), SHARES - 1), min(int(y), NEARNESSES - 1)
    x, y = x - row, y - column
    i, j = np.uint64(row), np.uint64(column)  # Numba then asks of no index whether it counts from the end
    below, right = i + np.uint64(1), j + np.uint64(1)
    loss = (table[i, j, 0] * (1.0 - y) + table[i, right, 0] * y) * (1.0 - x)
    place = (table[i, j, 1] * (1.0 - y) + table[i, right, 1] * y) * (1.0 - x)
    loss += (table[below, j, 0] * (1.0 - y) + table[below, right, 0] * y) * x
    place += (table[below, j, 1] * (1.0 - y) + table[below, right, 1] * y) * x
    return loss, place


@njit(nogil=True, fastmath=NO_REORDER, forceinline=True)
def power_of_2(z):
    """2**z, z <= 0, as `slimsvm.numerics.maps.exp2` in float64; the polynomial as a tree, for one number at a time."""
    z = max(z, LOWEST)
    t = z + ROUNDER
    r = z - (t - ROUNDER)
    s = r * r
    q = s * s
    low = (C[0] + C[1] * r) + s * (C[2] + C[3] * r)
    middle, high = (C[4] + C[5] * r) + s * (C[6] + C[7] * r), (C[8] + C[9] * r) + s * (C[10] + C[11] * r)
    p = low + q * (middle + q * high)
    bits = np.float64(p).view(np.int64) + (np.float64(t).view(np.int64) << np.int64(52))
    return np.int64(bits).view(np.float64)


@njit(nogil=True, fastmath=NO_REORDER, forceinline=True)
def exp_near_0(z):
    """e**z by its series, right to 1e-14 where |z| < SHORT_STEP."""
    square = z * z
    odd = 1.0 + square * (1.0 / 6.0 + square * (1.0 / 120.0))
    even = 0.5 + square * (1.0 / 24.0 + square * (1.0 / 720.0))
    return 1.0 + (z * odd + square * even)


@njit(nogil=True, fastmath=NO_REORDER, forceinline=True)
def polished(a, b, exponent, t):
    """The place t for the masses b >= a > 0, or b >= -2 a where a < 0, with κ = 2**exponent, after one Newton step.

    Returns it with what a mass at 0, and one at 1, has left of it there.
    """
    curve = 2.0 * LOG_2 * exponent
    from_b, from_a = power_of_2(exponent * t * t), power_of_2(exponent * (1.0 - t) * (1.0 - t))
    first, second = b * from_b, a * from_a
    slope = first * t - second * (1.0 - t)
    bend = first * (1.0 + curve * t * t) + second * (1.0 + curve * (1.0 - t) * (1.0 - t))
    if not bend > 0:
        return t, from_b, from_a
    new = t - slope / bend
    new = min(max(new, 0.0), MOST_SHARE) if a > 0 else min(max(new, LEAST_SHARE), 0.0)
    grown_b, grown_a = 0.5 * curve * (new - t) * (new + t), 0.5 * curve * (t - new) * (2.0 - new - t)
    if max(abs(grown_b), abs(grown_a)) < SHORT_STEP:
        new_b, new_a = from_b * exp_near_0(grown_b), from_a * exp_near_0(grown_a)
    else:
        new_b, new_a = power_of_2(exponent * new * new), power_of_2(exponent * (1.0 - new) * (1.0 - new))
    if b * new_b + a * new_a >= first + second:
        return new, new_b, new_a
    return t, from_b, from_a


@lru_cache(maxsize=1)
def merge_table() -> np.ndarray:
    """The table of this process, not to be written to, float32, shape (SHARES + 1, NEARNESSES + 1, 2)."""
    table = np.empty((SHARES + 1, NEARNESSES + 1, 2))
    fill_table(table)
    return table.astype(np.float32)

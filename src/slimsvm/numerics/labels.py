"""Losses of rows with several labels, and of rows with ordered ones, compiled: a hinge for each label or threshold.

As in `numerics.losses`: ``*_augment`` writes the loss-augmented argmax of every row, ``*_along`` sums weighted losses
and coefficients times direction over the rows of each tile, ``*_smooth`` is as in `numerics.smoothed`.
"""

from __future__ import annotations

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.crew import share_out
from slimsvm.numerics.losses import ROWS_PER_TILE, binary_row
from slimsvm.numerics.smoothed import soft


@njit(cache=True, nogil=True)
def multilabel_augment(y, scores, delta, coef):
    """Hinge of every label: the number of wrong ones is what Δ counts."""
    for i in range(y.shape[0]):
        delta[i] = 0.0
        for c in range(y.shape[1]):
            wrong, coef[i, c] = binary_row(y[i, c], 1.0, scores[i, c])
            delta[i] += wrong


@njit(cache=True, nogil=True)
def multilabel_along(y, weights, base, direction, k, lo, hi, out):
    """Hinge of every label; out[tile] = (losses, coefficients times direction)."""
    for tile in range(lo, hi):
        loss, gain = 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            for c in range(y.shape[1]):
                f = base[i, c] + k * direction[i, c]
                wrong, coef = binary_row(y[i, c], 1.0, f)
                loss += weights[i] * (wrong - coef * f)
                gain += weights[i] * coef * direction[i, c]
        out[tile, 0], out[tile, 1] = loss, gain


@njit(nogil=True)
def multilabel_smooth(y, weights, scores, tau, residual, curvature, sums, lo, hi):
    """Soft hinge of every label."""
    for tile in range(lo, hi):
        loss, smoothed, dual = 0.0, 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            for c in range(y.shape[1]):
                t = 1.0 - y[i, c] * scores[i, c]
                value, a = soft(t, tau)
                residual[i, c] = weights[i] * a * y[i, c]
                curvature[i, c] = weights[i] * a * (1.0 - a) / tau
                loss += weights[i] * max(t, 0.0)
                smoothed += weights[i] * value
                dual += weights[i] * a
        sums[tile, 0], sums[tile, 1], sums[tile, 2], sums[tile, 3] = loss, smoothed, dual, 0.0


@njit(cache=True, nogil=True)
def share_multilabel_smooth(work, before, after):
    """`multilabel_smooth` by a crew."""
    share_out(multilabel_smooth, work, before, after)


@njit(cache=True, nogil=True)
def ordinal_augment(y, scores, thresholds, delta, coef, plain):
    """Hinge at every threshold j, which rows of class > j should be above, and others below."""
    for i in range(y.shape[0]):
        delta[i] = 0.0
        coef[i, 0] = 0.0
        for j in range(thresholds.shape[0]):
            wrong, part = binary_row(1.0 if y[i] > j else -1.0, 1.0, scores[i, 0] - thresholds[j])
            delta[i] += wrong
            coef[i, 0] += part
            plain[i, j] = -part


@njit(cache=True, nogil=True)
def ordinal_along(y, weights, base, thresholds, direction, step, k, lo, hi, out):
    """Hinge at every threshold; out[tile] = (losses, coefficients times direction)."""
    for tile in range(lo, hi):
        loss, gain = 0.0, 0.0
        for i in range(tile * ROWS_PER_TILE, min(y.shape[0], (tile + 1) * ROWS_PER_TILE)):
            f = base[i, 0] + k * direction[i, 0]
            for j in range(thresholds.shape[0]):
                above = f - (thresholds[j] + k * step[j])
                wrong, coef = binary_row(1.0 if y[i] > j else -1.0, 1.0, above)
                loss += weights[i] * (wrong - coef * above)
                gain += weights[i] * coef * (direction[i, 0] - step[j])
        out[tile, 0], out[tile, 1] = loss, gain


@njit(cache=True, nogil=True)
def ordinal_decode(scores, thresholds, codes):
    """Class c of the greatest Σ_{j<c} (f − θ_j), the lowest among equals: thresholds that rise are counted."""
    for i in range(scores.shape[0]):
        total, best, codes[i] = 0.0, 0.0, 0
        for j in range(thresholds.shape[0]):
            total += scores[i, 0] - thresholds[j]
            if total > best:
                best, codes[i] = total, j + 1

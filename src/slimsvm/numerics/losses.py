"""Loss-augmented argmax of the one-row tasks, one compiled pass over the scores each."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def binary_augment(y, cost_negative, cost_positive, scores, delta, coef):
    """ŷ = −y where cost − y f > 0 (ties to −1); δΨ = y φ, since Ψ = ½ y φ."""
    for i in range(y.shape[0]):
        cost = cost_positive if y[i] > 0 else cost_negative
        slack = cost - y[i] * scores[i, 0]
        if slack > 0 or (slack == 0 and y[i] > 0):
            delta[i] = cost
            coef[i, 0] = y[i]
        else:
            delta[i] = 0.0
            coef[i, 0] = 0.0


@njit(cache=True, nogil=True)
def multiclass_augment(y, cost, scores, delta, coef):
    """ŷ = argmax_c cost[y, c] + s_c (ties to the lowest c); δΨ = φ ⊗ (e_y − e_ŷ)."""
    n_classes = scores.shape[1]
    for i in range(y.shape[0]):
        label = y[i]
        best, value = 0, -np.inf
        for c in range(n_classes):
            coef[i, c] = 0.0
            candidate = cost[label, c] + scores[i, c]
            if candidate > value:
                best, value = c, candidate
        delta[i] = cost[label, best]
        if best != label:
            coef[i, label] = 1.0
            coef[i, best] = -1.0


@njit(cache=True, nogil=True)
def epsilon_insensitive_augment(y, epsilon, scores, delta, coef):
    """Where |y − f| > ε, with s = sign(y − f): c = s y − ε and δΨ = s φ."""
    for i in range(y.shape[0]):
        residual = y[i] - scores[i, 0]
        if abs(residual) > epsilon:
            sign = 1.0 if residual > 0 else -1.0
            delta[i] = sign * y[i] - epsilon
            coef[i, 0] = sign
        else:
            delta[i] = 0.0
            coef[i, 0] = 0.0

"""Dual coordinate ascent on a whole kernel matrix, for problems no larger than a budget."""

from __future__ import annotations

from slimsvm.numerics.budget_steps import DUAL, ONE_VS_REST, TUBE, hinge_delta, tube_delta
from slimsvm.numerics.compiling import njit


@njit(cache=True, nogil=True)
def ascend(K, steps, order, alpha, beta, scores):
    """One coordinate step on each row of ``order``, for every output.

    K holds the constant feature. alpha (n, m) are the dual variables, beta (n, m) the coefficients, scores = K beta;
    all three are kept up to date.
    """
    n, m = alpha.shape
    _, loss, labels, epsilon, cost_negative, cost_positive, price, _, _ = steps
    for i in order:
        for c in range(m):
            if loss == TUBE:
                delta, alpha[i, c] = tube_delta(
                    DUAL, labels[i], epsilon, scores[i, c], price[i], K[i, i], alpha[i, c], n
                )
            else:
                sign = labels[i]
                if loss == ONE_VS_REST:
                    sign = 1.0 if c == labels[i] else -1.0
                cost = cost_positive if sign > 0 else cost_negative
                delta, alpha[i, c] = hinge_delta(DUAL, sign, cost, scores[i, c], price[i], K[i, i], alpha[i, c], n)
            if delta != 0:
                beta[i, c] += delta
                for j in range(n):
                    scores[j, c] += delta * K[i, j]

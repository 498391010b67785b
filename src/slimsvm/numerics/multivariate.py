"""Loss-augmented argmax of losses over all rows, for sorted scores.

Joachims, "A Support Vector Method for Multivariate Performance Measures", ICML 2005, Algorithms 2 and 3. With
Ψ = (1/n) Σ ½ y_i φ(x_i) a labelling ŷ is worth Δ(ŷ) − (1/n) Σ_{i: ŷ_i ≠ y_i} y_i s_i. Measures of the contingency
table depend on ŷ by a, the positives that stay positive, and b, the negatives that become positive, alone; for given
(a, b) the best labelling keeps the a highest positives and flips the b highest negatives. Less a constant its worth is

    Δ(a, b) + (S₊(a) + S₋(b)) / n − S₊(P) / n        with S(k) the sum of the k highest scores of a class.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit


@njit(nogil=True)
def prefix_sums(falling):
    """S(k), k = 0 .. n, of numbers that fall."""
    sums = np.zeros(falling.shape[0] + 1)
    for k in range(falling.shape[0]):
        sums[k + 1] = sums[k] + falling[k]
    return sums


@njit(inline="always")
def f_loss(a, b, n_positive, beta_squared):
    """1 − F_β of a table; 0 where there is no positive, true or predicted."""
    either = beta_squared * n_positive + a + b
    return 1.0 - (1.0 + beta_squared) * a / either if either > 0 else 0.0


@njit(cache=True, nogil=True)
def best_f_table(positives, negatives, beta_squared):
    """(a, b) of the greatest worth for F_β; scores of each class fall. Ties: the fewest predicted positives.

    For given a the worth is concave in b: its last rise is found by halving, O(P log Q) in all.
    """
    n_positive, n_negative = positives.shape[0], negatives.shape[0]
    n = n_positive + n_negative
    kept, flipped = prefix_sums(positives), prefix_sums(negatives)
    best_a, best_b, best = 0, 0, -np.inf
    for a in range(n_positive + 1):
        # Without positives b = 0 is faultless and b = 1 has the loss 1: concave from b = 1 on.
        start = 1 if n_positive == 0 else 0
        lo, hi = min(start, n_negative), n_negative
        while lo < hi:
            b = (lo + hi) // 2
            rise = f_loss(a, b + 1, n_positive, beta_squared) - f_loss(a, b, n_positive, beta_squared)
            if rise + negatives[b] / n > 0:
                lo = b + 1
            else:
                hi = b
        worth = f_loss(a, lo, n_positive, beta_squared) + (kept[a] + flipped[lo]) / n
        if worth > best or (worth == best and a + lo < best_a + best_b):
            best_a, best_b, best = a, lo, worth
    if n_positive == 0 and best <= 0:
        best_b = 0
    return best_a, best_b


@njit(cache=True, nogil=True)
def best_table_at_k(positives, negatives, k, per):
    """(a, worth above that of no change) among the tables of k predicted positives, for Δ = 1 − a/per.

    Ties: the fewest true positives.
    """
    n_positive, n_negative = positives.shape[0], negatives.shape[0]
    n = n_positive + n_negative
    kept, flipped = prefix_sums(positives), prefix_sums(negatives)
    best_a, best = 0, -np.inf
    for a in range(max(0, k - n_negative), min(n_positive, k) + 1):
        delta = 1.0 - a / per if per > 0 else 0.0
        worth = delta + (kept[a] - kept[n_positive] + flipped[k - a]) / n
        if worth > best:
            best_a, best = a, worth
    return best_a, best


@njit(cache=True, nogil=True)
def mark_highest(labels, scores, sign, falling, k, positive):
    """Set ``positive`` for the k highest rows of one class; of equal scores the last rows are the positive ones."""
    if k == 0:
        return
    threshold = falling[k - 1]
    lo, hi = 0, k
    while lo < hi:  # first position whose score is the threshold
        middle = (lo + hi) // 2
        if falling[middle] > threshold:
            lo = middle + 1
        else:
            hi = middle
    equal = k - lo
    for i in range(labels.shape[0] - 1, -1, -1):
        if labels[i] * sign > 0:
            if scores[i] > threshold:
                positive[i] = True
            elif scores[i] == threshold and equal > 0:
                positive[i] = True
                equal -= 1


@njit(cache=True, nogil=True)
def coefficients_of(labels, positive, coef):
    """δΨ of a labelling: y_i / n where it differs from the labels."""
    n = labels.shape[0]
    for i in range(n):
        y = 1.0 if labels[i] > 0 else -1.0
        coef[i, 0] = y / n if (y > 0) != positive[i] else 0.0


@njit(cache=True, nogil=True)
def count_swaps(positives, negatives, of_positive, of_negative):
    """For rising scores of both classes: with how many of the other class each row is swapped, s₊ − s₋ ≤ 1."""
    n_positive, n_negative = positives.shape[0], negatives.shape[0]
    j = 0
    for i in range(n_positive):
        while j < n_negative and not positives[i] - negatives[j] <= 1.0:
            j += 1
        of_positive[i] = n_negative - j
    i = 0
    for j in range(n_negative):
        while i < n_positive and positives[i] - negatives[j] <= 1.0:
            i += 1
        of_negative[j] = i

"""Linear chains: Viterbi's recursion, with the loss added, and the passes over sequences that use it.

A labelling y of a sequence of length L scores start[y_1] + Σ_t s_t[y_t] + Σ_t T[y_t, y_t+1] + end[y_L]. The recursion
runs from the end, so that among labellings of equal score the one found has the lowest label in the first row, then in
the second, and so on. Transitions come transposed, to[c', c] = T[c, c'], so that the inner loop runs over memory in
order.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.copying import copy_row

EXAMPLES_PER_TILE = 64
HAMMING, ZERO_ONE = 0, 1
CHAIN_LOSSES = {"hamming": HAMMING, "zero-one": ZERO_ONE}


@njit(cache=True, nogil=True)
def extend(later, to, best, choice):
    """best[c] = max over c' of T[c, c'] + later[c'], and the lowest such c'."""
    k = later.shape[0]
    for c in range(k):
        best[c] = -np.inf
        choice[c] = 0
    for after in range(k):
        for c in range(k):
            value = to[after, c] + later[after]
            if value > best[c]:
                best[c] = value
                choice[c] = after


@njit(nogil=True)
def viterbi(scores, to, start, end, path):
    """Labelling of the greatest score; returns that score."""
    length, k = scores.shape
    value, best = np.empty(k), np.empty(k)
    choice = np.empty((length, k), dtype=np.int64)
    for c in range(k):
        value[c] = scores[length - 1, c] + end[c]
    for t in range(length - 2, -1, -1):
        extend(value, to, best, choice[t])
        for c in range(k):
            value[c] = scores[t, c] + best[c]
    label, greatest = 0, -np.inf
    for c in range(k):
        if value[c] + start[c] > greatest:
            label, greatest = c, value[c] + start[c]
    for t in range(length):
        path[t] = label
        label = choice[t, label] if t < length - 1 else label
    return greatest


@njit(nogil=True)
def viterbi_other(scores, to, start, end, y, path):
    """Labelling of the greatest score among those that differ from y; returns that score (-inf: one label only).

    Beside the best value of every suffix this keeps the best value of the suffixes that differ from y's.
    """
    length, k = scores.shape
    value, other = np.empty(k), np.empty(k)
    best, best_other = np.empty(k), np.empty(k)
    choice, choice_other = np.empty((length, k), dtype=np.int64), np.empty((length, k), dtype=np.int64)
    for c in range(k):
        value[c] = scores[length - 1, c] + end[c]
        other[c] = -np.inf if c == y[length - 1] else value[c]
    for t in range(length - 2, -1, -1):
        extend(value, to, best, choice[t])
        extend(other, to, best_other, choice_other[t])
        for c in range(k):
            value[c] = scores[t, c] + best[c]
            other[c] = scores[t, c] + best_other[c] if c == y[t] else value[c]
    label, greatest = 0, -np.inf
    for c in range(k):
        if other[c] + start[c] > greatest:
            label, greatest = c, other[c] + start[c]
    same = True
    for t in range(length):
        path[t] = label
        same = same and label == y[t]
        if t < length - 1:
            label = choice_other[t, label] if same else choice[t, label]
    return greatest


@njit(nogil=True)
def chain_score(scores, to, start, end, labels):
    """Score of one labelling, added up from the end as the recursions do."""
    length = labels.shape[0]
    total = scores[length - 1, labels[length - 1]] + end[labels[length - 1]]
    for t in range(length - 2, -1, -1):
        total = scores[t, labels[t]] + (to[labels[t + 1], labels[t]] + total)
    return total + start[labels[0]]


@njit(nogil=True)
def augmented_labels(scores, to, start, end, y, loss, path):
    """Loss-augmented argmax of one sequence into ``path``; adds the Hamming loss to ``scores``. Returns Δ."""
    length, k = scores.shape
    if loss == HAMMING:
        for t in range(length):
            for c in range(k):
                if c != y[t]:
                    scores[t, c] += 1.0
        viterbi(scores, to, start, end, path)
        wrong = 0.0
        for t in range(length):
            wrong += 1.0 if path[t] != y[t] else 0.0
        return wrong
    other = 1.0 + viterbi_other(scores, to, start, end, y, path)
    truth = chain_score(scores, to, start, end, y)
    first = 0
    while first < length - 1 and path[first] == y[first]:
        first += 1
    if other > truth or (other == truth and path[first] < y[first]):
        return 1.0
    copy_row(y, path)
    return 0.0


@njit(cache=True, nogil=True)
def chain_augment(y, offsets, base, plain, loss, delta, coef, part, lo, hi):
    """Constants, coefficients over rows and plain parts (transitions, start, end) of the examples of some tiles."""
    k = base.shape[1]
    to, start, end = plain[: k * k].reshape(k, k).T.copy(), plain[k * k : k * k + k], plain[k * k + k :]
    for e in range(lo * EXAMPLES_PER_TILE, min(offsets.shape[0] - 1, hi * EXAMPLES_PER_TILE)):
        first, last = offsets[e], offsets[e + 1]
        delta[e] = 0.0
        if first == last:
            continue
        truth, path = y[first:last], np.empty(last - first, dtype=np.int64)
        delta[e] = augmented_labels(base[first:last].copy(), to, start, end, truth, loss, path)
        own = part[e]
        for t in range(last - first):
            if path[t] != truth[t]:
                coef[first + t, truth[t]] = 1.0
                coef[first + t, path[t]] = -1.0
            if t > 0:
                own[truth[t - 1] * k + truth[t]] += 1.0
                own[path[t - 1] * k + path[t]] -= 1.0
        own[k * k + truth[0]] += 1.0
        own[k * k + path[0]] -= 1.0
        own[k * k + k + truth[-1]] += 1.0
        own[k * k + k + path[-1]] -= 1.0


@njit(cache=True, nogil=True)
def chain_along(y, offsets, weights, base, plain, direction, plain_direction, k, loss, out, lo, hi):
    """Weighted losses at base + k·direction, and minus their slope in k, of every tile: out[tile]."""
    m = base.shape[1]
    moved = plain + k * plain_direction
    to, start, end = moved[: m * m].reshape(m, m).T.copy(), moved[m * m : m * m + m], moved[m * m + m :]
    steps = plain_direction[: m * m].reshape(m, m)
    first_steps, last_steps = plain_direction[m * m : m * m + m], plain_direction[m * m + m :]
    for tile in range(lo, hi):
        total, gain = 0.0, 0.0
        for e in range(tile * EXAMPLES_PER_TILE, min(offsets.shape[0] - 1, (tile + 1) * EXAMPLES_PER_TILE)):
            first, last = offsets[e], offsets[e + 1]
            if first == last:
                continue
            truth, path = y[first:last], np.empty(last - first, dtype=np.int64)
            scores = base[first:last] + k * direction[first:last]
            delta = augmented_labels(scores.copy(), to, start, end, truth, loss, path)
            value = delta + chain_score(scores, to, start, end, path) - chain_score(scores, to, start, end, truth)
            rise = first_steps[truth[0]] - first_steps[path[0]] + last_steps[truth[-1]] - last_steps[path[-1]]
            for t in range(last - first):
                rise += direction[first + t, truth[t]] - direction[first + t, path[t]]
                if t > 0:
                    rise += steps[truth[t - 1], truth[t]] - steps[path[t - 1], path[t]]
            total += weights[e] * value
            gain += weights[e] * rise
        out[tile, 0], out[tile, 1] = total, gain


@njit(cache=True, nogil=True)
def chain_decode(offsets, scores, plain, labels, lo, hi):
    """Labels of the greatest score of the sequences of some tiles."""
    k = scores.shape[1]
    to, start, end = plain[: k * k].reshape(k, k).T.copy(), plain[k * k : k * k + k], plain[k * k + k :]
    for e in range(lo * EXAMPLES_PER_TILE, min(offsets.shape[0] - 1, hi * EXAMPLES_PER_TILE)):
        first, last = offsets[e], offsets[e + 1]
        if first < last:
            viterbi(scores[first:last], to, start, end, labels[first:last])

"""Loss-augmented argmax of rankings: swapped pairs in O(n log n), average precision in O(n log n).

Rows come query by query, ``order`` has the rows of every query by rising score (for average precision by falling). With
Ψ = 1/(number of pairs) Σ_{i above j} ½ ȳ_ij (φ(x_i) − φ(x_j)) a row's coefficient in δΨ is the number of its pairs that
are swapped, over the number of pairs; positive for the row that should be above.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit


@njit(cache=True, nogil=True)
def order_in_queries(order, query, offsets, out):
    """Rows of each query in the order of ``order``, which has the rows of all queries."""
    place = offsets[:-1].copy()
    for p in range(order.shape[0]):
        q = query[order[p]]
        out[place[q]] = order[p]
        place[q] += 1


@njit(inline="always")
def count_one(tree, grade):
    """Count one more row of a grade in a Fenwick tree."""
    k = grade + 1
    while k < tree.shape[0]:
        tree[k] += 1
        k += k & -k


@njit(inline="always")
def count_below(tree, grade):
    """Rows counted so far whose grade is below this one."""
    total, k = 0, grade
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@njit(nogil=True)
def count_grades(grades):
    """Rows of each grade 0, 1, ... of a query."""
    counts = np.zeros(grades.max() + 1 if grades.shape[0] > 0 else 1, dtype=np.int64)
    for grade in grades:
        counts[grade] += 1
    return counts


@njit(cache=True, nogil=True)
def swaps_augment(grades, offsets, order, scores, delta, coef):
    """A pair of grades g_i > g_j is swapped where s_i − s_j ≤ 1. Grades of a query are 0, 1, 2, ..., none left out."""
    for q in range(offsets.shape[0] - 1):
        delta[q] = 0.0
        rows = order[offsets[q] : offsets[q + 1]]
        n = rows.shape[0]
        s, g = scores[rows, 0], grades[rows]  # side by side, read many times
        counts = count_grades(g)
        n_pairs = 0
        for count in counts:
            n_pairs += count * (n - count)
        n_pairs //= 2
        if n_pairs == 0:
            coef[rows, 0] = 0.0
            continue
        n_swapped = 0
        # From the highest score down: as s_i falls, more and more rows j are too near below it, or above.
        tree = np.zeros(counts.shape[0] + 1, dtype=np.int64)
        at = n - 1
        for i in range(n - 1, -1, -1):
            while at >= 0 and s[i] - s[at] <= 1.0:
                count_one(tree, g[at])
                at -= 1
            own = count_below(tree, g[i])
            n_swapped += own
            coef[rows[i], 0] = own / n_pairs
        # From the lowest score up: the rows i that should be above j and are not by 1.
        tree[:] = 0
        at = 0
        for j in range(n):
            while at < n and s[at] - s[j] <= 1.0:
                count_one(tree, g[at])
                at += 1
            coef[rows[j], 0] -= (at - count_below(tree, g[j] + 1)) / n_pairs
        delta[q] = n_swapped / n_pairs


@njit(nogil=True)
def place_irrelevant(relevant, irrelevant, place):
    """For falling scores of both: how many relevant rows each irrelevant one is placed under.

    Placing the j-th irrelevant row (from 1) above the i-th relevant one costs average precision
    i / ((i + j)(i + j − 1) P) and the score (s_i − s_j) / (P N). What is gained falls with j for every i, so that the
    best places rise with j: the middle row is placed, then those before and after it within what that leaves
    (Mohapatra, Jawahar, Kumar, NIPS 2014, which makes O(P log N + N) of the O(P N) of Yue et al., SIGIR 2007). Ties:
    the fewest swapped pairs.
    """
    n_relevant, n_irrelevant = relevant.shape[0], irrelevant.shape[0]
    stack = np.empty((64, 4), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n_irrelevant, 0, n_relevant
    depth = 1
    while depth > 0:
        depth -= 1
        lo, hi, least, most = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if least == most:
            for j in range(lo, hi):
                place[j] = least
            continue
        middle = (lo + hi) // 2
        j, score = middle + 1.0, irrelevant[middle]
        best, best_worth, worth = most, 0.0, 0.0
        for k in range(most - 1, least - 1, -1):
            i = k + 1.0
            worth += n_irrelevant * i / ((i + j) * (i + j - 1.0)) - (relevant[k] - score)
            if worth > best_worth:
                best, best_worth = k, worth
        place[middle] = best
        if lo < middle:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = lo, middle, least, best
            depth += 1
        if middle + 1 < hi:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = middle + 1, hi, best, most
            depth += 1


@njit(cache=True, nogil=True)
def average_precision_augment(relevance, offsets, order, scores, delta, coef):
    """Ranking of the greatest 1 − AP − ⟨δΨ, scores⟩; relevance is 0 or 1, ``order`` by *falling* score."""
    for q in range(offsets.shape[0] - 1):
        first, last = offsets[q], offsets[q + 1]
        n_relevant = 0
        for i in range(first, last):
            n_relevant += relevance[i]
            coef[i, 0] = 0.0
        n_irrelevant = last - first - n_relevant
        delta[q] = 0.0
        if n_relevant == 0 or n_irrelevant == 0:
            continue
        rows, others = np.empty(n_relevant, dtype=np.int64), np.empty(n_irrelevant, dtype=np.int64)
        a = b = 0
        for p in range(first, last):
            if relevance[order[p]]:
                rows[a] = order[p]
                a += 1
            else:
                others[b] = order[p]
                b += 1
        place = np.empty(n_irrelevant, dtype=np.int64)
        place_irrelevant(scores[rows, 0], scores[others, 0], place)
        n_pairs = n_relevant * n_irrelevant
        precision, above = 0.0, 0
        for k in range(n_relevant):
            while above < n_irrelevant and place[above] <= k:
                above += 1
            coef[rows[k], 0] = above / n_pairs
            precision += (k + 1.0) / (k + 1.0 + above)
        for j in range(n_irrelevant):
            coef[others[j], 0] = -(n_relevant - place[j]) / n_pairs
        delta[q] = 1.0 - precision / n_relevant


@njit(cache=True, nogil=True)
def swapped_shares(grades, offsets, order, predicted, shares):
    """Share of each query's pairs that are ranked the wrong way round, ties half; NaN where there is no pair."""
    for q in range(offsets.shape[0] - 1):
        rows = order[offsets[q] : offsets[q + 1]]
        n = rows.shape[0]
        s, g = predicted[rows], grades[rows]
        counts = count_grades(g)
        tree = np.zeros(counts.shape[0] + 1, dtype=np.int64)
        twice_pairs, twice_swapped, low = 0, 0, 0
        for count in counts:
            twice_pairs += count * (n - count)
        while low < n:
            high = low
            while high < n and s[high] == s[low]:
                twice_swapped += low - count_below(tree, g[high] + 1)
                high += 1
            for j in range(low, high):
                count_one(tree, g[j])
            for j in range(low, high):  # equal scores are seen here only: half
                twice_swapped += high - count_below(tree, g[j] + 1)
            low = high
        shares[q] = twice_swapped / twice_pairs if twice_pairs > 0 else np.nan

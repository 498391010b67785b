"""Block-coordinate ascent on a structured dual: each example's planes, and steps on one example at a time.

A plane (c, g) of example e is a constraint that an oracle found: g = Σ coefficients at (row of e, output), and over the
plain parameters. It is a run of entries: ``row`` (counted from the example's first one; −1: plain), ``column``,
``value``. The planes of an example are a linked list. With weights α_k ≥ 0, Σ α_k ≤ price of e, and w = Σ_e Σ_k α_k g_k
the part of the dual that one example sees is, in a step d of its α,

    sᵀd − ½ dᵀHd,    s_k = c_k − ⟨w, g_k⟩,    H_kl = ⟨g_k, g_l⟩.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit

LINE_SEARCH, CORRECTIVE = 0, 1
MAX_STEPS = 200
# Weights below this share of an example's price are none.
NOTHING = 1e-10


@njit(cache=True, nogil=True)
def add_planes(index, start, delta, coef, part, first, following, where, row, column, value, constant, alpha, idle, n):
    """Enter the planes that differ from those there are, one of each example ``index``; n = (planes, entries)."""
    for j in range(index.shape[0]):
        e, k, q = index[j], n[0], n[1]
        for i in range(start[j], start[j + 1]):
            for c in range(coef.shape[1]):
                if coef[i, c] != 0.0:
                    row[q], column[q], value[q] = i - start[j], c, coef[i, c]
                    q += 1
        for c in range(part.shape[1]):
            if part[j, c] != 0.0:
                row[q], column[q], value[q] = -1, c, part[j, c]
                q += 1
        length = q - n[1]
        is_new = length > 0
        other = first[e]
        while other >= 0 and is_new:
            if constant[other] == delta[j] and where[other + 1] - where[other] == length:
                same = True
                for a, b in zip(range(n[1], q), range(where[other], where[other] + length)):
                    same = same and row[a] == row[b] and column[a] == column[b] and value[a] == value[b]
                is_new = not same
            other = following[other]
        if is_new:
            where[k], where[k + 1] = n[1], q
            constant[k], alpha[k], idle[k] = delta[j], 0.0, 0
            following[k], first[e] = first[e], k
            n[0], n[1] = k + 1, q


@njit(nogil=True)
def planes_of(e, first, following):
    """Numbers of the planes of example e."""
    t, k = 0, first[e]
    while k >= 0:
        t, k = t + 1, following[k]
    planes = np.empty(t, dtype=np.int64)
    k = first[e]
    for j in range(t):
        planes[j], k = k, following[k]
    return planes


@njit(nogil=True)
def rows_of_planes(planes, where, row, length):
    """Rows that some planes lie on, counted from the example's first; and the place of each row among them."""
    place, rows, n_rows = np.full(length, -1), np.empty(length, dtype=np.int64), 0
    for k in planes:
        for q in range(where[k], where[k + 1]):
            if row[q] >= 0 and place[row[q]] < 0:
                place[row[q]] = n_rows
                rows[n_rows] = row[q]
                n_rows += 1
    return rows[:n_rows], place


@njit(cache=True, nogil=True)
def slopes(planes, where, row, column, value, constant, place, scores, v):
    """S of the planes, from the scores of their rows."""
    s = np.empty(planes.shape[0])
    for j, k in enumerate(planes):
        s[j] = constant[k]
        for q in range(where[k], where[k + 1]):
            s[j] -= value[q] * (scores[place[row[q]], column[q]] if row[q] >= 0 else v[column[q]])
    return s


@njit(nogil=True)
def plane_products(planes, where, row, column, value, place, K, v):
    """H of the planes, from the kernel values K of their rows. ``v`` only says how many plain parameters there are."""
    t, n_rows, m = planes.shape[0], K.shape[0], 0
    for k in planes:
        for q in range(where[k], where[k + 1]):
            m = max(m, column[q] + 1 if row[q] >= 0 else 0)
    H = np.empty((t, t))
    products, plain = np.zeros((n_rows, m)), np.zeros(v.shape[0])
    for j in range(t):
        products[:] = 0.0
        lo, hi = where[planes[j]], where[planes[j] + 1]
        for q in range(lo, hi):
            if row[q] < 0:
                plain[column[q]] = value[q]
            else:
                at = place[row[q]]
                for i in range(n_rows):
                    products[i, column[q]] += value[q] * K[at, i]
        for other in range(j + 1):
            total = 0.0
            for q in range(where[planes[other]], where[planes[other] + 1]):
                total += value[q] * (products[place[row[q]], column[q]] if row[q] >= 0 else plain[column[q]])
            H[j, other] = H[other, j] = total
        for q in range(lo, hi):
            if row[q] < 0:
                plain[column[q]] = 0.0
    return H


@njit(nogil=True)
def gap_of_block(s, a, price):
    """Violation of one example's optimality: the greatest slope less the smallest of a plane (or none) in use."""
    best, worst, rest = 0.0, np.inf, price
    for k in range(s.shape[0]):
        best, rest = max(best, s[k]), rest - a[k]
        if a[k] > 0.0:
            worst = min(worst, s[k])
    return best - min(worst, 0.0) if rest > NOTHING * price else best - worst


@njit(nogil=True)
def step_to_corner(s, H, a, price):
    """Line search from a to the corner of the greatest slope (Lacoste-Julien et al. 2013, Algorithm 4)."""
    best = -1
    for k in range(s.shape[0]):
        if s[k] > (s[best] if best >= 0 else 0.0):
            best = k
    d = -a
    if best >= 0:
        d[best] += price
    rise, curvature = d @ s, d @ (H @ d)
    if rise <= 0.0:
        return
    a += d * (1.0 if rise >= curvature else rise / curvature)
    for k in range(s.shape[0]):
        if a[k] < NOTHING * price:
            a[k] = 0.0


@njit(cache=True, nogil=True)
def solve_block(s, H, a, price, tol):
    """Steps from the plane in use of the smallest slope to that of the greatest, until they are within tol."""
    t, rest = s.shape[0], price
    for k in range(t):
        rest -= a[k]
    for _ in range(MAX_STEPS):
        up, best = -1, 0.0
        down, worst = -1, 0.0 if rest > NOTHING * price else np.inf
        for k in range(t):
            if s[k] > best:
                up, best = k, s[k]
            if a[k] > 0.0 and s[k] < worst:
                down, worst = k, s[k]
        if best - worst <= tol:
            return
        curvature = 0.0
        if up >= 0:
            curvature += H[up, up]
        if down >= 0:
            curvature += H[down, down] - (2.0 * H[up, down] if up >= 0 else 0.0)
        room = a[down] if down >= 0 else rest
        step = room if curvature * room <= best - worst else (best - worst) / curvature
        if up >= 0:
            a[up] += step
            s -= step * H[up]
        else:
            rest += step
        if down >= 0:
            a[down] = 0.0 if step == room else a[down] - step
            s += step * H[down]
        else:
            rest = 0.0 if step == room else rest - step


@njit(cache=True, nogil=True)
def improve(s, H, a, price, method, tol):
    """One example's new α into a."""
    if method == LINE_SEARCH:
        step_to_corner(s, H, a, price)
    else:
        solve_block(s, H, a, price, tol)


@njit(cache=True, nogil=True)
def moved(planes, a, alpha, where, row, column, value, place, n_rows, m, v):
    """Take the new α over, and into v; what it adds to the coefficients of the rows."""
    D = np.zeros((n_rows, m))
    for j, k in enumerate(planes):
        change = a[j] - alpha[k]
        alpha[k] = a[j]
        if change != 0.0:
            for q in range(where[k], where[k + 1]):
                if row[q] >= 0:
                    D[place[row[q]], column[q]] += change * value[q]
                else:
                    v[column[q]] += change * value[q]
    return D


@njit(cache=True, nogil=True)
def steps_by_kernel(
    K, constant_feature, scores, rows, order, starts, prices,
    first, following, where, row, column, value, constant, alpha, v, method, tol, coef,
):  # fmt: skip
    """A step on each example of ``order``; K, scores and coef are of ``rows``, in increasing order, and are kept up."""
    m = scores.shape[1]
    for e in order:
        planes = planes_of(e, first, following)
        if planes.shape[0] == 0:
            continue
        own, place = rows_of_planes(planes, where, row, starts[e + 1] - starts[e])
        at = np.searchsorted(rows, own + starts[e])
        s = slopes(planes, where, row, column, value, constant, place, scores[at], v)
        a = alpha[planes]
        if gap_of_block(s, a, prices[e]) <= tol:
            continue
        block = np.empty((at.shape[0], at.shape[0]))
        for i in range(at.shape[0]):
            for j in range(at.shape[0]):
                block[i, j] = K[at[i], at[j]] + constant_feature
        H = plane_products(planes, where, row, column, value, place, block, v)
        improve(s, H, a, prices[e], method, tol)
        D = moved(planes, a, alpha, where, row, column, value, place, at.shape[0], m, v)
        for i in range(at.shape[0]):
            for c in range(m):
                change = D[i, c]
                if change != 0.0:
                    coef[at[i], c] += change
                    for other in range(scores.shape[0]):
                        scores[other, c] += change * (K[at[i], other] + constant_feature)


@njit(nogil=True)
def inner_product(data, indices, a, a_end, b, b_end):
    """⟨x, z⟩ of two sparse rows of increasing columns."""
    total = 0.0
    while a < a_end and b < b_end:
        if indices[a] == indices[b]:
            total += data[a] * data[b]
            a, b = a + 1, b + 1
        elif indices[a] < indices[b]:
            a += 1
        else:
            b += 1
    return total


@njit(nogil=True)
def products_of_rows(data, indices, indptr, rows, K):
    """Inner products of some sparse rows with each other into K."""
    for i in range(rows.shape[0]):
        for j in range(i + 1):
            K[i, j] = K[j, i] = inner_product(
                data, indices, indptr[rows[i]], indptr[rows[i] + 1], indptr[rows[j]], indptr[rows[j] + 1]
            )


@njit(cache=True, nogil=True)
def products_of_examples(data, indices, indptr, starts, offsets, flat, lo, hi):
    """Inner products of the rows of each example, one square block after the other in ``flat``."""
    for e in range(lo, hi):
        rows = np.arange(starts[e], starts[e + 1])
        block = flat[offsets[e] : offsets[e + 1]].reshape(rows.shape[0], rows.shape[0])
        products_of_rows(data, indices, indptr, rows, block)


@njit(cache=True, nogil=True)
def steps_by_weights(
    data, indices, indptr, grams, gram_offsets, constant_feature, W, bias, order, starts, prices,
    first, following, where, row, column, value, constant, alpha, v, method, tol,
):  # fmt: skip
    """A step on each example of ``order`` whose rows are sparse; W and bias are kept up.

    ``grams`` are those of `products_of_examples`, or empty: then what is needed is computed each time.
    """
    m = W.shape[1]
    for e in order:
        planes = planes_of(e, first, following)
        if planes.shape[0] == 0:
            continue
        own, place = rows_of_planes(planes, where, row, starts[e + 1] - starts[e])
        n_rows, length = own.shape[0], starts[e + 1] - starts[e]
        gram_rows, own = own, own + starts[e]
        scores = np.empty((n_rows, m))
        for i in range(n_rows):
            scores[i] = bias
            for q in range(indptr[own[i]], indptr[own[i] + 1]):
                x, f = data[q], indices[q]
                for c in range(m):
                    scores[i, c] += x * W[f, c]
        s = slopes(planes, where, row, column, value, constant, place, scores, v)
        a = alpha[planes]
        if gap_of_block(s, a, prices[e]) <= tol:
            continue
        K = np.empty((n_rows, n_rows))
        if grams.shape[0] > 0:
            for i in range(n_rows):
                for j in range(n_rows):
                    K[i, j] = grams[gram_offsets[e] + gram_rows[i] * length + gram_rows[j]]
        else:
            products_of_rows(data, indices, indptr, own, K)
        K += constant_feature
        H = plane_products(planes, where, row, column, value, place, K, v)
        improve(s, H, a, prices[e], method, tol)
        D = moved(planes, a, alpha, where, row, column, value, place, n_rows, m, v)
        for i in range(n_rows):
            for c in range(m):
                change = D[i, c]
                if change != 0.0:
                    bias[c] += constant_feature * change
                    for q in range(indptr[own[i]], indptr[own[i] + 1]):
                        W[indices[q], c] += data[q] * change


@njit(cache=True, nogil=True)
def kept_planes(max_idle, first, following, where, row, column, value, constant, alpha, idle, n):
    """Forget, in place, the planes that have been idle for long; the others are a pass older. Returns how many went."""
    before, k, q = n[0], 0, 0
    example = np.full(before, -1)
    for e in range(first.shape[0]):
        other = first[e]
        while other >= 0:
            example[other], other = e, following[other]
    first[:] = -1
    for j in range(before):
        idle[j] = idle[j] + 1 if alpha[j] == 0.0 else 0
        if idle[j] > max_idle:
            continue
        lo, hi = where[j], where[j + 1]
        for at in range(lo, hi):
            row[q], column[q], value[q] = row[at], column[at], value[at]
            q += 1
        constant[k], alpha[k], idle[k] = constant[j], alpha[j], idle[j]
        where[k + 1] = q
        following[k] = first[example[j]]
        first[example[j]] = k
        k += 1
    n[0], n[1] = k, q
    return before - k


@njit(cache=True, nogil=True)
def coefficients(first, following, where, row, column, value, alpha, starts, coef, v):
    """Σ α_k g_k over rows and outputs, and over the plain parameters, added to what is in coef and v."""
    for e in range(first.shape[0]):
        k = first[e]
        while k >= 0:
            for q in range(where[k], where[k + 1]):
                if alpha[k] == 0.0:
                    continue
                if row[q] >= 0:
                    coef[starts[e] + row[q], column[q]] += alpha[k] * value[q]
                else:
                    v[column[q]] += alpha[k] * value[q]
            k = following[k]

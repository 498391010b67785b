"""Compiled active set for the small quadratic programme over the live cuts.

    max_a  h'a - 1/2 a'G a    subject to  a >= 0,  sum(a) <= C

Method: a primal active set on the simplex, as in Wolfe, "Finding the nearest point in a polytope" (Mathematical
Programming 11, 1976), and Kiwiel, "A method for solving certain quadratic programming problems arising in nonsmooth
optimization" (IMA Journal of Numerical Analysis 6, 1986). The slack C - sum(a) is coordinate 0, with g = 0 and h = 0,
so that the constraint reads sum(a) = C, and G may be replaced by G' = G + kappa 1 1', which is the same on the simplex
and singular only where points g are *affinely* dependent. The free coordinates F keep a Cholesky factor
R'R = G'_FF: a column is appended when a coordinate enters, and Givens rotations repair R when one leaves.

    repeat
        r = h - G a                                      # gradient, computed afresh: each round also refines the last
        if r is not constant on F:  step towards the maximum over F; what reaches zero on the way leaves F
        else the largest r_j outside F enters;  stop when none exceeds the common value on F
"""

import numpy as np

from slimsvm.numerics.compiling import njit

ONES, RESIDUAL = 0, 1  # the rows of V: R'^-1 1 and R'^-1 r_F, which follow R as coordinates come and go
SLACK = 0  # the coordinate that stands for C - sum(a); cut j is coordinate j + 1 in every compiled function

_REORDER_SUMS = {"reassoc", "contract", "nsz"}  # lets sums be vectorised; NaN and infinity keep their meaning
_PIVOT_TRUSTED = 1e-10  # a squared pivot below this share of its diagonal is recomputed along the direction itself
_SUM_ROUNDING = 1e-14  # a slack below this share of C counts as zero
_ROUNDING = 1e-15  # of a gradient, as a share of what its terms could add up to
_MAX_REFINEMENTS = 3


@njit(nogil=True, fastmath=_REORDER_SUMS)
def _dot(x, y):
    s = 0.0
    for j in range(x.shape[0]):
        s += x[j] * y[j]
    return s


@njit(cache=True, nogil=True, fastmath=_REORDER_SUMS)
def _add(s, x, out):
    for j in range(x.shape[0]):
        out[j] += s * x[j]


@njit(nogil=True, fastmath=_REORDER_SUMS)
def _rotate(c, s, x, y):
    """Rotate two rows in place: (x, y) becomes (c x + s y, c y - s x)."""
    for j in range(x.shape[0]):
        xj = x[j]
        yj = y[j]
        x[j] = c * xj + s * yj
        y[j] = c * yj - s * xj


@njit(nogil=True)
def _solve_lower(R, p, x):
    """Solve R'z = x in place."""
    for i in range(p):
        x[i] /= R[i, i]
        _add(-x[i], R[i, i + 1 : p], x[i + 1 : p])


@njit(nogil=True)
def _solve_upper(R, p, x):
    """Solve R z = x in place."""
    for i in range(p - 1, -1, -1):
        x[i] = (x[i] - _dot(R[i, i + 1 : p], x[i + 1 : p])) / R[i, i]


@njit(nogil=True)
def _leave(R, V, free, p, k):
    """Take the k-th free coordinate out of F, of the factor and of V; returns the new size of F."""
    for i in range(k, p - 1):
        x = R[i, i + 1]
        y = R[i + 1, i + 1]
        length = np.hypot(x, y)
        R[i, i + 1] = length
        _rotate(x / length, y / length, R[i, i + 2 : p], R[i + 1, i + 2 : p])
        for column in range(2):
            vx = V[column, i]
            vy = V[column, i + 1]
            V[column, i] = (x * vx + y * vy) / length
            V[column, i + 1] = (x * vy - y * vx) / length
        free[i] = free[i + 1]
    for i in range(p - 1):
        for j in range(max(i, k), p - 1):
            R[i, j] = R[i, j + 1]
    return p - 1


@njit(cache=True, nogil=True)
def _balance(d, count):
    """Make sum(d) = 0 hold exactly, which rounding left undone. Whether d leads anywhere."""
    gain = 0.0
    loss = 0.0
    for k in range(count):
        gain += max(d[k], 0.0)
        loss -= min(d[k], 0.0)
    if gain == 0.0 or loss == 0.0:
        return False
    for k in range(count):
        if d[k] > 0.0:
            d[k] *= loss / gain
    return True


@njit(nogil=True)
def _longest_step(a, free, count, d):
    """Largest step along d that keeps a >= 0."""
    longest = np.inf
    for k in range(count):
        if d[k] < 0.0:
            longest = min(longest, a[free[k]] / -d[k])
    return longest


@njit(cache=True, nogil=True)
def _move(a, free, count, d, step):
    """Add step * d to a on the listed coordinates; what blocks a longer step becomes exactly zero."""
    for k in range(count):
        j = free[k]
        moved = a[j] + step * d[k]
        if moved <= 0.0 or (d[k] < 0.0 and a[j] / -d[k] <= step):
            moved = 0.0
        a[j] = moved


@njit(cache=True, nogil=True)
def drop_zeros(a, R, V, free, p):
    """Take every free coordinate that is zero out of F. Returns the new size of F."""
    for k in range(p - 1, -1, -1):
        if a[free[k]] == 0.0:
            p = _leave(R, V, free, p, k)
    return p


@njit(nogil=True)
def _append_pivot(R, V, p, pivot):
    """Complete the new column p of R, and R'^-1 1; returns the new size of F."""
    R[p, p] = pivot
    rest = 1.0
    for k in range(p):
        rest -= R[k, p] * V[ONES, k]
    V[ONES, p] = rest / pivot
    return p + 1


@njit(cache=True, nogil=True)
def _enter(G, n, kappa, a, r, R, V, free, p, j, d, u):
    """Bring coordinate j into F, at its present value. Returns the new size of F and how many left F for it.

    Where g_j is affinely dependent on F the factor has no column for it. The direction that trades a_j for the rest
    of F then has next to no curvature, and rounding may even make it negative: where the objective rises along it
    until a coordinate reaches zero, that one leaves, which ends the dependence; otherwise the curvature found along
    the direction itself, more accurate than the pivot, takes the pivot's place.
    """
    n_left = 0
    while True:
        diagonal = G[j, j] + kappa
        for k in range(p):
            d[k] = G[j, free[k]] + kappa
        _solve_lower(R, p, d)
        pivot = diagonal - _dot(d[:p], d[:p])
        free[p] = j
        for k in range(p):
            R[k, p] = d[k]
        if p == 0 or pivot > _PIVOT_TRUSTED * diagonal:
            return _append_pivot(R, V, p, np.sqrt(max(pivot, 1e-300))), n_left

        _solve_upper(R, p, d)
        for k in range(p):
            d[k] = -d[k]
        d[p] = 1.0
        if not _balance(d, p + 1):
            return p, n_left
        for i in range(n):
            u[i] = 0.0
        for k in range(p + 1):
            _add(d[k], G[free[k], :n], u)
        slope = 0.0
        curvature = 0.0
        for k in range(p + 1):
            i = free[k]
            slope += d[k] * r[i]
            curvature += d[k] * u[i]
        if slope < 0.0:
            slope = -slope
            for k in range(p + 1):
                d[k] = -d[k]
            for i in range(n):
                u[i] = -u[i]
        step = _longest_step(a, free, p + 1, d)
        if slope < curvature * step:
            return _append_pivot(R, V, p, np.sqrt(curvature)), n_left
        _move(a, free, p + 1, d, step)
        for i in range(n):
            r[i] -= step * u[i]
        p_before = p
        p = drop_zeros(a, R, V, free, p)
        n_left += p_before - p
        if a[j] == 0.0 or p == p_before:
            return p, n_left


@njit(nogil=True)
def _maximise_over_free(a, r, R, V, free, p, d):
    """Move to the maximum over F; what reaches zero on the way leaves F. Needs r on F.

    The direction is d = G'_FF^-1 (r_F - mu 1) with mu such that sum(d) = 0. A step of length s leaves
    r_F = (1 - s) r_F + s mu 1, hence R'^-1 r_F needs no new solve. Returns the new size of F and how many left it.
    """
    mean = 0.0
    for k in range(p):
        mean += r[free[k]] / p
    for k in range(p):
        d[k] = r[free[k]] - mean
    _solve_lower(R, p, d)
    for k in range(p):
        V[RESIDUAL, k] = d[k]
    n_left = 0
    while True:
        ones = V[ONES, :p]
        mu = _dot(V[RESIDUAL, :p], ones) / _dot(ones, ones)
        for k in range(p):
            V[RESIDUAL, k] -= mu * V[ONES, k]
            d[k] = V[RESIDUAL, k]
        _solve_upper(R, p, d)
        if not _balance(d, p):
            return p, n_left
        step = min(1.0, _longest_step(a, free, p, d))
        _move(a, free, p, d, step)
        for k in range(p):
            V[RESIDUAL, k] *= 1.0 - step
        p_before = p
        p = drop_zeros(a, R, V, free, p)
        n_left += p_before - p
        if step == 1.0 or p == p_before:
            return p, n_left


@njit(nogil=True)
def _make_feasible(a, n, C):
    """Clip at zero, scale down to sum C where the cuts' multipliers exceed it, and give the rest to the slack."""
    total = 0.0
    for j in range(1, n):
        a[j] = max(a[j], 0.0)
        total += a[j]
    if total > C * (1.0 - _SUM_ROUNDING):
        a[SLACK] = 0.0
        for j in range(1, n):
            a[j] *= C / total
    else:
        a[SLACK] = C - total


@njit(nogil=True)
def _all_free(a, n, p):
    """Whether no positive coordinate is outside F."""
    n_positive = 0
    for j in range(n):
        if a[j] > 0.0:
            n_positive += 1
    return n_positive == p


@njit(nogil=True)
def _enter_all(G, n, kappa, a, r, R, V, free, p, best, d, u):
    """Bring `best` and every positive coordinate into F. Returns the new size of F and the number of changes of F."""
    inside = np.zeros(n, np.bool_)
    for k in range(p):
        inside[free[k]] = True
    n_pivots = 0
    for j in range(n):
        if (a[j] > 0.0 or j == best) and not inside[j]:
            p, n_left = _enter(G, n, kappa, a, r, R, V, free, p, j, d, u)
            n_pivots += 1 + n_left
    return p, n_pivots


@njit(nogil=True)
def _gradient(G, h, a, n, largest, r):
    """Write r = h - G a.

    Returns the scale max(|h|, |G a|), and the rounding error that r can have: by Cauchy-Schwarz, |G| a is at most
    sqrt(largest G_jj) sum_k a_k sqrt(G_kk).
    """
    for j in range(n):
        r[j] = 0.0
    reach = 0.0
    for j in range(n):
        if a[j] > 0.0:
            reach += a[j] * np.sqrt(max(G[j, j], 0.0))
            _add(a[j], G[j, :n], r)
    scale = 1e-300
    for j in range(n):
        scale = max(scale, abs(h[j]), abs(r[j]))
        r[j] = h[j] - r[j]
    return scale, _ROUNDING * (scale + np.sqrt(largest) * reach)


@njit(nogil=True)
def _kkt(a, r, n, scale):
    """Multiplier xi = max(r) of the constraint, and the largest xi - r_j over a_j > 0 relative to the scale."""
    xi = r[0]
    for j in range(1, n):
        xi = max(xi, r[j])
    worst = 0.0
    for j in range(n):
        if a[j] > 0.0:
            worst = max(worst, xi - r[j])
    return xi, worst / scale


@njit(cache=True, nogil=True)
def maximise_on_simplex(G, h, n, C, kappa, tol, max_pivots, a, R, V, free, p):
    """Maximise h'a - 1/2 a'G a over a >= 0, sum(a) = C from a warm start, by the active set described above.

    Parameters
    ----------
    G : float64 array, at least (n, n)
        Symmetric; its first n rows and columns count. Row and column `SLACK` are zero.
    h : float64 array, at least (n,)
        `h[SLACK]` is zero.
    n, C : int, float
        Number of coordinates, the slack included, and their sum, positive.
    kappa : float
        The constant added to G in the factor; the largest G_jj whenever a factor is begun.
    tol, max_pivots : float, int
        Largest KKT residual to stop at, and largest number of changes of F.
    a : float64 array, at least (n,)
        In: any start; it is made feasible. Out: the solution.
    R, V : float64 arrays, at least (n, n) and (2, n)
        In and out: upper triangular factor of G'_FF; in row `ONES` R'^-1 1, the other is working space.
    free, p : int64 array, at least (n,), and int
        In and out: the coordinates in F, in the order of R's columns, and how many; 0 where there is no factor yet.

    Returns
    -------
    p, kappa, xi, kkt, n_pivots : int, float, float, float, int
        `p` and `kappa` go with R; the rest is what `slimsvm.numerics.qp.QPSolution` says.
    """
    r = np.empty(n)
    d = np.empty(n + 1)
    u = np.empty(n + 1)
    _make_feasible(a, n, C)
    largest = 0.0
    for j in range(n):
        largest = max(largest, G[j, j])
    p = drop_zeros(a, R, V, free, p)
    n_pivots = 0
    n_refinements = 0
    while True:
        scale, noise = _gradient(G, h, a, n, largest, r)
        if n_pivots >= max_pivots:
            break
        allowed = max(tol * scale, noise)
        lowest = np.inf
        highest = -np.inf
        for k in range(p):
            lowest = min(lowest, r[free[k]])
            highest = max(highest, r[free[k]])
        best = -1
        if highest - lowest > allowed and n_refinements < _MAX_REFINEMENTS:
            n_refinements += 1
            if n_refinements == _MAX_REFINEMENTS:
                p = 0
        elif _all_free(a, n, p):
            n_refinements = 0
            for j in range(n):
                if a[j] == 0.0 and (best < 0 or r[j] > r[best]):
                    best = j
            if best < 0 or r[best] <= highest + allowed:
                break
        if p <= 1 and largest > 0.0:
            p = 0
            kappa = largest
        p, n_changes = _enter_all(G, n, kappa, a, r, R, V, free, p, best, d, u)
        n_pivots += n_changes
        p, n_changes = _maximise_over_free(a, r, R, V, free, p, d)
        n_pivots += n_changes
    xi, kkt = _kkt(a, r, n, scale)
    return p, kappa, xi, kkt, n_pivots


@njit(cache=True, nogil=True)
def keep_only(G, h, a, free, p, keep):
    """Move the coordinates in `keep` (increasing) to the front, in place; F must hold no other."""
    position = np.empty(len(h), np.int64)
    for k in range(len(keep)):
        position[keep[k]] = k
        h[k] = h[keep[k]]
        a[k] = a[keep[k]]
        for i in range(len(keep)):
            G[k, i] = G[keep[k], keep[i]]
    for k in range(p):
        free[k] = position[free[k]]

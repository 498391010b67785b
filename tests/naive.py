"""Slow truths: each function is the plainest way to compute what the library computes fast."""

import itertools
from collections import Counter

import numpy as np
from threadpoolctl import threadpool_limits

from slimsvm.kernels import KERNELS


def simplex_qp(G, h, C):
    """Best a of max h'a - 1/2 a'G a, a >= 0, sum(a) <= C: the stationary point of every face is tried."""
    t = len(h)
    best, best_value = np.zeros(t), 0.0
    for size in range(1, t + 1):
        for face in itertools.combinations(range(t), size):
            face = list(face)
            inner = np.linalg.lstsq(G[np.ix_(face, face)], h[face])[0]
            bordered = np.ones((size + 1, size + 1))
            bordered[:size, :size] = G[np.ix_(face, face)]
            bordered[size, size] = 0.0
            outer = np.linalg.lstsq(bordered, np.append(h[face], C))[0][:size]
            for part in (inner, outer):
                a = np.zeros(t)
                a[face] = part
                feasible = (a >= 0).all() and a.sum() <= C * (1 + 1e-9)
                if feasible and h @ a - 0.5 * a @ G @ a > best_value:
                    best, best_value = a, h @ a - 0.5 * a @ G @ a
    return best


# ---- losses, by writing out every labelling of an example
#
# `options(y)` gives all labellings of one example in order (lowest labels first) as (delta (L,), coef (L, rows, m),
# plain (L, p)): what each of them would add to the objective, delta - <coef, scores> - <plain, v>.


def _option_arrays(options, n_rows, m, p=0):
    delta = np.array([option[0] for option in options], dtype=float)
    coef = np.array([option[1] for option in options], dtype=float).reshape(len(options), n_rows, m)
    plain = np.array([option[2] if p else [] for option in options], dtype=float).reshape(len(options), p)
    return delta, coef, plain


def binary_options(y, cost_negative=1.0, cost_positive=1.0):
    """Guess -1, guess +1 for one row of label y."""
    cost = cost_positive if y > 0 else cost_negative
    return _option_arrays([(cost * (guess != y), [[y / 2 - guess / 2]]) for guess in (-1, 1)], 1, 1)


def multiclass_options(y, cost):
    """Every class in turn for one row of class y."""
    unit = np.eye(len(cost))
    return _option_arrays([(cost[y][c], [unit[y] - unit[c]]) for c in range(len(cost))], 1, len(cost))


def regression_options(y, epsilon):
    """The target lies inside the tube, above it, below it."""
    return _option_arrays([(0, [[0]]), (y - epsilon, [[1]]), (-y - epsilon, [[-1]])], 1, 1)


def quantile_options(y, q):
    """The target lies above the quantile, below it."""
    return _option_arrays([(q * y, [[q]]), ((q - 1) * y, [[q - 1]])], 1, 1)


def chain_features(labels, k):
    """Emissions (rows, k) and counts of transitions (k * k,) of one labelled sequence."""
    counts = np.zeros((k, k))
    np.add.at(counts, (labels[:-1], labels[1:]), 1)
    return np.eye(k)[labels], counts.ravel()


def chain_options(y, k):
    """Every sequence of labels; Hamming loss."""
    emissions, counts = chain_features(np.array(y), k)
    options = []
    for guess in itertools.product(range(k), repeat=len(y)):
        other, other_counts = chain_features(np.array(guess), k)
        options.append((np.sum(np.array(guess) != y), emissions - other, counts - other_counts))
    return _option_arrays(options, len(y), k, k * k)


def all_rows_options(y, loss):
    """Every labelling of all rows at once; `loss(y, guess)` in [0, 1]."""
    options = []
    for guess in itertools.product((-1, 1), repeat=len(y)):
        options.append((loss(np.array(y), np.array(guess)), (np.array(y) - guess)[:, None] / (2 * len(y))))
    return _option_arrays(options, len(y), 1)


def error_rate(y, guess):
    """Share of wrong labels."""
    return np.mean(y != guess)


def f1_loss(y, guess):
    """1 - F1; no positive anywhere is faultless."""
    both = np.sum((y > 0) & (guess > 0))
    either = np.sum(y > 0) + np.sum(guess > 0)
    return 1 - 2 * both / either if either else 0.0


def option_values(options, scores, plain):
    """delta - <coef, scores> - <plain, v> of every labelling."""
    delta, coef, plain_part = options
    return delta - np.einsum("lrm,rm->l", coef, scores) - plain_part @ plain


# ---- kernels and the whole problem


def additive_matrix(kernel, X, Z):
    """The sum of terms, each by the formula of its family."""
    d = X.shape[1]
    widths = [1] * d if kernel.widths is None else list(kernel.widths)
    m, gamma = len(widths), np.broadcast_to(kernel.gamma, d)
    shares = np.ones(m) if kernel.shares is None else kernel.shares
    family = KERNELS[kernel.family]
    value, at = kernel.interaction * kernel_matrix(family(gamma), X, Z), 0
    for share, width in zip(shares / np.sum(shares), widths, strict=True):
        own = slice(at, at + width)
        of_term = kernel_matrix(family(m * gamma[own]), X[:, own], Z[:, own])
        value, at = value + (1 - kernel.interaction) * share * of_term, at + width
    return value


def kernel_matrix(kernel, X, Z):
    """k(x_i, z_j) as the formulas have it."""
    if kernel.name == "precomputed":
        return np.asarray(X, float)[:, np.asarray(Z, int).ravel()]
    X, Z = np.asarray(X, float), np.asarray(Z, float)
    if kernel.name == "callable":
        return np.asarray(kernel.function(X, Z))
    if kernel.name == "additive":
        return additive_matrix(kernel, X, Z)
    gamma, difference = np.asarray(getattr(kernel, "gamma", 1.0)), X[:, None, :] - Z
    if kernel.name == "rbf":
        return np.exp(-np.sum(gamma * difference**2, axis=2))
    if kernel.name == "matern32":
        s = np.sqrt(6 * np.sum(gamma * difference**2, axis=2))
        return (1 + s) * np.exp(-s)
    if kernel.name == "rational_quadratic":
        return 1 / (1 + np.sum(gamma * difference**2, axis=2))
    if kernel.name == "laplacian":
        return np.exp(-np.sum(gamma * np.abs(difference), axis=2))
    if kernel.name == "poly":
        return (gamma * (X @ Z.T) + kernel.coef0) ** kernel.degree
    if kernel.name == "sigmoid":
        return np.tanh(gamma * (X @ Z.T) + kernel.coef0)
    return X @ Z.T


def objective(K_basis, K_rows, coef, intercept, plain, examples, C):
    """1/2 |w|^2 + sum C_e loss_e of a kernel expansion.

    `examples`: list of (rows, options, weight); K_basis (k, k), K_rows (n, k), coef (k, m).
    """
    norm = np.sum(coef * (K_basis @ coef)) + np.sum(np.square(intercept)) + np.sum(np.square(plain))
    scores = K_rows @ coef + intercept
    losses = [weight * option_values(options, scores[rows], plain).max() for rows, options, weight in examples]
    return norm / 2 + C * sum(losses)


@threadpool_limits.wrap(limits=1)  # many small solves: threads would only wait for each other
def optimum(K, examples, C, intercept=True, tol=1e-10):
    """(primal, dual) of min 1/2 |w|^2 + sum C_e loss_e, the smallest and largest seen: the answer proves itself.

    The dual, max c'z - 1/2 z'H z over z >= 0 with sum of z over an example's labellings <= C_e, by an interior-point
    method: Newton's steps on the KKT conditions with complementarity relaxed to a mu that goes to zero.
    """
    n, m = len(K), examples[0][1][1].shape[2]
    K = K + 1.0 if intercept else K
    c, D, V, group = [], [], [], []
    for e, (rows, (delta, coef, plain), _) in enumerate(examples):
        for j in np.flatnonzero(coef.any(axis=(1, 2)) | plain.any(axis=1)):
            full = np.zeros((n, m))
            full[rows] = coef[j]
            c.append(delta[j]), D.append(full), V.append(plain[j]), group.append(e)
    if not c:  # no labelling differs from the truth: w = 0
        return 0.0, 0.0
    c, D, V, group = np.array(c), np.array(D), np.array(V), np.array(group)
    KD = np.einsum("ij,ljm->lim", K, D, optimize=True)
    H = D.reshape(len(D), -1) @ KD.reshape(len(D), -1).T + V @ V.T
    u = C * np.array([weight for _, _, weight in examples])
    G = (group == np.arange(len(u))[:, None]).astype(float)
    z = (u / (2 * np.maximum(G.sum(axis=1), 1)))[group]
    s, t, lam = np.ones(len(z)), u - G @ z, np.ones(len(u))
    primal, dual = np.inf, -np.inf
    for _ in range(60):
        mu = 0.1 * (z @ s + t @ lam) / (len(z) + len(t))
        r_z, r_t = c - H @ z - G.T @ lam + s, u - G @ z - t
        system = H + np.diag(s / z) + G.T @ ((lam / t)[:, None] * G)
        scale = np.sqrt(np.diag(system))
        system = system / np.outer(scale, scale) + 1e-14 * np.eye(len(z))
        dz = np.linalg.solve(system, (r_z + mu / z - s - G.T @ ((mu - lam * r_t) / t - lam)) / scale) / scale
        dt = r_t - G @ dz
        ds, dlam = mu / z - s - s * dz / z, mu / t - lam - lam * dt / t
        step = 1.0
        for value, change in ((z, dz), (s, ds), (t, dt), (lam, dlam)):
            if (change < 0).any():
                step = min(step, 0.99 * np.min(-value[change < 0] / change[change < 0]))
        z, s, t, lam = z + step * dz, s + step * ds, t + step * dt, lam + step * dlam
        feasible = z * np.minimum(1, u / np.maximum(G @ z, 1e-300))[group]
        norm, scores, plain = feasible @ H @ feasible, np.einsum("l,lim->im", feasible, KD), feasible @ V
        losses = [ue * option_values(o, scores[rows], plain).max() for (rows, o, _), ue in zip(examples, u)]
        dual, primal = max(dual, c @ feasible - norm / 2), min(primal, norm / 2 + sum(losses))
        if primal - dual <= tol * max(abs(primal), 1e-9):
            break
    return primal, dual


def pivoted_cholesky(K, rank, tolerance):
    """Pivots and factor of the greedy pivoted Cholesky factorisation of a whole matrix K, largest residual first."""
    n = len(K)
    residual, pivots = K.astype(np.float64).copy(), []
    factor = np.zeros((n, 0))
    stop = tolerance * np.diagonal(K).max()
    while len(pivots) < min(rank, n):
        diagonal = np.diagonal(residual).copy()
        diagonal[pivots] = -np.inf
        p = int(np.argmax(diagonal))
        if diagonal[p] <= stop:
            break
        pivots.append(p)
        column = residual[:, p] / np.sqrt(diagonal[p])
        factor = np.column_stack([factor, column])
        residual = residual - np.outer(column, column)
    return np.array(pivots), factor


# ---- losses over all rows


def f_beta_loss(y, guess, beta):
    """1 - F_beta; no positive anywhere is faultless."""
    both, either = np.sum((y > 0) & (guess > 0)), beta**2 * np.sum(y > 0) + np.sum(guess > 0)
    return 1 - (1 + beta**2) * both / either if either else 0.0


def at_k_options(y, k=None, recall=False):
    """Every labelling with k(number of rows) positives (None: as many as there are), and the truth."""
    y = np.array(y)
    k = int(np.sum(y > 0)) if k is None else k(len(y))
    options = []
    for guess in itertools.product((-1, 1), repeat=len(y)):
        guess = np.array(guess)
        if np.sum(guess > 0) == k or (guess == y).all():
            both = np.sum((y > 0) & (guess > 0))
            loss = 0 if (guess == y).all() and np.sum(guess > 0) != k else 1 - both / (np.sum(y > 0) if recall else k)
            options.append((loss, (y - guess)[:, None] / (2 * len(y))))
    return _option_arrays(options, len(y), 1)


def ranking_options(y):
    """Every choice of pairs of a positive and a negative row that are swapped; share of swapped pairs."""
    y = np.array(y)
    pairs = [(i, j) for i in np.flatnonzero(y > 0) for j in np.flatnonzero(y < 0)]
    options = []
    for order in itertools.product((-1, 1), repeat=len(pairs)):
        coef = np.zeros((len(y), 1))
        for (i, j), label in zip(pairs, order):
            coef[i] += (1 - label) / 2 / len(pairs)
            coef[j] -= (1 - label) / 2 / len(pairs)
        options.append((np.mean(np.array(order) < 0), coef))
    return _option_arrays(options, len(y), 1)


def bounded_chain_options(y, k, zero_one=False):
    """Every sequence of labels with transitions, start and end counted; Hamming or 0/1 loss."""
    y = np.array(y)

    def features(labels):
        emissions, counts = chain_features(np.array(labels), k)
        return emissions, np.concatenate([counts, np.eye(k)[labels[0]], np.eye(k)[labels[-1]]])

    emissions, counts = features(y)
    options = []
    for guess in itertools.product(range(k), repeat=len(y)):
        other, other_counts = features(guess)
        wrong = np.sum(np.array(guess) != y)
        options.append((min(wrong, 1) if zero_one else wrong, emissions - other, counts - other_counts))
    return _option_arrays(options, len(y), k, k * k + 2 * k)


def edited_nearest_neighbours(X, y, k):
    """Wilson's rule row by row: stay unless another class has more of the k nearest others."""
    kept = []
    for i in range(len(X)):
        distance = np.linalg.norm(X - X[i], axis=1)
        distance[i] = np.inf
        votes = Counter(y[j] for j in np.argsort(distance, kind="stable")[:k])
        if all(votes[c] <= votes[y[i]] for c in votes):
            kept.append(i)
    return kept


def condensed(X, y, order):
    """Hart's rule as written: pass after pass over the rows that are not in the store."""
    store = [order[0]]
    added = True
    while added:
        added = False
        for i in order:
            if i not in store:
                nearest = min(store, key=lambda j: np.linalg.norm(X[j] - X[i]))
                if y[nearest] != y[i]:
                    store.append(i)
                    added = True
    return sorted(store)


# ---- rankings of queries


def swap_options(y):
    """Every choice of pairs of rows of unequal grades that are swapped; share of swapped pairs."""
    y = np.array(y)
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    options = []
    for order in itertools.product((1, 0), repeat=len(pairs)):
        coef = np.zeros((len(y), 1))
        for (i, j), swapped in zip(pairs, order):
            coef[i] += swapped / len(pairs)
            coef[j] -= swapped / len(pairs)
        options.append((sum(order) / max(1, len(pairs)), coef))
    return _option_arrays(options, len(y), 1)


def average_precision(ranked):
    """AP of 0/1 relevances in their order."""
    return np.mean([np.mean(ranked[: i + 1]) for i in range(len(ranked)) if ranked[i]])


def average_precision_options(y):
    """Every order of the rows; 1 - AP."""
    y = np.array(y) > 0
    n_pairs = y.sum() * (~y).sum()
    if not n_pairs:
        return _option_arrays([(0, np.zeros((len(y), 1)))], len(y), 1)
    options = []
    for order in itertools.permutations(range(len(y))):
        coef = np.zeros((len(y), 1))
        for place, j in enumerate(order):
            for i in order[place + 1 :]:
                if y[i] and not y[j]:
                    coef[i] += 1 / n_pairs
                    coef[j] -= 1 / n_pairs
        options.append((1 - average_precision(y[list(order)]), coef))
    return _option_arrays(options, len(y), 1)


# ---- several labels, ordered classes


def multilabel_options(y):
    """Every choice of labels of one row; the number of wrong ones."""
    y = np.array(y)
    guesses = [np.array(guess) for guess in itertools.product((-1, 1), repeat=len(y))]
    return _option_arrays([(np.sum(guess != y), [(y - guess) / 2]) for guess in guesses], 1, len(y))


def ordinal_options(y, n_classes):
    """Every choice of sides of the thresholds, for one row of class y; the number on the wrong side."""
    sides = np.where(y > np.arange(n_classes - 1), 1, -1)
    guesses = [np.array(guess) for guess in itertools.product((-1, 1), repeat=n_classes - 1)]
    options = [(np.sum(guess != sides), [[np.sum(sides - guess) / 2]], (guess - sides) / 2) for guess in guesses]
    return _option_arrays(options, 1, 1, n_classes - 1)


# ---- losses with two derivatives: (y, f) -> the loss, its slope and its curvature in f


def _logistic(y, f):
    p = 1 / (1 + np.exp(np.minimum(y * f, 700.0)))
    return np.logaddexp(0.0, -y * f), -y * p, p * (1 - p)


def _squared_hinge(y, f):
    left = np.maximum(0.0, 1 - y * f)
    return left**2, -2 * y * left, 2.0 * (left > 0)


def _squared(y, f):
    return 0.5 * (y - f) ** 2, f - y, np.ones_like(f)


def _huber(y, f, epsilon=0.5):
    r = f - y
    kept = np.clip(r, -epsilon, epsilon)
    return kept * r - 0.5 * kept**2, kept, 1.0 * (np.abs(r) <= epsilon)


def _poisson(y, f):
    with np.errstate(over="ignore"):
        mean = np.exp(f)
    return mean - y * f + y * np.log(np.maximum(y, 1e-300)) - y, mean - y, mean


SMOOTH_LOSSES = {
    "logistic": _logistic,
    "squared_hinge": _squared_hinge,
    "squared": _squared,
    "huber": _huber,
    "poisson": _poisson,
}


def features_of(K):
    """Features φ with φφ' = K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def smooth_optimum(loss, features, y, row_C, intercept):
    """min ½‖w‖² + Σ C_i ℓ(y_i, ⟨w, φ_i⟩ + b), by Newton's method with a halved step."""
    formula, norm = SMOOTH_LOSSES[loss], np.ones(features.shape[1])
    if intercept != "none":
        norm = np.append(norm, float(intercept == "regularized"))
        features = np.column_stack([features, np.ones(len(y))])
    w = np.zeros(len(norm))

    def value(w):
        return 0.5 * norm @ w**2 + row_C @ formula(y, features @ w)[0]

    for _ in range(500):
        _, slope, bend = formula(y, features @ w)
        gradient = norm * w + features.T @ (row_C * slope)
        hessian = np.diag(np.maximum(norm, 1e-12)) + features.T @ ((row_C * bend)[:, None] * features)
        step = np.linalg.solve(hessian, -gradient)
        if loss == "poisson":  # exponentials beyond float64 tell nothing
            step *= min(1.0, 20.0 / np.abs(features @ step).max())
        if (share := share_of_step(value, w, step)) == 0:
            break
        w = w + share * step
    return value(w)


def share_of_step(value, w, step):
    """The first of 1, ½, ¼, … of a step that lowers the value; 0 if none does."""
    now, share = value(w), 1.0
    while share > 1e-12 and not value(w + share * step) < now:
        share *= 0.5
    return share if share > 1e-12 else 0.0


def softmax_optimum(features, codes, row_C, intercept):
    """min ½‖W‖² + Σ C_i [log Σ_c exp(s_ic) − s_iy], s = φ W (and b, regularised), by the same method."""
    if intercept == "regularized":
        features = np.column_stack([features, np.ones(len(codes))])
    k, at = codes.max() + 1, np.arange(len(codes))
    W = np.zeros((features.shape[1], k))

    def value(W):
        scores = features @ W
        return 0.5 * np.sum(W**2) + row_C @ (np.logaddexp.reduce(scores, axis=1) - scores[at, codes])

    for _ in range(500):
        scores = features @ W
        p = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
        gradient = W + features.T @ (row_C[:, None] * (p - np.eye(k)[codes]))
        bend = row_C[:, None, None] * (p[:, :, None] * np.eye(k) - p[:, :, None] * p[:, None])
        hessian = np.einsum("ia,ib,icd->acbd", features, features, bend, optimize=True).reshape(W.size, W.size)
        step = np.linalg.solve(hessian + np.eye(W.size), -gradient.ravel()).reshape(W.shape)
        if (share := share_of_step(value, W, step)) == 0:
            break
        W = W + share * step
    return value(W)

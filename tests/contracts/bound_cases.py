"""Random problems with far rows, near-duplicates, offsets and wild weights, and primal values that a bound is held to.

A primal value of any function is above the optimum, so that no bound may be above it. Values are those of the model
itself and of scikit-learn's, both with the best free intercept, summed up in longdouble.
"""

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn import svm

from slimsvm import BSCA, CPSP, SVC, SVR

LONG = np.longdouble
# What longdouble sums up otherwise than float64.
ROUNDING = 1e-9
N_PROBLEMS = 300
KERNELS = ("linear", "poly", "rbf")
# Solvers with a bound, and what they want beside. Those of a budget bound the optimum by their dual variables.
SOLVERS = {
    "auto": {},
    "exact": {"intercept": "regularized"},
    "exact-cuts": {"intercept": "regularized"},
    "exact-cuts none": {"intercept": "none"},
    "lasvm": {"intercept": "free"},
    "lasvm regularized": {"intercept": "regularized"},
    "bcfw": {"intercept": "regularized"},
    "bsca": {"intercept": "regularized", "solver": BSCA(max_basis=50, maintenance="project")},
    "bsca of all rows": {"intercept": "regularized", "solver": BSCA(max_basis=4000, maintenance="project")},
    "cpsp": {"intercept": "regularized", "solver": CPSP(max_basis=30, preimage="training-rows")},
    "refine": {"intercept": "regularized", "max_basis": 30},
    "regression": {},
}
WILD_ROWS = ("far rows", "far column", "near-duplicates", "offset", "far cluster", "ordinary")
WILD_WEIGHTS = ("one", "several", "C", "none")


def wild_rows(rng, kind, n, d):
    """Rows and targets; the classes are the signs of the targets."""
    X = rng.normal(size=(n, d))
    target = X[:, 0] + 0.7 * rng.normal(size=n)
    size = 10.0 ** rng.uniform(2, 6)
    if kind == "far rows":
        X[rng.choice(n, 7, replace=False)] *= size
    elif kind == "far column":
        X[:, -1] = np.where(rng.random(n) < 0.003, size, 0.0)
    elif kind == "near-duplicates":
        i, j = rng.choice(n, 2, replace=False)
        X[i] *= size / np.linalg.norm(X[i])
        X[j] = X[i] + rng.normal(size=d)
        target[i], target[j] = 1.0, -1.0
    elif kind == "offset":
        X += min(size, 1e5)
    elif kind == "far cluster":
        X[: n // 20] += size
    return X, target


def problem(seed, sizes, max_iter):
    """Estimator, rows, targets, weights, and what it is."""
    rng = np.random.default_rng(seed)
    names = sorted(SOLVERS)
    name, kernel = names[seed % len(names)], KERNELS[seed // len(names) % len(KERNELS)]
    kind, weighting = rng.choice(WILD_ROWS), rng.choice(WILD_WEIGHTS)
    n, d = int(rng.integers(*sizes)), int(rng.integers(2, 6))
    X, target = wild_rows(rng, kind, n, d)
    weights, C = np.ones(n), float(10.0 ** rng.uniform(-1, 1))
    if weighting == "one":
        weights[rng.integers(n)] = 10.0 ** rng.uniform(4, 12)
    elif weighting == "several":
        weights[rng.choice(n, 5, replace=False)] = 10.0 ** rng.uniform(2, 12, 5)
    elif weighting == "C":
        C = float(10.0 ** rng.uniform(2, 4))
    shape = {"kernel": kernel, "C": C, "degree": int(rng.integers(1, 4)), "gamma": float(10.0 ** rng.uniform(-2, 0))}
    shape |= {"coef0": 1.0, "random_state": 0, "n_jobs": 1, "max_iter": max_iter, "max_seconds": 20}
    if name == "regression":
        estimator = SVR(**shape)
    else:
        estimator = SVC(**shape | {"solver": name.split()[0]} | SOLVERS[name])
        target = np.where(target > 0, 1.0, -1.0)
    said = f"{seed}: {name}, {kernel}, {kind}, weights {weighting}, n={n}, d={d}, C={C:.3g}"
    return estimator, X, target, weights, said


def values(kernel, X, Z):
    """k(x, z) by its formula, in longdouble."""
    X, Z = X.astype(LONG), Z.astype(LONG)
    if kernel["kernel"] == "rbf":
        return np.exp(-LONG(kernel["gamma"]) * sum((X[:, [c]] - Z[:, c]) ** 2 for c in range(X.shape[1])))
    inner = sum(X[:, [c]] * Z[:, c] for c in range(X.shape[1]))
    if kernel["kernel"] == "linear":
        return inner
    return (LONG(kernel["gamma"]) * inner + LONG(kernel["coef0"])) ** kernel["degree"]


def losses(scores, target, epsilon):
    """Hinge losses, or those of a tube."""
    if epsilon is None:
        return np.maximum(0, 1 - target * scores)
    return np.maximum(0, np.abs(target - scores) - epsilon)


def best_intercept(scores, target, row_C, epsilon):
    """A free intercept with the least loss: where the slopes of the losses change sign."""
    if epsilon is None:
        ends, steps = target - scores, row_C
    else:
        ends = np.concatenate([target - scores - epsilon, target - scores + epsilon])
        steps = np.concatenate([row_C, row_C])
    falling = row_C[target > 0].sum() if epsilon is None else row_C.sum()
    order = np.argsort(ends)
    slopes = np.cumsum(steps[order]) - falling
    return ends[order[min(int(np.searchsorted(slopes, 0)), len(order) - 1)]]


def primal_value(estimator, X, target, weights, basis, coef, intercept):
    """½‖w‖² + C Σ ω_i ℓ_i of an expansion, with its intercept or a better one where that is free."""
    kernel, basis = estimator.get_params(), basis.toarray() if sp.issparse(basis) else basis
    epsilon = kernel.get("epsilon") if isinstance(estimator, SVR) else None
    coef, target = np.asarray(coef, LONG), target.astype(LONG)
    row_C = LONG(kernel["C"]) * weights.astype(LONG)
    scores, norm = np.zeros(len(X), LONG), LONG(0)
    if basis.shape[0]:
        for lo in range(0, len(X), 500):
            scores[lo : lo + 500] = values(kernel, X[lo : lo + 500], basis) @ coef
        norm = max(LONG(0), coef @ values(kernel, basis, basis) @ coef)
    is_regularized = kernel.get("intercept", "auto") == "regularized"
    tried = [intercept]
    if kernel.get("intercept", "auto") in ("auto", "free"):
        tried.append(best_intercept(scores, target, row_C, epsilon))
    totals = [
        norm / 2 + is_regularized * LONG(b) ** 2 / 2 + row_C @ losses(scores + LONG(b), target, epsilon) for b in tried
    ]
    return float(totals[0]), float(min(totals))


def check(seed, sizes=(500, 4000), max_iter=300):
    """What is wrong with the fit of a problem: a list of sentences."""
    estimator, X, target, weights, said = problem(seed, sizes, max_iter)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, target, sample_weight=weights)
    words = [str(one.message) for one in caught]
    own, least = primal_value(
        estimator,
        X,
        target,
        weights,
        estimator.basis_vectors_,
        np.ravel(estimator.basis_coef_),
        float(np.ravel(estimator.intercept_)[0]),
    )
    is_sure = own <= 1e30 and estimator.kernel in ("rbf", "linear")
    has_budget = said.split(": ")[1].split(",")[0] in ("bsca", "cpsp", "refine")
    wrong = []
    if estimator.lower_bound_ is not None:
        if estimator.get_params().get("intercept", "auto") in ("auto", "free"):
            least = min(least, of_sklearn(estimator, X, target, weights))
        if estimator.lower_bound_ > least + ROUNDING * abs(least):
            wrong.append(f"{said}: lower_bound_ {estimator.lower_bound_!r} is above a model's {least!r}")
        gap = (estimator.objective_ - estimator.lower_bound_) / max(estimator.objective_, 1e-300)
        if estimator.status_ == "converged" and not has_budget and gap > 0.0101:
            wrong.append(f"{said}: converged with a gap of {gap:.3g}")
    if abs(estimator.objective_ - own) > 0.01 * abs(own) and not words and is_sure:
        wrong.append(f"{said}: objective_ {estimator.objective_!r} is really {own!r}")
    return wrong


def of_sklearn(estimator, X, target, weights):
    """Primal value of scikit-learn's estimator after at most as many steps as take a second."""
    names = ("kernel", "C", "degree", "gamma", "coef0")
    shape = {name: estimator.get_params()[name] for name in names} | {"max_iter": 20_000}
    other = svm.SVR(**shape) if isinstance(estimator, SVR) else svm.SVC(**shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(X, target, sample_weight=weights)
    coef = other.dual_coef_[0]
    return primal_value(estimator, X, target, weights, X[other.support_], coef, float(other.intercept_[0]))[1]

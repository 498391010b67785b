"""No bound is above the objective of a model, whatever rounding does: the truth is summed up in longdouble."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contracts.solver_cases import problem_of
from slimsvm import BSCA, LASVM, SVC, SVR, OneClassSVM
from slimsvm.kernels import RBF, CallableKernel, KernelRows, Laplacian, Linear, Polynomial
from slimsvm.parts.rounding import DualPoint, RoundingErrors, sure_value
from slimsvm.solvers import SOLVERS

LONG = np.longdouble


def rows(seed, n=60, d=3, offset=0.0):
    """Overlapping classes; offsets are multiples of what float64 has left, so that rows shifted are the same rows."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)) * 64) / 64
    y = (X[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(int)
    return X + offset, y


def truth(X, y, C, solver_intercept):
    """Objective in longdouble of a linear SVM near the optimum: no bound may be above it.

    The SVM (w, b) of the rows unshifted is (w, b − ⟨w, shift⟩) of the shifted ones; its intercept, where that has a
    penalty, is what is left of the search along the shift.
    """
    shift = np.round(X.mean(axis=0))
    near = X - shift
    clf = SVC(kernel="linear", C=C, solver="exact", intercept="free", tol=1e-9).fit(near, y)
    w, b = (clf.basis_vectors_.T @ clf.basis_coef_)[:, 0].astype(LONG), LONG(clf.intercept_[0])
    sign = np.where(y > 0, 1, -1)
    if solver_intercept == "free":
        loss = np.maximum(0, 1 - sign * (near.astype(LONG) @ w + b)).sum()
        return float(w @ w / 2 + C * loss)
    # The least change of w that makes its intercept right: along (shift, 1).
    far = np.append(shift, 1.0).astype(LONG)
    u = np.append(w, LONG(0)) + far * ((b - w @ far[:-1]) / (far @ far))
    if solver_intercept == "none":
        far = far[:-1]
        if not far.any():
            return np.inf
        u = np.append(w + far * ((b - w @ far) / (far @ far)), LONG(0))
    loss = np.maximum(0, 1 - sign * (near.astype(LONG) @ u[:-1] + (shift.astype(LONG) @ u[:-1] + u[-1]))).sum()
    return float(u @ u / 2 + C * loss)


def fit_quietly(estimator, X, *y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, *y)


BOUNDING = {
    "exact": "free", "lasvm": "free", "exact regularized": "regularized", "lasvm regularized": "regularized",
    "bcfw": "regularized", "bsca": "regularized", "exact-cuts": "none",
}  # fmt: skip


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e6, 1e7, 1e8])
@pytest.mark.parametrize("name", sorted(BOUNDING))
def test_rows_far_from_the_origin(name, offset):
    solver, intercept = name.split()[0], BOUNDING[name]
    X, y = rows(0, offset=offset)
    least = truth(X, y, 1.0, intercept)
    clf = SVC(kernel="linear", solver=solver, intercept=intercept, max_iter=200, random_state=0)
    if solver == "bsca":
        clf.set_params(max_basis=100)
    fit_quietly(clf, X, y)
    assert clf.lower_bound_ <= least
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = clf.certificate(X, y)
    assert certificate.lower_bound <= least
    if offset <= 1e3 and solver != "bcfw":
        assert clf.lower_bound_ >= 0.98 * min(least, clf.objective_)


def test_doubt_is_said():
    X, y = rows(0, offset=1e7)
    with pytest.warns(match="kernel values as large as .*e\\+14 leave the dual value of .* in doubt, the bound is"):
        SVC(kernel="linear", solver="exact", intercept="free", max_iter=200).fit(X, y)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    offset=st.sampled_from([0.0, 1.0, 1e2, 1e4, 1e6, 1e8]),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    name=st.sampled_from(sorted(BOUNDING)),
    precision=st.sampled_from(["float64", "float32"]),
)
def test_no_bound_is_above_a_model(seed, offset, C, name, precision):
    X, y = rows(seed, n=30, offset=offset)
    if len(np.unique(y)) < 2:
        return
    solver, intercept = name.split()[0], BOUNDING[name]
    clf = SVC(kernel="linear", C=C, solver=solver, intercept=intercept, precision=precision, max_iter=50)
    clf.set_params(random_state=0, **({"max_basis": 50} if solver == "bsca" else {}))
    fit_quietly(clf, X, y)
    assert clf.lower_bound_ is None or clf.lower_bound_ <= truth(X, y, C, intercept)


# ---- the sums themselves


KERNELS = {"rbf": RBF(0.3), "narrow": RBF(30.0), "linear": Linear(), "poly": Polynomial(3, 0.5, 1.0)}


def long_sum(kernel, X, V):
    """Σ_ij V_i k(x_i, x_j) V_j in longdouble."""
    X, V = X.astype(LONG), V.astype(LONG)
    if isinstance(kernel, RBF):
        K = np.exp(-LONG(kernel.gamma) * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    elif isinstance(kernel, Linear):
        K = X @ X.T
    else:
        K = (LONG(kernel.gamma) * (X @ X.T) + LONG(kernel.coef0)) ** kernel.degree
    return np.sum(V * (K @ V))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    name=st.sampled_from(sorted(KERNELS)),
    dtype=st.sampled_from(["float32", "float64"]),
    offset=st.sampled_from([0.0, 3.0, 1e3, 1e6]),
    spread=st.sampled_from([0.1, 1.0, 30.0]),
    n_far=st.integers(0, 2),
)
def test_a_sum_in_doubt_is_not_under_the_truth(seed, name, dtype, offset, spread, n_far):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4)) * spread + offset
    X[:n_far] *= 1e4
    V = rng.normal(size=(40, 2)) * rng.choice([0.01, 1.0, 50.0], size=(40, 1))
    V -= V.mean(axis=0)
    kernel_rows = KernelRows(KERNELS[name], X, dtype=dtype, n_jobs=1)
    with np.errstate(invalid="ignore", over="ignore"):
        seen = float(np.sum(V * kernel_rows.scores(kernel_rows.points(np.arange(40)), V)))
    assume(np.isfinite(seen))  # numbers beyond float32 are refused before any solver sees them
    total = long_sum(KERNELS[name], X, V)
    assert -2.0 * sure_value(kernel_rows, DualPoint(np.arange(40), V, 0.0, seen)) >= total


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_every_pair_of_rows_counts(name, form):
    """Two far rows among many are all there is to the sum: float32 and a sample of the rows miss them."""
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(1200, 4)), rng.normal(size=(1200, 1)) * 0.01
    X[600] *= 1e3 / np.linalg.norm(X[600])
    X[900] = X[600] + 0.1 * rng.normal(size=4)
    V[[600, 900], 0] = 1.0, -1.0
    kernel_rows = KernelRows(KERNELS[name], X if form == "dense" else sp.csr_array(X), dtype=np.float32, n_jobs=1)
    seen = float(np.sum(V * kernel_rows.scores(kernel_rows.points(np.arange(1200)), V).astype(float)))
    total = float(long_sum(KERNELS[name], X, V))
    upper = -2.0 * sure_value(kernel_rows, DualPoint(np.arange(1200), V, 0.0, seen))
    room = 1e-6 if name in ("rbf", "narrow", "linear") else np.inf
    assert total <= upper <= total + room * abs(total)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_ordinary_rows_lose_next_to_nothing(kernel):
    X = np.random.default_rng(0).normal(size=(500, 20))
    kernel_rows = KernelRows(KERNELS[kernel], X, dtype=np.float64, n_jobs=1)
    V = np.random.default_rng(1).normal(size=(500, 1))
    total = float(np.sum(V * kernel_rows.scores(kernel_rows.points(np.arange(500)), V)))
    assert RoundingErrors(kernel_rows).of(V) <= 1e-7 * total


@pytest.mark.parametrize("kernel", [*KERNELS.values(), Laplacian(0.3), CallableKernel(lambda X, Z: X @ Z.T)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["dense", "far", "sparse"])
def test_the_most_in_doubt_is_no_less_than_what_is(kernel, dtype, form):
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(50, 4)), np.zeros((50, 1))
    X[1 if form == "far" else 50 :] *= 1e9
    kernel_rows = KernelRows(kernel, sp.csr_array(X) if form == "sparse" else X, dtype=dtype, n_jobs=1)
    V[np.argmax(RoundingErrors(kernel_rows).size)] = 2.0  # what is in doubt of the farthest row is the most of all
    found, most = RoundingErrors(kernel_rows).of(V), RoundingErrors(kernel_rows).most * 2.0**2
    assert found <= (1 + 1e-12) * most <= 1.01 * found


@pytest.mark.parametrize("solver", ["exact", "lasvm", "bcfw", "exact-cuts"])
def test_float32_costs_no_tightness(solver):
    problem, _, _ = problem_of("binary", n=200, precision="float32", C=10.0, tol=1e-4)
    if solver == "lasvm":
        fit = LASVM(tol_relative=1e-3).solve(problem)
    else:
        fit = SOLVERS[solver]().solve(problem)
    assert fit.lower_bound <= fit.objective
    assert fit.objective - fit.lower_bound <= 0.011 * fit.objective


def test_bounds_of_other_problems():
    """Regression and one class, several classes by pairs, a basis of all rows: the same rule."""
    X, y = rows(3, n=90, offset=1e6)
    target = X[:, 1] - 1e6
    near = X - 1e6
    far, same = (fit_quietly(SVR(kernel="linear", solver="exact", intercept="free"), Z, target) for Z in (X, near))
    assert far.lower_bound_ <= same.objective_ * (1 + 1e-9)
    classes = y + (target > 0.5)
    pairs = [
        fit_quietly(SVC(kernel="linear", solver="exact", multi_class="ovo", intercept="free"), Z, classes)
        for Z in (X, near)
    ]
    assert pairs[0].lower_bound_ <= pairs[1].objective_ * (1 + 1e-9)
    one = fit_quietly(OneClassSVM(gamma=0.5, nu=0.3), near)
    assert one.lower_bound_ <= one.objective_
    whole = BSCA(max_basis=200).solve(problem_of("multiclass", n=60)[0])
    assert whole.lower_bound <= whole.objective
    assert whole.objective - whole.lower_bound <= 1e-4 * whole.objective


@pytest.mark.parametrize("solver", ["exact-cuts", "bsca"])
def test_few_rows_keep_their_tight_bound(solver):
    X, y = rows(1, n=200)
    clf = SVC(gamma=0.5, solver=solver, max_basis=300 if solver == "bsca" else None).fit(X, y)
    assert clf.objective_ - clf.lower_bound_ <= 1e-8 * clf.objective_

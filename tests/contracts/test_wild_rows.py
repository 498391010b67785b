"""No bound is above a model's primal value, and "converged" is said of narrow gaps only: far rows, wild weights."""

import warnings

import numpy as np
import pytest

from contracts.bound_cases import LONG, N_PROBLEMS, SOLVERS, check, losses, primal_value
from slimsvm import SVC, SVR, OneClassSVM, OrdinalSVC, RankSVM


@pytest.mark.parametrize("number", [k + len(SOLVERS) * (k % 3) for k in range(len(SOLVERS))])
def test_no_bound_is_above_a_model(number):
    assert check(number, sizes=(100, 300), max_iter=20) == []


@pytest.mark.full
@pytest.mark.parametrize("number", range(N_PROBLEMS))
def test_no_bound_is_above_a_model_of_many_rows(number):
    assert check(number) == []


def fit(estimator, *data, **more):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator.fit(*data, **more)
    return estimator, [str(one.message) for one in said]


def many_rows(kind, n=2100):
    """More rows than are float64 by their number; a few are far."""
    rng = np.random.default_rng(5)
    X = np.c_[rng.normal(size=(n, 3)), np.zeros(n)]
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1, -1)
    far = rng.choice(n, 4, replace=False)
    if kind == "far rows":
        X[far, 3] = 1e5
    elif kind == "one far row":
        X[far[0]] *= 1e6
    else:
        X[far[0]] = [1e4, 1e4, 1e4, 0.0]
        X[far[1]] = X[far[0]] + [0.1, -0.1, 0.0, 0.0]
        y[far[0]], y[far[1]] = 1, -1
    return X, y


MANY = {
    "linear": SVC(kernel="linear"),
    "poly": SVC(kernel="poly", degree=1, gamma=1.0),
    "exact-cuts": SVC(kernel="linear", solver="exact-cuts", intercept="none"),
    "lasvm": SVC(kernel="linear", solver="lasvm", intercept="free", random_state=0),
    "regression": SVR(kernel="linear"),
}


@pytest.mark.parametrize("kind", ["far rows", "one far row", "near-duplicates"])
@pytest.mark.parametrize("name", sorted(MANY))
def test_a_few_far_rows_among_many(name, kind):
    """The upper bound is the model's own value by explicit weights."""
    X, y = many_rows(kind)
    model, said = fit(MANY[name].set_params(max_iter=50), X, y)
    w = model.basis_vectors_.T @ model.basis_coef_
    w = np.asarray(w, LONG)[:, 0]
    epsilon = 0.1 if name == "regression" else None
    own = float(w @ w / 2 + losses(X.astype(LONG) @ w + LONG(np.ravel(model.intercept_)[0]), y, epsilon).sum())
    assert model.lower_bound_ <= own * (1 + 1e-9)
    assert model.objective_ == pytest.approx(own, rel=1e-3) or said
    assert model.precision_ == "float64"


@pytest.mark.parametrize("precision", ["auto", "float32"])
@pytest.mark.parametrize("name", ["own", "precomputed", "clusters"])
def test_kernels_whose_largest_value_a_sample_misses(name, precision):
    """Rows of two far clusters have a median distance that is large: only the sums tell that float32 is too coarse."""
    X, y = many_rows("near-duplicates")
    X /= 3.0
    if name == "clusters":
        X = X[:, :3] + np.where(np.arange(len(X)) % 2, 3e3, -3e3)[:, None]
    clf = SVC(kernel="linear", precision=precision, max_iter=50)
    rows = X
    if name == "own":
        clf.set_params(kernel=lambda A, B: A @ B.T)
    elif name == "precomputed":
        clf.set_params(kernel="precomputed")
        rows = X @ X.T
    model, said = fit(clf, rows, y)
    w = X[model.support_].astype(LONG).T @ np.asarray(model.dual_coef_[0], LONG)
    scores = X.astype(LONG) @ w + LONG(model.intercept_[0])
    own = float(w @ w / 2 + clf.C * losses(scores, y, None).sum())
    assert model.lower_bound_ <= own * (1 + 1e-9)
    assert model.objective_ == pytest.approx(own, rel=1e-3)
    assert model.precision_ == ("float64" if precision == "auto" else "float32")
    assert model.gap_ <= 1e-3 or (model.status_ != "converged" and (said or model.gap_ <= 0.01))


def ranks(X):
    return (X[:, 0] > 0) * 1 + (X[:, 1] > 0.5)


HEAVY = {
    "classes": (SVC(gamma=0.3), lambda X: X[:, 2] + 0.5 * X[:, 0] > 0),
    "regularized": (SVC(gamma=0.3, solver="exact", intercept="regularized"), lambda X: X[:, 2] > 0),
    "three classes": (SVC(gamma=0.3), ranks),
    "crammer-singer": (SVC(gamma=0.3, multi_class="crammer-singer", solver="exact-cuts", max_iter=200), ranks),
    "lasvm": (SVC(gamma=0.3, solver="lasvm", intercept="free", random_state=0), lambda X: X[:, 2] > 0),
    "bcfw": (SVC(gamma=0.3, solver="bcfw", intercept="none", max_iter=50), lambda X: X[:, 2] > 0),
    "targets": (SVR(gamma=0.3), lambda X: X[:, 0]),
    "large targets": (SVR(gamma=0.3, C=1e3), lambda X: 1e10 * X[:, 0]),
    "one class": (OneClassSVM(gamma=0.3), None),
    "ordinal": (OrdinalSVC(gamma=0.3, max_iter=200), ranks),
}


@pytest.mark.parametrize("n_heavy", [1, 3])
@pytest.mark.parametrize("name", sorted(HEAVY))
def test_converged_is_said_of_a_narrow_gap(name, n_heavy):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 2] = X[:, 0] + 0.8 * rng.normal(size=60)
    weights = np.ones(60)
    weights[:n_heavy] = 1e12
    estimator, target = HEAVY[name]
    data = (X,) if target is None else (X, target(X))
    model, said = fit(estimator, *data, sample_weight=weights)
    gap = model.objective_ - model.lower_bound_
    assert gap >= 0
    assert gap <= 0.0101 * abs(model.objective_) or (model.status_ != "converged" and said)


@pytest.mark.parametrize("precision", ["auto", "float32"])
@pytest.mark.parametrize("solver", ["exact", "lasvm"])
def test_the_objective_is_the_model_s_own_where_a_loss_of_a_millionth_is_dear(solver, precision):
    rng = np.random.default_rng(281)
    X = rng.normal(size=(2100, 4))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=2100) > 0, 1.0, -1.0)
    weights = np.ones(2100)
    weights[rng.choice(2100, 5, replace=False)] = 10.0 ** rng.uniform(6, 11, 5)
    clf = SVC(gamma=0.1, C=0.2, solver=solver, intercept="regularized", precision=precision, random_state=0)
    model, said = fit(clf, X, y, sample_weight=weights)
    own, _ = primal_value(model, X, y, weights, model.basis_vectors_, np.ravel(model.basis_coef_), model.intercept_[0])
    assert model.lower_bound_ <= own
    assert model.objective_ == pytest.approx(own, rel=1e-3)
    assert model.gap_ <= 0.0101 or (said and model.status_ != "converged")


@pytest.mark.parametrize("C", [1e6, 1e10])
def test_large_C(C):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.8 * rng.normal(size=60) > 0
    for estimator in (SVC(gamma=0.3, C=C), SVC(gamma=0.3, class_weight={True: C, False: 1.0})):
        model, said = fit(estimator, X, y)
        assert model.gap_ <= 0.0101 or (model.status_ != "converged" and said)
    query = np.repeat(np.arange(6), 10)
    model, said = fit(RankSVM(gamma=0.3, C=C, max_iter=100), X, ranks(X), groups=query)
    assert model.gap_ <= 0.0101 or (model.status_ != "converged" and said)


def test_one_heavy_row_leaves_no_gap():
    """The intercept is the one that gives the heavy row no loss."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model, said = fit(
        SVC(gamma=0.3), X, X[:, 0] + 0.8 * rng.normal(size=60) > 0, sample_weight=np.r_[1e12, np.ones(59)]
    )
    assert not said
    assert model.gap_ <= 1e-3
    assert model.status_ == "converged"


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_an_objective_that_is_rounding_is_in_doubt(degree, offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + 0.7 * rng.normal(size=150) > 0
    model, said = fit(SVC(kernel="poly", degree=degree, max_iter=20), X + offset, y)
    assert model.gap_ <= 1e-3 or (said and model.status_ != "converged")
    assert model.lower_bound_ <= 150.0


@pytest.mark.parametrize("largest", [1e8, 1e12])
@pytest.mark.parametrize("name", ["labels", "ordered", "cuts", "several", "pursuit"])
def test_cuts_end_where_rounding_moves_the_bound_up_and_down(name, largest):
    """Rows of a huge weight among others: some of these went on for ever, without a better bound or model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    t = X[:, 0] + 0.3 * rng.normal(size=90)
    weights = np.where(np.arange(90) % 7 == 0, largest, 1.0)
    estimator, y = {
        "labels": (SVC(), np.stack([t > 0, t > 0.5], axis=1).astype(int)),
        "ordered": (OrdinalSVC(), np.digitize(t, [-0.6, 0.6])),
        "cuts": (SVC(solver="exact-cuts"), t > 0),
        "several": (SVC(solver="exact-cuts", multi_class="crammer-singer"), np.digitize(t, [-0.6, 0.6])),
        "pursuit": (SVC(solver="cpsp", max_basis=20, random_state=0), t > 0),
    }[name]
    estimator.set_params(max_iter=20_000)
    fitted, said = fit(estimator, X, y, sample_weight=weights)
    assert fitted.status_ in ("converged", "gap above tolerance")
    assert fitted.status_ == "converged" or said
    assert fitted.lower_bound_ is None or fitted.lower_bound_ <= fitted.objective_


def ranks_of(t):
    return np.digitize(t, [-0.4, 0.4])


DEAR = {
    "classes at once": (SVC(multi_class="crammer-singer", gamma=0.1, C=3.0), ranks_of, 7),
    "ordered": (OrdinalSVC(gamma=0.1), ranks_of, 0),
    "ordered, heavier": (OrdinalSVC(gamma=0.1), ranks_of, 5),
    "cuts": (SVC(solver="exact-cuts", gamma=0.1, C=10.0), lambda t: t > 0, 1),
    "sampled cuts": (
        SVC(kernel="linear", solver="violated-cuts", multi_class="ovr", precision="float32", random_state=0),
        ranks_of,
        1,
    ),
    "pairs": (SVC(gamma=0.3, precision="float32", multi_class="ovo"), ranks_of, 6),
}


@pytest.mark.parametrize("name", sorted(DEAR))
def test_the_objective_is_the_model_s_own_where_scores_are_sums_of_large_numbers(name):
    estimator, target, seed = DEAR[name]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    y = target(X[:, 0] + 0.5 * rng.normal(size=60))
    weights = np.ones(60)
    weights[rng.choice(60, 5, replace=False)] = 10.0 ** rng.uniform(6, 12, 5)
    model, said = fit(estimator.set_params(max_iter=2000), X, y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = model.certificate(X, y, sample_weight=weights, max_seconds=0.1).objective
    assert model.objective_ == pytest.approx(own, rel=1e-3)
    assert model.lower_bound_ is None or model.lower_bound_ <= own
    if model.lower_bound_ is not None and own - model.lower_bound_ > 0.0101 * own:
        assert model.status_ != "converged"
        assert said

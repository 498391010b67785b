"""Two classes of sparse rows with the linear kernel, by sweeps: the exact SVM's optimum, whatever the intercept."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as Theirs
from sklearn.svm import LinearSVC

from slimsvm import SVC, Exact
from slimsvm.kernels import Linear
from slimsvm.parts.dual_ascent.sweeps import Root, SweepRun, SweepSettings
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary


def text(n=2500, d=4000, seed=0, dtype=np.float64, share=0.4):
    """Rows of some 20 words, and two classes that overlap."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=20 / d, format="csr", rng=rng, dtype=dtype)
    score = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n)
    return X, np.where(score > np.quantile(score, 1 - share), 1, -1)


def problem_of(X, y, weights=None, **options):
    task = Binary()
    options = {"intercept": "free", "n_jobs": 1} | options
    return Problem(as_rows(X), task.encode(y, weights), task, Linear(), **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_optimum_of_pairs_of_rows(C, intercept, dtype):
    X, y = text(dtype=dtype)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(y))
    problem = problem_of(X, y, weights, C=C, intercept=intercept, precision="float64")
    assert isinstance(Exact().start(problem), SweepRun)
    ours, pairs = Exact().solve(problem), Exact(1024).solve(replace(problem, tol=1e-5))
    assert ours.status == "converged"
    assert ours.lower_bound <= pairs.objective * (1 + 1e-9)
    assert ours.objective == pytest.approx(pairs.objective, rel=1e-3)
    assert ours.objective >= pairs.lower_bound * (1 - 1e-9)
    assert ours.objective - ours.lower_bound <= 1e-3 * ours.objective
    v = ours.state.v * y
    assert (v >= 0).all()
    assert (v <= C * weights * (1 + 1e-12)).all()
    if intercept == "free":
        assert abs(ours.state.v.sum()) <= 1e-9 * v.sum()
    assert np.abs(ours.model.scores(X) - pairs.model.scores(X)).max() < 0.05


def test_finer_tolerances_come_nearer():
    X, y = text()
    exact = Exact(1024).solve(problem_of(X, y, tol=1e-6, precision="float64"))
    gaps = [
        Exact().solve(problem_of(X, y, tol=tol, precision="float64")).objective - exact.lower_bound
        for tol in (1e-1, 1e-3, 1e-6)
    ]
    assert gaps[2] < 1e-4 * exact.objective
    assert gaps[2] <= gaps[0]


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_scikit_learns_estimators(share):
    X, y = text(share=share)
    free = SVC(kernel="linear", tol=1e-5, precision="float64").fit(X, y)
    theirs = Theirs(kernel="linear", tol=1e-5).fit(X, y)
    np.testing.assert_allclose(free.decision_function(X), theirs.decision_function(X), atol=5e-3)
    np.testing.assert_allclose(free.intercept_, theirs.intercept_, atol=5e-3)
    ours = SVC(kernel="linear", intercept="regularized", tol=1e-5, precision="float64").fit(X, y)
    theirs = LinearSVC(loss="hinge", tol=1e-6, max_iter=20_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)


def test_where_sweeps_take_too_many_pairs_of_rows_go_on():
    X, y = text()
    problem = problem_of(X, y, C=5.0, precision="float64")
    fit = Exact().solve(replace(problem, settings=(SweepSettings(most_sweeps=20, call_work=1),)))
    assert fit.status == "converged"
    assert "n_active" in fit.history[-1]
    assert "sweeps" in fit.history[0]
    assert fit.objective == pytest.approx(Exact().solve(problem).objective, rel=1e-3)


def test_rows_without_values_and_classes_far_apart():
    X, y = text(2100)
    X = sp.csr_array(X.multiply((np.arange(2100) % 7 > 0)[:, None]))
    clf = SVC(kernel="linear").fit(X, y)
    assert clf.status_ == "converged"
    assert clf.gap_ < 1e-3
    Z = sp.csr_array(np.where(np.arange(2100)[:, None] % 2, [[1.0, 0.0]], [[0.0, 1.0]]))
    far = SVC(kernel="linear", C=100.0).fit(Z, np.arange(2100) % 2)
    np.testing.assert_allclose(far.decision_function(Z), np.where(np.arange(2100) % 2, 1, -1), atol=1e-2)


def test_warm_starts_and_the_same_bits():
    X, y = text()
    problem = problem_of(X, y)
    fit = Exact().solve(problem)
    again = Exact().solve(replace(problem, C=1.1), state=fit.state)
    assert again.objective == pytest.approx(Exact().solve(replace(problem, C=1.1)).objective, rel=1e-3)
    np.testing.assert_array_equal(Exact().solve(replace(problem, n_jobs=2)).state.v, fit.state.v)


def test_a_limit_of_time_leaves_a_model():
    X, y = text(20_000, 30_000)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        fit = Exact().solve(problem_of(X, y, C=1e4, max_seconds=0.2))
    assert fit.status == "time limit"
    assert np.isfinite(fit.model.scores(X[:5])).all()


@pytest.mark.parametrize("value", [lambda x: 3 - x, lambda x: -np.expm1(x), lambda x: float(-np.sign(x) * abs(x) ** 3)])
def test_roots_of_falling_functions(value):
    root = Root(-4.0, -np.inf, np.inf, 2.0, 1.0)
    for _ in range(60):
        if root.is_met(value(root.x), 1e-9, 1e-12):
            break
    assert abs(value(root.x)) < 1e-6


def test_roots_beyond_the_range_are_its_ends():
    root = Root(0.5, 0.0, 1.0, np.inf, 1.0)
    while not root.is_met(2.0 - root.x, 1e-9, 1e-12):
        assert len(root.asked) < 60
    assert root.x == 1.0


def test_probabilities_are_those_of_dense_rows():
    """Rows at their bound are there still where one class has been scaled down for the balance."""
    X, y = text(900, 400)
    swept, dense = (SVC(kernel="linear", probability=True).fit(rows, y) for rows in (X, X.toarray()))
    assert "sweeps" in swept.history_[-1]
    np.testing.assert_allclose(swept.predict_proba(X), dense.predict_proba(X), atol=0.01)

"""slimsvm.path: the estimators of cold fits, in less work."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from slimsvm import SVC, SVR, Exact, OneClassSVM, path


def problem(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=n) > 0.2, 1, -1)


@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("estimator", [SVC, SVR])
def test_estimators_are_those_of_cold_fits_in_no_more_work(estimator, intercept):
    X, y = problem()
    y = y if estimator is SVC else X[:, 0] ** 2 + 0.1 * y
    Cs, gammas = [0.5, 1.0, 2.0, 4.0], [0.3, 0.6]
    template = estimator(solver="exact", intercept=intercept, tol=1e-6)
    found = path(template, X, y, C=Cs, gamma=gammas)
    assert [(m.gamma, m.C) for m in found] == [(gamma, C) for gamma in gammas for C in Cs]
    work = np.zeros(2)
    for clf in found:
        cold = estimator(solver="exact", intercept=intercept, tol=1e-6, C=clf.C, gamma=clf.gamma).fit(X, y)
        assert clf.lower_bound_ == pytest.approx(cold.lower_bound_, rel=1e-6)
        np.testing.assert_allclose(clf.predict(X), cold.predict(X), atol=1e-3)
        assert clf.warm_start is False
        work += len(clf.history_), len(cold.history_)
    assert not hasattr(template, "model_")
    # All 400 rows fit one working set here, for three or four iterations: none can be saved, and hardly any be added.
    assert work[0] <= 1.03 * work[1] + 0.5 * len(found)


def test_along_epsilon_too():
    X, y = problem(200)
    y = X[:, 0] ** 2 + 0.1 * y
    found = path(SVR(tol=1e-6), X, y, C=[1.0, 2.0], gamma=[0.3, 0.6], epsilon=[0.01, 0.1])
    grid = [(epsilon, gamma, C) for epsilon in (0.01, 0.1) for gamma in (0.3, 0.6) for C in (1.0, 2.0)]
    assert [(m.epsilon, m.gamma, m.C) for m in found] == grid
    for clf in found:
        cold = SVR(tol=1e-6, C=clf.C, gamma=clf.gamma, epsilon=clf.epsilon).fit(X, y)
        np.testing.assert_allclose(clf.predict(X), cold.predict(X), atol=1e-3)
    with pytest.raises(ValueError, match="SVC has no parameter epsilon"):
        path(SVC(), X, y > 1, epsilon=[0.1])


def test_warm_starts_are_what_it_is_for():
    X, y = problem(1500)
    grid = 2.0 ** np.arange(-1, 4, 0.5)
    template = SVC(solver=Exact(100), gamma=0.5, tol=1e-4)
    warm = sum(clf.n_iter_ for clf in path(template, X, y, C=grid))
    cold = sum(path(template, X, y, C=[C])[0].n_iter_ for C in grid)
    assert warm < 0.8 * cold


def test_weights_and_one_class():
    X, y = problem(200)
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0], 200)
    found = path(SVC(solver="exact", tol=1e-6), X, y, C=[1.0, 3.0], sample_weight=weights)
    cold = SVC(solver="exact", tol=1e-6, C=3.0).fit(X, y, sample_weight=weights)
    assert found[1].lower_bound_ == pytest.approx(cold.lower_bound_, rel=1e-6)
    assert [m.gamma for m in path(OneClassSVM(nu=0.3), X, gamma=[0.1, 1.0])] == [0.1, 1.0]


def test_refusals():
    X, y = problem(40)
    with pytest.raises(ValueError, match="warm_start, found object"):
        path(object_with_params(), X, y)
    with pytest.raises(ValueError, match="OneClassSVM has no parameter C"):
        path(OneClassSVM(), X, C=[1.0])
    with pytest.raises(ValueError, match="gamma must hold at least one number, found none"):
        path(SVC(), X, y, gamma=[])
    with pytest.raises(ValueError, match="C"):
        path(SVC(), X, y, C=[-1.0])


def object_with_params():
    return type("object", (LogisticRegression,), {"get_params": lambda self, deep=True: {}})()

"""The exact solver and LASVM end at a limit of their own, which prices like 1e10 come to."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from slimsvm import LASVM, SVC, SVR, Exact, OneClassSVM
from slimsvm.datasets import checkerboard
from slimsvm.solvers.decomposition import dual


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(dual, "MOST_STEPS", 200)
    monkeypatch.setattr(dual, "MOST_STEPS_PER_ROW", 1)


def noisy(n=150):
    """Rows of which a tenth have the wrong label."""
    X, y = checkerboard(n, random_state=0)
    return X, np.where(np.random.default_rng(0).random(n) < 0.1, -y, y)


def test_the_limit_grows_with_the_rows():
    assert dual.limit_reached(1_999_999, 100) is None
    assert dual.limit_reached(2_000_000, 100) == "limit of 2,000,000 steps"
    assert dual.limit_reached(2_000_000, 5000) is None
    assert dual.limit_reached(5_000_000, 5000) == "limit of 5,000,000 steps"


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("solver", [Exact(), Exact(working_set_size=20), LASVM()], ids=["exact", "small-sets", "lasvm"])
def test_a_fit_without_end_ends_with_a_warning_and_a_model(solver, intercept, few_steps):
    X, y = noisy()
    clf = SVC(solver=solver, C=1e10, gamma=10.0, intercept=intercept, random_state=0)
    with pytest.warns(ConvergenceWarning, match=re.escape("limit of 200 steps")) as warned:
        clf.fit(X, y)
    assert "lower C or a larger tol" in str(warned[0].message)
    assert clf.status_ == "iteration limit"
    assert np.isfinite(clf.decision_function(X)).all()
    assert 0 < clf.lower_bound_ <= clf.objective_ < np.inf


def test_pairs_of_classes_say_how_many_came_to_it(few_steps, monkeypatch):
    monkeypatch.setattr(dual, "AT_ONCE", 0)
    X, y = noisy()
    y = np.where(X[:, 0] > np.quantile(X[:, 0], 0.95), 2, y)  # a class that is easily told
    clf = SVC(solver="exact", multi_class="ovo", C=1e10, gamma=10.0, random_state=0)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ConvergenceWarning)
        clf.fit(X, y)
    assert re.search("limit of steps for [123] of 3 pairs of classes", str(warned[-1].message))
    assert clf.status_ == "iteration limit"
    assert len(clf.history_) == 3
    assert np.isfinite(clf.decision_function(X)).all()


def test_regression_and_one_class(few_steps):
    X, y = noisy()
    with pytest.warns(ConvergenceWarning, match="limit of 200 steps"):
        reg = SVR(solver="exact", C=1e10, epsilon=0.0, gamma=1.0).fit(X, y + X[:, 0])
    assert np.isfinite(reg.predict(X)).all()
    with pytest.warns(ConvergenceWarning, match="limit of 300 steps"):
        one = OneClassSVM(nu=0.5, gamma=10.0, tol=1e-10).fit(np.vstack([X, X + 0.1]))
    assert np.isfinite(one.decision_function(X)).all()

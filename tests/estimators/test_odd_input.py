"""Odd input that is allowed: every solver has a defined answer, never NaN."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from input_for_tests import BOTH, problem, refused
from kernel_cases import NO_DERIVATIVE
from slimsvm import SVC, SVR, NuSVR, OneClassSVM, UniformCuts, ViolatedCuts
from slimsvm.estimators import ESTIMATORS
from slimsvm.kernels import RBF
from slimsvm.solvers import SOLVERS
from tasks_for_tests import NOT_FOR, TWO_CLASSES

EVERY_SOLVER = pytest.mark.parametrize("solver", sorted(SOLVERS))
EVERY_FIT = pytest.mark.parametrize(
    ("name", "solver"),
    [(name, solver) for name in sorted(ESTIMATORS) for solver in sorted(set(SOLVERS) - NOT_FOR[name])],
)


def defined(name, solver, X, y, **parameters):
    """Finite predictions (a warning that a limit was reached may come with them); the fitted estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = ESTIMATORS[name](solver=solver, random_state=0, max_iter=100, **parameters).fit(X, y)
    output = estimator.decision_function(X) if name == "SVC" else estimator.predict(X)
    assert np.isfinite(output).all()
    assert np.isfinite(estimator.objective_)
    if name == "SVC":
        assert set(estimator.predict(X)) <= set(y)
    if estimator.lower_bound_ is not None:
        assert estimator.lower_bound_ <= estimator.objective_
    return estimator


@EVERY_FIT
@pytest.mark.parametrize("C", [1e-10, 1e10])
def test_extreme_C(name, solver, C):
    X, y = problem(name)
    estimator = defined(name, solver, X, y, C=C, gamma=0.5)
    if C < 1:
        assert np.ptp(estimator.model_.scores(X)) < 1e-6
    elif solver == "exact-cuts":
        assert estimator.score(X, y) > 0.98


@EVERY_FIT
@pytest.mark.parametrize("gamma", [1e-12, 1e12])
def test_extreme_gamma(name, solver, gamma):
    X, y = problem(name)
    estimator = defined(name, solver, X, y, gamma=gamma)
    if gamma > 1 and name == "SVC" and solver == "exact-cuts":
        assert estimator.score(X, y) == 1


@EVERY_FIT
@pytest.mark.turns("kernel")
@pytest.mark.parametrize("kernel", ["sigmoid", "poly", "laplacian", "linear"])
def test_other_kernels(name, solver, kernel):
    """The sigmoid kernel is not positive semidefinite: the answer is defined, if no optimum."""
    X, y = problem(name)
    parameters = {"gamma": 0.1}
    if SOLVERS[solver]().get_params().get("preimage") == "fixed-point":
        solver = SOLVERS[solver](preimage="training-rows")
    if solver == "refine" and kernel == "laplacian":
        fit = lambda: ESTIMATORS[name](solver=solver, kernel=kernel).fit(X, y)  # noqa: E731
        refused(fit, NO_DERIVATIVE, "Laplacian")
        return
    defined(name, solver, X, y, kernel=kernel, **parameters)


@EVERY_FIT
def test_constant_columns_and_duplicate_rows(name, solver):
    X, y = problem(name)
    X[:, 1] = 7.0
    defined(name, solver, X, y)
    twice = np.vstack([X, X])
    defined(name, solver, twice, np.concatenate([y, y]))
    if name == "SVC":
        contradictory = defined(name, solver, twice, np.concatenate([y, 1 - y]))
        assert np.abs(contradictory.decision_function(twice)).max() < 1.0


@EVERY_FIT
@pytest.mark.turns("X")
@pytest.mark.parametrize(
    "X", [np.zeros((20, 2)), np.full((20, 2), 1e8), sp.csr_array((20, 3))], ids=["0", "1e8", "CSR"]
)
def test_rows_that_are_all_equal(name, solver, X):
    y = problem(name, n=20)[1]
    for kernel in ("rbf", "linear"):
        if kernel == "linear" and SOLVERS[solver]().get_params().get("preimage") == "fixed-point":
            continue
        estimator = defined(name, solver, X, y, kernel=kernel)
        assert np.ptp(estimator.model_.scores(X), axis=0).max() == 0


@EVERY_FIT
def test_two_rows(name, solver):
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    for C in (1.0, 1e6):
        estimator = defined(name, solver, X, y, gamma=1.0, C=C)
    if name == "SVC":
        assert estimator.predict(X).tolist() == [0, 1]


@BOTH
def test_one_row(name):
    if name == "SVC":
        refused(lambda: SVC().fit([[1.0]], [0]), "two classes")
    else:
        assert SVR().fit([[1.0]], [3.0]).predict([[1.0]]) == pytest.approx(3.0, abs=0.2)


@EVERY_SOLVER
def test_one_row_per_class(solver):
    X, y = np.eye(5), np.arange(5)
    if solver in TWO_CLASSES:
        refused(lambda: SVC(solver=solver).fit(X, y), "two-class problems", "OneVsOneClassifier")
        return
    estimator = defined("SVC", solver, X, y, C=100.0)
    if solver == "exact-cuts":
        assert estimator.predict(X).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.turns("name")
@BOTH
@pytest.mark.parametrize(
    "solver", [ViolatedCuts(sample_size=1), ViolatedCuts(5000), UniformCuts(1), UniformCuts(5000)], ids=repr
)
def test_more_samples_than_rows_and_one_alone(name, solver):
    X, y = problem(name)
    defined(name, solver, X, y)


@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - TWO_CLASSES))
def test_constant_targets(solver):
    X, _ = problem("SVR")
    for value in (0.0, 5.0, -1e9):
        estimator = defined("SVR", solver, X, np.full(40, value))
        np.testing.assert_allclose(estimator.predict(X), value)
        assert estimator.n_basis_ == 0 or solver == "cpsp"


@EVERY_FIT
def test_far_from_the_origin(name, solver):
    """Centring keeps the digits of what distinguishes the rows."""
    X, y = problem(name)
    near = defined(name, solver, X, y, gamma=0.5)
    far = defined(name, solver, X + 2.0**20, y, gamma=0.5)
    # CPSP may end a thousandth above the optimum in either place, by another path.
    assert far.objective_ == pytest.approx(near.objective_, rel=2e-3)


@pytest.mark.turns("name")
@BOTH
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_tiny_and_huge_features(name, scale):
    X, y = problem(name)
    usual = ESTIMATORS[name]().fit(X, y)
    scaled = ESTIMATORS[name]().fit(X * scale, y)
    assert scaled.objective_ == pytest.approx(usual.objective_, rel=1e-6)


@pytest.mark.parametrize("gamma", [0.5, "scale"])
def test_classes_of_very_different_size(gamma):
    X, y = problem(n=200)
    y[:] = 0
    y[17] = 1
    X[17] += 3
    for class_weight in (None, "balanced"):
        clf = SVC(gamma=gamma, class_weight=class_weight).fit(X, y)
        assert np.isfinite(clf.decision_function(X)).all()
    assert clf.predict(X)[17] == 1


def test_a_gamma_per_feature_with_tiny_entries():
    X, y = problem()
    assert np.isfinite(SVC(kernel=RBF((1e-300, 1.0, 1e-300))).fit(X, y).decision_function(X)).all()


@pytest.mark.parametrize("estimator", [SVR, NuSVR, OneClassSVM])
@pytest.mark.parametrize("rows", ["sparse", "function"])
def test_one_row_whatever_holds_it(estimator, rows):
    X, y = np.array([[1.0, 2.0]]), None if estimator is OneClassSVM else [3.0]
    estimator = estimator(kernel=lambda a, b: a @ b.T) if rows == "function" else estimator()
    estimator.fit(sp.csr_array(X) if rows == "sparse" else X, y)
    np.testing.assert_allclose(estimator.predict(X), y or [1.0])

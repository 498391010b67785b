"""Steps of a pursuit: how many vectors join at a time, what moves them, which are left out, and what they need."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from slimsvm import CPSP, SVC, SVR, ExactCuts, LowRank
from slimsvm.bases.preimage import sums_over
from slimsvm.datasets import checkerboard


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_weighted_sums_of_terms_do_not_depend_on_threads(wrap):
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((900, 7)).astype(np.float32)
    terms = (rng.standard_normal((900, 450)) * (rng.random((900, 450)) < 0.3)).astype(np.float32)
    sums = [sums_over(weights, wrap(terms), n_jobs) for n_jobs in (1, 4)]
    np.testing.assert_array_equal(*sums)
    np.testing.assert_allclose(sums[0], weights.T.astype(float) @ terms, atol=1e-3)


def test_many_vectors_at_a_time_while_there_are_few_and_few_at_the_end():
    X, y = make_classification(400, 20, n_informative=15, random_state=0)

    def added(max_basis, **settings):
        clf = SVC(solver=CPSP(max_basis, tol_relative=0.1, **settings), random_state=0).fit(X, y)
        return [record["n_added"] for record in clf.history_ if record["n_added"]]

    assert added(100) == [8] * 4 + [8, 10, 12] + [5] * 7 + [3]
    assert added(12) == [4, 4, 4]
    assert added(12, vectors_per_cut=6) == [6, 6]


@pytest.mark.parametrize("preimage", ["fixed-point", "training-rows"])
def test_vectors_that_depend_on_each_other_together_are_left_out(preimage):
    """Each independent enough of those before it, they came to coefficients of 1e11 and a norm that was rounding's."""
    X, y = checkerboard(400, random_state=0)
    X = X.astype(np.float64)
    options = {"C": 100.0, "gamma": 1.0, "random_state": 0}
    exact = SVC(solver=ExactCuts(), **options).fit(X, y)
    clf = SVC(solver=CPSP(500, preimage), **options).fit(X, y)
    basis, coef = (part.astype(np.longdouble) for part in (clf.basis_vectors_, clf.basis_coef_[:, 0]))
    norm = coef @ (np.exp(-np.sum((basis[:, None] - basis) ** 2, axis=2)) @ coef) + clf.intercept_ @ clf.intercept_
    hinge = np.maximum(0, 1 - np.where(y == clf.classes_[1], 1, -1) * clf.decision_function(X)).sum()
    assert clf.objective_ == pytest.approx(float(0.5 * norm + 100.0 * hinge), rel=1e-8)
    assert exact.lower_bound_ * (1 - 1e-9) <= clf.objective_ <= exact.objective_ * 1.001


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_kernel_values_that_do_not_fit_are_computed_again_to_the_same_bits(wrap, precision, n_classes):
    X, y = make_classification(600, 8, n_informative=5, n_classes=n_classes, random_state=0)
    X = wrap(X)
    fits = [
        SVC(solver=CPSP(30), precision=precision, memory_limit=megabytes, random_state=0).fit(X, y)
        for megabytes in (2000, 0.05)
    ]
    np.testing.assert_array_equal(fits[1].decision_function(X), fits[0].decision_function(X))
    assert fits[1].objective_ == fits[0].objective_
    assert fits[1].n_kernel_evals_ > 2 * fits[0].n_kernel_evals_


@pytest.mark.parametrize("max_iter", [1, 3, 10])
def test_full_steps_end_with_the_best_point_too(max_iter):
    X, y = make_classification(100, 5, random_state=0)
    solver = CPSP(20, method="cutting-planes", step="full")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = SVC(C=100.0, solver=solver, max_iter=max_iter, random_state=0).fit(X, y)
    assert clf.objective_ <= min(record["objective"] for record in clf.history_) * (1 + 1e-12)
    hinge = np.maximum(0, 1 - np.where(y == 1, 1, -1) * clf.decision_function(X)).sum()
    norm = clf.model_.norm_squared() + clf.intercept_ @ clf.intercept_
    assert clf.objective_ == pytest.approx(0.5 * norm + 100.0 * hinge, rel=1e-9)


@pytest.mark.parametrize(("X", "kernel"), [(np.eye(6), "rbf"), (np.zeros((6, 2)), "linear")], ids=["rows", "zeros"])
@pytest.mark.parametrize("solver", [
    CPSP(5, "gradient", method="cutting-planes", step="full", max_idle=1),
    CPSP(5, "gradient", sweeps=2, tol_relative=None),
], ids=["cuts", "newton"])  # fmt: skip
def test_nothing_is_learned_where_nothing_is_lost(solver, X, kernel):
    """Targets within the tube: no cut is ever active, there may be no vector to move, and all shares are of 0."""
    y = np.array([0.5, 0.25, 0.5, -0.5, -0.25, -0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reg = SVR(kernel=kernel, epsilon=1.0, solver=solver, precision="float64", random_state=0).fit(X, y)
    assert reg.objective_ == 0
    assert not reg.predict(X).any()


@pytest.mark.parametrize("max_iter", [2, 8, -1])
@pytest.mark.parametrize("C", [5e3, 1e6])
def test_a_large_C_is_the_one_that_counts(C, max_iter):
    """It is reached from lower ones, at which the fit once ended, with the objective there for its own."""
    X, y = make_classification(80, 4, flip_y=0.1, random_state=0)
    options = {"C": C, "gamma": 0.02, "random_state": 0, "max_iter": max_iter}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = SVC(solver=CPSP(80, "training-rows"), **options).fit(X, y)
        best = SVC(solver=LowRank(80), **options).fit(X, y)
    hinge = np.maximum(0, 1 - np.where(y == 1, 1, -1) * clf.decision_function(X)).sum()
    norm = clf.model_.norm_squared() + clf.intercept_ @ clf.intercept_
    assert clf.objective_ == pytest.approx(0.5 * norm + C * hinge, rel=1e-8)
    assert clf.history_[-1]["loss"] == pytest.approx(hinge / 80, rel=1e-6)
    assert clf.counters_["bound_in_basis"] <= clf.objective_
    if max_iter == -1:
        assert clf.status_ == "converged"
        assert clf.objective_ == pytest.approx(best.objective_, rel=1e-3)


def test_says_where_rounding_leaves_a_gap():
    X, y = make_classification(80, 4, flip_y=0.1, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match="CPSP ended with a gap of .* at an objective of .*: rounding allows no"
    ):
        clf = SVC(C=1e10, gamma=0.02, solver=CPSP(40), random_state=0).fit(X, y)
    assert np.isfinite(clf.decision_function(X)).all()
    assert clf.counters_["bound_in_basis"] < (1 - 1e-6) * clf.objective_

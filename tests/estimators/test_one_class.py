"""OneClassSVM: LIBSVM's optimum, scikit-learn's checks, weights, levels, files, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM as Theirs
from sklearn.utils.estimator_checks import check_estimator

import slimsvm
from slimsvm import Exact, OneClassSVM
from slimsvm.parts.dual_ascent.kernel_values import ValueSettings
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.solvers.exact import ExactSettings
from slimsvm.tasks import OneClass


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(n - n // 10, 2)), rng.uniform(-5, 5, size=(n // 10, 2))])


def value(estimator, X, gamma):
    """−½ α'Kα."""
    alpha = np.zeros(len(X))
    alpha[estimator.support_] = estimator.dual_coef_[0]
    return -0.5 * alpha @ rbf_kernel(X, gamma=gamma) @ alpha


def test_scikit_learns_checks_pass():
    check_estimator(OneClassSVM(), on_skip=None)


@pytest.mark.parametrize("seed", range(10))
def test_the_optimum_of_libsvm_with_weights(seed):
    rng = np.random.default_rng(seed)
    X, nu, gamma = rows(int(rng.integers(20, 200)), seed), rng.uniform(0.05, 0.95), 10 ** rng.uniform(-1.5, 0.5)
    weights = None if seed % 2 else rng.choice([0.5, 1.0, 2.0], len(X))
    theirs = Theirs(nu=nu, gamma=gamma, tol=1e-6).fit(X, sample_weight=weights)
    ours = OneClassSVM(nu=nu, gamma=gamma, tol=1e-5).fit(X, sample_weight=weights)
    assert ours.status_ == "converged"
    assert ours.lower_bound_ == pytest.approx(value(ours, X, gamma), rel=1e-9)
    assert ours.gap_ <= 1e-3
    if weights is None:  # scikit-learn scales weights otherwise
        assert value(ours, X, gamma) >= value(theirs, X, gamma) * (1 + 1e-6)
        assert ours.dual_coef_.sum() == pytest.approx(nu * len(X), rel=1e-9)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
        assert ours.offset_ == pytest.approx(theirs.offset_[0], abs=1e-3)
    else:
        assert ours.dual_coef_.sum() == pytest.approx(nu * weights.sum(), rel=1e-9)
        assert (ours.dual_coef_[0] <= weights[ours.support_] * (1 + 1e-12)).all()


def test_nu_bounds_the_shares_of_outliers_and_of_support_vectors():
    X = rows(1000)
    for nu in (0.05, 0.3, 0.8):
        clf = OneClassSVM(nu=nu, gamma=0.5, tol=1e-6).fit(X)
        assert np.mean(clf.decision_function(X) < -1e-5) <= nu
        assert len(clf.support_) >= nu * len(X)


def test_whole_numbers_as_weights_are_repeats():
    X = rows(60)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = OneClassSVM(nu=0.3, gamma=0.5, tol=1e-8).fit(X, sample_weight=weights)
    repeated = OneClassSVM(nu=0.3, gamma=0.5, tol=1e-8).fit(np.repeat(X, weights, axis=0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), atol=1e-5)
    assert (weights[weighted.support_] > 0).all()


@pytest.mark.parametrize("kept", [0, 64])
def test_growing_active_rows_come_to_the_optimum_of_all(kept):
    X, task = rows(2000), OneClass(0.2)
    problem = Problem(
        as_rows(X), task.encode(X), task, slimsvm.kernels.RBF(0.5), intercept="free", tol=1e-5, random_state=0
    )
    whole = Exact().solve(problem)
    settings = ExactSettings(first_rows=100, all_rows_share=0.0), ValueSettings(never_kept=kept)
    fit = Exact(64).solve(replace(problem, settings=settings))
    assert fit.history[0]["n_active"] < 1000
    assert fit.lower_bound == pytest.approx(whole.lower_bound, rel=1e-6)
    assert fit.objective == pytest.approx(whole.objective, rel=1e-5)
    scores = fit.model.scores(X)[:, 0]
    assert np.mean(scores < -1e-6) <= fit.history[-1]["training_error"] <= np.mean(scores < 1e-6)


def test_warm_start_and_files(tmp_path):
    X = rows(300)
    clf = OneClassSVM(nu=0.2, gamma=0.5, warm_start=True).fit(X)
    cold = OneClassSVM(nu=0.2, gamma=0.6).fit(X)
    warm = clf.set_params(gamma=0.6).fit(X)
    assert warm.lower_bound_ == pytest.approx(cold.lower_bound_, rel=1e-4)
    assert warm.fit(X).n_iter_ == 1
    warm.save(tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    np.testing.assert_array_equal(again.predict(X), warm.predict(X))
    assert (again.offset_, again.gap_) == (warm.offset_, warm.gap_)


def test_few_and_equal_rows():
    assert OneClassSVM(nu=1.0).fit([[0.0], [1.0]]).predict([[0.0], [1.0], [9.0]]).tolist()[2] == -1
    same = OneClassSVM(nu=0.5).fit(np.ones((10, 3)))
    assert same.status_ == "converged"
    assert same.predict(np.ones((1, 3))).tolist() in ([1], [-1])


def test_refusals_name_the_parameter():
    X = rows(30)
    with pytest.raises(ValueError, match=r"nu must be a number in \(0, 1\], found 0"):
        OneClassSVM(nu=0).fit(X)
    with pytest.raises(ValueError, match=r"nu must be a number in \(0, 1\], found 'half'"):
        OneClassSVM(nu="half").fit(X)
    with pytest.raises(ValueError, match="or on a budget 'bsca' or 'bsgd', found 'exact-cuts'"):
        OneClassSVM(solver="exact-cuts").fit(X)
    with pytest.raises(ValueError, match="one class needs intercept='free', found 'regularized'"):
        Exact().solve(Problem(as_rows(X), OneClass().encode(X), OneClass(), slimsvm.kernels.RBF(1.0)))
    with pytest.raises(NotFittedError):
        OneClassSVM().predict(X)


@pytest.mark.parametrize("nu", [0.01, 0.5])
def test_an_optimum_of_nought_is_found_and_the_fit_ends(nu):
    """A linear kernel and the origin among the rows: w = 0, and no share of the objective is a tolerance."""
    X = rows(300, 0)
    clf = OneClassSVM(kernel="linear", nu=nu).fit(X - X.mean(axis=0))
    assert clf.status_ == "converged"
    assert clf.n_iter_ < 200
    assert clf.objective_ == pytest.approx(0.0, abs=1e-6)
    assert clf.lower_bound_ == pytest.approx(0.0, abs=1e-6)

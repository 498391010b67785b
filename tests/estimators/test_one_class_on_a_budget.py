"""OneClassSVM by BSCA and BSGD: the exact optimum where all rows fit, near it on a budget, odd rows, limits, files."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import slimsvm
from slimsvm import BSCA, BSGD, OneClassSVM

BOTH = pytest.mark.parametrize("solver", [BSCA, BSGD])


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(n - n // 10, 2)), rng.uniform(-5, 5, size=(n // 10, 2))])


def machine(solver, **options):
    return OneClassSVM(**{"gamma": 0.5, "solver": solver, "random_state": 0} | options)


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_where_all_rows_fit_it_is_the_exact_optimum(solver, seed):
    rng = np.random.default_rng(seed)
    X, nu = rows(int(rng.integers(40, 150)), seed), rng.uniform(0.1, 0.95)
    weights = None if seed % 2 else rng.choice([0.0, 0.5, 1.0, 2.0], len(X))
    exact = OneClassSVM(gamma=0.5, nu=nu, tol=1e-8).fit(X, sample_weight=weights)
    clf = machine(solver(), nu=nu).fit(X, sample_weight=weights)
    assert clf.objective_ == pytest.approx(exact.objective_, rel=1e-7)
    assert 0 <= clf.gap_ < 1e-6
    assert clf.lower_bound_ <= exact.objective_ * (1 - 1e-9)
    np.testing.assert_allclose(clf.decision_function(X), exact.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])


@BOTH
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_on_a_budget_it_is_near_the_optimum(solver, container, tmp_path):
    X, nu = rows(1200), 0.3
    optimum = OneClassSVM(gamma=0.5, nu=nu, tol=1e-6).fit(X).objective_
    clf = machine(solver(60), nu=nu).fit(container(X))
    assert clf.n_basis_ <= 60
    basis = clf.basis_vectors_.toarray() if sp.issparse(clf.basis_vectors_) else clf.basis_vectors_
    beta, rho = clf.basis_coef_[:, 0], clf.offset_
    scores = rbf_kernel(X, basis, gamma=0.5) @ beta
    value = 0.5 * beta @ rbf_kernel(basis, gamma=0.5) @ beta + np.maximum(0, rho - scores).sum() - nu * rho * len(X)
    assert clf.objective_ == pytest.approx(value, rel=1e-6)
    assert optimum <= value <= 0.96 * optimum
    assert abs(np.mean(clf.predict(container(X)) < 0) - nu) < 0.01
    assert clf.lower_bound_ is None
    assert not hasattr(clf, "support_")
    clf.save(tmp_path / "model.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "model.slim").predict(X), clf.predict(X))


@pytest.mark.parametrize("max_basis", [10, 500])
@pytest.mark.parametrize(
    ("X", "options", "objective"),
    [
        (np.zeros((20, 2)), {"kernel": "linear"}, 0.0),
        (rows(100), {"kernel": "linear", "nu": 0.05}, 0.0),  # no plane has the origin outside
        (np.ones((30, 2)), {}, -112.5),  # ½ (ν n)²
        (np.ones((1, 2)), {"nu": 1.0}, -0.5),
    ],
    ids=["zeros", "around the origin", "duplicates", "one row"],
)
def test_odd_rows_have_an_answer(max_basis, X, options, objective):
    clf = machine(BSCA(max_basis, maintenance="remove"), **options).fit(X)
    assert clf.objective_ == pytest.approx(objective, abs=1e-9)
    assert clf.status_ == "converged"
    assert clf.lower_bound_ is None or objective - 0.05 < clf.lower_bound_ <= clf.objective_


def test_limits_and_warm_starts():
    X = rows(600)
    clf = machine(BSCA(40), nu=0.2, max_iter=2, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="iteration limit after 2 iterations"):
        clf.fit(X)
    assert clf.status_ == "iteration limit"
    first = clf.objective_
    clf.set_params(max_iter=-1).fit(X)
    assert clf.objective_ <= first
    n_cold = machine(BSCA(40), nu=0.2).fit(X).n_iter_
    assert clf.fit(X).n_iter_ < n_cold


def test_an_interrupt_leaves_the_best_trial(monkeypatch):
    X, whole = rows(300), BSCA.solve

    def interrupted(self, problem, state=None, callbacks=()):
        if state is not None and type(problem.task).__name__ == "Binary":
            raise KeyboardInterrupt
        return whole(self, problem, state, callbacks)

    monkeypatch.setattr(BSCA, "solve", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 iterations"):
        clf = machine(BSCA(40)).fit(X)
    assert clf.status_ == "interrupted"
    assert clf.objective_ < 0


def test_what_is_wrong_is_said():
    X = rows(60)
    with pytest.raises(ValueError, match="max_basis must be"):
        machine(BSCA(0)).fit(X)
    with pytest.raises(ValueError, match="merg"):
        machine(BSGD(10), kernel="linear").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine("bsca").fit(X)

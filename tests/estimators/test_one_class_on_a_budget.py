"""OneClassSVM by BSCA and BSGD: the exact optimum where all rows fit, near it on a budget, odd rows, limits, files,
rows in chunks.
"""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

import slimsvm
from estimators.test_one_class import rows
from slimsvm import BSCA, BSGD, LASVM, OneClassSVM

BOTH = pytest.mark.parametrize("solver", [BSCA, BSGD])


def estimator(solver, **options):
    return OneClassSVM(**{"gamma": 0.5, "solver": solver, "random_state": 0} | options)


@BOTH
@pytest.mark.parametrize("seed", range(4))
def test_where_all_rows_fit_it_is_the_exact_optimum(solver, seed):
    rng = np.random.default_rng(seed)
    X, nu = rows(int(rng.integers(40, 150)), seed), rng.uniform(0.1, 0.95)
    weights = None if seed % 2 else rng.choice([0.0, 0.5, 1.0, 2.0], len(X))
    exact = OneClassSVM(gamma=0.5, nu=nu, tol=1e-8).fit(X, sample_weight=weights)
    clf = estimator(solver(), nu=nu).fit(X, sample_weight=weights)
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
    clf = estimator(solver(60), nu=nu).fit(container(X))
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
@pytest.mark.filterwarnings("ignore:kernel values as large")
def test_odd_rows_have_an_answer(max_basis, X, options, objective):
    clf = estimator(BSCA(max_basis, maintenance="remove"), **options).fit(X)
    assert clf.objective_ == pytest.approx(objective, abs=1e-9)
    assert clf.status_ == "converged"
    assert clf.lower_bound_ is None or objective - 0.05 < clf.lower_bound_ <= clf.objective_


def test_limits_and_warm_starts():
    X = rows(600)
    clf = estimator(BSCA(40), nu=0.2, max_iter=2, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="iteration limit after 2 iterations"):
        clf.fit(X)
    assert clf.status_ == "iteration limit"
    first = clf.objective_
    clf.set_params(max_iter=-1).fit(X)
    assert clf.objective_ <= first
    n_cold = estimator(BSCA(40), nu=0.2).fit(X).n_iter_
    assert clf.fit(X).n_iter_ < n_cold


def test_an_interrupt_leaves_the_best_trial(monkeypatch):
    X, whole = rows(300), BSCA.solve

    def interrupted(self, problem, state=None, callbacks=()):
        if state is not None and type(problem.task).__name__ == "Binary":
            raise KeyboardInterrupt
        return whole(self, problem, state, callbacks)

    monkeypatch.setattr(BSCA, "solve", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 iterations"):
        clf = estimator(BSCA(40)).fit(X)
    assert clf.status_ == "interrupted"
    assert clf.objective_ < 0


def test_what_is_wrong_is_said():
    X = rows(60)
    with pytest.raises(ValueError, match="max_basis must be"):
        estimator(BSCA(0)).fit(X)
    with pytest.raises(ValueError, match="merg"):
        estimator(BSGD(10), kernel="linear").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator("bsca").fit(X)


# ---- rows in chunks


def value_of(clf, X, nu):
    """The objective of the best multiple of a model, over all rows, from nothing but its arrays."""
    basis, beta = clf.basis_vectors_, clf.basis_coef_[:, 0]
    basis = basis.toarray() if sp.issparse(basis) else basis
    scores = rbf_kernel(X, basis, gamma=0.5) @ beta
    rho = np.sort(scores)[int(np.ceil(nu * len(X))) - 1]
    gain = nu * len(X) * rho - np.maximum(0, rho - scores).sum()
    return -0.5 * gain**2 / (beta @ rbf_kernel(basis, gamma=0.5) @ beta)


@BOTH
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("nu", "size"), [(0.1, 100), (0.3, 1200)])
def test_chunks_come_near_the_fit_of_all_rows(solver, container, nu, size):
    X = rows(3600)[np.random.default_rng(1).permutation(3600)]
    optimum = OneClassSVM(gamma=0.5, nu=nu, tol=1e-6).fit(X).objective_
    clf = estimator(solver(60), nu=nu)
    for part in np.array_split(X, 3600 // size):
        clf.partial_fit(container(part))
        assert clf.n_basis_ <= 60
    value = value_of(clf, X, nu)
    assert optimum <= value <= 0.9 * optimum
    assert clf.objective_ == pytest.approx(value, rel=0.15)
    recent = container(X[-max(1000, size) :])
    assert abs(np.mean(clf.predict(recent) < 0) - nu) < 0.005
    assert abs(np.mean(clf.predict(container(rows(4000, 5))) < 0) - nu) < 0.04


@BOTH
def test_a_first_chunk_that_fits_is_the_exact_optimum_and_comes_again(solver):
    X = rows(60)
    exact = OneClassSVM(gamma=0.5, nu=0.3, tol=1e-8).fit(X)
    clf = estimator(solver(80), nu=0.3).partial_fit(X)
    assert clf.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    assert not hasattr(clf, "support_")
    total = clf._stream.total
    for _ in range(3):
        clf.partial_fit(X)
    assert clf._stream.total == total == 60
    assert clf._stream.box.n_rows == 60
    assert len(clf._stream.rows) == 60
    # With room for every row ascent stays at the optimum; a subgradient step of 1 / t leaves it.
    assert clf.objective_ == pytest.approx(exact.objective_, rel=1e-4 if solver is BSCA else 0.1)
    clf.partial_fit(rows(30, 1))
    assert (clf._stream.total, clf._stream.box.n_rows, len(clf._stream.rows)) == (90, 90, 90)


@BOTH
def test_weights_count_and_rows_of_weight_nought_do_not(solver):
    X = rows(700)[np.random.default_rng(0).permutation(700)]
    weights = np.where(np.arange(700) % 5 == 0, 0.0, 2.0)
    weighted, without = estimator(solver(30), nu=0.2), estimator(solver(30), nu=0.2)
    for part in np.array_split(np.arange(700), 7):
        weighted.partial_fit(X[part], sample_weight=weights[part])
        kept = part[weights[part] > 0]
        without.partial_fit(X[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(weighted.basis_coef_, without.basis_coef_)
    assert weighted._stream.total == weights.sum()


def test_a_stream_of_one_row_at_a_time_and_of_equal_rows_has_an_answer():
    clf = estimator(BSGD(20), nu=0.2)
    for row in rows(150)[np.random.default_rng(0).permutation(150)]:
        clf.partial_fit(row[None])
    assert np.mean(clf.predict(rows(1000, 3)) < 0) < 0.5
    assert clf.predict([[0.0, 0.0], [20.0, 20.0]]).tolist() == [1, -1]
    same = estimator(BSCA(20))
    for _ in range(3):
        same.partial_fit(np.ones((30, 2))).partial_fit(np.ones((31, 2)))
    assert same.predict(np.ones((1, 2))).tolist() == [1]
    around = estimator(BSCA(5, maintenance="remove"), kernel="linear", nu=0.05)  # no plane has the origin outside
    assert np.isfinite(around.partial_fit(rows(100)).partial_fit(rows(100, 1)).decision_function(rows(5))).all()


@BOTH
def test_chunks_go_on_from_pickles_and_files_and_not_from_fits(solver, tmp_path):
    X = rows(400)
    clf = estimator(solver(30)).partial_fit(X[:200])
    clf.save(tmp_path / "model.slim")
    pickled, read = pickle.loads(pickle.dumps(clf)), slimsvm.load(tmp_path / "model.slim")
    for other in (clf, pickled, read):
        other.partial_fit(X[200:])
    np.testing.assert_array_equal(clf.basis_coef_, pickled.basis_coef_)
    np.testing.assert_array_equal(clf.decision_function(X), read.decision_function(X))
    with pytest.raises(ValueError, match="trained by another solver"):
        OneClassSVM().fit(X).set_params(solver=solver(30)).partial_fit(X)


@BOTH
def test_chunks_go_on_from_a_fit(solver):
    X = rows(2000)[np.random.default_rng(1).permutation(2000)]
    clf = estimator(solver(60), nu=0.3).fit(X[:1000])
    value = clf.objective_
    clf.partial_fit(X[1000:1001])
    assert clf._stream.total == 1001
    for part in np.array_split(X[1001:], 5):
        clf.partial_fit(part)
    optimum = OneClassSVM(gamma=0.5, nu=0.3, tol=1e-6).fit(X).objective_
    assert optimum <= value_of(clf, X, 0.3) <= 0.9 * optimum < value
    assert abs(np.mean(clf.predict(X) < 0) - 0.3) < 0.03


@pytest.mark.parametrize("solver", [BSCA(), BSGD()], ids=repr)
def test_scikit_learns_checks_pass(solver):
    check_estimator(OneClassSVM(solver=solver, random_state=0), on_skip=None)


def test_bad_chunks_are_named():
    X = rows(80)
    for solver in ("exact", "lasvm", LASVM(), "refine", 3):
        assert not hasattr(OneClassSVM(solver=solver), "partial_fit")
    with pytest.raises(AttributeError) as found:
        OneClassSVM().partial_fit(X)
    assert "takes rows in chunks ('bsca', 'bsgd'), found 'exact'" in str(found.value)
    clf = estimator("bsca").partial_fit(X)
    with pytest.raises(ValueError, match="features"):
        clf.partial_fit(X[:, :1])
    with pytest.raises(ValueError, match=r"row 3|NaN"):
        clf.partial_fit(np.where(np.arange(80)[:, None] == 3, np.nan, X))
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        clf.partial_fit(X, sample_weight=np.zeros(80))
    with pytest.raises(ValueError, match="nu must be"):
        estimator("bsgd", nu=0.0).partial_fit(X)
    with pytest.raises(ValueError, match="partial_fit needs a kernel with a formula"):
        estimator(BSCA(maintenance="remove"), kernel=lambda A, B: A @ B.T).partial_fit(X)

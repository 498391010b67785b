"""partial_fit of LASVM: S goes on over chunks, its bound holds for all rows met, errors, formats and pickles."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import slimsvm
from slimsvm import LASVM, SVC, SVR
from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary

INTERCEPTS = pytest.mark.parametrize("intercept", ["free", "regularized", "none"])


def rows(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def estimator(**options):
    return SVC(**{"C": 1.0, "gamma": 0.5, "solver": LASVM(), "intercept": "free", "random_state": 0} | options)


def gram(A, B):
    return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def values(clf, X, y, C=1.0):
    """Primal over all rows and D of a model, with nothing of the solver's."""
    beta, basis = clf.basis_coef_[:, 0], clf.basis_vectors_
    basis = basis.toarray() if sp.issparse(basis) else basis
    b = clf.intercept_[0] ** 2 if clf.intercept == "regularized" else 0.0
    norm = beta @ gram(basis, basis) @ beta + b
    loss = np.maximum(0.0, 1.0 - (2 * y - 1) * (gram(X, basis) @ beta + clf.intercept_[0]))
    return 0.5 * norm + C * loss.sum(), np.abs(beta).sum() - 0.5 * norm


@INTERCEPTS
def test_one_chunk_is_one_pass_of_a_fit(intercept):
    X, y = rows()
    generator = np.random.default_rng(np.random.RandomState(0).randint(2**31 - 1))
    chunk = estimator(intercept=intercept).partial_fit(X, y)
    fit = estimator(intercept=intercept, solver=LASVM(finish=False), random_state=generator).fit(X, y)
    order = np.lexsort(chunk.basis_vectors_.T), np.lexsort(fit.basis_vectors_.T)
    np.testing.assert_array_equal(chunk.basis_vectors_[order[0]], fit.basis_vectors_[order[1]])
    np.testing.assert_array_equal(chunk.basis_coef_[order[0]], fit.basis_coef_[order[1]])
    assert not hasattr(chunk, "support_")  # rows of no one array


@INTERCEPTS
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_chunks_come_near_the_optimum_and_bound_it(intercept, container):
    X, y = rows()
    optimum = estimator(intercept=intercept, solver=LASVM(tol_relative=1e-6)).fit(X, y).objective_
    clf = estimator(intercept=intercept)
    for part in np.array_split(np.arange(900), 5):
        for _ in range(3):
            clf.partial_fit(container(X[part]), y[part], classes=[0, 1])
    primal, dual = values(clf, X, y)
    assert optimum <= primal <= 1.05 * optimum
    assert clf.lower_bound_ == pytest.approx(dual, rel=1e-6)
    assert 0.95 * optimum <= dual <= optimum


@INTERCEPTS
def test_a_chunk_again_counts_no_row_twice(intercept):
    X, y = rows(400)
    clf = estimator(intercept=intercept).partial_fit(X[:200], y[:200])
    for _ in range(6):
        clf.partial_fit(X[200:], y[200:])
    assert len(np.unique(clf.basis_vectors_, axis=0)) == clf.n_basis_
    assert np.abs(clf.basis_coef_).max() <= 1.0
    assert clf.lower_bound_ <= estimator(intercept=intercept, solver=LASVM(tol_relative=1e-6)).fit(X, y).objective_
    # The same rows with other labels are other examples.
    assert clf.partial_fit(X[200:], 1 - y[200:]).score(X[200:], 1 - y[200:]) > 0.4
    assert len(np.unique(clf.basis_vectors_, axis=0)) < clf.n_basis_


@INTERCEPTS
def test_chunks_of_one_class_weights_and_another_C(intercept):
    X, y = rows(600)
    clf = estimator(intercept=intercept, C=0.5)
    for label in (0, 1):
        part, weights = np.flatnonzero(y == label), np.where(np.arange(600) % 7 == 0, 0.0, 2.0)
        clf.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=weights[part])
        if label == 0:
            assert np.all(clf.predict(X) == 0)
    assert np.abs(clf.basis_coef_).max() <= 1.0
    part = np.random.default_rng(1).permutation(600)
    for _ in range(2):
        clf.set_params(C=0.25).partial_fit(X[part], y[part])
    assert clf.score(X, y) > 0.75
    assert intercept != "free" or abs(clf.basis_coef_.sum()) < 1e-9


def test_pickles_and_files_go_on(tmp_path):
    X, y = rows(300)
    clf, again, read = estimator(), estimator(), estimator()
    for part in np.array_split(np.arange(300), 3):
        clf.partial_fit(X[part], y[part])
        again = pickle.loads(pickle.dumps(again.partial_fit(X[part], y[part])))
        read.partial_fit(X[part], y[part]).save(tmp_path / "model.slim")
        read = slimsvm.load(tmp_path / "model.slim")
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(read.decision_function(X), clf.decision_function(X))


def test_formats_may_change():
    X, y = rows(300)
    optimum = estimator(solver=LASVM(tol_relative=1e-6)).fit(X, y).objective_
    clf = estimator()
    for at, part in enumerate(np.array_split(np.arange(300), 3)):
        for _ in range(3):
            clf.partial_fit([np.asarray, sp.csr_array, sp.csc_array][at](X[part]), y[part])
    # Ties after a step are broken by rounding, which the format changes: the optimum they come near is the same.
    primal, dual = values(clf, X, y)
    assert 0.95 * optimum <= dual <= optimum <= primal <= 1.05 * optimum


@pytest.mark.parametrize("selection", ["gradient", "margin"])
def test_chunks_of_chosen_rows(selection):
    X, y = rows()
    clf = estimator(solver=LASVM(selection=selection, pool=3))
    for part in np.array_split(np.arange(900), 3):
        clf.partial_fit(X[part], y[part])
    assert clf.score(X, y) > 0.7


def test_what_is_wrong_with_a_chunk_is_said():
    X, y = rows(80)
    clf = estimator().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold the classes \[0, 1\]; found .*7.* in row 3"):
        clf.partial_fit(X, np.where(np.arange(80) == 3, 7, y))
    with pytest.raises(ValueError, match="features"):
        clf.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match="X must hold numbers, found 'a' in column 0"):
        clf.partial_fit(np.full((80, 3), "a"), y)
    with pytest.raises(ValueError, match="NaN"):
        clf.partial_fit(np.where(X[0, 0] == X, np.nan, X), y)
    with pytest.raises(ValueError, match="LASVM solves two-class problems, found Multiclass"):
        estimator().partial_fit(X, y + (X[:, 2] > 0))
    with pytest.raises(ValueError, match="LASVM solves two-class problems, found Regression"):
        SVR(solver=LASVM()).partial_fit(X, X[:, 0])
    with pytest.raises(ValueError, match="partial_fit needs a kernel with a formula"):
        estimator(kernel=lambda A, B: A @ B.T).partial_fit(X, y)
    with pytest.raises(ValueError, match="pool must be"):
        estimator(solver=LASVM(pool=0)).partial_fit(X, y)
    with pytest.raises(ValueError, match="trained by another solver"):
        clf.fit(X, y).partial_fit(X, y)


def test_only_states_of_chunks_go_on():
    X, y = rows(80)
    task = Binary()
    problem = Problem(as_rows(X), task.encode(y), task, RBF(0.5))
    with pytest.raises(ValueError, match="LASVM can only go on from its own chunks, found DualState"):
        LASVM().partial_solve(problem, LASVM().solve(problem).state)

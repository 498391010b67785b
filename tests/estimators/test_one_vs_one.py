"""SVC of several classes by pairs: what scikit-learn's SVC computes."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as TheirSVC

import slimsvm
from slimsvm import SVC, Exact, path
from slimsvm.parts.dual_ascent.one_vs_one import OneVsOneRun
from slimsvm.parts.run import Status
from slimsvm.tasks import OneVsOne, losses


def problem(n=200, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X, centres = rng.normal(size=(n, 3)), rng.normal(size=(k, 3))
    y = np.argmax(X @ centres.T + 0.7 * rng.normal(size=(n, k)), axis=1)
    return X, np.array(list("dbca"))[y]


def ours(**parameters):
    return SVC(**{"solver": "exact", "intercept": "free", "tol": 1e-6, **parameters})


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("seed", range(5))
def test_the_estimator_of_scikit_learn(seed, shape):
    X, y = problem(seed=seed)
    weights = None if seed % 2 else np.random.default_rng(seed).choice([0.5, 1.0, 3.0], len(y))
    settings = {
        "C": [0.1, 0.3, 1.0, 10.0, 100.0][seed],
        "gamma": 0.5,
        "decision_function_shape": shape,
        "class_weight": {"a": 2.0},
    }
    clf = ours(**settings).fit(X, y, sample_weight=weights)
    theirs = TheirSVC(tol=1e-6, **settings).fit(X, y, sample_weight=weights)
    scores = clf.decision_function(X)
    np.testing.assert_allclose(scores, theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(clf.predict(X), theirs.predict(X))
    assert np.mean(np.isin(clf.support_, theirs.support_)) > 0.97
    assert clf.n_support_.sum() == len(clf.support_)
    assert clf.dual_coef_.shape == (3, clf.n_basis_)
    assert clf.basis_coef_.shape == (clf.n_basis_, 6)
    if shape == "ovo":
        by_hand = rbf_kernel(X, clf.basis_vectors_, gamma=0.5) @ clf.basis_coef_ + clf.intercept_
        np.testing.assert_allclose(scores, by_hand, atol=1e-9)
    assert 0 <= clf.objective_ - clf.lower_bound_ <= 1e-3 * clf.objective_
    assert clf.status_ == "converged"
    assert clf.n_iter_.shape == (6,)
    assert (clf.n_iter_ > 0).all()


def test_predictions_on_digits():
    X, y = load_digits(return_X_y=True)
    train = np.arange(len(y)) % 2 == 0
    clf = ours(C=10.0, gamma=0.001, tol=1e-3).fit(X[train], y[train])
    theirs = TheirSVC(C=10.0, gamma=0.001).fit(X[train], y[train])
    assert np.mean(clf.predict(X[~train]) == theirs.predict(X[~train])) >= 0.999
    for estimator in (clf, theirs):
        estimator.set_params(break_ties=True)
    assert np.mean(clf.predict(X[~train]) == theirs.predict(X[~train])) >= 0.999
    with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        clf.set_params(decision_function_shape="ovo").predict(y)  # before it is seen that these are no rows
    of_two = ours(break_ties=True, decision_function_shape="ovo").fit(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="break_ties must be False"):
        of_two.predict(X)


def test_sparse_rows_precomputed_kernels_and_files(tmp_path):
    X, y = problem()
    dense = ours(gamma=0.5).fit(X, y)
    np.testing.assert_allclose(
        ours(gamma=0.5).fit(sp.csr_array(X), y).decision_function(X), dense.decision_function(X), atol=1e-5
    )
    K = rbf_kernel(X, gamma=0.5)
    given = ours(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), dense.decision_function(X), atol=1e-5)
    dense.save(tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    np.testing.assert_array_equal(again.predict(X), dense.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), dense.decision_function(X))


def test_the_objective_is_the_sum_over_pairs():
    X, y = problem()
    clf = ours(gamma=0.5, C=2.0).fit(X, y)
    codes, task = np.searchsorted(clf.classes_, y), OneVsOne(4)
    scores = rbf_kernel(X, clf.basis_vectors_, gamma=0.5) @ clf.basis_coef_ + clf.intercept_
    norm = sum(c @ rbf_kernel(clf.basis_vectors_, gamma=0.5) @ c for c in clf.basis_coef_.T)
    slack = 0.0
    for k, (a, b) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]):
        slack += np.maximum(0, 1 - scores[codes == a, k]).sum() + np.maximum(0, 1 + scores[codes == b, k]).sum()
    examples = task.encode(codes)
    assert losses(task.augment(scores, np.zeros(0), examples), scores, np.zeros(0), examples).sum() == pytest.approx(
        slack
    )
    assert clf.objective_ == pytest.approx(0.5 * norm + 2.0 * slack, rel=1e-9)


def test_the_end_of_time_leaves_the_other_pairs_at_nought():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match="Exact stopped at the time limit after 1 iterations"):
        clf = ours(gamma=0.5, solver=Exact(40), max_seconds=1e-9).fit(X, y)
    assert clf.basis_coef_[:, 0].any()
    assert not clf.basis_coef_[:, 1:].any()
    assert clf.objective_ >= ours(gamma=0.5).fit(X, y).objective_


def test_a_pair_that_ends_with_its_share_of_the_time_ends_the_fit(monkeypatch):
    """There is no pair after the last one: it was an IndexError."""
    X, y = problem()
    fit_pair = OneVsOneRun.fit_pair

    def short(run, k):
        return replace(fit_pair(run, k), status=Status.TIME_LIMIT if k == 0 else Status.CONVERGED)

    monkeypatch.setattr(OneVsOneRun, "fit_pair", short)
    with pytest.warns(ConvergenceWarning, match="Exact stopped at the time limit"):
        clf = ours(gamma=0.5, solver=Exact(40), max_seconds=1e9).fit(X, y)
    assert clf.status_ == "time limit"
    assert clf.basis_coef_.any(axis=0).all()


def test_warm_start_and_path():
    X, y = problem()
    estimators = path(ours(gamma=0.5, solver=Exact(40), tol=1e-4), X, y, C=[1.0, 1.5])
    cold = ours(gamma=0.5, solver=Exact(40), tol=1e-4, C=1.5).fit(X, y)
    assert estimators[1].lower_bound_ == pytest.approx(cold.lower_bound_, rel=1e-4)
    assert sum(r["iterations"] for r in estimators[1].history_) < sum(r["iterations"] for r in cold.history_)


def test_what_multi_class_means():
    X, y = problem()
    assert SVC(solver="exact").fit(X, y).basis_coef_.shape[1] == 6
    assert SVC().fit(X, y).basis_coef_.shape[1] == 6
    assert SVC(cost_matrix=1 - np.eye(4)).fit(X, y).basis_coef_.shape[1] == 4
    assert SVC(max_basis=20, random_state=0).fit(X, y).basis_coef_.shape[1] == 6
    assert SVC(solver="refine", random_state=0).fit(X, y).basis_coef_.shape[1] == 4
    assert SVC(multi_class="crammer-singer").fit(X, y).basis_coef_.shape[1] == 4
    with pytest.raises(ValueError, match="found Multiclass"):
        SVC(solver="exact", multi_class="crammer-singer").fit(X, y)
    with pytest.raises(ValueError, match="multi_class must be one of"):
        SVC(multi_class="pairs").fit(X, y)
    with pytest.raises(ValueError, match="cost_matrix goes with multi_class='crammer-singer'"):
        SVC(solver="exact", cost_matrix=1 - np.eye(4)).fit(X, y)


def test_very_many_classes():
    """A column of coefficients for each of their pairs took 60 GB; a list of all pairs was made for each pair."""
    centres = np.random.default_rng(0).normal(size=(510, 5))
    X, y = np.repeat(centres, 2, axis=0) * 9 + np.tile([[0.0], [0.1]], (510, 1)), np.repeat(np.arange(510), 2)
    clf = SVC(gamma=1.0).fit(X, y)
    assert (clf.multi_class_, clf.basis_coef_.shape) == ("ovr", (1020, 510))
    assert clf.score(X, y) == 1.0
    assert OneVsOne(510).class_pairs() is OneVsOne(510).class_pairs()


def test_pairs_that_a_limit_leaves_out_have_all_their_loss():
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.repeat([0, 1, 2], 30)
    weights = 1.0 + np.arange(90) % 3
    with pytest.warns(ConvergenceWarning, match="iteration limit after 0"):
        clf = SVC(C=2.0, class_weight={1: 5.0}, max_iter=0).fit(X, y, sample_weight=weights)
    totals = np.bincount(y, weights) * [1.0, 5.0, 1.0]
    assert clf.objective_ == pytest.approx(2.0 * 2 * totals.sum())
    assert clf.n_basis_ == 0

"""The ramp loss: its objective never rises, and where it ends no row speaks against it."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as TheirSVC
from sklearn.utils.estimator_checks import check_estimator

import slimsvm
from slimsvm import SVC, Exact
from slimsvm.datasets import checkerboard


def noisy(n=300, seed=0):
    X, y = checkerboard(n, side=2, flip=0.15, random_state=seed)
    return X.astype(float), y


def objective(clf, X, y, s=-1.0):
    """The ramp objective from nothing but the model."""
    coef, vectors = clf.basis_coef_[:, 0], clf.basis_vectors_
    margins = y * clf.decision_function(X)
    norm = coef @ rbf_kernel(vectors, gamma=clf.kernel_.gamma) @ coef
    norm += clf.intercept_[0] ** 2 if clf.intercept == "regularized" else 0.0
    return 0.5 * norm + clf.C_ * np.minimum(1 - s, np.maximum(0, 1 - margins)).sum()


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("C", [0.3, 10.0])
def test_the_objective_falls_to_a_fixed_point(intercept, C):
    X, y = noisy()
    clf = SVC(loss="ramp", C=C, gamma=2.0, intercept=intercept, tol=1e-6, n_jobs=1).fit(X, y)
    objectives = [record["objective"] for record in clf.history_]
    assert len(objectives) > 1
    assert (np.diff(objectives) <= 1e-6 * objectives[0]).all()
    assert clf.objective_ == pytest.approx(objective(clf, X, y), rel=1e-6)
    assert clf.objective_ == pytest.approx(min(objectives))
    assert clf.lower_bound_ is None
    # The estimator of the rows that count is the estimator itself.
    counting = y * clf.decision_function(X) >= -1
    assert counting.sum() < len(y)
    again = SVC(solver="exact", C=C, gamma=2.0, intercept=intercept, tol=1e-6, n_jobs=1).fit(X[counting], y[counting])
    np.testing.assert_allclose(again.decision_function(X), clf.decision_function(X), atol=1e-3)
    assert counting[clf.support_].all()


def test_the_first_step_is_the_svm():
    X, y = noisy()
    clf = SVC(loss="ramp", gamma=2.0, C=10.0, intercept="free", tol=1e-6, n_jobs=1).fit(X, y)
    theirs = TheirSVC(gamma=2.0, C=10.0, tol=1e-6).fit(X, y)
    margins = y * theirs.decision_function(X)
    assert clf.history_[0]["n_counting"] == len(y)
    assert clf.history_[1]["n_counting"] == np.sum(margins >= -1)
    assert clf.history_[0]["n_basis"] == pytest.approx(len(theirs.support_), abs=3)
    assert clf.n_basis_ < len(theirs.support_)


def test_where_it_is_cut_off():
    from slimsvm.editing import Ramp
    from slimsvm.kernels import RBF
    from slimsvm.parts.problem import Problem
    from slimsvm.rows import as_rows
    from slimsvm.tasks import Binary

    X, y = noisy()
    problem = Problem(as_rows(X), Binary().encode(y), Binary(), RBF(2.0), C=10.0, intercept="free", n_jobs=1)
    kept = [len(Ramp(s=s).solve(problem).model.coef) for s in (0.0, -1.0, -1e6)]
    assert kept == sorted(kept)
    hinge = Exact().solve(problem)
    far = Ramp(s=-1e6).solve(problem)
    assert far.objective == pytest.approx(hinge.objective, rel=1e-9)
    with pytest.raises(ValueError, match="s must be below 1, found 1"):
        Ramp(s=1).solve(problem)


def test_noise_costs_fewer_vectors_than_the_hinge():
    X, y = noisy(1500)
    X_new, y_new = checkerboard(2000, side=2, random_state=1)
    hinge, ramp = (
        SVC(loss=loss, solver="exact", gamma=2.0, C=10.0, intercept="free", n_jobs=1).fit(X, y)
        for loss in ("hinge", "ramp")
    )
    assert ramp.n_basis_ < 0.6 * hinge.n_basis_
    assert ramp.score(X_new, y_new) > hinge.score(X_new, y_new) - 0.01


def test_weights_files_threads_and_warm_starts(tmp_path):
    X, y = noisy()
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    clf = SVC(loss="ramp", gamma=2.0, warm_start=True, tol=1e-6, n_jobs=1).fit(X, y, sample_weight=weights)
    repeated = SVC(loss="ramp", gamma=2.0, tol=1e-6, n_jobs=4).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(clf.decision_function(X), repeated.decision_function(X), atol=1e-3)
    first = clf.objective_
    assert clf.fit(X, y, sample_weight=weights).objective_ <= first * (1 + 1e-6)
    clf.save(tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    assert again.loss == "ramp"
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    assert again.score(X, y) == np.mean(again.predict(X) == y)


def test_a_class_that_no_longer_counts_has_an_answer():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.where(np.arange(60) < 3, 1, -1)
    for intercept in ("free", "regularized"):
        clf = SVC(loss="ramp", C=0.01, intercept=intercept).fit(X, y)
        assert np.isfinite(clf.decision_function(X)).all()
        assert (clf.predict(X) == -1).all()


@pytest.mark.full
def test_scikit_learns_checks_pass_without_exception():
    """To a tolerance at which weighted and repeated rows give the same scores to the 7 digits that are asked for."""
    check_estimator(SVC(loss="ramp", tol=1e-10), on_skip=None)


@pytest.mark.parametrize("loss", ["ramp", "f1", "roc_auc"])
def test_is_tagged_as_for_two_classes(loss):
    assert not SVC(loss=loss).__sklearn_tags__().classifier_tags.multi_class
    assert SVC().__sklearn_tags__().classifier_tags.multi_class
    with pytest.raises(ValueError, match=f"Only binary classification is supported.*loss='{loss}' is for two classes"):
        SVC(loss=loss).fit(np.arange(6.0)[:, None], np.arange(6) % 3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "cpsp"}, "loss='ramp' is solved by solver='exact'.*found solver='cpsp'"),
        ({"max_basis": 10}, "found solver='auto', max_basis=10"),
        ({"gamma": "learn"}, "gamma='learn'"),
        ({"cost_matrix": [[0, 1], [2, 0]]}, "counts all errors alike, found a cost_matrix"),
        ({"kernel": "precomputed"}, "needs a kernel of rows, found 'precomputed'"),
    ],
    ids=repr,
)
def test_what_it_is_not_for_is_said(parameters, message):
    X, y = noisy(60)
    with pytest.raises(ValueError, match=message):
        SVC(loss="ramp", **parameters).fit(X @ X.T if "kernel" in parameters else X, y)


def test_more_classes_and_certificates_are_refused():
    X, y = noisy(60)
    with pytest.raises(ValueError, match=r"loss='ramp' is for two classes, found 3 classes"):
        SVC(loss="ramp").fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="loss='ramp' is not convex"):
        SVC(loss="ramp").fit(X, y).certificate(X, y)

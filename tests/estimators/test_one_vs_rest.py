"""SVC(multi_class="ovr"): a two-class estimator for each class, in files, exports, probabilities and other solvers."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC as Theirs
from sklearn.svm import LinearSVC

import slimsvm
from slimsvm import SVC
from slimsvm.tasks import HingeOneVsRest

X, Y = load_iris(return_X_y=True)
DX, DY = load_digits(n_class=5, return_X_y=True)
WEIGHTS = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(Y))


def text(n=3000, d=4000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=30 / d, format="csr", random_state=rng)
    X = sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)
    return X, (X @ rng.normal(size=(d, k)) + 0.5 * rng.normal(size=(n, k))).argmax(axis=1)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("parameters", [{}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0}], ids=str)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weights"])
def test_it_is_one_estimator_for_each_class(container, parameters, weights):
    parameters = {"gamma": 0.2, "tol": 1e-6} | parameters
    ours = SVC(multi_class="ovr", **parameters).fit(container(X), Y, weights)
    scores = [Theirs(**parameters).fit(X, c == Y, weights).decision_function(X) for c in range(3)]
    np.testing.assert_allclose(ours.decision_function(container(X)), np.stack(scores, axis=1), atol=1e-2)
    assert ours.multi_class_ == "ovr"
    assert ours.intercept_kind_ == "free"
    assert ours.basis_coef_.shape[1] == len(ours.intercept_) == len(ours.n_iter_) == 3
    np.testing.assert_array_equal(ours.predict(X), ours.classes_[ours.decision_function(X).argmax(axis=1)])
    assert 0 <= ours.gap_ < 1e-3
    assert not hasattr(ours, "dual_coef_")
    assert ours.n_support_.sum() == len(ours.support_)


def test_scikit_learns_classifier_of_one_against_the_rest():
    ours = SVC(multi_class="ovr", gamma=0.001).fit(DX, DY)
    theirs = OneVsRestClassifier(Theirs(gamma=0.001)).fit(DX, DY)
    np.testing.assert_allclose(ours.decision_function(DX), theirs.decision_function(DX), atol=1e-2)
    np.testing.assert_array_equal(ours.predict(DX), theirs.predict(DX))
    pairs = clone(ours).set_params(decision_function_shape="ovo").fit(DX, DY).decision_function(DX)
    assert pairs.shape == (len(DX), 10)


def test_text_has_the_errors_of_scikit_learns_linear_estimator():
    X, y = text()
    train = np.arange(3000) < 2400
    ours = SVC(kernel="linear", multi_class="ovr").fit(X[train], y[train])
    theirs = LinearSVC(loss="hinge", C=1.0, max_iter=10_000).fit(X[train], y[train])
    assert ours.status_ == "converged"
    assert ours.gap_ < 1e-3
    assert ours.score(X[~train], y[~train]) >= theirs.score(X[~train], y[~train]) - 0.01
    assert ours.coef_.shape == (4, 4000)
    np.testing.assert_allclose(
        (X[:9] @ ours.coef_.T).toarray() + ours.intercept_, ours.decision_function(X[:9]), atol=1e-3
    )


def test_two_classes_are_one_estimator():
    ours, usual = SVC(multi_class="ovr").fit(X[:100], Y[:100]), SVC().fit(X[:100], Y[:100])
    np.testing.assert_array_equal(ours.decision_function(X), usual.decision_function(X))


def test_probabilities():
    clf = SVC(multi_class="ovr", probability=True).fit(X, Y)
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(p.argmax(axis=1) == Y) > 0.93
    few = SVC(multi_class="ovr", probability=True, max_basis=20, random_state=0).fit(DX, DY)
    assert np.mean(few.predict_proba(DX).argmax(axis=1) == DY) > 0.93


def test_class_weights_and_certificates():
    clf = SVC(multi_class="ovr", class_weight={0: 3.0}).fit(X, Y)
    by_row = SVC(multi_class="ovr", gamma=clf.kernel_.gamma).fit(X, Y, np.where(Y == 0, 3.0, 1.0))
    np.testing.assert_allclose(clf.decision_function(X), by_row.decision_function(X), atol=1e-6)
    found = clf.certificate(X, Y)
    assert found.objective == pytest.approx(clf.objective_, rel=1e-6)
    assert found.lower_bound <= clf.objective_


@pytest.mark.parametrize("probability", [False, True])
def test_files_and_exports(probability, tmp_path):
    clf = SVC(multi_class="ovr", probability=probability).fit(X, Y)
    clf.save(tmp_path / "model.slim")
    loaded = slimsvm.load(tmp_path / "model.slim")
    assert loaded.multi_class_ == "ovr"
    predictor = slimsvm.load_predictor(tmp_path / "model.slim")
    for again in (loaded, predictor, pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(again.predict(X), clf.predict(X))
        np.testing.assert_allclose(again.decision_function(X), clf.decision_function(X), rtol=1e-10, atol=1e-10)
        if probability:
            np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), atol=1e-10)
    clf.to_c(tmp_path / "model.h")
    clf.to_json(tmp_path / "model.json")
    assert clf.explain(X[:2], X[::20]).values.shape == (2, 4, 3)
    onnx = pytest.importorskip("onnx")
    clf.to_onnx(tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx").graph.output[0].name


@pytest.mark.parametrize("solver", ["exact-cuts", "violated-cuts", "cpsp", "refine", "low-rank", "bsca", "bsgd"])
def test_other_solvers_train_it(solver):
    more = {"max_basis": 40} if solver in ("cpsp", "refine", "low-rank", "bsca", "bsgd") else {}
    clf = SVC(multi_class="ovr", solver=solver, gamma=0.001, C=10.0, random_state=0, **more).fit(DX, DY)
    assert clf.multi_class_ == "ovr"
    assert clf.score(DX, DY) > 0.95


def test_streams_grids_and_searches():
    clf = SVC(multi_class="ovr", solver="bsgd", max_basis=50, gamma=0.001, random_state=0)
    for part in range(3):
        clf.partial_fit(DX[part::3], DY[part::3], classes=np.unique(DY))
    assert clf.score(DX, DY) > 0.9
    grid = {"C": [0.1, 1.0, 10.0]}
    found = slimsvm.GridSearchSVC(SVC(multi_class="ovr", gamma=0.2), grid, cv=3).fit(X, Y)
    theirs = GridSearchCV(SVC(multi_class="ovr", gamma=0.2), grid, cv=3).fit(X, Y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.01)
    assert SVC(multi_class="ovr", C="validate").fit(X, Y).score(X, Y) > 0.93
    assert SVC(multi_class="ovr", max_basis="auto").fit(DX, DY).score(DX, DY) > 0.95


def test_warm_starts_and_threads():
    warm = SVC(multi_class="ovr", warm_start=True).fit(X, Y).set_params(C=3.0).fit(X, Y)
    cold = SVC(multi_class="ovr", C=3.0).fit(X, Y)
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-2)
    A, b = text()
    one, two = (SVC(kernel="linear", multi_class="ovr", n_jobs=n).fit(A, b) for n in (1, 2))
    np.testing.assert_array_equal(one.basis_coef_, two.basis_coef_)


def test_refusals():
    with pytest.raises(ValueError, match="each class against the rest"):
        SVC(multi_class="ovr", cost_matrix=np.ones((3, 3)) - np.eye(3)).fit(X, Y)
    with pytest.raises(ValueError, match="multi_class"):
        SVC(multi_class="rest").fit(X, Y)
    with pytest.raises(ValueError, match="n_classes must be an integer"):
        HingeOneVsRest(1)


def test_the_task():
    task, rng = HingeOneVsRest(3), np.random.default_rng(0)
    examples, scores = task.encode(Y), rng.normal(size=(150, 3))
    signs = np.where(Y[:, None] == np.arange(3), 1, -1)
    augmented = task.augment(scores, np.zeros(0), examples)
    losses = augmented.delta - (augmented.coef * scores).sum(axis=1)
    np.testing.assert_allclose(losses, np.maximum(0, 1 - signs * scores).sum(axis=1))

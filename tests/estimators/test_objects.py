"""Rows that only the user's kernel function understands: texts, lists, sets, as scikit-learn hands them on."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import svm
from sklearn.model_selection import GridSearchCV, cross_val_score

from slimsvm import CPSP, SVC, SVR, CrossTrainedSVC, GridSearchSVC, OneClassSVM, OrdinalSVC, RankSVM

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("abcdewxyz"[4 * (i % 2) : 4 * (i % 2) + 5]), RNG.integers(1, 6))) for i in range(50)]
TWO, THREE = np.arange(50) % 2, np.array([len(word) % 3 for word in WORDS])
TARGET = np.array([word.count("a") + 0.1 * len(word) for word in WORDS])
CONTAINERS = {
    "list": WORDS,
    "tuple": tuple(WORDS),
    "texts": np.array(WORDS),
    "objects": np.array(WORDS, dtype=object),
    "Series": pd.Series(WORDS, index=range(100, 150)),
    "lists": [list(word) for word in WORDS],
    "sets": [set(word) for word in WORDS],
    "pairs of texts": [[word[0], word[-1]] for word in WORDS],
    "table of objects": np.array([[set(word), word] for word in WORDS], dtype=object),
}
ESTIMATORS = {
    "two classes": (SVC, svm.SVC, np.array(["no", "yes"])[TWO]),
    "three classes": (SVC, svm.SVC, THREE),
    "regression": (SVR, svm.SVR, TARGET),
    "one class": (OneClassSVM, svm.OneClassSVM, None),
}


class Shared:
    """Counts letters that two rows share, and remembers how often it was asked for what."""

    def __init__(self):
        self.calls = []

    def __call__(self, A, B):
        self.calls.append((type(A), len(A), len(B)))
        letters = [[set("".join(str(part) for part in row)) for row in rows] for rows in (A, B)]
        return np.array([[len(a & b) + 0.1 * (a == b) for b in letters[1]] for a in letters[0]])


def shared(A, B):
    return Shared()(A, B)


@pytest.mark.turns("container")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_as_scikit_learn(estimator, container):
    ours, theirs, y = ESTIMATORS[estimator]
    rows = CONTAINERS[container]
    own, known = ours(kernel=shared, tol=1e-7).fit(rows, y), theirs(kernel=shared, tol=1e-7).fit(rows, y)
    new = rows[:9]
    if estimator == "regression":
        np.testing.assert_allclose(own.predict(new), known.predict(new), atol=1e-4)
        return
    np.testing.assert_allclose(own.decision_function(new), known.decision_function(new), atol=1e-4)
    if estimator != "one class":  # whose vectors lie on the boundary
        np.testing.assert_array_equal(own.predict(new), known.predict(new))
        np.testing.assert_array_equal(y[own.support_], np.repeat(own.classes_, own.n_support_))
    assert own.dual_coef_.shape[0] == known.dual_coef_.shape[0]
    assert own.shape_fit_ == known.shape_fit_
    assert own.support_vectors_.shape == (0, 0)
    assert not hasattr(own, "n_features_in_")


@pytest.mark.parametrize(
    "params", [{"max_basis": 6}, {"solver": "low-rank", "max_basis": 6}, {"solver": CPSP(6, preimage="training-rows")}]
)
def test_few_vectors_are_rows_and_new_rows_are_compared_with_those_alone(params):
    kernel = Shared()
    model = SVC(kernel=kernel, random_state=0, **params).fit(WORDS, TWO)
    assert model.score(WORDS, TWO) > 0.9
    assert model.n_basis_ <= 6
    kernel.calls.clear()
    scores = model.decision_function(WORDS)
    assert kernel.calls == [(list, 50, model.n_basis_)]
    vectors = [WORDS[i] for i in model.basis_vectors_[:, 0]]
    by_hand = shared(WORDS, vectors) @ model.basis_coef_[:, 0] + model.intercept_
    np.testing.assert_allclose(scores, by_hand, atol=1e-12)


def test_searches_and_cross_validation_cut_the_rows():
    ours, theirs = SVC(kernel=shared, tol=1e-6), svm.SVC(kernel=shared, tol=1e-6)
    np.testing.assert_array_equal(cross_val_score(ours, WORDS, TWO), cross_val_score(theirs, WORDS, TWO))
    grid = {"C": [0.1, 1.0, 10.0]}
    found = [GridSearchCV(ours, grid).fit(WORDS, TWO), GridSearchSVC(ours, grid).fit(WORDS, TWO)]
    assert found[0].best_params_ == found[1].best_params_
    scores = [search.cv_results_["mean_test_score"] for search in found]
    np.testing.assert_array_equal(*scores)
    assert found[1].predict(WORDS[:3]).shape == (3,)


def test_rows_without_weight_are_as_if_they_were_not_there():
    weights = (np.arange(50) % 5 > 0) * 1.0
    kept = np.flatnonzero(weights)
    weighted = SVC(kernel=shared).fit(WORDS, THREE, sample_weight=weights)
    without = SVC(kernel=shared).fit([WORDS[i] for i in kept], THREE[kept])
    np.testing.assert_array_equal(weighted.decision_function(WORDS), without.decision_function(WORDS))
    np.testing.assert_array_equal(weighted.support_, kept[without.support_])


def test_several_labels():
    labels = np.stack([TWO, THREE > 0], axis=1).astype(int)
    assert SVC(kernel=shared).fit(WORDS, labels).predict(WORDS).shape == (50, 2)


def test_copies_predict_and_files_refuse(tmp_path):
    model = SVC(kernel=shared).fit(WORDS, THREE)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.predict(WORDS), model.predict(WORDS))
    for write in (model.save, model.to_c, model.to_json):
        with pytest.raises(TypeError, match="a model file holds no code"):
            write(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    assert model.certificate(WORDS, THREE).gap < 1e-6
    with pytest.raises(ValueError, match="a certificate needs the kernel's values between all rows"):
        SVC(kernel=shared, max_basis=4, random_state=0).fit(WORDS, TWO).certificate(WORDS, TWO)


def test_functions_that_know_the_rows_of_the_fit_alone():
    """As those are that have looked up something of these rows: new rows are compared with all of them."""
    kernel = Shared()
    model = SVC(kernel=kernel).fit(WORDS, TWO)
    kernel.calls.clear()
    model.predict(WORDS[:7])
    assert kernel.calls == [(list, 7, 50)]


def test_numbers_are_checked_as_before():
    rows = RNG.normal(size=(20, 2))

    def product(A, B):
        return A @ B.T

    for X in (rows, rows.tolist(), pd.DataFrame(rows), rows.astype(object)):
        model = SVC(kernel=product).fit(X, rows[:, 0] > 0)
        assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="has 3 features"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        SVC(kernel=product).fit(np.full((4, 2), np.nan), [0, 1, 0, 1])


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        SVC(kernel=shared).fit([], [])
    model = SVC(kernel=shared).fit(WORDS, TWO)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.predict([])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(kernel=shared).fit(WORDS, TWO[:-1])
    with pytest.raises(ValueError, match="found texts: sklearn"):
        SVC().fit(WORDS, TWO)
    with pytest.raises(ValueError, match="found texts: sklearn"):
        SVC(kernel="precomputed").fit(WORDS, TWO)
    for other in (OrdinalSVC(kernel=shared), CrossTrainedSVC(kernel=shared)):
        with pytest.raises(ValueError, match="found texts: sklearn"):
            other.fit(WORDS, TWO)
    with pytest.raises(ValueError, match="found texts: sklearn"):
        RankSVM(kernel=shared).fit(WORDS, TARGET, groups=TWO)
    with pytest.raises(ValueError, match=r"must return an array of shape \(50, 50\), got \(2, 2\)"):
        SVC(kernel=lambda A, B: np.ones((2, 2))).fit(WORDS, TWO)
    with pytest.raises(ValueError, match="partial_fit needs a kernel with a formula"):
        SVC(kernel=shared, solver="bsgd", max_basis=5).partial_fit(WORDS, TWO)


def test_an_estimator_goes_from_objects_to_numbers_and_back():
    rows = RNG.normal(size=(50, 2))
    model = SVC(kernel=shared).fit(WORDS, TWO)
    model.set_params(kernel="rbf").fit(rows, TWO)
    np.testing.assert_array_equal(model.predict(rows), SVC().fit(rows, TWO).predict(rows))
    again = model.set_params(kernel=shared).fit(WORDS, TWO)
    assert not hasattr(again, "n_features_in_")
    np.testing.assert_array_equal(again.predict(WORDS), SVC(kernel=shared).fit(WORDS, TWO).predict(WORDS))

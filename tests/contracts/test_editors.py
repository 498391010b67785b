"""What every editor of training sets promises, in imbalanced-learn's manner."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score
from sklearn.svm import SVC as TheirSVC

from slimsvm.datasets import two_gaussians
from slimsvm.estimators.editors import EDITORS

EVERY = pytest.mark.parametrize("name", sorted(EDITORS))
BINARY = {"cross-training"}


def make(name, **parameters):
    """An editor whose answers can be repeated."""
    editor = EDITORS[name](**parameters)
    return editor.set_params(random_state=0) if "random_state" in editor.get_params() else editor


def data(n=400, n_classes=2, seed=0):
    """Overlapping classes, a few features."""
    X, y = two_gaussians(n, 3, 2.0, random_state=seed)
    if n_classes == 3:
        y[X[:, 0] - X[:, 1] > 1] = 2
    return X.astype(np.float64), y


def _indices(editor, X, y):
    """Positions of the rows that stay."""
    editor.fit_resample(X, y)
    return editor.sample_indices_


@EVERY
def test_the_rows_come_back_as_they_were(name):
    X, y = data()
    editor = make(name)
    X_kept, y_kept = editor.fit_resample(X, y)
    index = editor.sample_indices_
    assert index.dtype == np.int64
    assert (np.diff(index) > 0).all()
    assert 0 < len(index) < len(X)
    np.testing.assert_array_equal(X_kept, X[index])
    np.testing.assert_array_equal(y_kept, y[index])
    assert editor.n_features_in_ == 3
    np.testing.assert_array_equal(editor.classes_, [-1, 1])


@EVERY
def test_parameters_and_clones(name):
    editor = make(name)
    again = clone(editor)
    assert repr(again) == repr(editor)
    X, y = data()
    before = repr(editor)
    np.testing.assert_array_equal(_indices(editor, X, y), _indices(again, X, y))
    assert repr(editor) == before
    if "random_state" in editor.get_params():
        assert len(_indices(editor.set_params(random_state=1), X, y)) > 0


@EVERY
def test_containers_and_types_give_one_answer(name, tmp_path):
    """Values that float32 holds exactly: the same rows stay whatever holds them."""
    X, y = data(300)
    X = np.round(X * 64) / 64
    expected = _indices(make(name), X, y)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    for other in (X.astype(np.float32), np.asfortranarray(X), np.load(path, mmap_mode="r")):
        editor = make(name)
        X_kept, _ = editor.fit_resample(other, y)
        np.testing.assert_array_equal(editor.sample_indices_, expected)
        assert X_kept.dtype == other.dtype
    for other in (sp.csr_array(X), sp.csc_array(X), sp.csr_matrix(X.astype(np.float32))):
        editor = make(name)
        X_kept, _ = editor.fit_resample(other, y)
        np.testing.assert_array_equal(editor.sample_indices_, expected)
        assert X_kept.format == "csr"
        np.testing.assert_array_equal(X_kept.toarray(), X[expected])


@EVERY
def test_data_frames_stay_data_frames(name):
    X, y = data(200)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(200) + 1000)
    series = pd.Series(np.where(y > 0, "yes", "no"), index=frame.index)
    editor = make(name)
    X_kept, y_kept = editor.fit_resample(frame, series)
    pd.testing.assert_frame_equal(X_kept, frame.iloc[editor.sample_indices_])
    pd.testing.assert_series_equal(y_kept, series.iloc[editor.sample_indices_])
    assert list(editor.feature_names_in_) == list(editor.get_feature_names_out()) == ["a", "b", "c"]
    np.testing.assert_array_equal(editor.classes_, ["no", "yes"])


@EVERY
def test_lists_come_back_as_arrays(name):
    X, y = data(100)
    X_kept, y_kept = make(name).fit_resample(X.tolist(), y.tolist())
    assert isinstance(X_kept, np.ndarray)
    assert isinstance(y_kept, np.ndarray)


@pytest.mark.parametrize("name", [name for name in sorted(EDITORS) if "n_jobs" in EDITORS[name]().get_params()])
def test_same_rows_for_any_number_of_threads(name):
    X, y = data(1000)
    one, four = (_indices(make(name, n_jobs=n_jobs), X, y) for n_jobs in (1, 4))
    np.testing.assert_array_equal(one, four)


@EVERY
def test_a_row_that_is_not_finite_is_named(name):
    X, y = data(50)
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 7, column 1"):
        make(name).fit_resample(X, y)
    X[7, 1] = np.inf
    with pytest.raises(ValueError, match=r"X contains infinity \(inf\) at row 7, column 1"):
        make(name).fit_resample(sp.csr_array(X), y)
    X, y = data(50)
    with pytest.raises(ValueError, match="y contains NaN, at row 3"):
        make(name).fit_resample(X, np.where(np.arange(50) == 3, np.nan, y))


@EVERY
def test_other_bad_input(name):
    X, y = data(50)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make(name).fit_resample(X, y[:-1])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        make(name).fit_resample(X, X[:, 0])
    with pytest.raises(ValueError, match="0 sample"):
        make(name).fit_resample(X[:0], y[:0])


@EVERY
def test_one_class_has_an_answer(name):
    X, _ = data(60)
    if name in BINARY:
        with pytest.raises(ValueError, match="y must hold two classes, found 1"):
            make(name).fit_resample(X, np.ones(60))
        return
    index = _indices(make(name), X, np.ones(60))
    assert len(index) == (1 if name == "condense" else 60)


@EVERY
def test_more_classes_have_an_answer(name):
    X, y = data(n_classes=3)
    if name in BINARY:
        with pytest.raises(ValueError, match="y must hold two classes, found 3"):
            make(name).fit_resample(X, y)
        return
    kept = y[_indices(make(name), X, y)]
    assert set(kept) == {-1, 1, 2}


@EVERY
def test_duplicates_constant_columns_and_equal_rows(name):
    X, y = data(150)
    X = np.concatenate([np.repeat(X[:100], 3, axis=0), X])
    y = np.concatenate([np.repeat(y[:100], 3), y])
    X[:, 2] = 5.0
    index = _indices(make(name), X, y)
    assert 0 < len(index) <= len(X)
    assert set(y[index]) == {-1, 1}
    same = np.zeros((40, 2))
    labels = np.arange(40) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of rows that contradict each other a whole class may go
        index = _indices(make(name), same, labels)
    assert len(index) > 0


@EVERY
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_few_rows_have_an_answer(name, n):
    X, y = np.arange(2.0 * n).reshape(n, 2), (np.arange(n) >= n / 2).astype(int)
    if name in BINARY and n < 8:
        with pytest.raises(ValueError, match=r"rows of each class|y must hold two classes"):
            make(name).fit_resample(X, y)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        index = _indices(make(name), X, y)
    lost = sorted(set(y) - set(y[index]))  # two rows may outvote each other
    assert [str(w.message).split()[-1] for w in caught] == [str(c) for c in lost[:1]]


class Steps(BaseEstimator):
    """As much of imbalanced-learn's Pipeline as an editor needs: resample to fit, nothing to predict."""

    def __init__(self, editor, classifier):
        self.editor = editor
        self.classifier = classifier

    def fit(self, X, y):
        self.fitted_ = clone(self.classifier).fit(*clone(self.editor).fit_resample(X, y))
        return self

    def predict(self, X):
        return self.fitted_.predict(X)


@EVERY
def test_before_any_classifier(name):
    """Fewer support vectors, and nearly the same error."""
    X, y = data(1000)
    X_new, y_new = data(2000, seed=1)
    whole = TheirSVC().fit(X, y)
    steps = Steps(make(name), TheirSVC()).fit(X, y)
    assert steps.fitted_.n_support_.sum() < 0.8 * whole.n_support_.sum()
    assert accuracy_score(y_new, steps.predict(X_new)) > accuracy_score(y_new, whole.predict(X_new)) - 0.02


@EVERY
def test_a_step_of_their_pipeline(name):
    pipeline = pytest.importorskip("imblearn.pipeline")
    X, y = data(300)
    steps = pipeline.Pipeline([("edit", make(name)), ("svc", TheirSVC())]).fit(X, y)
    assert steps["svc"].shape_fit_[0] == len(_indices(make(name), X, y))
    assert steps.score(X, y) > 0.7


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("edited-nn", {"n_neighbors": 0}, "n_neighbors must be an integer >= 1, found 0"),
        ("edited-nn", {"n_neighbors": 1.5}, "n_neighbors must be an integer >= 1, found 1.5"),
        ("edited-nn", {"n_jobs": 0}, "n_jobs must not be 0"),
        ("multi-edit", {"n_splits": 1}, "n_splits must be an integer >= 2, found 1"),
        ("multi-edit", {"n_stable": True}, "n_stable must be an integer >= 1, found True"),
        ("condense", {"random_state": "x"}, "cannot be used to seed"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        EDITORS[name](**parameters).fit_resample(*data(50))


@EVERY
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_values_whose_distances_overflow_are_refused(name, form):
    X, y = data(40)
    X[7, 1] = -1e200
    with pytest.raises(ValueError, match=r"X contains 1e\+200 .* beyond 1e\+150 distances of rows overflow"):
        make(name).fit_resample(form(X), y)

"""Scores of rows that are folded on the way: the same bits as of rows folded before, and what is seen of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm import SVC
from slimsvm.core import ROWS_PER_TILE
from slimsvm.estimators import svc
from slimsvm.kernels import KernelRows, get_kernel, operands
from slimsvm.kernels.operands import RowSizes, Sized
from slimsvm.model import KernelExpansion
from slimsvm.solvers import LowRank


def rows_and_points(d, dtype, n=500, k=70):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(k, d)), rng.normal(size=(k, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid", "laplacian"])
@pytest.mark.parametrize("d", [1, 5, 8, 13, 200])
def test_the_same_bits_as_of_rows_folded_before(kernel, d, dtype, monkeypatch):
    X, Z, coef = rows_and_points(d, dtype)
    for precision in ("float32", "float64"):
        kept = KernelRows(get_kernel(kernel, gamma=0.1), X, dtype=precision, n_jobs=1)
        expected = kept.scores(kept.points_of(Z), coef, segments=np.array([0, 20, 70]))
        for n_jobs in (1, 3):
            monkeypatch.setattr(Sized, "sizes", RowSizes(small_work=1))
            rows = KernelRows(kept.kernel, X, dtype=precision, n_jobs=n_jobs, memory_limit=0, centre=kept.centre)
            assert rows.raw is X or np.shares_memory(rows.raw, X)
            points = rows.points_of(Z)
            np.testing.assert_array_equal(rows.scores(points, coef, segments=np.array([0, 20, 70])), expected)
            assert not rows.may_be_infinite
            monkeypatch.setattr(Sized, "sizes", RowSizes(small_work=1, call_work=100 * len(Z) * (d + 16)))
            np.testing.assert_array_equal(rows.scores(points, coef, segments=np.array([0, 20, 70])), expected)
            assert rows.counter.n == 2 * len(X) * len(Z)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_are_folded_into_the_same_memory_again(n_jobs, monkeypatch):
    monkeypatch.setattr(Sized, "sizes", RowSizes(small_work=1))
    X, Z, _ = rows_and_points(8, np.float32)
    rows = KernelRows(get_kernel("rbf"), np.asfortranarray(X), memory_limit=0, n_jobs=n_jobs)
    points, made, folder = rows.points_of(Z), [], operands.DenseFolder
    monkeypatch.setattr("slimsvm.kernels.kernel_rows.DenseFolder", lambda *of: made.append(of) or folder(*of))
    first = rows.block(points)
    for _ in range(3):
        np.testing.assert_array_equal(rows.block(points, rows=(0, 400)), first[:400])
        np.testing.assert_array_equal(rows.block(points), first)
    assert 1 <= len(made) <= n_jobs


def test_other_layouts_have_the_same_scores():
    X, Z, coef = rows_and_points(9, np.float64)
    rows = KernelRows(get_kernel("rbf"), X, memory_limit=0)
    expected = rows.scores(rows.points_of(Z), coef)
    read_only = X.copy()
    read_only.flags.writeable = False
    for other in (np.asfortranarray(X), read_only, np.repeat(X, 2, axis=0)[::2]):
        others = KernelRows(rows.kernel, other, memory_limit=0, centre=rows.centre)
        assert others.raw is None
        np.testing.assert_array_equal(others.scores(others.points_of(Z), coef), expected)
        assert others.may_be_infinite


def test_rows_past_the_last_whole_tile():
    X, Z, coef = rows_and_points(9, np.float32, n=2 * ROWS_PER_TILE + 1)
    rows = KernelRows(get_kernel("rbf"), X, memory_limit=0, n_jobs=1)
    points = rows.points_of(Z)
    np.testing.assert_array_equal(rows.scores(points, coef)[-3:], rows.scores(points, coef, rows=(len(X) - 3, len(X))))
    empty = KernelRows(rows.kernel, X[:0], memory_limit=0, centre=rows.centre)
    assert empty.scores(points, coef).shape == (0, 2)


# -- scores and labels of a model ---------------------------------------------------------------------------------

CLASSES = {
    "int64": np.array([7, -2, 3]),
    "int32": np.array([7, -2, 3], np.int32),
    "float64": np.array([0.5, np.inf, -1]),
    "bool": np.array([False, True, True]),
    "one word": np.array(["a", "bc", ""]),
    "three words": np.array(["a", "bc", "defghi"]),
    "half a word": np.array(["a", "b", "c"]),
    "object": np.array(["a", 3, None], object),
    "every second": np.arange(6)[::2],
}


@pytest.mark.turns("m")
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("m", [1, 3])
def test_labels_are_those_of_the_scores(classes, m, monkeypatch):
    monkeypatch.setattr(Sized, "sizes", RowSizes(small_work=1))
    classes = classes[: max(2, m)]
    X, Z, _ = rows_and_points(5, np.float32)
    coef = np.random.default_rng(1).integers(-1, 2, size=(len(Z), m)).astype(float)
    model = KernelExpansion(Z, coef, np.full(m, 0.3), np.zeros(0), get_kernel("linear"), "float32")
    scores = model.scores(X)
    codes = np.argmax(scores, axis=1) if m > 1 else (scores[:, 0] > 0).astype(int)
    assert len(set(codes.tolist())) == len(classes)
    for rows in (X, np.asfortranarray(X), sp.csr_array(X)):
        labels = model.labels(rows, classes, n_jobs=3)
        assert labels.dtype == classes.dtype
        assert labels.tolist() == classes[codes].tolist()
    monkeypatch.setattr(Sized, "sizes", RowSizes(small_work=1, call_work=1))
    assert model.labels(X, classes, n_jobs=2).tolist() == classes[codes].tolist()
    np.testing.assert_array_equal(model.scores(X, n_jobs=2), scores)
    assert model.labels(X[:0], classes).shape == (0,)


def test_of_equal_scores_the_first_class_and_of_a_score_of_0_the_lower():
    X, classes = np.zeros((200, 2)), np.array([5, 6, 7])
    for coef, expected in (([[1.0, 2.0, 2.0]], 6), ([[2.0, 1.0, 2.0]], 5), ([[0.0]], 5)):
        model = KernelExpansion(
            np.zeros((1, 2)), np.array(coef), np.zeros(len(coef[0])), np.zeros(0), get_kernel("rbf"), "float64"
        )
        assert set(model.labels(X, classes).tolist()) == {expected}


# -- finite or not ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["rbf", "poly"])
def fitted(request):
    X, y = np.random.default_rng(0).normal(size=(300, 11)).astype(np.float32), np.arange(300) % 2
    return SVC(solver=LowRank(20), kernel=request.param, random_state=0).fit(X, y), X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("column", [0, 7, 10])
def test_a_number_that_is_not_finite_is_named(fitted, dtype, value, name, column):
    clf, X = fitted
    bad = X.astype(dtype)
    bad[217, column] = value
    for method in (clf.predict, clf.decision_function):
        with pytest.raises(ValueError, match=rf"X contains {name}.* at row 217, column {column}"):
            method(bad)


def test_finite_rows_are_not_looked_at_twice(fitted, monkeypatch):
    clf, X = fitted

    def check(X):
        raise AssertionError

    monkeypatch.setattr(svc, "check_finite", check)
    clf.predict(X)
    with pytest.raises(AssertionError):
        clf.predict(np.asfortranarray(X))


def test_numbers_too_large_for_float32_are_no_error(fitted):
    clf, X = fitted
    far = X.astype(np.float64)
    far[3] = 1e200
    if clf.kernel == "poly":  # its scores are beyond float64, too
        with pytest.raises(ValueError, match="the scores of row 3 of X"):
            clf.predict(far)
        return
    assert len(clf.predict(far)) == len(X)

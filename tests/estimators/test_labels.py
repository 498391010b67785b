"""Several labels per row (`SVC`), and ordered classes (`OrdinalSVC`)."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score

import slimsvm
from slimsvm import CPSP, SVC, Exact, OrdinalSVC, Refine, ViolatedCuts
from slimsvm.tasks import Multilabel, Ordinal

SOLVERS = [ViolatedCuts(20), CPSP(15), Refine(10), "uniform-cuts", "exact-cuts"]


def several(n=80, seed=0):
    """Three labels, of which rows have none to all."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.column_stack([X[:, 0] > 0, X[:, 1] * X[:, 0] > 0, X[:, 2] > 0.5]).astype(int)


def graded(n=100, seed=0, names=("cold", "mild", "warm", "hot")):
    """Four classes along a curve; the third is rare."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    height = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.2 * rng.normal(size=n)
    return X, np.array(names)[np.digitize(height, [-0.3, 0.9, 1.2])]


# ---- several labels


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("sparse", [False, True])
def test_labels_are_binary_problems_over_one_basis(kernel, sparse):
    """Without a cap the labels are independent: the objective is the sum of those of all labels alone."""
    X, Y = several()
    data = sp.csr_array(X) if sparse else X
    one = SVC(kernel=kernel, gamma=0.5, C=3.0, tol=1e-9)
    clf = clone(one).fit(data, Y)
    alone = [clone(one).fit(data, Y[:, c]) for c in range(3)]
    assert type(clf.solver_) is Exact
    assert clf.objective_ == pytest.approx(sum(one.objective_ for one in alone), rel=1e-8)
    scores = clf.decision_function(data)
    np.testing.assert_allclose(scores, np.column_stack([one.decision_function(data) for one in alone]), atol=1e-4)
    np.testing.assert_array_equal(clf.predict(data), (scores > 0).astype(int))
    assert clf.predict(data).dtype == np.int64
    assert 0 <= clf.gap_ < 1e-8
    np.testing.assert_array_equal(clf.classes_, [0, 1, 2])
    assert clf.score(data, Y) == accuracy_score(Y, clf.predict(data))
    np.testing.assert_array_equal(clf.support_vectors_.toarray() if sparse else clf.support_vectors_, X[clf.support_])


def test_probabilities_of_labels_are_those_of_each_alone():
    """Rows are left out in closed form, of all labels at once."""
    X, Y = several()
    together = SVC(gamma=0.5, tol=1e-7, probability=True).fit(X, Y)
    for c in range(3):
        alone = SVC(gamma=0.5, tol=1e-7, probability=True).fit(X, Y[:, c])
        np.testing.assert_allclose(together.calibration_[c], alone.calibration_[0], rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(together.predict_proba(X)[:, c], alone.predict_proba(X)[:, 1], atol=1e-5)


@pytest.mark.parametrize("solver", [*SOLVERS, "low-rank"], ids=str)
def test_solvers_of_several_labels(solver, tmp_path):
    X, Y = several()
    clf = SVC(solver=solver, C=10.0, gamma=0.5, random_state=0).fit(X, Y)
    assert f1_score(Y, clf.predict(X), average="micro") > 0.85
    clf.save(tmp_path / "model.slim")
    for again in (slimsvm.load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(again.predict(X), clf.predict(X))
        assert again.multilabel_
    if isinstance(solver, (CPSP, Refine)):
        assert clf.n_basis_ == solver.max_basis
        assert clf.basis_coef_.shape == (solver.max_basis, 3)


def test_forms_of_the_indicator_matrix():
    X, Y = several()
    clf = SVC(gamma=0.5).fit(X, Y)
    for form in (Y.tolist(), Y.astype(bool), sp.csr_array(Y), Y.astype(float)):
        other = SVC(gamma=0.5).fit(X, form)
        assert other.objective_ == clf.objective_
        np.testing.assert_array_equal(other.predict(X), clf.predict(X))
    one = SVC(gamma=0.5).fit(X, Y[:, 0])
    assert not one.multilabel_
    assert one.predict(X).ndim == 1
    assert clf.fit(X, Y[:, 0]).predict(X).ndim == 1  # a fit forgets what y was before


def test_weights_C_and_certificates_of_several_labels():
    X, Y = several()
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = SVC(gamma=0.5, tol=1e-7).fit(X, Y, sample_weight=weights)
    repeated = SVC(gamma=0.5, tol=1e-7).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    found = SVC(gamma=0.5, max_basis=5, random_state=0).fit(X, Y).certificate(X, Y)
    exact = SVC(gamma=0.5, intercept="regularized", tol=1e-6).fit(X, Y)
    assert exact.objective_ * 0.99 <= found.lower_bound <= exact.objective_ * (1 + 1e-9)
    chosen = SVC(C="validate", random_state=0).fit(X, Y)
    assert chosen.C_ in [trial["C"] for trial in chosen.validation_]
    assert GridSearchCV(SVC(), {"C": [0.01, 10.0]}, cv=3).fit(X, Y).best_params_ == {"C": 10.0}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "f1"}, "loss='f1' is for classes, found an indicator matrix y"),
        ({"cost_matrix": [[0, 1], [1, 0]]}, "cost_matrix=.* is for classes, found an indicator matrix"),
        ({"class_weight": "balanced"}, "class_weight='balanced' is for classes"),
        ({"solver": "bsca"}, "or one target with loss='epsilon_insensitive', found Multilabel"),
    ],
)
def test_what_does_not_go_with_several_labels(params, message):
    with pytest.raises(ValueError, match=message):
        SVC(**params).fit(*several())


# ---- ordered classes


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("sparse", [False, True])
def test_ordered_classes(kernel, sparse):
    X, y = graded()
    data, names = sp.csr_array(X) if sparse else X, ["cold", "mild", "warm", "hot"]
    clf = OrdinalSVC(classes=names, kernel=kernel, gamma=0.5, C=5.0).fit(data, y)
    assert 0 <= clf.gap_ < 1e-8
    assert (np.diff(clf.thresholds_) > 0).all()
    f = clf.model_.scores(data)[:, 0]
    codes = (f[:, None] > clf.thresholds_).sum(axis=1)
    np.testing.assert_array_equal(clf.predict(data), np.array(names)[codes])
    np.testing.assert_array_equal(clf.decision_function(data).argmax(axis=1), codes)
    right = np.array([names.index(name) for name in y])
    sides = np.where(right[:, None] > np.arange(3), 1, -1)
    loss = np.maximum(0, 1 - sides * (f[:, None] - clf.thresholds_)).sum()
    norm = clf.model_.norm_squared()  # thresholds included
    assert clf.objective_ == pytest.approx(0.5 * norm + 5.0 * loss, rel=1e-9)
    assert np.abs(codes - right).mean() < (0.15 if kernel == "rbf" else 0.5)
    assert clf.score(data, y) == np.mean(codes == right)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_solvers_of_ordered_classes(solver, tmp_path):
    X, y = graded()
    clf = OrdinalSVC(classes=["cold", "mild", "warm", "hot"], solver=solver, C=5.0, gamma=0.5, random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.75
    clf.save(tmp_path / "model.slim")
    for again in (slimsvm.load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(again.predict(X), clf.predict(X))
        assert again.classes_.tolist() == ["cold", "mild", "warm", "hot"]


def test_two_ordered_classes_are_the_binary_svm():
    """θ is minus the intercept."""
    X, y = graded()
    y = (y == "cold").astype(int)
    ordered = OrdinalSVC(gamma=0.5).fit(X, y)
    binary = SVC(gamma=0.5, intercept="regularized", tol=1e-9).fit(X, y)
    assert ordered.objective_ == pytest.approx(binary.objective_, rel=1e-8)
    np.testing.assert_allclose(ordered.thresholds_, -binary.intercept_, atol=1e-4)
    np.testing.assert_allclose(ordered.decision_function(X), binary.decision_function(X), atol=1e-4)


def test_the_order_of_classes_is_what_is_learned():
    X, y = graded()
    right = OrdinalSVC(classes=["cold", "mild", "warm", "hot"], kernel="linear").fit(X, y)
    wrong = OrdinalSVC(classes=["mild", "hot", "cold", "warm"], kernel="linear").fit(X, y)
    assert right.objective_ < 0.9 * wrong.objective_
    by_number = OrdinalSVC(kernel="linear").fit(X, np.select([y == "cold", y == "mild", y == "warm"], [1, 3, 7], 9))
    assert by_number.objective_ == pytest.approx(right.objective_, rel=1e-9)
    assert by_number.classes_.tolist() == [1, 3, 7, 9]


@pytest.mark.parametrize("kind", ["categories", "series", "enum"])
def test_ordered_categories_have_their_order(kind):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = graded()
    names = ["freezing", "cold", "mild", "warm", "hot"]
    categories = pd.Categorical(y, categories=names, ordered=True)
    series = {"series": pd.Series(categories), "enum": pl.Series(y.tolist(), dtype=pl.Enum(names))}
    given = series.get(kind, categories)
    clf = OrdinalSVC(kernel="linear").fit(X, given)
    assert clf.classes_.tolist() == names[1:]
    named = OrdinalSVC(classes=names[1:], kernel="linear").fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), named.predict(X))
    assert cross_val_score(clf, X, given, cv=2).min() > 0.5


def test_a_warning_says_in_which_order_texts_are():
    X, y = graded()
    for texts in (y, y.tolist()):
        with pytest.warns(UserWarning, match=r"sorted as texts: 'cold' < 'hot' < 'mild' < 'warm'; give classes="):
            OrdinalSVC(kernel="linear").fit(X, texts)
    OrdinalSVC(kernel="linear").fit(X, graded(names=tuple("ABCD"))[1])
    OrdinalSVC(kernel="linear").fit(X, np.where(y == "hot", "high", "low"))


def test_a_class_without_rows_has_a_defined_place():
    X, y = graded()
    clf = OrdinalSVC(classes=["freezing", "cold", "mild", "warm", "hot", "boiling"]).fit(X, y)
    assert set(clf.predict(X)) <= set(y)
    assert (np.diff(clf.thresholds_) >= -1e-6).all()


def test_weights_C_and_certificates_of_ordered_classes():
    X, y = graded(names=(0, 1, 2, 3))
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = OrdinalSVC(gamma=0.5).fit(X, y, sample_weight=weights)
    repeated = OrdinalSVC(gamma=0.5).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    found = weighted.certificate(X, y, sample_weight=weights)
    assert found.objective == pytest.approx(weighted.objective_, rel=1e-9)
    assert weighted.objective_ * 0.99 <= found.lower_bound <= weighted.objective_ * (1 + 1e-9)
    chosen = OrdinalSVC(C="validate", random_state=0).fit(X, y)
    assert chosen.C_ in [trial["C"] for trial in chosen.validation_]


@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({"classes": ["a", "b"]}, ["a", "b", "c"], r"y must hold the classes \['a', 'b'\]; found .*'c'"),
        ({"classes": ["a", "a"]}, ["a", "a", "a"], "classes must name every class once"),
        ({}, ["a", "a", "a"], "y must hold at least two classes, found 1 class: a"),
        ({}, [0.5, 1.5, 2.5], "Unknown label type"),
        (
            {"solver": "exact"},
            [0, 1, 2],
            "regression and one class, found Ordinal",
        ),
        ({"solver": "low-rank"}, [0, 1, 2], "needs a task with a smoothed loss"),
    ],
)
def test_bad_ordered_classes_are_named(params, y, message):
    with pytest.raises(ValueError, match=message):
        OrdinalSVC(**params).fit(np.eye(3), y)


def test_before_fit():
    with pytest.raises(NotFittedError):
        OrdinalSVC().predict(np.eye(2))
    with pytest.raises(NotFittedError):
        _ = OrdinalSVC().thresholds_


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Multilabel(0), "n_labels must be at least 1, found 0"),
        (lambda: Multilabel(2).encode([[0, 1, 1]]), r"shape \(n, 2\), found shape \(1, 3\)"),
        (lambda: Multilabel(2).encode([[0, 2]]), r"holds 0 and 1 .* found (np.int64\()?2"),
        (lambda: Ordinal(1), "n_classes must be at least 2, found 1"),
        (lambda: Ordinal(2).encode([0, 2]), r"class codes must be 0 to 1, .* found (np.int64\()?2"),
        (lambda: Ordinal(2).encode([[0, 1]]), r"found shape \(1, 2\)"),
    ],
)
def test_bad_labels_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_errors_of_the_tasks():
    examples = Multilabel(2).encode([[1, 0], [1, 1]], [1.0, 3.0])
    assert Multilabel(2).error(np.array([[1, 1], [1, 1]]), examples) == pytest.approx(0.5 / 4)
    examples = Ordinal(4).encode([0, 3], [1.0, 3.0])
    assert Ordinal(4).error(np.array([2, 2]), examples) == pytest.approx((2 + 3) / 4)

"""Axes along which the classes change."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from kernel_cases import with_metric
from slimsvm import SVC, SVR, LearnedAxes
from slimsvm.estimators.transformers import model_of, outer_product_of_gradients, principal_axes
from slimsvm.kernels import kernels_with

QUICK = SVC(kernel="rbf", solver="exact", C=5.0)


class Counting(SVC):
    """It knows how many rows of each class it was trained on."""

    def fit(self, X, y):
        super().fit(X, y)
        self.counts_ = Counter(y)
        return self


def rows_of_turned_classes(n=600, d=4):
    """Classes that change along the first two features' sum alone."""
    X = np.random.default_rng(3).normal(size=(n, d))
    return X, (np.sin(2.0 * (X[:, 0] + X[:, 1])) > 0).astype(int)


def naive_outer_product(estimator, X, h=1e-5):
    """By differences of the scores."""
    steps = h * np.eye(X.shape[1])
    by_feature = [
        (estimator.decision_function(X + step) - estimator.decision_function(X - step)) / (2 * h) for step in steps
    ]
    gradients = np.stack([scores.reshape(len(X), -1) for scores in by_feature])
    return np.einsum("aic,bic->ab", gradients, gradients) / len(X)


def test_scikit_learns_checks_pass():
    check_estimator(LearnedAxes(QUICK), on_skip=None)


@pytest.mark.parametrize("kernel", with_metric(1.0))
@pytest.mark.parametrize("gamma", ["scale", "learn"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradients_are_those_of_the_scores(kernel, gamma, n_classes):
    X, y = make_classification(150, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0)
    estimator = SVC(kernel=kernel, gamma=gamma, max_basis=20, random_state=0).fit(X, y)
    if estimator.multi_class_ == "ovo":
        estimator.set_params(decision_function_shape="ovo")  # the scores as they are
    found = outer_product_of_gradients(*model_of(estimator), X[:40])
    expected = naive_outer_product(estimator, X[:40])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7 * np.abs(found).max())


def test_rows_in_blocks_have_the_same_gradients():
    X, y = rows_of_turned_classes(100)
    model, kernel = model_of(QUICK.fit(X, y))
    whole = outer_product_of_gradients(model, kernel, X)
    in_blocks = outer_product_of_gradients(model, kernel, X, block_values=7 * model.n_basis)
    np.testing.assert_allclose(in_blocks, whole, rtol=1e-12)


def test_the_first_axis_is_the_one_along_which_classes_change():
    X, y = rows_of_turned_classes()
    axes = LearnedAxes(shrinkage=0.0, random_state=0).fit(X, y)
    first = axes.components_[0] / np.linalg.norm(axes.components_[0])
    np.testing.assert_allclose(first, [np.sqrt(0.5), np.sqrt(0.5), 0, 0], atol=0.1)
    assert axes.derivatives_[0] > 3 * axes.derivatives_[1]


def test_few_vectors_err_less_in_turned_axes():
    X, y = rows_of_turned_classes(2000, 6)
    estimator = SVC(gamma="learn", max_basis=10, random_state=0)
    pipeline = make_pipeline(LearnedAxes(random_state=0), estimator)
    turned, plain = (model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) for model in (pipeline, estimator))
    assert turned > plain + 0.05


def test_stretches_are_the_derivatives_to_the_power():
    X, y = rows_of_turned_classes()
    for power in (0, 0.25, 1.0):
        axes = LearnedAxes(QUICK, power=power).fit(X, y)
        gram = axes.components_ @ axes.components_.T
        expected = axes.derivatives_ ** (2 * power)
        np.testing.assert_allclose(gram / gram[0, 0], np.diag(expected / expected[0]), atol=1e-10)


def test_shrinkage_1_keeps_the_features():
    X, y = rows_of_turned_classes()
    components = LearnedAxes(QUICK, shrinkage=1.0).fit(X, y).components_
    assert ((components != 0).sum(axis=1) == 1).all()
    assert (components.max(axis=1) > 0).all()


def test_shrinkage_multiplies_correlations():
    outer = np.array([[4.0, 3.0], [3.0, 9.0]])
    axes, derivatives = principal_axes(outer, 0.5)
    np.testing.assert_allclose((axes.T * derivatives**2) @ axes, [[4.0, 1.5], [1.5, 9.0]])


def test_an_estimator_without_gradients_leaves_the_features():
    axes, derivatives = principal_axes(np.zeros((3, 3)), 0.1)
    np.testing.assert_array_equal(axes, np.eye(3))
    np.testing.assert_array_equal(derivatives, np.ones(3))


def test_new_features_have_a_mean_variance_of_1():
    X, y = rows_of_turned_classes()
    for scale in (1e-8, 1.0, 1e8):
        turned = LearnedAxes(QUICK).fit_transform(scale * X, y)
        np.testing.assert_allclose(turned.var(axis=0).mean(), 1.0)
        np.testing.assert_allclose(turned.mean(axis=0), 0.0, atol=1e-9)


def test_each_class_has_its_share_of_the_rows_drawn():
    X, y = rows_of_turned_classes(900)
    y = np.where(np.arange(900) % 9 == 0, "rare", "often")
    found = LearnedAxes(Counting(kernel="rbf"), max_rows=90, random_state=0).fit(X, y).estimator_.counts_
    assert dict(found) == {"often": 80, "rare": 10}


def test_the_same_rows_are_drawn_for_the_same_random_state():
    X, y = rows_of_turned_classes()
    first, again, other = (LearnedAxes(QUICK, max_rows=99, random_state=r).fit(X, y).components_ for r in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_threads_do_not_matter():
    X, y = rows_of_turned_classes()
    one, four = (LearnedAxes(n_jobs=n, random_state=0).fit(X, y) for n in (1, 4))
    np.testing.assert_array_equal(one.components_, four.components_)


def test_numbers_to_predict():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.sin(X[:, 0] - X[:, 2])
    first = LearnedAxes(SVR(kernel="rbf", C=10.0), shrinkage=0.0).fit(X, y).components_[0]
    np.testing.assert_allclose(first / np.linalg.norm(first), [np.sqrt(0.5), 0, -np.sqrt(0.5)], atol=0.1)


def test_constant_features_get_no_weight_against_others():
    X, y = rows_of_turned_classes()
    X[:, 3] = 7.0
    turned = LearnedAxes(QUICK).fit_transform(X, y)
    assert np.isfinite(turned).all()
    np.testing.assert_allclose(turned[:, -1], 0.0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:the fit ended with an objective")
@pytest.mark.parametrize("C", [1e-10, 1e10])
def test_extreme_C(C):
    X, y = rows_of_turned_classes(60)
    assert np.isfinite(LearnedAxes(SVC(C=C, kernel="rbf")).fit_transform(X, y)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_dtypes(dtype):
    X, y = rows_of_turned_classes(60)
    turned = LearnedAxes(QUICK).fit_transform((3 * X).astype(dtype), y)
    assert turned.dtype == (np.float32 if dtype is np.float32 else np.float64)


def test_axes_have_names():
    X, y = rows_of_turned_classes(60)
    table = pd.DataFrame(X, columns=list("abcd"))
    found = LearnedAxes(QUICK).set_output(transform="pandas").fit(table, y).transform(table)
    assert list(found.columns) == ["learnedaxes0", "learnedaxes1", "learnedaxes2", "learnedaxes3"]


@pytest.mark.parametrize(
    ("changes", "parameters", "message"),
    [
        ({"X": np.array([[1.0, np.nan], [0.0, 1.0]])}, {}, "NaN at row 0, column 1"),
        ({"X": np.array([[1.0, np.inf], [0.0, 1.0]])}, {}, "inf"),
        ({"X": pd.DataFrame({"colour": ["red", "blue"]})}, {}, "found 'red' in column 'colour'"),
        ({"X": sp.csr_array(np.eye(2))}, {}, "[Ss]parse"),
        ({"y": [0, 0]}, {}, "class"),
        ({"y": [0, 1, 1]}, {}, "inconsistent numbers of samples"),
        ({"y": None}, {}, "requires y to be passed"),
        ({"y": [0.0, np.nan]}, {}, "NaN, at row 1"),
        ({}, {"max_rows": 1}, "max_rows must be an integer >= 2, found 1"),
        ({}, {"power": 1.5}, "power must be a number from 0 to 1, found 1.5"),
        ({}, {"shrinkage": -0.1}, "shrinkage must be a number from 0 to 1, found -0.1"),
        ({}, {"shrinkage": np.nan}, "shrinkage must be a number from 0 to 1, found nan"),
        (
            {},
            {"estimator": SVC(kernel="laplacian")},
            f"estimator must have kernel={kernels_with('has_metric')}, found",
        ),
        ({}, {"estimator": LogisticRegression()}, "estimator must be one of slimsvm's SVMs, found LogisticRegression"),
    ],
    ids=str,
)
def test_bad_input(changes, parameters, message):
    data = {"X": np.eye(2), "y": [0, 1]} | changes
    axes = LearnedAxes(**parameters)
    with pytest.raises((ValueError, TypeError), match=message):
        axes.fit(**data)
    assert not hasattr(axes, "components_")
    assert not hasattr(axes, "estimator_")


def test_an_interrupted_estimator_has_no_axes(monkeypatch):
    X, y = rows_of_turned_classes(60)
    fit = SVC.fit

    def interrupted(self, *data):
        fit(self, *data).status_ = "interrupted"
        return self

    monkeypatch.setattr(SVC, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LearnedAxes(QUICK).fit(X, y)

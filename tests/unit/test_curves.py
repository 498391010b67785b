"""Curves of additive models, as numbers and drawn."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, SVR
from slimsvm.kernels import Additive
from slimsvm.plots import CurvesDisplay, additive_curves

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def table(n=300):
    """Two numbers and a category of three levels, and what they add up to."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, n)
    X = pd.DataFrame({"age": rng.uniform(20, 60, n), "income": rng.uniform(0, 9, n)})
    for place, name in enumerate(("red", "green", "blue")):
        X[name] = (level == place).astype(float)
    return X, np.sin(X["age"] / 8) + np.array([1.0, 0.0, -1.0])[level]


def fitted(interaction=0.0):
    X, y = table()
    kernel = Additive(0.3, widths=[1, 1, 3], interaction=interaction)
    return make_pipeline(StandardScaler(), SVR(kernel=kernel, C=100, epsilon=0.01)).fit(X, y), X, y


def test_curves_are_the_functions_that_add_up():
    model, X, _ = fitted()
    curves, names = additive_curves(model, X)
    assert names is None
    assert [curve.name for curve in curves] == ["age", "income", "red … blue"]
    age, income, colour = curves
    assert (age.at[0], age.at[-1]) == (X["age"].min(), X["age"].max())
    truth = np.sin(age.at / 8) - np.sin(X["age"] / 8).mean()
    np.testing.assert_allclose(age.values[:, 0], truth, atol=0.1)
    assert colour.at == ["red", "green", "blue"]
    np.testing.assert_allclose(colour.values[:, 0] - colour.values[1, 0], [1.0, 0.0, -1.0], atol=0.05)
    assert income.spread < 0.1 * age.spread
    at_rows = np.interp(X["age"], age.at, age.values[:, 0]) + np.interp(X["income"], income.at, income.values[:, 0])
    at_rows += X[["red", "green", "blue"]].to_numpy() @ colour.values[:, 0]
    np.testing.assert_allclose(at_rows - at_rows.mean(), model.predict(X) - model.predict(X).mean(), atol=2e-3)


def test_without_rows_the_vectors_are_the_rows():
    model, X, _ = fitted(interaction=0.2)
    curves, _ = additive_curves(model)
    assert X["age"].min() <= curves[0].at[0] < curves[0].at[-1] <= X["age"].max()


def test_drawn_from_the_largest_to_the_smallest():
    model, X, _ = fitted()
    display = CurvesDisplay.from_estimator(model, X)
    axes = display.ax_
    assert display.figure_ is axes[0].figure
    assert [curve.name for curve in display.curves] == ["age", "income", "red … blue"]
    assert [ax.get_xlabel() for ax in axes] == ["red … blue", "age", "income"]
    assert axes[0].get_ylabel() == "added to the score"
    assert len(axes[0].patches) == 3
    assert [tick.get_text() for tick in axes[0].get_xticklabels()] == ["red", "green", "blue"]
    assert len(axes[1].get_lines()) == 2
    assert not axes[0].figure.legends
    assert len(CurvesDisplay.from_estimator(model, X, max_columns=2).ax_) == 2
    given = plt.figure().subplots(1, 3)
    assert CurvesDisplay.from_estimator(model, X, ax=given).figure_ is given[0].figure
    with pytest.raises(ValueError, match="ax must be one of the axes for each of 3 curves, found 1"):
        display.plot(given[0])


def test_several_outputs_have_a_legend():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = SVC(kernel=Additive(0.5)).fit(X, y)
    display = CurvesDisplay.from_estimator(model)
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert labels == ["a - b", "a - c", "b - c"]
    assert not CurvesDisplay.from_estimator(model, output="a - c").figure_.legends
    with pytest.raises(ValueError, match="output must be one of a - b, a - c, b - c, or its number; found 'd'"):
        CurvesDisplay.from_estimator(model, output="d")


def test_more_outputs_than_a_legend_has_room_for_have_none():
    X = np.random.default_rng(0).normal(size=(60, 2))
    display = CurvesDisplay.from_estimator(SVC(kernel=Additive(0.5)).fit(X, np.arange(60) % 10))
    assert (len(display.outputs), display.figure_.legends) == (45, [])


def test_what_has_no_curves_is_refused():
    X, y = table()
    with pytest.raises(ValueError, match=r"curves need rows and kernel=Additive\(\.\.\.\), found regression"):
        CurvesDisplay.from_estimator(SVR().fit(X, y))
    model = SVR(kernel=Additive(0.3, widths=[2, 3])).fit(X, y)
    with pytest.raises(ValueError, match=r"age … income: a term of several columns has a curve only where .* one-hot"):
        CurvesDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="max_columns must be an integer >= 1"):
        CurvesDisplay.from_estimator(model, max_columns=0)
    with pytest.raises(ValueError, match="X must be rows of 5 features as in training, found shape"):
        CurvesDisplay.from_estimator(model, X.to_numpy()[:, :2])
    with pytest.raises(ValueError, match="output must be None where there is one output"):
        CurvesDisplay.from_estimator(fitted()[0], output=1)

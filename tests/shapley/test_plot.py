"""Shapley values as bars and swarms."""

import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from slimsvm import SVC, Explanation
from slimsvm.plots import ExplanationDisplay

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def an_explanation(n=30, d=5, m=None, errors=False):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, d)) * np.arange(1, d + 1) if m is None else rng.normal(size=(n, d, m))
    bases = np.ones(n) if m is None else np.ones((n, m))
    names = None if m is None else [f"class {c}" for c in range(m)]
    return Explanation(values, bases, rng.normal(size=(n, d)), [f"f{f}" for f in range(d)], names,
                       np.full((n, d), 0.25) if errors else None)  # fmt: skip


def drawn(explanation, **options):
    display = ExplanationDisplay.from_explanation(explanation, **options)
    assert display.figure_ is display.ax_.figure
    return display.ax_


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_one_row_has_bars():
    found = an_explanation()[3]
    order = np.argsort(-np.abs(found.values[0]))
    ax = drawn(found, max_features=3)
    widths = [bar.get_width() for bar in ax.patches if np.isfinite(bar.get_width())]
    np.testing.assert_allclose(widths, [*found.values[0, order[:3]], found.values[0, order[3:]].sum()])
    assert labels(ax) == [*(f"f{f} = {found.data[0, f]:.4g}" for f in order[:3]), "2 others"]
    assert ax.get_xlabel() == f"from the base value 1 to the score {1 + found.values.sum():.4g}"
    assert len(drawn(found).patches) == 5 + len(drawn(found).get_legend().get_texts())


def test_bars_of_sampled_values_show_their_errors():
    ax = drawn(an_explanation(errors=True)[0], max_features=2)
    spans = [np.ptp(segment[:, 0]) for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(spans, [1.0, 1.0, 0.0])


def test_several_rows_have_swarms():
    found = an_explanation()
    order = np.argsort(-np.abs(found.values).mean(axis=0))
    ax = drawn(found, max_features=3)
    assert labels(ax) == [*(f"f{f}" for f in order[:3]), "2 others"]
    assert len(ax.collections) == 4
    for at, (swarm, f) in enumerate(zip(ax.collections, order[:3], strict=False)):
        x, y = swarm.get_offsets().T
        np.testing.assert_allclose(x, found.values[:, f])
        assert (np.abs(y - at) < 0.5).all()
        shade = swarm.get_array()
        assert np.argmax(shade) == np.argmax(found.data[:, f])
        assert (shade.min(), shade.max()) == (0.0, 1.0)
    np.testing.assert_allclose(ax.collections[3].get_offsets()[:, 0], found.values[:, order[3:]].sum(axis=1))


def test_rows_of_an_estimator_are_explained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    clf = SVC().fit(X, X[:, 1] > 0)
    display = ExplanationDisplay.from_estimator(clf, X[:5], background=X[::10])
    np.testing.assert_array_equal(display.explanation.values, clf.explain(X[:5], background=X[::10]).values)
    assert labels(display.ax_)[0] == "feature 1"
    assert labels(display.plot(max_features=1).ax_) == ["feature 1", "2 others"]


def test_equal_values_lie_side_by_side():
    ax = drawn(Explanation(np.ones((9, 1)), np.zeros(9), np.ones((9, 1))))
    assert len({tuple(point) for point in ax.collections[0].get_offsets().tolist()}) == 9
    assert labels(ax) == ["feature 0"]


def test_one_of_several_outputs_is_chosen():
    found = an_explanation(m=3)
    ax = drawn(found[0], output="class 2")
    assert sorted(bar.get_width() for bar in ax.patches if np.isfinite(bar.get_width())) == sorted(
        found.values[0, :, 2]
    )
    with pytest.raises(ValueError, match="output must be one of class 0, class 1, class 2, or its number; found None"):
        drawn(found)


def test_it_draws_where_it_is_told_and_refuses_bad_input(monkeypatch):
    ax = plt.subplots()[1]
    assert drawn(an_explanation(), ax=ax) is ax
    with pytest.raises(ValueError, match="max_features must be an integer >= 1, found 0"):
        drawn(an_explanation(), max_features=0)
    with pytest.raises(ValueError, match="at least one row"):
        drawn(an_explanation()[:0])
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'slimsvm\[plots\]'"):
        drawn(an_explanation())

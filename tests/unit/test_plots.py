import subprocess
import sys
import warnings

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SVC, SVR, ExactCuts, KernelExpansion, UniformCuts, ViolatedCuts
from slimsvm.datasets import checkerboard
from slimsvm.kernels import RBF
from slimsvm.plots import (
    plot_basis_images,
    plot_basis_size,
    plot_convergence,
    plot_decision_surface,
    plot_means,
    plot_test_error,
)

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def board():
    return checkerboard(300, random_state=0)


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def column(history, name):
    return [record[name] for record in history]


def test_exact_cuts_show_objective_bound_and_gap(board):
    clf = SVC(gamma=10.0, solver=ExactCuts()).fit(*board)
    drawn = lines(plot_convergence(clf))
    assert set(drawn) == {"objective", "lower bound", "gap"}
    np.testing.assert_array_equal(drawn["objective"].get_xdata(), column(clf.history_, "seconds"))
    np.testing.assert_array_equal(drawn["objective"].get_ydata(), column(clf.history_, "objective"))
    bound = np.array(column(clf.history_, "lower_bound"))
    np.testing.assert_array_equal(drawn["lower bound"].get_ydata(), np.where(bound > 0, bound, np.nan))
    gap = np.array(column(clf.history_, "gap"))
    np.testing.assert_array_equal(drawn["gap"].get_ydata(), np.where(gap > 0, gap, np.nan))


def test_sampled_cuts_show_no_bound(board):
    clf = SVC(gamma=10.0, solver=ViolatedCuts(50), random_state=0, max_seconds=None).fit(*board)
    ax = plot_convergence(clf, x="kernel_evals")
    drawn = lines(ax)
    assert set(drawn) == {"objective", "model value, not a bound"}
    assert drawn["model value, not a bound"].get_linestyle() == "--"
    assert drawn["objective"].get_linestyle() == "-"
    np.testing.assert_array_equal(drawn["objective"].get_xdata(), column(clf.history_, "kernel_evals"))
    value = np.array(column(clf.history_, "model_value"))
    np.testing.assert_array_equal(drawn["model value, not a bound"].get_ydata(), np.where(value > 0, value, np.nan))
    assert ax.get_xlabel() == "kernel evaluations"
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(drawn)


def test_a_bound_within_the_basis_is_called_so(board):
    clf = SVC(gamma=10.0, max_basis=10, random_state=0, max_iter=15, solver="cpsp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(*board)
    drawn = lines(plot_convergence(clf))
    assert set(drawn) == {"objective", "bound within the basis"}
    assert drawn["bound within the basis"].get_linestyle() == "--"
    np.testing.assert_array_equal(
        drawn["bound within the basis"].get_ydata()[-3:], column(clf.history_[-3:], "bound_in_basis")
    )


def test_uniform_cuts_show_the_objective_of_the_end(board):
    clf = SVC(gamma=10.0, solver=UniformCuts(50), random_state=0).fit(*board)
    drawn = lines(plot_convergence(clf))
    assert set(drawn) == {"model value, not a bound", "objective at the end"}
    assert drawn["objective at the end"].get_ydata()[0] == clf.objective_
    assert drawn["objective at the end"].get_xdata()[0] == clf.history_[-1]["seconds"]


def test_history_alone_is_enough(board):
    clf = SVC(gamma=10.0, solver=ExactCuts()).fit(*board)
    given = plt.figure().subplots()
    assert plot_convergence(clf.history_, ax=given) is given
    assert len(lines(given)) == 3


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ([{"seconds": 1.0}], {"x": "hours"}, "x must be one of 'seconds', 'kernel_evals'; found 'hours'"),
        ([], {}, "the history is empty"),
        (SVC(), {}, "SVC has no history_: it is not fitted yet"),
    ],
)
def test_convergence_of_nothing(source, options, message):
    with pytest.raises(ValueError, match=message):
        plot_convergence(source, **options)


def test_surface_of_two_classes(board):
    X, y = board
    clf = SVC(gamma=10.0).fit(X, np.where(y > 0, "white", "black"))
    ax = plot_decision_surface(clf, X, np.where(y > 0, "white", "black"))
    rows, vectors = ax.collections[-2:]
    np.testing.assert_allclose(rows.get_offsets(), X)
    np.testing.assert_allclose(vectors.get_offsets(), clf.basis_vectors_)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["rows", f"{clf.n_basis_} basis vectors"]
    colours = rows.get_facecolors()
    assert len(np.unique(colours[y > 0], axis=0)) == len(np.unique(colours[y < 0], axis=0)) == 1
    assert not np.array_equal(colours[y > 0][0], colours[y < 0][0])
    (zero,) = (c for c in ax.collections if list(getattr(c, "levels", [])) == [-1, 0, 1])
    points = zero.get_paths()[1].vertices
    assert np.abs(clf.decision_function(points)).max() < 0.1 * np.abs(clf.decision_function(X)).max()


def test_surface_of_more_classes_and_sparse_rows(board):
    X, _ = board
    y = np.digitize(X[:, 0], [1.0, 2.5])
    clf = SVC(gamma=1.0).fit(csr_array(X), y)
    ax = plot_decision_surface(clf, csr_array(X), y, max_points=50)
    rows, vectors = ax.collections[-2:]
    assert len(rows.get_offsets()) == 50
    np.testing.assert_allclose(vectors.get_offsets(), clf.basis_vectors_.toarray())
    assert list(ax.collections[0].levels) == [-0.5, 0.5, 1.5, 2.5]


def test_surface_of_a_regression_on_given_axes(board):
    X, _ = board
    given = plt.figure().subplots()
    assert plot_decision_surface(SVR(gamma=1.0).fit(X, X[:, 0]), X, X[:, 0], ax=given) is given
    assert len(given.collections) == 3


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((5, 3)), np.zeros(5), r"X must have shape \(n_samples, 2\) to draw a surface, found \(5, 3\)"),
        (np.zeros((5, 2)), np.zeros(4), r"one value per row of X, shape \(5,\); found \(4,\)"),
    ],
)
def test_surface_needs_two_features(X, y, message):
    with pytest.raises(ValueError, match=message):
        plot_decision_surface(SVC(), X, y)


def test_test_error_draws_means_and_deviations():
    results = [
        dict(method="ours", n_train=1000, test_error=0.05),
        dict(method="ours", n_train=1000, test_error=0.07),
        dict(method="ours", n_train=100, test_error=0.2),
        dict(method="theirs", n_train=100, test_error=0.3),
        dict(method="theirs", n_train=1000, test_error=None),
    ]
    ax = plot_test_error(results)
    ours, theirs = ax.containers
    np.testing.assert_allclose(ours[0].get_xydata(), [[100, 20], [1000, 6]])
    np.testing.assert_allclose(theirs[0].get_xydata(), [[100, 30]])
    low, high = ours[2][0].get_segments()[1][:, 1]
    assert high - 6 == pytest.approx(6 - low) == pytest.approx(np.sqrt(2))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ours", "theirs"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("training rows", "test error (%)", "log")


def test_one_line_without_a_name_needs_no_legend():
    ax = plot_test_error([dict(n_train=10, test_error=0.5)])
    assert ax.get_legend() is None


def test_test_error_of_nothing():
    with pytest.raises(ValueError, match=r"result 1 has no 'test_error'; it has 'n_train'"):
        plot_test_error([dict(n_train=10, test_error=0.5), dict(n_train=20)])
    with pytest.raises(ValueError, match="no results with a value of 'seconds'"):
        plot_means([dict(n_train=10, seconds=None)], "n_train", "seconds")


def sizes():
    return [
        dict(method="CPSP", max_basis=10, test_error=0.2, objective_multiple=2.0, seconds=1.0),
        dict(method="CPSP", max_basis=10, test_error=0.1, objective_multiple=1.5, seconds=1.0),
        dict(method="CPSP", max_basis=100, test_error=0.05, objective_multiple=1.1, seconds=4.0),
        dict(method="exact", max_basis=None, test_error=0.04, objective_multiple=1.0, seconds=9.0),
        dict(method="linear", max_basis=None, test_error=0.3, objective_multiple=None, seconds=0.1),
    ]


@pytest.mark.parametrize(
    ("y", "label", "values", "across"),
    [
        ("test_error", "test error (%)", [15, 5], [4, 30]),
        ("objective_multiple", "objective / exact SVM's", [1.75, 1.1], [1]),
        ("seconds", "seconds of training", [1, 4], [9, 0.1]),
    ],
)
def test_basis_sizes_with_exact_and_linear_ones_across(y, label, values, across):
    ax = plot_basis_size(sizes(), y)
    np.testing.assert_allclose(ax.containers[0][0].get_xydata(), np.column_stack([[10, 100], values]))
    dashed = [line for line in ax.get_lines() if line.get_label() in ("exact", "linear")]
    np.testing.assert_allclose([line.get_ydata()[0] for line in dashed], across)
    assert len({line.get_linestyle() for line in dashed}) == len(dashed)
    assert {text.get_text() for text in ax.get_legend().get_texts()} >= {"CPSP", "exact"}
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("basis vectors", label, "log")
    assert ax.get_yscale() == ("linear" if y == "test_error" else "log")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["10", "100"]
    assert not len(ax.get_xticks(minor=True))


def test_models_of_full_size_have_lines_of_their_own():
    full = [dict(method=name, max_basis=None, test_error=0.1) for name in "abcde"]
    ax = plot_basis_size([dict(method="CPSP", max_basis=10, test_error=0.5), *full])
    lines = [line for line in ax.get_lines() if line.get_label() in set("abcde")]
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == len(full)


def test_basis_sizes_of_one_method_without_a_name():
    ax = plot_basis_size([dict(max_basis=10, test_error=0.5)])
    assert ax.get_legend() is None
    with pytest.raises(ValueError, match="y must be one of 'test_error', 'objective_multiple', 'seconds'; found 'gap'"):
        plot_basis_size(sizes(), "gap")
    with pytest.raises(ValueError, match="result 0 has no 'max_basis'"):
        plot_basis_size([dict(test_error=0.5)])
    with pytest.raises(ValueError, match="no results with a value of 'test_error'"):
        plot_basis_size(sizes()[3:])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_basis_images_are_in_the_order_of_their_coefficients(sparse):
    basis, coef = np.arange(18.0).reshape(3, 6), np.array([[1.0, 0.5], [-3.0, 0.0], [1.0, 1.0]])
    model = KernelExpansion(
        csr_array(basis) if sparse else basis, coef, np.zeros(2), np.zeros(0), RBF(1.0), "float64"
    )  # fmt: skip
    (image,) = plot_basis_images(model, (2, 3)).get_images()
    shown = np.ma.filled(image.get_array(), np.nan)
    assert shown.shape == (2 * 3 - 1, 2 * 4 - 1)
    np.testing.assert_array_equal(shown[:2, :3], basis[1].reshape(2, 3))
    np.testing.assert_array_equal(shown[:2, 4:], basis[2].reshape(2, 3))
    np.testing.assert_array_equal(shown[3:, :3], basis[0].reshape(2, 3))
    assert np.isnan(shown[3:, 4:]).all()
    assert np.isnan(shown[2]).all()
    assert np.isnan(shown[:, 3]).all()


def test_basis_images_of_an_estimator(board):
    X = np.hstack([board[0], board[0]])
    clf = SVC(gamma=1.0).fit(X, board[1])
    given = plt.figure().subplots()
    assert plot_basis_images(clf, max_images=4, ax=given) is given
    assert given.get_images()[0].get_array().shape == (5, 5)


def test_basis_images_of_what_is_none(board):
    clf = SVC(gamma=1.0).fit(*board)
    with pytest.raises(ValueError, match=r"shape \(1, 1\) has 1 pixels, the vectors have 2"):
        plot_basis_images(clf)
    with pytest.raises(ValueError, match="SVC has no model_: it is not fitted yet"):
        plot_basis_images(SVC())
    nothing = KernelExpansion(np.zeros((0, 4)), np.zeros((0, 1)), np.zeros(1), np.zeros(0), RBF(1.0), "float64")
    with pytest.raises(ValueError, match="the model has no basis vectors"):
        plot_basis_images(nothing)
    with pytest.raises(ValueError, match=r"shape must be \(height, width\) of an image or None, found 2"):
        plot_basis_images(clf, 2)
    for wrong in (0, -5, 2.5):
        with pytest.raises(ValueError, match=f"max_images must be an integer >= 1, found {wrong}"):
            plot_basis_images(clf, (1, 2), max_images=wrong)


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"plots need matplotlib: pip install 'slimsvm\[plots\]'"):
        plot_test_error([dict(n_train=10, test_error=0.5)])


def test_import_alone_does_not_load_matplotlib():
    code = "import sys, slimsvm.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

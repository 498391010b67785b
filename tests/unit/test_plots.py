import io
import subprocess
import sys
import warnings

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, SVR, Compact, ExactCuts, OneClassSVM, UniformCuts, ViolatedCuts
from slimsvm.datasets import checkerboard
from slimsvm.kernels import RBF
from slimsvm.plots import (
    ConvergenceDisplay,
    DecisionSurfaceDisplay,
    MetricDisplay,
    SizePathDisplay,
    VectorsDisplay,
    plot_means,
)
from slimsvm.plots.drawing import PALETTE, colour_of_class, label

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


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def assert_nothing_is_cut_off(display):
    """Whether all that is drawn lies within the figure, as a plain ``savefig`` has it."""
    figure = display.figure_
    figure.canvas.draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(box.x0, box.y0) >= -0.02, box
    assert box.x1 <= width + 0.02, box
    assert box.y1 <= height + 0.02, box


# -- the fit of an estimator ------------------------------------------------------------------------------------------


def test_exact_cuts_come_near_from_both_sides(board):
    clf = SVC(gamma=10.0, solver=ExactCuts()).fit(*board)
    display = ConvergenceDisplay.from_estimator(clf)
    assert list(display.curves) == ["objective above the best bound", "bound below the best objective"]
    drawn = lines(display.ax_)
    objective, bound = (np.array(column(clf.history_, name)) for name in ("objective", "lower_bound"))
    for name, above in (
        ("objective above the best bound", objective - bound.max()),
        ("bound below the best objective", objective.min() - bound),
    ):
        expected = np.where(above > 0, above / objective.min(), np.nan)
        np.testing.assert_allclose(display.curves[name], expected)
        np.testing.assert_array_equal(drawn[name].get_ydata(), display.curves[name])
        np.testing.assert_array_equal(drawn[name].get_xdata(), column(clf.history_, "seconds"))
    assert (display.ax_.get_yscale(), display.ax_.get_xlabel()) == ("log", "seconds")
    assert_nothing_is_cut_off(display)


def test_the_exact_solver_is_no_flat_line(board):
    clf = SVC(gamma=10.0).fit(*board)
    display = ConvergenceDisplay.from_estimator(clf, x="kernel_evals")
    violation = display.curves["violation of optimality"]
    assert violation[0] > 100 * violation[-1] > 0
    assert display.ax_.get_xlabel() == "kernel evaluations"
    assert display.ax_.get_ylabel() == "relative distance, violation"
    assert legend(display.ax_) == list(display.curves)


@pytest.mark.parametrize("n", [60, 1000])
def test_pairs_of_classes_come_near_from_below(n):
    """One record is one pair; the bounds of those that are done add up to the bound of all."""
    X, y = make_blobs(n, centers=5, cluster_std=3.0, random_state=0)
    clf = SVC().fit(X, y)
    display = ConvergenceDisplay.from_estimator(clf)
    bound = np.array(column(clf.history_, "lower_bound"))
    assert len(bound) == 10
    assert (np.diff(bound) > 0).all()
    assert bound[-1] == pytest.approx(clf.lower_bound_, rel=1e-6)
    below = display.curves["bound below the best objective"]
    np.testing.assert_allclose(below[:-1], 1 - bound[:-1] / clf.objective_)


def test_sampled_cuts_show_no_bound(board):
    clf = SVC(gamma=10.0, solver=ViolatedCuts(50), random_state=0, max_seconds=None).fit(*board)
    drawn = lines(ConvergenceDisplay.from_estimator(clf).ax_)
    assert set(drawn) == {"objective above the smallest", "model value off the objective, no bound"}
    assert drawn["model value off the objective, no bound"].get_linestyle() == "--"


def test_a_bound_within_the_basis_is_called_so(board):
    clf = SVC(gamma=10.0, max_basis=10, random_state=0, max_iter=15, solver="cpsp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(*board)
    drawn = lines(ConvergenceDisplay.from_estimator(clf).ax_)
    assert set(drawn) == {"objective above the smallest", "bound in the basis below the smallest"}
    objective = np.array(column(clf.history_, "objective"), dtype=float)
    expected = 1 - clf.history_[-1]["bound_in_basis"] / np.nanmin(objective)
    assert drawn["bound in the basis below the smallest"].get_ydata()[-1] == pytest.approx(expected)


def test_uniform_cuts_are_measured_by_the_objective_of_the_end(board):
    clf = SVC(gamma=10.0, solver=UniformCuts(50), random_state=0).fit(*board)
    (values,) = ConvergenceDisplay.from_estimator(clf).curves.values()
    expected = np.abs(clf.objective_ - np.array(column(clf.history_, "model_value"))) / clf.objective_
    np.testing.assert_allclose(values, expected)


def test_the_last_estimator_of_several_is_shown(board):
    clf = SVC(gamma=1.0, solver=Compact(max_basis=20), random_state=0)
    pipeline = make_pipeline(StandardScaler(), clf).fit(*board)
    assert [record["stage"] for record in clf.history_][-1] == "moved vectors"
    display = ConvergenceDisplay.from_estimator(pipeline)
    assert display.stage == display.ax_.get_legend().get_title().get_text() == "exact SVM"
    assert len(display.at) == sum(record["stage"] == "exact SVM" for record in clf.history_)


def test_convergence_of_nothing(board):
    with pytest.raises(ValueError, match="SVC has no history_: it is not fitted yet"):
        ConvergenceDisplay.from_estimator(SVC())
    clf = SVC(gamma=1.0).fit(*board)
    with pytest.raises(ValueError, match="x must be one of 'seconds', 'kernel_evals'; found 'hours'"):
        ConvergenceDisplay.from_estimator(clf, x="hours")
    clf.history_ = [{"seconds": 1.0, "kernel_evals": 3}]
    clf.objective_ = np.nan
    with pytest.raises(ValueError, match="the history of SVC has no distance to an optimum to draw"):
        ConvergenceDisplay.from_estimator(clf)


# -- the plane --------------------------------------------------------------------------------------------------------


def points(display, name):
    (found,) = [each for each in display.ax_.collections if each.get_label() == name]
    return found


def test_surface_of_two_classes(board):
    X, y = board
    y = np.where(y > 0, "white", "black")
    clf = SVC(gamma=10.0).fit(X, y)
    display = DecisionSurfaceDisplay.from_estimator(clf, X, y, grid_resolution=51)
    assert (display.response_method, display.classes) == ("score", ["black", "white"])
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_array_equal(display.response.ravel(), clf.decision_function(grid))
    assert legend(display.ax_) == ["score 0", "score −1, 1", "black", "white", f"{clf.n_basis_} vectors"]
    for k, name in enumerate(display.classes):
        np.testing.assert_allclose(points(display, name).get_offsets(), X[y == name])
        np.testing.assert_allclose(points(display, name).get_facecolors(), [to_rgba(PALETTE[k])])
    np.testing.assert_allclose(points(display, f"{clf.n_basis_} vectors").get_offsets(), clf.basis_vectors_)
    surface = display.ax_.collections[0]
    low, high = (np.array(surface.cmap(surface.norm(score)))[:3] for score in (-1e9, 1e9))
    for k, colour in enumerate((low, high)):  # towards its class's colour, from white
        pure = np.array(to_rgba(PALETTE[k])[:3])
        np.testing.assert_allclose((1 - colour) / (1 - colour).max(), (1 - pure) / (1 - pure).max(), atol=0.02)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 0", "feature 1")
    assert_nothing_is_cut_off(display)


@pytest.mark.parametrize("k", [3, 10])
def test_surface_of_more_classes_and_sparse_rows(board, k):
    X, _ = board
    y = np.minimum((X[:, 0] * k / 4).astype(int), k - 1)
    clf = SVC(gamma=1.0).fit(csr_array(X), y)
    display = DecisionSurfaceDisplay.from_estimator(clf, csr_array(X), y, max_points=50)
    assert display.response_method == "class"
    assert len(display.X) == len(display.y) == 50
    assert legend(display.ax_) == [*map(str, range(k)), f"{clf.n_basis_} vectors"]
    surface = display.ax_.collections[0]
    for c in range(k):
        pure = np.array(to_rgba(colour_of_class(c))[:3])
        np.testing.assert_allclose(surface.cmap(surface.norm(c))[:3], 1 - 0.45 * (1 - pure), atol=1e-6)
    assert_nothing_is_cut_off(display)


def test_surface_of_a_pipeline_and_a_data_frame_is_in_their_units(board):
    X, y = pd.DataFrame(board[0] * [1.0, 1000.0], columns=["width", "height"]), board[1]
    pipeline = make_pipeline(StandardScaler(), SVC(max_basis=5, random_state=0)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = DecisionSurfaceDisplay.from_estimator(pipeline, X)
    expected = pipeline[0].inverse_transform(pipeline[-1].basis_vectors_)
    np.testing.assert_allclose(display.vectors, expected)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")
    assert display.y is None
    assert "rows" in legend(display.ax_)


def test_surface_of_a_regression_and_of_one_class(board):
    X, _ = board
    given = plt.figure().subplots()
    display = DecisionSurfaceDisplay.from_estimator(SVR(gamma=1.0).fit(X, X[:, 0]), X, X[:, 0], ax=given)
    assert display.ax_ is given
    assert display.response_method == "prediction"
    surface, rows = given.collections[:2]
    assert (rows.norm.vmin, rows.norm.vmax) == (surface.norm.vmin, surface.norm.vmax)
    display = DecisionSurfaceDisplay.from_estimator(OneClassSVM(gamma=1.0).fit(X), X)
    assert (display.response_method, display.classes) == ("score", ["outlier", "inlier"])


def test_surface_of_what_has_none(board):
    X, y = board
    clf = SVC(gamma=1.0).fit(X, y)
    draw = DecisionSurfaceDisplay.from_estimator
    for columns in (1, 3):
        with pytest.raises(ValueError, match=rf"X must have shape \(n_samples, 2\) .* found \(5, {columns}\)"):
            draw(clf, np.zeros((5, columns)))
    with pytest.raises(ValueError, match=r"one value per row of X, shape \(5,\); found \(4,\)"):
        draw(clf, np.zeros((5, 2)), np.zeros(4))
    with pytest.raises(ValueError, match="grid_resolution must be an integer >= 2, found 1"):
        draw(clf, X, grid_resolution=1)
    with pytest.raises(ValueError, match="y has the label 7, the estimator knows -1"):
        draw(clf, X, np.full(len(X), 7))
    with pytest.raises(ValueError, match="a surface is that of one number a row"):
        draw(SVR(loss="quantile", quantile=[0.1, 0.9], max_basis=5, random_state=0).fit(X, X[:, 0]), X)
    with pytest.raises(ValueError, match="not fitted"):
        draw(SVC(), X, y)


# -- sizes ------------------------------------------------------------------------------------------------------------


def test_means_are_a_line_with_deviations_for_each_method():
    results = [
        dict(method="ours", n_train=1000, test_error=0.05),
        dict(method="ours", n_train=1000, test_error=0.07),
        dict(method="ours", n_train=100, test_error=0.2),
        dict(method="theirs", n_train=100, test_error=0.3),
        dict(method="theirs", n_train=1000, test_error=None),
    ]
    ax = plot_means(results, "n_train", "test_error", scale=100.0)
    ours, theirs = ax.containers
    np.testing.assert_allclose(ours[0].get_xydata(), [[100, 20], [1000, 6]])
    np.testing.assert_allclose(theirs[0].get_xydata(), [[100, 30]])
    low, high = ours[2][0].get_segments()[1][:, 1]
    assert high - 6 == pytest.approx(6 - low) == pytest.approx(np.sqrt(2))
    assert legend(ax) == ["ours", "theirs"]
    with pytest.raises(ValueError, match=r"result 1 has no 'test_error'; it has 'n_train'"):
        plot_means([dict(n_train=10, test_error=0.5), dict(n_train=20)], "n_train", "test_error")
    with pytest.raises(ValueError, match="no results with a value of 'seconds'"):
        plot_means([dict(n_train=10, seconds=None)], "n_train", "seconds")


def test_sizes_of_a_search_beside_the_exact_svm(board):
    clf = SVC(gamma=1.0, max_basis="auto", random_state=0).fit(*board)
    display = SizePathDisplay.from_estimator(clf)
    (tried,) = display.ax_.containers
    np.testing.assert_allclose(tried[0].get_xydata(), [[t["n_basis"], t["error"]] for t in clf.validation_])
    exact = clf.validation_[0]["error"] - clf.validation_[0]["extra_error"]
    assert lines(display.ax_)["exact SVM"].get_ydata()[0] == exact
    assert f"the model: {clf.n_basis_}" in legend(display.ax_)
    assert (display.ax_.get_xlabel(), display.ax_.get_xscale()) == ("vectors of the model", "log")
    assert_nothing_is_cut_off(display)
    with pytest.raises(ValueError, match="SVC has no sizes in validation_: fit it with max_basis='auto'"):
        SizePathDisplay.from_estimator(SVC(gamma=1.0).fit(*board))


def sizes():
    return [
        dict(method="CPSP", max_basis=10, test_error=0.2, objective_multiple=2.0, seconds=1.0),
        dict(method="CPSP", max_basis=10, test_error=0.1, objective_multiple=1.5, seconds=1.0),
        dict(method="CPSP", max_basis=100, test_error=0.05, objective_multiple=1.1, seconds=4.0),
        dict(method="exact", max_basis=None, test_error=0.04, objective_multiple=1.0, seconds=9.0),
        dict(method="linear", max_basis=None, test_error=0.3, objective_multiple=None, seconds=0.1),
    ]


@pytest.mark.parametrize(
    ("y", "name", "values", "across"),
    [
        ("test_error", "test error (%)", [15, 5], [4, 30]),
        ("objective_multiple", "objective / exact SVM's", [1.75, 1.1], [1]),
        ("seconds", "seconds of training", [1, 4], [9, 0.1]),
    ],
)
def test_sizes_of_results_with_exact_and_linear_ones_across(y, name, values, across):
    ax = SizePathDisplay.from_results(sizes(), y=y).ax_
    np.testing.assert_allclose(ax.containers[0][0].get_xydata(), np.column_stack([[10, 100], values]))
    dashed = [line for line in ax.get_lines() if line.get_label() in ("exact", "linear")]
    np.testing.assert_allclose([line.get_ydata()[0] for line in dashed], across)
    assert len({line.get_linestyle() for line in dashed}) == len(dashed)
    assert set(legend(ax)) >= {"CPSP", "exact"}
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("vectors of the model", name, "log")
    assert ax.get_yscale() == ("linear" if y == "test_error" else "log")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["10", "100"]


def test_sizes_of_results_that_lack_something():
    assert SizePathDisplay.from_results([dict(max_basis=10, test_error=0.5)]).ax_.get_legend() is None
    with pytest.raises(ValueError, match="y must be one of 'test_error', 'objective_multiple', 'seconds'; found 'gap'"):
        SizePathDisplay.from_results(sizes(), y="gap")
    with pytest.raises(ValueError, match="result 0 has no 'max_basis'"):
        SizePathDisplay.from_results([dict(test_error=0.5)])
    with pytest.raises(ValueError, match="no results with a value of 'test_error'"):
        SizePathDisplay.from_results(sizes()[3:])


# -- vectors and features ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_images_are_in_the_order_of_their_coefficients(board, sparse):
    X = np.hstack([board[0]] * 3)
    clf = SVC(gamma=1.0, max_basis=3, random_state=0).fit(csr_array(X) if sparse else X, board[1])
    display = VectorsDisplay.from_estimator(clf, shape=(2, 3))
    vectors = clf.basis_vectors_
    order = np.argsort(-np.abs(clf.basis_coef_).sum(axis=1))
    np.testing.assert_allclose(display.vectors, vectors[order])
    (image,) = display.ax_.get_images()
    shown = np.ma.filled(image.get_array(), np.nan)
    assert shown.shape == (2 * 3 - 1, 2 * 4 - 1)
    first = display.vectors[0]
    np.testing.assert_allclose(shown[:2, :3].ravel(), (first - first.min()) / np.ptp(first))
    assert np.isnan(shown[3:, 4:]).all()
    assert np.isnan(shown[2]).all()
    assert_nothing_is_cut_off(display)


@pytest.mark.parametrize("multi_class", ["ovo", "crammer-singer"])
def test_lines_have_the_colour_of_the_class_they_speak_for(multi_class):
    iris = load_iris(as_frame=True)
    y = np.array(iris.target_names)[iris.target]
    pipeline = make_pipeline(StandardScaler(), SVC(multi_class=multi_class)).fit(iris.data, y)
    display = VectorsDisplay.from_estimator(pipeline, max_vectors=20)
    assert len(display.vectors) == 20
    assert display.classes == list(iris.target_names)
    assert display.feature_names == list(iris.data.columns)
    rows = iris.data.to_numpy()
    for vector, k in zip(display.vectors, display.of_class, strict=True):  # support vectors are rows, of that class
        own = y[np.abs(rows - vector).max(axis=1) < 1e-6]
        assert display.classes[k] in own
    colours = [line.get_color() for line in display.ax_.get_lines()]
    assert colours == [colour_of_class(k) for k in display.of_class[::-1]]
    assert legend(display.ax_) == [display.classes[k] for k in sorted(set(display.of_class))]
    assert_nothing_is_cut_off(display)


def test_lines_of_a_regression_say_what_raises_it(board):
    X, _ = board
    display = VectorsDisplay.from_estimator(SVR(gamma=1.0, max_basis=10, random_state=0).fit(X, X[:, 0]))
    assert display.classes == ["lowers", "raises"]
    assert set(display.of_class) <= {0, 1}


def test_vectors_of_what_has_none(board):
    X, y = board
    clf = SVC(gamma=1.0).fit(X, y)
    draw = VectorsDisplay.from_estimator
    with pytest.raises(ValueError, match=r"shape \(3, 3\) has 9 pixels, the vectors have 2"):
        draw(clf, shape=(3, 3))
    for shape in (2, ("a", 1), (2.0, 1.0)):
        with pytest.raises(ValueError, match=r"shape must be \(height, width\) of an image or None, found "):
            draw(clf, shape=shape)
    with pytest.raises(ValueError, match="max_vectors must be an integer >= 1, found 0"):
        draw(clf, max_vectors=0)
    with pytest.raises(ValueError, match="lines across the features need two features or more, the vectors have 1"):
        draw(SVC(gamma=1.0).fit(X[:, :1], y))
    with pytest.raises(ValueError, match="linear kernel is weights of the features, it has no vectors"):
        draw(SVC(kernel="linear").fit(X, y))
    with pytest.raises(ValueError, match="precomputed kernel has numbers of rows, it has no vectors"):
        draw(SVC(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(ValueError, match="feature_names must be 2 names, found 1"):
        draw(clf, feature_names=["a"])
    with pytest.raises(ValueError, match="not fitted"):
        draw(SVC())


def test_metric_has_the_largest_gamma_on_top():
    iris = load_iris(as_frame=True)
    clf = SVC(kernel=RBF([1.0, 4.0, 2.0, 3.0]))
    pipeline = make_pipeline(StandardScaler(), clf).fit(iris.data, iris.target)
    display = MetricDisplay.from_estimator(pipeline, max_features=3)
    np.testing.assert_array_equal(display.gamma, [1, 4, 2, 3])
    assert [bar.get_width() for bar in display.ax_.patches] == [4, 3, 2]
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [iris.data.columns[f] for f in (1, 3, 2)]
    assert display.ax_.get_title() == "3 of 4 features"
    named = MetricDisplay.from_estimator(pipeline, feature_names=["a long name of a feature " * 9] * 4)
    assert_nothing_is_cut_off(named)
    with pytest.raises(ValueError, match="the kernel has no gamma for every feature"):
        MetricDisplay.from_estimator(SVC(gamma=1.0).fit(iris.data, iris.target))
    with pytest.raises(ValueError, match="not fitted"):
        MetricDisplay.from_estimator(SVC())
    with pytest.raises(ValueError, match="max_features must be an integer >= 1"):
        display.plot(max_features=0)


def test_names_are_kept_short_and_classes_apart():
    assert label("short") == "short"
    assert label("$x$") == r"\$x\$"
    assert max(map(len, label("word " * 50).split("\n"))) <= 36
    assert len(label("x" * 500).split("\n")) == 2
    assert len({colour_of_class(k) for k in range(10)}) == 10


def test_every_class_is_in_the_legend_if_there_is_room(board):
    """Also names that matplotlib leaves out, or takes for formulas."""
    X, y = board
    names = np.array(["_x", r"$\frac{$"])[(y > 0) * 1]
    clf = SVC(gamma=1.0).fit(X, names)
    display = DecisionSurfaceDisplay.from_estimator(clf, X, names, grid_resolution=5)
    shown = {text.get_text().strip() for text in display.ax_.get_legend().get_texts()}
    assert {"_x", r"\$\frac{\$"} <= shown
    display.figure_.savefig(io.BytesIO())
    many = np.arange(len(X)) % 40
    clf = SVC(gamma=1.0, max_basis=5, multi_class="crammer-singer", random_state=0).fit(X, many)
    assert DecisionSurfaceDisplay.from_estimator(clf, X, many, grid_resolution=5).ax_.get_legend() is None


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"plots need matplotlib: pip install 'slimsvm\[plots\]'"):
        SizePathDisplay.from_results([dict(max_basis=10, test_error=0.5)])


def test_import_alone_does_not_load_matplotlib():
    code = "import sys, slimsvm.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Plots of fits and of results, and what all plots share: the axes, and checks of what they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from slimsvm.docstrings import described
from slimsvm.rows import is_sparse

Array = np.ndarray

# What the docstrings of all plots say.
DRAWING = """
Parameters
----------
ax : matplotlib.axes.Axes or None, default=None
    The axes to draw on; None makes a new figure.

Returns
-------
matplotlib.axes.Axes

Raises
------
ImportError
    matplotlib is not installed.
"""

CONVERGENCE_AXES = {"seconds": "seconds", "kernel_evals": "kernel evaluations"}
GRID = 201  # points per side of a decision surface
MOST_TICKS = 10  # numbers named on the axis of vectors
ACROSS = "--", ":", "-.", (0, (1, 4)), (0, (8, 3, 1, 3, 1, 3))  # lines of models of full size


@described(DRAWING)
def plot_convergence(estimator_or_history: Any, x: str = "seconds", ax: Any = None) -> Any:
    """Draw the objective of a fit, and its lower bound and gap if it has them, on a logarithmic axis.

    Dashed lines are not bounds of the optimum: the objective that sampled cuts estimate for their own model, and the
    bound within the span of a basis (`CPSP`). A fit that computes its objective only at the end (`UniformCuts`) is
    drawn as a point.

    Parameters
    ----------
    estimator_or_history : fitted estimator, or list of dict
        The estimator, or its ``history_``.
    x : {"seconds", "kernel_evals"}, default="seconds"
        The horizontal axis.
    ax

    Raises
    ------
    ValueError
        ``x`` has another value, or there is no history.
    ImportError

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC, ExactCuts
    >>> from slimsvm.plots import plot_convergence
    >>> clf = SVC(solver=ExactCuts()).fit(*load_iris(return_X_y=True))
    >>> ax = plot_convergence(clf, x="kernel_evals")                # doctest: +SKIP
    >>> ax.figure.savefig("convergence.png")                        # doctest: +SKIP
    """
    check_choice("x", x, CONVERGENCE_AXES)
    history = _history(estimator_or_history)
    at = _column(history, x)
    objective, lower, gap = (_column(history, name) for name in ("objective", "lower_bound", "gap"))
    ax = axes_for(ax)
    _line(ax, at, objective, "objective", color="C0")
    _line(ax, at, lower, "lower bound", color="C1")
    _line(ax, at, gap, "gap", color="C2")
    if not np.isfinite(lower).any():
        key, label = "model_value", "model value, not a bound"
        if "bound_in_basis" in history[-1]:
            key, label = "bound_in_basis", "bound within the basis"
        _line(ax, at, _column(history, key), label, color="C1", linestyle="--")
    final = getattr(estimator_or_history, "objective_", None)
    if not np.isfinite(objective).any() and final is not None and np.isfinite(final):
        ax.plot(at[-1:], [final], "o", color="C0", label="objective at the end")
    ax.set(yscale="log", xlabel=CONVERGENCE_AXES[x], ylabel="objective and bounds")
    ax.legend()
    return ax


def _history(source: Any) -> list[Mapping[str, Any]]:
    """Records of a fit."""
    if isinstance(source, (list, tuple)):
        history = list(source)
    elif not hasattr(source, "history_"):
        raise ValueError(
            f"{type(source).__name__} has no history_: it is not fitted yet, or was read from a file, which does not "
            "hold the history"
        )
    else:
        history = list(source.history_)
    if not history:
        raise ValueError("the history is empty: there is nothing to plot")
    return history


def _column(history: Sequence[Mapping[str, Any]], name: str) -> Array:
    """One value per record, NaN where there is none."""
    values = [record.get(name) for record in history]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _line(ax: Any, at: Array, values: Array, label: str, **style: Any) -> None:
    """Draw the positive values (a logarithmic axis has no others), if there are any."""
    shown = np.where(values > 0, values, np.nan)
    if np.isfinite(shown).any():
        ax.plot(at, shown, label=label, **style)


@described(DRAWING)
def plot_decision_surface(estimator: Any, X: Any, y: Any, ax: Any = None, *, max_points: int = 2000) -> Any:
    """Draw the function that an estimator of two features has learned, with rows and basis vectors.

    For two classes it is the score, with the contours −1, 0, +1. For more it is the predicted class; for regression,
    the prediction.

    Parameters
    ----------
    estimator : fitted estimator
        An estimator of this library. Others' basis vectors are shown if they have ``support_vectors_``.
    X : array-like of shape (n_samples, 2)
        Rows to show; they also determine the part of the plane that is drawn.
    y : array-like of shape (n_samples,)
        Their labels or values.
    ax
    max_points : int, default=2000
        If there are more rows, evenly spaced ones are shown.

    Raises
    ------
    ValueError
        X does not have two features, or y has another length.
    ImportError

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.datasets import checkerboard
    >>> from slimsvm.plots import plot_decision_surface
    >>> X, y = checkerboard(1000, random_state=0)
    >>> ax = plot_decision_surface(SVC(gamma=10).fit(X, y), X, y)   # doctest: +SKIP
    """
    X = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
    y = np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2 or not len(X):
        raise ValueError(f"X must have shape (n_samples, 2) to draw a surface, found {X.shape}")
    if y.shape != (len(X),):
        raise ValueError(f"y must have one value per row of X, shape ({len(X)},); found {y.shape}")
    ax = axes_for(ax)
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.05 * np.where(high > low, high - low, 1.0)
    first, second = (np.linspace(a, b, GRID) for a, b in zip(low - margin, high + margin))
    grid = np.stack([side.ravel() for side in np.meshgrid(first, second)], axis=1)
    classes = getattr(estimator, "classes_", None)
    shown = np.unique(np.linspace(0, len(X) - 1, min(len(X), max_points)).astype(np.int64))
    if classes is None:
        colours = dict(c=y[shown], cmap="viridis")
        ax.contourf(first, second, estimator.predict(grid).reshape(GRID, GRID), levels=20, cmap="viridis", alpha=0.5)
    else:
        codes = np.searchsorted(classes, y[shown])
        colours = dict(c=[f"C{code}" for code in codes])
        _draw_classes(ax, estimator, classes, first, second, grid)
    ax.scatter(X[shown, 0], X[shown, 1], s=6, linewidths=0, label="rows", **colours)
    vectors = getattr(estimator, "basis_vectors_", getattr(estimator, "support_vectors_", None))
    if vectors is not None:
        vectors = vectors.toarray() if is_sparse(vectors) else np.asarray(vectors)
        label = f"{len(vectors)} basis vectors"
        ax.scatter(vectors[:, 0], vectors[:, 1], s=18, facecolors="none", edgecolors="k", linewidths=0.6, label=label)
    ax.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax


def _draw_classes(ax: Any, estimator: Any, classes: Array, first: Array, second: Array, grid: Array) -> None:
    """Scores of two classes, or the regions of more."""
    if len(classes) == 2:
        scores = np.asarray(estimator.decision_function(grid)).reshape(GRID, GRID)
        largest = float(np.abs(scores).max()) or 1.0
        ax.contourf(first, second, scores, levels=np.linspace(-largest, largest, 21), cmap="PuOr_r", alpha=0.6)
        ax.contour(first, second, scores, levels=[-1, 0, 1], colors="k", linestyles=["--", "-", "--"], linewidths=0.8)
        return
    codes = np.searchsorted(classes, estimator.predict(grid)).reshape(GRID, GRID)
    levels = np.arange(len(classes) + 1) - 0.5
    ax.contourf(first, second, codes, levels=levels, colors=[f"C{k}" for k in range(len(classes))], alpha=0.3)


@described(DRAWING)
def plot_means(
    results: Sequence[Mapping[str, Any]], x: str, y: str, *, by: str = "method", scale: float = 1.0, ax: Any = None
) -> Any:
    """Draw the means of one quantity against another, a line for each method, bars for standard deviations.

    Parameters
    ----------
    results : list of dict
        One per run. Runs with the same ``by`` and ``x`` are averaged; runs whose ``y`` is None are left out.
    x, y : str
        Keys of the quantities on the axes.
    by : str, default="method"
        Key that distinguishes the lines; results without it belong to one line without a name.
    scale : float, default=1.0
        Factor on y.
    ax

    Raises
    ------
    ValueError
        A result lacks ``x`` or ``y``, or there are none.
    ImportError
    """
    for number, result in enumerate(results):
        for key in (x, y):
            if key not in result:
                raise ValueError(f"result {number} has no {key!r}; it has {', '.join(map(repr, result)) or 'nothing'}")
    known = [result for result in results if result[y] is not None]
    if not known:
        raise ValueError(f"there are no results with a value of {y!r}")
    ax = axes_for(ax)
    for name in dict.fromkeys(result.get(by) for result in known):
        chosen = [result for result in known if result.get(by) == name]
        at = sorted({result[x] for result in chosen})
        values = [[scale * result[y] for result in chosen if result[x] == place] for place in at]
        means = [float(np.mean(runs)) for runs in values]
        deviations = [float(np.std(runs, ddof=1)) if len(runs) > 1 else 0.0 for runs in values]
        label = None if name is None else str(name)
        ax.errorbar(at, means, yerr=deviations, marker="o", markersize=4, capsize=2, label=label)
    ax.set_xscale("log")
    if any(result.get(by) is not None for result in known):
        ax.legend(fontsize="small")
    return ax


@described(DRAWING)
def plot_test_error(results: Sequence[Mapping[str, Any]], ax: Any = None) -> Any:
    """Draw test error against training-set size.

    Parameters
    ----------
    results : list of dict
        One per run, with ``n_train``, ``test_error`` (a share, not per cent) and, if there are several,
        ``method``. Runs with the same method and size are averaged; bars show their standard deviation.
    ax

    Raises
    ------
    ValueError
        A result lacks a key, or there are none.
    ImportError

    Examples
    --------
    >>> from slimsvm.plots import plot_test_error
    >>> results = [dict(method="exact", n_train=n, test_error=1 / n) for n in (100, 1000)]
    >>> ax = plot_test_error(results)                               # doctest: +SKIP
    """
    ax = plot_means(results, "n_train", "test_error", scale=100.0, ax=ax)
    ax.set(xlabel="training rows", ylabel="test error (%)")
    return ax


BASIS_AXES = {
    "test_error": ("test error (%)", 100.0),
    "objective_multiple": ("objective / exact SVM's", 1.0),
    "seconds": ("seconds of training", 1.0),
}


@described(DRAWING)
def plot_basis_size(results: Sequence[Mapping[str, Any]], y: str = "test_error", ax: Any = None) -> Any:
    """Draw test error, objective or training time against the number of basis vectors.

    Parameters
    ----------
    results : list of dict
        One per run, with ``max_basis``, the quantity to draw and, if there are several, ``method``. Results whose
        ``max_basis`` is None (an exact SVM, a linear one) are dashed horizontal lines. Runs with the same method and
        size are averaged; bars show their standard deviation.
    y : {"test_error", "objective_multiple", "seconds"}, default="test_error"
        "objective_multiple" is the objective as a multiple of the exact SVM's; "test_error" is a share.
    ax

    Raises
    ------
    ValueError
        ``y`` has another value, a result lacks a key, or none has a number of vectors.
    ImportError

    Examples
    --------
    >>> from slimsvm.plots import plot_basis_size
    >>> results = [dict(method="CPSP", max_basis=k, test_error=1 / k) for k in (10, 100)]
    >>> results.append(dict(method="exact", max_basis=None, test_error=0.005))
    >>> ax = plot_basis_size(results)                               # doctest: +SKIP
    """
    check_choice("y", y, BASIS_AXES)
    label, scale = BASIS_AXES[y]
    sized = [result for result in results if result.get("max_basis", 0) is not None]
    across = [result for result in results if result.get("max_basis", 0) is None and result.get(y) is not None]
    ax = plot_means(sized, "max_basis", y, scale=scale, ax=ax)
    for number, name in enumerate(dict.fromkeys(result.get("method") for result in across)):
        value = scale * float(np.mean([result[y] for result in across if result.get("method") == name]))
        ax.axhline(value, color="k", linestyle=ACROSS[number % len(ACROSS)], linewidth=1.0, label=name)
    counts = sorted({result["max_basis"] for result in sized if result[y] is not None})
    if len(counts) <= MOST_TICKS:
        ax.set_xticks(counts, [f"{count:,}" for count in counts])
        ax.set_xticks([], minor=True)
    ax.set(xlabel="basis vectors", ylabel=label)
    if y != "test_error":
        ax.set_yscale("log")
    if ax.get_legend() is not None or across:
        ax.legend(fontsize="small")
    return ax


@described(DRAWING)
def plot_basis_images(estimator: Any, shape: Any = None, *, max_images: int = 100, ax: Any = None) -> Any:
    """Draw the basis vectors of a model whose rows are images, largest coefficients first.

    Parameters
    ----------
    estimator : fitted estimator or KernelExpansion
    shape : (height, width) or None, default=None
        Shape of an image; None means squares.
    max_images : int, default=100
        Number of images shown, row by row.
    ax

    Raises
    ------
    ValueError
        There are no vectors, their features are not an image's pixels, or ``shape`` or ``max_images`` is wrong.
    ImportError

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slimsvm import SVC
    >>> from slimsvm.plots import plot_basis_images
    >>> clf = SVC(max_basis=10, gamma=0.001).fit(*load_digits(return_X_y=True))
    >>> ax = plot_basis_images(clf)                                 # doctest: +SKIP
    """
    if not hasattr(estimator, "model_") and not hasattr(estimator, "basis"):
        raise ValueError(f"{type(estimator).__name__} has no model_: it is not fitted yet")
    check_count("max_images", max_images)
    if shape is not None and np.shape(shape) != (2,):
        raise ValueError(f"shape must be (height, width) of an image or None, found {shape!r}")
    model = getattr(estimator, "model_", estimator)
    order = np.argsort(-np.abs(model.coef).sum(axis=1), kind="stable")[:max_images]
    if not len(order):
        raise ValueError("the model has no basis vectors")
    vectors = model.basis[order].toarray() if is_sparse(model.basis) else np.asarray(model.basis)[order]
    height, width = (int(np.sqrt(vectors.shape[1])),) * 2 if shape is None else shape
    if height * width != vectors.shape[1]:
        raise ValueError(f"shape {(height, width)} has {height * width} pixels, the vectors have {vectors.shape[1]}")
    columns = int(np.ceil(np.sqrt(len(vectors))))
    lines = -(-len(vectors) // columns)
    mosaic = np.full((lines * columns, height + 1, width + 1), np.nan)
    mosaic[: len(vectors), :height, :width] = vectors.reshape(-1, height, width)
    picture = mosaic.reshape(lines, columns, height + 1, width + 1).swapaxes(1, 2)
    ax = axes_for(ax)
    ax.imshow(picture.reshape(lines * (height + 1), columns * (width + 1))[:-1, :-1], cmap="gray")
    ax.set_axis_off()
    return ax


def axes_for(ax: Any) -> Any:
    """The given axes, or the axes of a new figure."""
    return _pyplot().subplots()[1] if ax is None else ax


def figure_for(figure: Any, size: tuple[float, float]) -> Any:
    """The given figure, or a new one of this size, laid out so that nothing is cut off."""
    return _pyplot().figure(figsize=size, layout="constrained") if figure is None else figure


def _pyplot() -> Any:
    """The part of matplotlib that makes figures."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'slimsvm[plots]'") from error
    return plt


def check_count(name: str, value: Any) -> None:
    """Raise an error where the value is no integer of 1 or more."""
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, found {value!r}")


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Raise an error where the value is none of the known ones."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; found {value!r}")

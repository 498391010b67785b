"""A plot of what an estimator of two features has learned, in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from slimsvm.docstrings import described
from slimsvm.estimators._shared.input_checks import check_at_least
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.plots.drawing import (
    DRAWING,
    add_legend,
    axes_for,
    colour_of_class,
    entry,
    label,
    marker_of_class,
    names_of_features,
    paper_of_class,
)
from slimsvm.rows import is_sparse

Array = np.ndarray

LEVELS = 20  # steps of colour of a score or a prediction


class DecisionSurfaceDisplay:
    """The scores, regions or predictions of an estimator of two features, with rows and the model's vectors.

    Make it by `from_estimator`. A class has the same colour in its region and in its rows.

    Attributes
    ----------
    xx0, xx1 : float64 ndarray of shape (resolution, resolution)
        Features of the grid points.
    response : ndarray of shape (resolution, resolution)
        The score for two classes, the number of the predicted class for more, or the prediction of a regression.
    response_method : {"score", "class", "prediction"}
        What the response is.
    classes : list of str
        Names of the classes, none for a regression.
    X, y : ndarray
        The rows that are drawn, and their class numbers or values; y may be None.
    vectors : ndarray of shape (n_vectors, 2) or None
        Vectors of the model.
    feature_names : list of str
    ax_, figure_ : matplotlib's Axes and Figure
        After `plot`.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.datasets import checkerboard
    >>> from slimsvm.plots import DecisionSurfaceDisplay
    >>> X, y = checkerboard(1000, random_state=0)
    >>> clf = SVC(gamma=10).fit(X, y)
    >>> display = DecisionSurfaceDisplay.from_estimator(clf, X, y)   # doctest: +SKIP
    >>> display.figure_.savefig("surface.png")                       # doctest: +SKIP
    """

    def __init__(self, xx0, xx1, response, *, response_method, classes, X, y, vectors, feature_names):
        self.xx0, self.xx1, self.response, self.response_method = xx0, xx1, response, response_method
        self.classes, self.X, self.y, self.vectors, self.feature_names = classes, X, y, vectors, feature_names

    @classmethod
    @described(DRAWING)
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        grid_resolution: int = 201,
        max_points: int = 2000,
        ax: Any = None,
    ) -> DecisionSurfaceDisplay:
        """Compute the surface, and draw it.

        Parameters
        ----------
        estimator : fitted estimator, or pipeline of scalers and an estimator
            Of this library or another. Others' vectors are shown if they have ``support_vectors_``.
        X : array-like of shape (n_samples, 2)
            Rows to show; they also determine the part of the plane that is drawn. Names of columns name the axes.
        y : array-like of shape (n_samples,), default=None
            Their labels or values.
        grid_resolution : int, default=201
            Places along each side, at least two.
        max_points : int, default=2000
            If there are more rows, evenly spaced ones are shown.
        ax

        Returns
        -------
        DecisionSurfaceDisplay

        Raises
        ------
        ValueError
            X does not have two features, y has another length or a label that the estimator does not know, or the
            estimator predicts several numbers a row.
        ImportError
        """
        check_at_least("grid_resolution", grid_resolution, 2)
        check_at_least("max_points", max_points, 1)
        check_is_fitted(estimator)
        rows = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != 2 or not len(rows):
            raise ValueError(f"X must have shape (n_samples, 2) to draw a surface, found {rows.shape}")
        names = names_of_features(getattr(X, "columns", None), 2)
        low, high = rows.min(axis=0), rows.max(axis=0)
        margin = 0.05 * np.where(high > low, high - low, 1.0)
        sides = (np.linspace(a, b, grid_resolution) for a, b in zip(low - margin, high + margin))
        xx0, xx1 = np.meshgrid(*sides)
        columns = xx0.ravel(), xx1.ravel()
        grid = type(X)(dict(zip(X.columns, columns))) if hasattr(X, "columns") else np.column_stack(columns)
        labels, response_method = _labels(estimator)
        response = _response(estimator, grid, labels, response_method)
        shown = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), max_points)).astype(np.int64))
        values = None if y is None else _values(y, len(rows), labels)[shown]
        display = cls(
            xx0, xx1, response.reshape(xx0.shape), response_method=response_method,
            classes=_class_names(estimator, labels), X=rows[shown], y=values, vectors=_vectors(estimator),
            feature_names=names,
        )  # fmt: skip
        return display.plot(ax)

    @described(DRAWING)
    def plot(self, ax: Any = None) -> DecisionSurfaceDisplay:
        """Draw the surface.

        Parameters
        ----------
        ax

        Returns
        -------
        DecisionSurfaceDisplay
        """
        is_new, ax = ax is None, axes_for(ax, (7.0, 5.2))
        self.ax_, self.figure_ = ax, ax.figure
        {"score": self._draw_scores, "class": self._draw_regions, "prediction": self._draw_predictions}[
            self.response_method
        ]()
        if self.vectors is not None:
            ax.scatter(*self.vectors.T, s=26, facecolors="none", edgecolors="black", linewidths=0.7,
                       label=f"{len(self.vectors)} vectors")  # fmt: skip
        ax.set(
            xlim=(self.xx0.min(), self.xx0.max()), ylim=(self.xx1.min(), self.xx1.max()),
            xlabel=label(self.feature_names[0]), ylabel=label(self.feature_names[1]),
        )  # fmt: skip
        add_legend(ax, is_new)
        return self

    def _draw_scores(self) -> None:
        """Draw the score of two classes as a colour between theirs, and lines where it is -1, 0 and 1."""
        from matplotlib.colors import LinearSegmentedColormap

        colours = LinearSegmentedColormap.from_list("classes", [paper_of_class(0), (1, 1, 1), paper_of_class(1)])
        largest = float(np.abs(self.response).max()) or 1.0
        levels = np.linspace(-largest, largest, LEVELS + 1)
        surface = self.ax_.contourf(self.xx0, self.xx1, self.response, levels=levels, cmap=colours)
        self._add_bar(surface, f"score (above 0: {label(self.classes[1])})")
        lines = {"score 0": ("-", [0.0]), "score −1, 1": ("--", [-1.0, 1.0])}
        for name, (style, values) in lines.items():
            values = [value for value in values if self.response.min() < value < self.response.max()]
            if values:
                self.ax_.contour(self.xx0, self.xx1, self.response, levels=values, colors="black", linestyles=style,
                                 linewidths=0.8)  # fmt: skip
                self.ax_.plot([], [], color="black", linestyle=style, linewidth=0.8, label=name)
        self._draw_rows_of_classes()

    def _draw_regions(self) -> None:
        """Draw the predicted class of several."""
        from matplotlib.colors import ListedColormap

        n = len(self.classes)
        colours = ListedColormap([paper_of_class(k) for k in range(n)])
        self.ax_.pcolormesh(
            self.xx0, self.xx1, self.response, cmap=colours, vmin=-0.5, vmax=n - 0.5, shading="nearest", rasterized=True
        )
        self._draw_rows_of_classes()

    def _draw_predictions(self) -> None:
        """Draw the prediction, and the rows' own values in the same colours."""
        values = self.response if self.y is None else np.append(self.response, self.y)
        low, high = float(np.min(values)), float(np.max(values))
        levels = np.linspace(low, high if high > low else low + 1.0, LEVELS + 1)
        surface = self.ax_.contourf(self.xx0, self.xx1, self.response, levels=levels, cmap="viridis")
        self._add_bar(surface, "prediction" if self.y is None else "prediction, and y of the rows")
        colours = {"color": "white"} if self.y is None else {"c": self.y, "cmap": "viridis", "norm": surface.norm}
        self.ax_.scatter(*self.X.T, s=16, edgecolors="white", linewidths=0.4, **colours)
        self.ax_.scatter([], [], s=16, color="lightgrey", edgecolors="black", linewidths=0.4, label="rows")

    def _add_bar(self, surface: Any, name: str) -> None:
        """Add a colour bar below the surface."""
        from matplotlib.ticker import MaxNLocator

        self.figure_.colorbar(surface, ax=self.ax_, location="bottom", shrink=0.8, ticks=MaxNLocator(7), label=name)

    def _draw_rows_of_classes(self) -> None:
        """Draw the rows, each in the colour and with the marker of its class."""
        if self.y is None:
            self.ax_.scatter(*self.X.T, s=12, color="black", linewidths=0, label="rows")
            return
        for k, name in enumerate(self.classes):
            self.ax_.scatter(*self.X[self.y == k].T, s=16, color=colour_of_class(k), marker=marker_of_class(k),
                             edgecolors="white", linewidths=0.4, label=entry(name))  # fmt: skip


def _labels(estimator: Any) -> tuple[Array | None, str]:
    """Return the labels that y may have, and what is drawn."""
    if is_outlier_detector(estimator):
        return np.array([-1, 1]), "score"
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return None, "prediction"
    return np.asarray(classes), "score" if len(classes) == 2 and hasattr(estimator, "decision_function") else "class"


def _class_names(estimator: Any, labels: Array | None) -> list[str]:
    if labels is None:
        return []
    return ["outlier", "inlier"] if is_outlier_detector(estimator) else [str(each) for each in labels.tolist()]


def _response(estimator: Any, grid: Any, labels: Array | None, response_method: str) -> Array:
    """Return the surface at the places of the grid."""
    found = np.asarray((estimator.decision_function if response_method == "score" else estimator.predict)(grid))
    if found.shape != (len(grid),):
        raise ValueError(f"a surface is that of one number a row; {type(estimator).__name__} has {found.shape[1:]}")
    return found if response_method != "class" or labels is None else np.searchsorted(labels, found)


def _values(y: Any, n: int, labels: Array | None) -> Array:
    """Return the values of rows, or the numbers of their classes."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have one value per row of X, shape ({n},); found {y.shape}")
    if labels is None:
        return y.astype(np.float64)
    unknown = y[~np.isin(y, labels)].tolist()
    if unknown:
        raise ValueError(f"y has the label {unknown[0]!r}, the estimator knows {', '.join(map(str, labels.tolist()))}")
    return np.searchsorted(labels, y)


def _vectors(estimator: Any) -> Array | None:
    """Return the vectors in the plane of X, before a pipeline's scaling; None if the estimator has none to show."""
    if isinstance(estimator, Pipeline):
        if not hasattr(estimator[-1], "basis_vectors_"):
            return None
        model = plain_model_of(estimator)
        if model.vectors is None:
            return None
        return model.unscaled(model.dense_vectors())
    vectors: Any = getattr(estimator, "basis_vectors_", getattr(estimator, "support_vectors_", None))
    return vectors.toarray() if is_sparse(vectors) else vectors

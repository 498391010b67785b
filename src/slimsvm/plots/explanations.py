"""Plots of Shapley values."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.docstrings import described
from slimsvm.estimators._shared.input_checks import check_at_least
from slimsvm.estimators.files import explain
from slimsvm.plots.drawing import DRAWING, PALETTE, add_legend, axes_for, label
from slimsvm.shapley import Explanation

Array = np.ndarray

LOWERS, RAISES = PALETTE[0], PALETTE[2]  # colours of bars
BINS, WIDTH = 40, 0.8  # of a swarm along the values, and across


class ExplanationDisplay:
    """Shapley values: bars for one row, a swarm of points for each feature for several rows.

    Make it by `from_estimator`, or by `from_explanation`. Features are sorted by the mean magnitude of their values;
    those beyond ``max_features`` are added up. The colour of a point is the feature's value, from the smallest to
    the largest of these rows. Bars of sampled values show twice their standard errors.

    Attributes
    ----------
    explanation : Explanation
        Of one output.
    ax_, figure_ : matplotlib's Axes and Figure
        After `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC
    >>> from slimsvm.plots import ExplanationDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVC().fit(X, y == 2)
    >>> display = ExplanationDisplay.from_estimator(clf, X, background=X[::10])   # doctest: +SKIP
    >>> found = clf.explain(X[100:101], background=X[::10])
    >>> display = ExplanationDisplay.from_explanation(found)                      # doctest: +SKIP
    """

    def __init__(self, explanation):
        self.explanation = explanation

    @classmethod
    @described(DRAWING)
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        background: Any = None,
        n_permutations: int = 100,
        output: Any = None,
        random_state: Any = 0,
        max_features: int = 10,
        ax: Any = None,
    ) -> ExplanationDisplay:
        """Explain rows, and draw the explanation.

        Parameters
        ----------
        estimator : fitted estimator, or pipeline of scalers and an estimator
        X : array-like of shape (n_rows, n_features)
            Rows to explain.
        background, n_permutations, random_state
            See `slimsvm.explain`.
        output : int, str or None, default=None
            With several outputs, the one to draw: its number, or its name.
        max_features : int, default=10
        ax

        Returns
        -------
        ExplanationDisplay

        Raises
        ------
        ValueError
            See `slimsvm.explain` and `from_explanation`.
        ImportError
        """
        found = explain(estimator, X, background, n_permutations=n_permutations, random_state=random_state)
        return cls.from_explanation(found, output=output, max_features=max_features, ax=ax)

    @classmethod
    @described(DRAWING)
    def from_explanation(
        cls, explanation: Explanation, *, output: Any = None, max_features: int = 10, ax: Any = None
    ) -> ExplanationDisplay:
        """Draw an explanation that is already computed.

        Parameters
        ----------
        explanation : Explanation
            The result of ``explain``; use ``explanation[0]`` for bars of the first row.
        output : int, str or None, default=None
            With several outputs, the one to draw: its number, or its name.
        max_features : int, default=10
        ax

        Returns
        -------
        ExplanationDisplay

        Raises
        ------
        ValueError
            There are several outputs and none is chosen, there are no rows, or ``max_features`` is below 1.
        ImportError
        """
        if output is not None:
            explanation = explanation.of(output)
        if explanation.values.ndim == 3:
            names = ", ".join(explanation.output_names or [])
            raise ValueError(f"output must be one of {names}, or its number; found None")
        if not len(explanation):
            raise ValueError("the explanation must have at least one row, found none")
        return cls(explanation).plot(ax, max_features=max_features)

    @described(DRAWING)
    def plot(self, ax: Any = None, *, max_features: int = 10) -> ExplanationDisplay:
        """Draw the explanation.

        Parameters
        ----------
        ax
        max_features : int, default=10

        Returns
        -------
        ExplanationDisplay
        """
        check_at_least("max_features", max_features, 1)
        found = self.explanation
        order = np.argsort(-np.abs(found.values).mean(axis=0), kind="stable")
        shown, rest = order[:max_features], order[max_features:]
        n_lines = len(shown) + bool(len(rest))
        is_new, ax = ax is None, axes_for(ax, (8.0, 1.4 + 0.45 * n_lines))
        self.ax_, self.figure_ = ax, ax.figure
        (_bars if len(found) == 1 else _swarms)(ax, found, shown, rest)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.invert_yaxis()
        add_legend(ax, is_new)
        return self


def _bars(ax: Any, explanation: Explanation, shown: Array, rest: Array) -> None:
    """Draw one bar for each feature, the largest on top."""
    values, errors = explanation.values[0], explanation.standard_errors
    labels = [
        f"{label(name)} = {explanation.data[0, f]:.4g}"
        for f, name in zip(shown, _names(explanation, shown), strict=True)
    ]
    widths = np.append(values[shown], values[rest].sum() if len(rest) else [])
    spread = None if errors is None else np.append(2.0 * errors[0, shown], np.zeros(len(widths) - len(shown)))
    colours = [RAISES if width > 0 else LOWERS for width in widths]
    ax.barh(np.arange(len(widths)), widths, xerr=spread, color=colours)
    ax.set_yticks(np.arange(len(widths)), [*labels, *_others(rest)])
    base = explanation.base_values[0]
    for colour, name in ((RAISES, "raises the score"), (LOWERS, "lowers the score")):
        ax.barh(np.nan, np.nan, color=colour, label=name)
    ax.set_xlabel(f"from the base value {base:.4g} to the score {base + values.sum():.4g}")


def _swarms(ax: Any, explanation: Explanation, shown: Array, rest: Array) -> None:
    """Draw one swarm for each feature; those without a single value per row are grey."""
    values = explanation.values
    for at, f in enumerate(shown):
        column = explanation.data[:, f]
        spread = np.ptp(column)
        shade = (column - column.min()) / spread if spread > 0 else np.full(len(column), 0.5)
        points = ax.scatter(values[:, f], at + _aside(values[:, f]), c=shade, s=9, cmap="coolwarm", vmin=0, vmax=1)
    if len(rest):
        sums = values[:, rest].sum(axis=1)
        ax.scatter(sums, len(shown) + _aside(sums), color="grey", s=9)
    ax.set_yticks(np.arange(len(shown) + bool(len(rest))), [*map(label, _names(explanation, shown)), *_others(rest)])
    ax.set_xlabel("added to the score")
    bar = ax.figure.colorbar(points, ax=ax, ticks=[0, 1], label="value of the feature")
    bar.set_ticklabels(["smallest", "largest"])


def _aside(values: Array) -> Array:
    """Return the distance by which each point moves aside, so that equal values lie side by side."""
    bins = np.zeros(len(values), np.int64)
    if np.ptp(values) > 0:
        bins = ((values - values.min()) / np.ptp(values) * BINS).astype(np.int64)
    counts = np.bincount(bins)
    aside, seen = np.zeros(len(values)), np.zeros(len(counts), np.int64)
    for i, place in enumerate(bins):
        step = (seen[place] + 1) // 2 * (1 - 2 * (seen[place] % 2))  # 0, -1, 1, -2, 2, ...
        aside[i] = step * WIDTH / counts.max()
        seen[place] += 1
    return aside


def _names(explanation: Explanation, features: Array) -> list[str]:
    names = explanation.feature_names
    return [f"feature {f}" if names is None else names[f] for f in features]


def _others(rest: Array) -> list[str]:
    return [f"{len(rest)} others"] if len(rest) else []

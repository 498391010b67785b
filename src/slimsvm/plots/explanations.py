"""Plots of Shapley values."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.docstrings import described
from slimsvm.plots.fits import DRAWING, axes_for, check_count
from slimsvm.shapley import Explanation

Array = np.ndarray

RAISES, LOWERS = "C3", "C0"  # colours of bars
BINS, WIDTH = 40, 0.8  # of a swarm along the values, and across


@described(DRAWING)
def plot_explanation(explanation: Explanation, output: Any = None, *, max_features: int = 10, ax: Any = None) -> Any:
    """Draw Shapley values: bars for one row, a swarm of points for each feature for several rows.

    Features are sorted by the mean magnitude of their values; those beyond ``max_features`` are added up in one. The
    points' colour is the feature's value, from the smallest to the largest of these rows. Bars of sampled values show
    twice their standard errors.

    Parameters
    ----------
    explanation : Explanation
        The result of ``explain``; use ``explanation[0]`` for bars of the first row.
    output : int, str or None, default=None
        With several outputs, the one to draw: its number, or its name.
    max_features : int, default=10
    ax

    Raises
    ------
    ValueError
        There are several outputs and none is chosen, there are no rows, or ``max_features`` is below 1.
    ImportError

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC
    >>> from slimsvm.plots import plot_explanation
    >>> X, y = load_iris(return_X_y=True)
    >>> found = SVC().fit(X, y == 2).explain(X, background=X[::10])
    >>> ax = plot_explanation(found)                                # doctest: +SKIP
    >>> ax = plot_explanation(found[100])                           # doctest: +SKIP
    """
    check_count("max_features", max_features)
    if output is not None:
        explanation = explanation.of(output)
    if explanation.values.ndim == 3:
        names = ", ".join(explanation.output_names or [])
        raise ValueError(f"output must be one of {names}, or its number; found None")
    if not len(explanation):
        raise ValueError("the explanation must have at least one row, found none")
    order = np.argsort(-np.abs(explanation.values).mean(axis=0), kind="stable")
    shown, rest = order[:max_features], order[max_features:]
    ax = axes_for(ax)
    (_bars if len(explanation) == 1 else _swarms)(ax, explanation, shown, rest)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.invert_yaxis()
    return ax


def _bars(ax: Any, explanation: Explanation, shown: Array, rest: Array) -> None:
    """One bar for each feature, the largest on top."""
    values, errors = explanation.values[0], explanation.standard_errors
    labels = [
        f"{name} = {explanation.data[0, f]:.4g}" for f, name in zip(shown, _names(explanation, shown), strict=True)
    ]
    widths = np.append(values[shown], values[rest].sum() if len(rest) else [])
    spread = None if errors is None else np.append(2.0 * errors[0, shown], np.zeros(len(widths) - len(shown)))
    colours = [RAISES if width > 0 else LOWERS for width in widths]
    ax.barh(np.arange(len(widths)), widths, xerr=spread, color=colours)
    ax.set_yticks(np.arange(len(widths)), [*labels, *_others(rest)])
    base = explanation.base_values[0]
    ax.set_xlabel(f"from the base value {base:.4g} to the score {base + values.sum():.4g}")


def _swarms(ax: Any, explanation: Explanation, shown: Array, rest: Array) -> None:
    """One swarm for each feature; the others, which have no one value, in grey."""
    values = explanation.values
    for at, f in enumerate(shown):
        column = explanation.data[:, f]
        spread = np.ptp(column)
        shade = (column - column.min()) / spread if spread > 0 else np.full(len(column), 0.5)
        points = ax.scatter(values[:, f], at + _aside(values[:, f]), c=shade, s=9, cmap="coolwarm", vmin=0, vmax=1)
    if len(rest):
        sums = values[:, rest].sum(axis=1)
        ax.scatter(sums, len(shown) + _aside(sums), color="grey", s=9)
    ax.set_yticks(np.arange(len(shown) + bool(len(rest))), [*_names(explanation, shown), *_others(rest)])
    ax.set_xlabel("added to the score")
    ax.figure.colorbar(points, ax=ax, ticks=[0, 1]).set_ticklabels(["smallest", "largest"])


def _aside(values: Array) -> Array:
    """The distance by which each point moves aside, so that equal values lie side by side."""
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

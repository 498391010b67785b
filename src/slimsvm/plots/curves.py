"""A plot of the curves of an additive model."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.plots.additive_curves import Curve, additive_curves
from slimsvm.plots.drawing import IN_A_COLUMN, check_count, colour_of_class, figure_of, label

Array = np.ndarray

MOST_ACROSS = 3  # axes side by side
FEW = 4  # levels whose names are not turned


class CurvesDisplay:
    """What each column adds to the score of an additive model: a curve, or for one-hot columns a bar for each level.

    Make it by `from_estimator`. The columns that matter most come first (by the standard deviation of what they add);
    all axes have one scale. What the product kernel of ``Additive(interaction=...)`` adds is not drawn.

    Attributes
    ----------
    curves : list of Curve
        Those of all columns, see `additive_curves`.
    output_names : list of str or None
        Names of the outputs, None of a single one.
    outputs : list of int
        The numbers of the outputs that are drawn.
    ax_ : ndarray of matplotlib's Axes
        One for each curve that is drawn; after `plot`.
    figure_ : matplotlib's Figure
        After `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC
    >>> from slimsvm.kernels import Additive
    >>> from slimsvm.plots import CurvesDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = CurvesDisplay.from_estimator(SVC(kernel=Additive(0.1)).fit(X, y == 2), X)   # doctest: +SKIP
    """

    def __init__(self, curves, *, output_names, outputs):
        self.curves, self.output_names, self.outputs = curves, output_names, outputs

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, output: Any = None, max_columns: int = 9, ax: Any = None
    ) -> CurvesDisplay:
        """Compute the curves, and draw them.

        Parameters
        ----------
        estimator : fitted estimator with ``kernel=Additive(...)``, or pipeline of scalers and such a one
        X : array-like of shape (n_rows, n_features), default=None
            Rows whose range the curves are drawn over, and over which their means are 0. None takes the model's
            vectors.
        output : int, str or None, default=None
            With several outputs, the one to draw: its number, or its name; None draws a line for each.
        max_columns : int, default=9
            Columns that are drawn.
        ax : array of matplotlib.axes.Axes or None, default=None
            The axes to draw on, one for each column that is drawn; None makes a new figure.

        Returns
        -------
        CurvesDisplay

        Raises
        ------
        ValueError
            The kernel is not `Additive`, a term has several columns that are not one-hot, there is no such output, or
            ``max_columns`` or ``ax`` is wrong.
        ImportError
            matplotlib is not installed.
        """
        check_count("max_columns", max_columns)
        curves, names = additive_curves(estimator, X)
        display = cls(curves, output_names=names, outputs=_chosen(output, names))
        return display.plot(ax, max_columns=max_columns)

    def plot(self, ax: Any = None, *, max_columns: int = 9) -> CurvesDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : array of matplotlib.axes.Axes or None, default=None
            The axes to draw on, one for each column that is drawn; None makes a new figure.
        max_columns : int, default=9
            Columns that are drawn.

        Returns
        -------
        CurvesDisplay
        """
        check_count("max_columns", max_columns)
        shown = sorted(self.curves, key=lambda curve: -curve.spread)[:max_columns]
        axes = self._axes(len(shown)) if ax is None else np.array(ax, dtype=object).ravel()
        if len(axes) != len(shown):
            raise ValueError(f"ax must be one of the axes for each of {len(shown)} curves, found {len(axes)}")
        self.ax_, self.figure_ = axes, axes[0].figure
        for each, curve in zip(axes, shown, strict=True):
            self._draw(each, curve)
            each.axhline(0.0, color="black", linewidth=0.8)
            each.set_xlabel(label(curve.name))
            if each.get_subplotspec() is None or each.get_subplotspec().is_first_col():
                each.set_ylabel("added to the score")
        if len(self.outputs) > 1:
            handles, names = axes[0].get_legend_handles_labels()
            if ax is not None:
                axes[0].legend(fontsize="small")
            else:
                columns = -(-len(handles) // IN_A_COLUMN)
                self.figure_.legend(handles, names, loc="outside right upper", ncols=columns, frameon=False)
        return self

    def _axes(self, n: int) -> Array:
        """Return the axes of a new figure, of one scale."""
        lines, across = -(-n // MOST_ACROSS), min(n, MOST_ACROSS)
        beside = 1.5 if len(self.outputs) > 1 else 0.0  # the legend
        figure = figure_of((3.6 * across + beside, 3.0 * lines))
        axes = figure.subplots(lines, across, sharey=True, squeeze=False).ravel()
        for each in axes[n:]:
            each.remove()
        return axes[:n]

    def _draw(self, ax: Any, curve: Curve) -> None:
        """Draw a line for each output, or for levels a bar for each."""
        for place, c in enumerate(self.outputs):
            style = {"color": colour_of_class(c), "label": self.output_names[c] if self.output_names else None}
            if not isinstance(curve.at, list):
                ax.plot(curve.at, curve.values[:, c], **style)
                continue
            width = 0.8 / len(self.outputs)
            left = np.arange(len(curve.at)) - 0.4 + (place + 0.5) * width
            ax.bar(left, curve.values[:, c], width, **style)
            names = [label(level) for level in curve.at]
            ax.set_xticks(np.arange(len(names)), names, rotation=90 if len(names) > FEW else 0)


def _chosen(output: Any, names: list[str] | None) -> list[int]:
    """Return the numbers of the outputs to draw."""
    if output is None:
        return list(range(len(names or [""])))
    at = names.index(output) if names and output in names else output
    if not names or not isinstance(at, int | np.integer) or not 0 <= at < len(names):
        known = ", ".join(names) + ", or its number" if names else "None where there is one output"
        raise ValueError(f"output must be {'one of ' if names else ''}{known}; found {output!r}")
    return [int(at)]

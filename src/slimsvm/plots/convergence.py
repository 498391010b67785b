"""A plot of how a fit converged to its optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slimsvm.docstrings import described
from slimsvm.estimators._shared.input_checks import check_option
from slimsvm.plots.drawing import DRAWING, PALETTE, add_legend, axes_for, last_step

Array = np.ndarray

AXES = {"seconds": "seconds", "kernel_evals": "kernel evaluations"}
VIOLATION = "violation of optimality"
MOST_MARKED = 30  # points of a curve that are marked one by one
# Names of the curves, their colours and lines. Dashed ones are not bounds of the optimum.
STYLES: dict[str, dict[str, Any]] = {
    "objective above the best bound": {"color": PALETTE[0], "marker": "o"},
    "bound below the best objective": {"color": PALETTE[1], "marker": "s"},
    "objective above the smallest": {"color": PALETTE[0], "marker": "o"},
    "estimated objective above the smallest": {"color": PALETTE[6], "marker": "v", "linewidth": 0.8},
    "bound in the basis below the smallest": {"color": PALETTE[1], "marker": "s", "linestyle": "--"},
    "model value off the objective, no bound": {"color": PALETTE[4], "marker": "D", "linestyle": "--"},
    VIOLATION: {"color": PALETTE[2], "marker": "^"},
}


class ConvergenceDisplay:
    """Distances of a fit to its optimum, on a logarithmic axis.

    Make it by `from_estimator`. Distances are shares of the smallest objective. A fit with a lower bound has two
    curves: how far objectives are above the best bound, and how far bounds are below the best objective. Other fits
    have the distance to their smallest objective. The violation of the optimality conditions, which ends the exact
    solver, is in units of the score. Distances of 0 are not drawn. A fit of several models (``stage`` in its history)
    shows the last one that has such curves. Pairs of classes are solved one after another; they have the sum of their
    bounds so far, and the objective at the end.

    Attributes
    ----------
    at : float64 ndarray of shape (n_records,)
        Seconds, or kernel evaluations.
    curves : dict of str to float64 ndarray of shape (n_records,)
        The distances by their names; NaN where a record has none.
    x : {"seconds", "kernel_evals"}
    stage : str or None
        The model that is shown.
    ax_, figure_ : matplotlib's Axes and Figure
        After `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC, ExactCuts
    >>> from slimsvm.plots import ConvergenceDisplay
    >>> clf = SVC(solver=ExactCuts()).fit(*load_iris(return_X_y=True))
    >>> display = ConvergenceDisplay.from_estimator(clf, x="kernel_evals")   # doctest: +SKIP
    >>> display.figure_.savefig("convergence.png")                           # doctest: +SKIP
    """

    def __init__(self, at, curves, *, x, stage=None):
        self.at, self.curves, self.x, self.stage = at, curves, x, stage

    @classmethod
    @described(DRAWING)
    def from_estimator(cls, estimator: Any, *, x: str = "seconds", ax: Any = None) -> ConvergenceDisplay:
        """Take the distances from the history of a fit, and draw them.

        Parameters
        ----------
        estimator : fitted estimator, or pipeline that ends in one
        x : {"seconds", "kernel_evals"}, default="seconds"
            The horizontal axis.
        ax

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            ``x`` has another value, there is no history, or it has nothing to draw.
        ImportError
        """
        check_option("x", x, tuple(AXES))
        estimator = last_step(estimator)
        name = type(estimator).__name__
        if not hasattr(estimator, "history_"):
            raise ValueError(
                f"{name} has no history_: it is not fitted yet, keeps none, or was read from a file, which holds none"
            )
        history = list(estimator.history_)
        for stage in reversed(list(dict.fromkeys(record.get("stage") for record in history))):
            records = [record for record in history if record.get("stage") == stage]
            is_last = records[-1] is history[-1]
            curves = _curves(records, getattr(estimator, "objective_", None) if is_last else None)
            if curves:
                return cls(_column(records, x), curves, x=x, stage=stage).plot(ax)
        raise ValueError(f"the history of {name} has no distance to an optimum to draw")

    @described(DRAWING)
    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        """Draw the distances.

        Parameters
        ----------
        ax

        Returns
        -------
        ConvergenceDisplay
        """
        is_new, ax = ax is None, axes_for(ax, (7.5, 4.5))
        self.ax_, self.figure_ = ax, ax.figure
        for name, values in self.curves.items():
            n = np.isfinite(values).sum()
            size = 9 if n == 1 else 4 if n <= MOST_MARKED else 0
            ax.plot(self.at, values, label=name, markersize=size, **STYLES[name])
        quantities = ["relative distance"] if set(self.curves) - {VIOLATION} else []
        quantities += ["violation"] if VIOLATION in self.curves else []
        ax.set(yscale="log", xlabel=AXES[self.x], ylabel=", ".join(quantities))
        ax.locator_params(axis="x", nbins=5)
        add_legend(ax, is_new, title=self.stage)
        return self


def _curves(history: Sequence[Mapping[str, Any]], final: float | None) -> dict[str, Array]:
    """Return the distances to the optimum that records of one model contain, by their names."""
    objective, lower = _column(history, "objective"), _column(history, "lower_bound")
    if np.isnan(objective[-1]) and final is not None:
        objective[-1] = final
    found = {VIOLATION: _column(history, "violation")}
    if np.isfinite(objective).any():
        best = np.nanmin(objective)
        scale = abs(best) or 1.0
        if np.isfinite(lower).any():
            found["objective above the best bound"] = (objective - np.nanmax(lower)) / scale
            found["bound below the best objective"] = (best - lower) / scale
        else:
            found["objective above the smallest"] = (objective - best) / scale
            found["estimated objective above the smallest"] = (_column(history, "objective_estimate") - best) / scale
            found["bound in the basis below the smallest"] = (best - _column(history, "bound_in_basis")) / scale
            found["model value off the objective, no bound"] = np.abs(best - _column(history, "model_value")) / scale
    shown = {name: np.where(found[name] > 0, found[name], np.nan) for name in STYLES if name in found}
    return {name: values for name, values in shown.items() if np.isfinite(values).any()}


def _column(history: Sequence[Mapping[str, Any]], name: str) -> Array:
    """Return one value per record, NaN where there is none."""
    values = [record.get(name) for record in history]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

"""The curves of an additive model, what each column adds to the score independent of the others, and their plot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.deploy.plain_model import PlainModel, of_term
from slimsvm.deploy.rows import as_rows, check_finite, check_names, dense_rows
from slimsvm.estimators._shared.input_checks import check_at_least
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.plots.drawing import IN_A_COLUMN, MOST_NAMED, colour_of_class, entry, figure_of, label
from slimsvm.shapley import outputs_of

PLACES = 101  # of a curve


@dataclass(frozen=True, eq=False)
class Curve:
    """The curve of one term: what it adds to the score.

    Attributes
    ----------
    name : str
        Name of the column; for one-hot columns, all names.
    at : float64 ndarray of shape (n,), or list of str
        Values of the column, or the levels of one-hot columns.
    values : float64 ndarray of shape (n, n_outputs)
        The values of the curve, less its mean over the rows.
    spread : float
        Standard deviation of the curve over the rows (for several outputs the largest): how much the column matters.
    """

    name: str
    at: Array | list[str]
    values: Array
    spread: float


def additive_curves(estimator: Any, X: Any = None) -> tuple[list[Curve], list[str] | None]:
    """Return the curves of an additive model's columns, in their order, and the outputs' names (None for a single one).

    The score is the intercept, the curves and their means, and with ``Additive(interaction=...)`` what the product
    kernel adds, which is no curve.

    Parameters
    ----------
    estimator : fitted estimator with ``kernel=Additive(...)``, or pipeline of scalers and such an estimator
    X : array-like of shape (n_rows, n_features), default=None
        Rows whose range the curves are drawn over, and over which their means are 0. None takes the model's vectors.

    Returns
    -------
    (curves, names) : list of Curve, and list of str or None

    Raises
    ------
    ValueError
        The kernel is not `Additive`, or a term has several columns that are not one-hot.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SVR
    >>> from slimsvm.kernels import Additive
    >>> from slimsvm.plots import additive_curves
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> model = SVR(kernel=Additive(0.5), C=10, epsilon=0.01).fit(X, X[:, 0] ** 2)
    >>> (first, second), _ = additive_curves(model, X)
    >>> first.spread > 20 * second.spread
    True
    """
    model = plain_model_of(estimator)
    kernel = model.kernel
    if kernel.form != "terms" or model.kind == "sequences":
        raise ValueError(f"curves need rows and kernel=Additive(...), found {model.kind}, {kernel!r}")
    names, mixing = outputs_of(model)
    of_outputs = replace(model, coef=model.coef @ mixing, intercept=np.zeros(mixing.shape[1]))
    rows = _rows(model, X)
    scaled, curves = model.scaled(rows), []
    for term in kernel.single_terms(model.n_features):
        own = of_term(of_outputs, term)
        at, places = _places(model, term.columns, rows)
        of_rows = own.scores(scaled[:, term.columns])
        values = own.scores(model.scaled(places)[:, term.columns]) - of_rows.mean(axis=0)
        curves.append(Curve(_name(model, term.columns), at, values, float(of_rows.std(axis=0).max())))
    return curves, names


def _rows(model: PlainModel, X: Any) -> Array:
    """Return the rows that were given, or else the vectors, before any scaling."""
    if X is None:
        return model.unscaled(model.dense_vectors())
    check_names(X, model.feature_names)
    given = as_rows(X)
    if given.shape[1] != model.n_features or not given.shape[0]:
        raise ValueError(f"X must be rows of {model.n_features} features as in training, found shape {given.shape}")
    rows = dense_rows(given, 0, given.shape[0])
    check_finite(rows)
    return rows


def _places(model: PlainModel, columns: slice, rows: Array) -> tuple[Array | list[str], Array]:
    """Return where a curve is drawn, over a column's range or at each of one-hot columns, and rows at these places."""
    found = rows[:, columns]
    width = found.shape[1]
    if width == 1:
        at = np.linspace(found.min(), found.max(), PLACES)
        places = np.zeros((PLACES, model.n_features))
        places[:, columns] = at[:, None]
        return at, places
    levels = np.round(found, 9)
    if not (np.isin(levels, (0.0, 1.0)).all() and (levels.sum(axis=1) <= 1.0).all()):
        raise ValueError(f"{_name(model, columns)}: a term of several columns has a curve only where these are one-hot")
    has_none = not levels.any(axis=1).all()
    places = np.zeros((width + has_none, model.n_features))
    places[:width, columns] = np.eye(width)
    return [*_names(model)[columns], *(["none of them"] if has_none else [])], places


def _names(model: PlainModel) -> list[str]:
    return model.feature_names or [f"feature {f}" for f in range(model.n_features)]


def _name(model: PlainModel, columns: slice) -> str:
    names = _names(model)[columns]
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


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
        The curves of all columns; see `additive_curves`.
    output_names : list of str or None
        Names of the outputs; None if there is one.
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
        estimator : fitted estimator with ``kernel=Additive(...)``, or pipeline of scalers and such an estimator
        X : array-like of shape (n_rows, n_features), default=None
            Rows whose range the curves are drawn over, and over which their means are 0. None takes the model's
            vectors.
        output : int, str or None, default=None
            With several outputs, the one to draw: its number, or its name; None draws a line for each.
        max_columns : int, default=9
            Largest number of columns to draw; those that matter most are drawn.
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
        check_at_least("max_columns", max_columns, 1)
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
            Largest number of columns to draw; those that matter most are drawn.

        Returns
        -------
        CurvesDisplay
        """
        check_at_least("max_columns", max_columns, 1)
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
        if columns := self._n_legend_columns:
            if ax is not None:
                axes[0].legend(fontsize="small")
            else:
                named = axes[0].get_legend_handles_labels()
                self.figure_.legend(*named, loc="outside right upper", ncols=columns, frameon=False)
        return self

    @property
    def _n_legend_columns(self) -> int:
        """Columns of the legend; 0 where there is one output, or no room for all."""
        n = len(self.outputs)
        return -(-n // IN_A_COLUMN) if 1 < n <= MOST_NAMED else 0

    def _axes(self, n: int) -> Array:
        """Return the axes of a new figure, of one scale."""
        lines, across = -(-n // MOST_ACROSS), min(n, MOST_ACROSS)
        beside = 1.5 * self._n_legend_columns
        figure = figure_of((3.6 * across + beside, 3.0 * lines))
        axes = figure.subplots(lines, across, sharey=True, squeeze=False).ravel()
        for each in axes[n:]:
            each.remove()
        return axes[:n]

    def _draw(self, ax: Any, curve: Curve) -> None:
        """Draw a line for each output, or for levels a bar for each."""
        for place, c in enumerate(self.outputs):
            style = {"color": colour_of_class(c), "label": entry(self.output_names[c]) if self.output_names else None}
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

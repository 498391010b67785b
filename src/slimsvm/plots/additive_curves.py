"""The curves of an additive model: what each column adds to the score, independent of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.deploy.plain_model import PlainModel, of_term
from slimsvm.deploy.rows import as_rows, check_finite, check_names, dense_rows
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.shapley import outputs_of

Array = np.ndarray

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
        Standard deviation over the rows, of the output where it is largest: how much the column matters.
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
    estimator : fitted estimator with ``kernel=Additive(...)``, or pipeline of scalers and such a one
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
        raise ValueError(f"curves are those of rows and kernel=Additive(...), found {model.kind}, {kernel!r}")
    names, mixing = outputs_of(model)
    of_outputs = replace(model, coef=model.coef @ mixing, intercept=np.zeros(mixing.shape[1]))
    rows = _rows(model, X)
    scaled, curves = _scaled(model, rows), []
    for term in kernel.single_terms(model.n_features):
        own = of_term(of_outputs, term)
        at, places = _places(model, term.columns, rows)
        of_rows = own.scores(scaled[:, term.columns])
        values = own.scores(_scaled(model, places)[:, term.columns]) - of_rows.mean(axis=0)
        curves.append(Curve(_name(model, term.columns), at, values, float(of_rows.std(axis=0).max())))
    return curves, names


def _rows(model: PlainModel, X: Any) -> Array:
    """Return the rows that were given, or else the vectors, before any scaling."""
    if X is None:
        vectors = model.dense_vectors()
        return vectors if model.scaling is None else model.scaling.unscaled(vectors)
    check_names(X, model.feature_names)
    given = as_rows(X)
    if given.shape[1] != model.n_features or not given.shape[0]:
        raise ValueError(f"X must be rows of {model.n_features} features as in training, found shape {given.shape}")
    rows = dense_rows(given, 0, given.shape[0])
    check_finite(rows)
    return rows


def _scaled(model: PlainModel, rows: Array) -> Array:
    return rows if model.scaling is None else model.scaling.rows(rows)


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

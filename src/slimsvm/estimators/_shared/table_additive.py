"""An additive model of a table: a sum of one smooth curve for each number, and of a constant for each flag.

A curve is a cubic spline of the number's rank, with knots at the quartiles. Weights have a squared penalty, in units in
which every spline varies by 1; the loss is the logistic one, or the squared one of numbers. Tables whose columns act
nearly one by one, and those with a rare class, want it beside the machines (docs/experiments/tables.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import BSpline
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from slimsvm.estimators._shared.table_goals import ClassGoal, Goal

Array = np.ndarray

# Ranks are normal deviates: beyond END curves are constant.
END, DEGREE = 3.0, 3
KNOTS = np.concatenate([[-END] * (DEGREE + 1), ndtri([0.25, 0.5, 0.75]), [END] * (DEGREE + 1)])
# The price of a loss for machines' C = 1, and the most steps.
UNIT, MOST_STEPS = 0.01, 300
# Splines that vary less, of about 0.2 that they vary by, are taken to vary by so much.
LEAST_SPREAD = 0.1


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Scores of encoded rows, a column for each output of a goal's machines.

    Parameters
    ----------
    weights : float64 ndarray of shape (n_splines, n_outputs)
    intercept : float64 ndarray of shape (n_outputs,)
    are_flags : bool ndarray of shape (n_features,)
        Which features are 0 or 1.
    """

    weights: Array
    intercept: Array
    are_flags: Array

    def scores(self, X: Array, n_jobs: int | None = None) -> Array:
        """Scores of encoded rows (n, n_outputs)."""
        # A product with a sparse matrix goes row by row: a row has the same score in any batch.
        return splines(X, self.are_flags) @ self.weights + self.intercept


def splines(X: Array, are_flags: Array) -> sp.csr_array:
    """The flags as they are, and the splines of the numbers, one number after another."""
    parts: list[Any] = [sp.csr_array(X[:, are_flags].astype(np.float64))]
    for column in X[:, ~are_flags].T:
        inside = np.clip(column.astype(np.float64), -END, END)
        parts.append(sp.csr_array(BSpline.design_matrix(inside, KNOTS, DEGREE)))
    return sp.csr_array(sp.hstack(parts, format="csr"))


def additive_models(
    X: Array, y: Array, weights: Array, are_flags: Array, goal: Goal, values_of_C: Sequence[float]
) -> Iterator[AdditiveModel]:
    """The models of every C."""
    found = splines(X, are_flags).toarray()
    spread = np.sqrt(np.average((found - np.average(found, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    # A spline that hardly any row has would have a huge weight for the rows that lie within it.
    spread[are_flags.sum() :] = np.maximum(spread[are_flags.sum() :], LEAST_SPREAD)
    unit = np.where(spread > 1e-9, spread, np.inf)
    for C in values_of_C:
        coef, intercept = _fitted(found / unit, y, weights, goal, UNIT * C)
        coef = (coef.T / unit[:, None]).astype(np.float32).astype(np.float64)  # as files have them
        yield AdditiveModel(coef, intercept, are_flags)


def _fitted(X: Array, y: Array, weights: Array, goal: Goal, C: float) -> tuple[Array, Array]:
    """Weights (n_outputs, n_splines) and intercepts; for several classes of every pair: the odds are the same."""
    if not isinstance(goal, ClassGoal):
        ridge: Any = Ridge(alpha=1.0 / (2.0 * C)).fit(X, y, weights)
        return ridge.coef_[None], np.array([ridge.intercept_])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        logistic: Any = LogisticRegression(C=C, max_iter=MOST_STEPS).fit(X, y, weights)
    if goal.n_classes == 2:
        return logistic.coef_, logistic.intercept_
    first, second = np.array(list(combinations(range(goal.n_classes), 2))).T
    return logistic.coef_[first] - logistic.coef_[second], logistic.intercept_[first] - logistic.intercept_[second]

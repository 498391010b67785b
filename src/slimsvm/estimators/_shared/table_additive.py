"""An additive model of a table: a sum of one smooth curve for each number, and of a constant for each flag.

A curve is a cubic spline of the number's rank, with knots at the quartiles. Weights have a squared penalty, in units in
which every spline varies by 1; the loss is the logistic one, or the squared one of numbers. Tables whose columns act
nearly one by one, and those with a rare class, want it beside the models (docs/experiments/tables.md). A linear model
takes all features as this one takes flags, and straight numbers, too: it learns sums of columns with heavy tails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import cholesky, qr, solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from slimsvm.core.clock import check_time
from slimsvm.estimators._shared.table_goals import ClassGoal, Goal
from slimsvm.tables.splines import AdditiveModel, every_spline, splines_of_columns

Array = np.ndarray

# C of the additive models at models' C = 1; the most steps, and the share of the objective that the last one gains.
UNIT, MOST_STEPS, LEAST_GAIN = 0.01, 300, 1e-6
# Splines that vary less, of about 0.2 that they vary by, are taken to vary by so much.
LEAST_SPREAD = 0.1


def splines(X: Array, are_flags: Array) -> Array:
    """The flags as they are, and the splines of the numbers, one number after another."""
    numbers = [every_spline(*own) for own in splines_of_columns(X[:, ~are_flags])]
    return np.hstack([X[:, are_flags].astype(np.float64), *numbers])


def additive_models(
    X: Array, y: Array, weights: Array, are_flags: Array, goal: Goal, values_of_C: Sequence[float]
) -> Iterator[AdditiveModel]:
    """The models of every C."""
    found = splines(X, are_flags)
    mean = np.average(found, axis=0, weights=weights)
    spread = np.sqrt(np.average((found - mean) ** 2, axis=0, weights=weights))
    # A spline that hardly any row has would have a huge weight for the rows that lie within it.
    spread[are_flags.sum() :] = np.maximum(spread[are_flags.sum() :], LEAST_SPREAD)
    unit = np.where(spread > 1e-9, spread, np.inf)
    fits = logistic_fits if isinstance(goal, ClassGoal) else squared_fits
    rows, axes = in_their_span((found - mean) / unit)
    for W, b in fits(rows, goal.targets(y), weights, [UNIT * C for C in values_of_C]):
        W = (W if axes is None else axes @ W) / unit[:, None]
        yield AdditiveModel(W.astype(np.float32).astype(np.float64), b - mean @ W, are_flags)  # as files have them


def in_their_span(X: Array) -> tuple[Array, Array | None]:
    """Coordinates of the rows on orthonormal axes of their span, and these axes as columns; X and None where the rows
    are not fewer than the columns.

    The optimal W lies in the span of the rows, and ‖W‖ is that of its coordinates.
    """
    if len(X) >= X.shape[1]:
        return X, None
    axes, coordinates = qr(X.T, mode="economic")
    return coordinates.T, axes


def squared_fits(X: Array, targets: Array, weights: Array, C_values: Sequence[float]) -> Iterator[tuple[Array, Array]]:
    """W and b of ½‖W‖² + C Σ ω_i (f(x_i) − y_i)² for every C; columns of X have mean 0."""
    b = np.average(targets, axis=0, weights=weights)
    gram, moments = (X.T * weights) @ X, (X.T * weights) @ (targets - b)
    for C in C_values:
        yield solve(gram + np.eye(len(gram)) / (2.0 * C), moments, assume_a="pos"), b


def logistic_fits(X: Array, targets: Array, weights: Array, C_values: Sequence[float]) -> Iterator[tuple[Array, Array]]:
    """W and b of ½‖W‖² + C Σ ω_i ℓ(f(x_i), y_i), ℓ the log loss, for every C, each from the last.

    W has a column for each class, but none for the first of two; of more than two classes the differences of pairs are
    returned, which are their odds. Columns of X have mean 0.
    """
    n_outputs = targets.shape[1]
    W, b = np.zeros((X.shape[1], n_outputs)), np.zeros(n_outputs)
    first, second = np.triu_indices(n_outputs, 1)
    for C in C_values:
        W, b = logistic_fit(X, targets, C * weights, W, b)
        yield (W, b) if n_outputs == 1 else (W[:, first] - W[:, second], b[first] - b[second])


def logistic_fit(X: Array, targets: Array, C_of_row: Array, W: Array, b: Array) -> tuple[Array, Array]:
    """W and b of ½‖W‖² + Σ c_i ℓ(f(x_i), y_i) by L-BFGS from W and b, in coordinates RW where the Hessian is about 1.

    Splines of a number nearly add up to 1, and in W itself it takes several times as many steps.
    """
    n_outputs = len(b)

    def parts(scores: Array) -> tuple[Array, Array]:
        """Probabilities of the targets, and the rows' losses."""
        if n_outputs == 1:
            return expit(scores), np.logaddexp(0.0, scores[:, 0]) - targets[:, 0] * scores[:, 0]
        logs = log_softmax(scores, axis=1)
        return np.exp(logs), -(targets * logs).sum(axis=1)

    p, _ = parts(X @ W + b)
    curved = C_of_row * (p * (1.0 - p)).mean(axis=1)
    R, unit = cholesky((X.T * curved) @ X + np.eye(len(W))), 1.0 / np.sqrt(curved.sum())
    Z = solve_triangular(R, X.T, trans=1).T

    def at(point: Array) -> tuple[float, Array]:
        check_time()
        own = point.reshape(-1, n_outputs)
        W = solve_triangular(R, own[:-1])
        p, losses = parts(Z @ own[:-1] + unit * own[-1])
        slopes = C_of_row[:, None] * (p - targets)
        gradient = Z.T @ slopes + solve_triangular(R, W, trans=1)
        value = 0.5 * float(np.sum(W**2)) + float(C_of_row @ losses)
        return value, np.vstack([gradient, unit * slopes.sum(axis=0)]).ravel()

    start = np.vstack([R @ W, b / unit]).ravel()
    found = minimize(at, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS, "ftol": LEAST_GAIN})
    own = found.x.reshape(-1, n_outputs)
    return solve_triangular(R, own[:-1]), unit * own[-1]

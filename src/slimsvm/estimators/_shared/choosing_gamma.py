"""What ``gamma="scale"`` and ``gamma="learn"`` stand for; the gamma that searches begin with.

"learn" is one gamma for each feature. A solver that learns vectors learns the gammas with them (`learning_metric`).
Solvers that learn no vectors take the scales of a small model of few learned vectors: it finds how fast the labels
change along each feature, and the proportion of its gammas is kept (`with_learned_scales`).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from slimsvm import kernels, solvers, tasks
from slimsvm.core.clock import no_limit
from slimsvm.kernels.far import Bulk
from slimsvm.kernels.shift_invariant import KERNELS, RBF
from slimsvm.parts.descent.vector_descent import SweepSettings
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Status
from slimsvm.parts.solver import Solver
from slimsvm.rows import ColumnSums, Rows, as_rows, in_pieces, is_sparse, keep_sums, parts_of
from slimsvm.size_search.reduced_models import with_task

# Values of a block in which the variance for gamma="scale" is summed. How many times the features' own variance that of
# all entries together may be, before a search for gamma begins with a larger one.
BLOCK_VALUES, APART = 1 << 20, 4.0


def scale_gamma(
    X: Any, weights: np.ndarray | None, bulk: Bulk | None = None, block_values: int = BLOCK_VALUES
) -> float:
    """scikit-learn's ``gamma="scale"``, 1 / (n_features · variance of all entries), of weighted rows, or only of those
    in a bulk. One pass adds up means and squared deviations of blocks of so many values (Chan, Golub, LeVeque 1983).
    """
    n, d = X.shape
    sparse = X.is_sparse if isinstance(X, Rows) else is_sparse(X)
    n_stored = (X.n_stored if isinstance(X, Rows) else X.nnz) if sparse else n * d
    step = max(1, block_values // max(1, -(-n_stored // n)))  # by values of a row, zeros of sparse rows are none
    bounds = parts_of(n)
    if not isinstance(X, Rows) and len(bounds) == 1 and n <= step and bulk is None:
        total, _, squares = _moments_of(X.astype(np.float64), weights)
    else:
        parts = [slice(*each) for each in bounds]
        owned = [None if weights is None else weights[part] for part in parts]
        if isinstance(X, Rows):
            adds = not (X.in_memory or X.is_sparse)
            both = X.map(partial(_moments_and_sums, step, adds, bulk), owned)
            found = [moments for moments, _ in both]
            if adds:  # which a kernel will want
                keep_sums(X, [sums for _, sums in both])
        else:
            found = [
                _moments(step, X if len(parts) == 1 else X[part], own, bulk=bulk) for part, own in zip(parts, owned)
            ]
        total, _, squares = _put_together(found)
    variance = squares / total
    if not 0 < (gamma := 1.0 / (d * variance) if variance > 0 else 1.0) < np.inf:
        raise ValueError(
            f"gamma='scale' is 1 / (n_features · variance of X), found a variance of {variance:.3g}: scale X, or give "
            "gamma as a number"
        )
    return gamma


def typical_gamma(X: Any, weights: np.ndarray | None) -> float:
    """The gamma that searches begin with: ``gamma="scale"`` without the rows that are far from all others, and larger
    if features are farther from each other than they are wide.
    """
    bulk = Bulk.of(as_rows(X))
    return scale_gamma(X, weights, bulk) * max(1.0, bulk.apart / APART)


def _put_together(moments: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of several sets together."""
    if len(moments) == 1:
        return moments[0]
    total, mean, squares = np.zeros(3)  # NumPy's numbers, which may be infinite
    for weight, own_mean, own_squares in moments:
        if weight > 0:
            off, before = own_mean - mean, total
            total += weight
            mean += off * (weight / total)
            squares += own_squares
            if before > 0:
                squares += off**2 * (weight * (before / total))
    return total, mean, squares


def _moments_and_sums(
    step: int, adds: bool, bulk: Bulk | None, X: Rows, weights: np.ndarray | None
) -> tuple[tuple[float, float, float], ColumnSums]:
    sums = ColumnSums(X.n_features, has_box=True)
    return _moments(step, X, weights, sums if adds else None, bulk), sums


def _moments(
    step: int, X: Any, weights: np.ndarray | None, sums: ColumnSums | None = None, bulk: Bulk | None = None
) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of all entries, of rows in a bulk if it is given, ``step`` rows at a
    time. The rows are added to ``sums``.
    """
    found = []
    for part in in_pieces(X.shape[0], step):
        block: Any = X.slice(part.start, part.stop, X.exact_dtype) if isinstance(X, Rows) else X[part]
        if sums is not None:
            sums.add(block)
        block, own = block.astype(np.float64), None if weights is None else weights[part]
        if bulk is not None and not (held := bulk.holds(block)).all():
            block, own = block[held], None if own is None else own[held]
        found.append(_moments_of(block, own))
    return _put_together(found)


def _moments_of(block: Any, weights: np.ndarray | None) -> tuple[float, float, float]:
    total = (block.shape[0] if weights is None else float(weights.sum())) * float(block.shape[1])
    if not total:
        return 0.0, 0.0, 0.0
    if is_sparse(block):
        sums = [_weighted(weights, np.asarray(part.sum(axis=1)).ravel()) for part in (block, block.power(2))]
        return total, sums[0] / total, sums[1] - sums[0] ** 2 / total
    mean = _weighted(weights, block.sum(axis=1)) / total
    block -= mean
    with np.errstate(over="ignore"):  # an infinite variance is an error of its own
        return total, mean, _weighted(weights, np.square(block, out=block).sum(axis=1))


def _weighted(weights: np.ndarray | None, values: np.ndarray) -> float:
    """Σ weights · values, without BLAS, whose sums depend on how many threads it has."""
    return float((values if weights is None else weights * values).sum())


# Vectors of the small model that learns scales, its steps and their rate: half the default steps, at twice the rate,
# on batches of the usual size.
# Models in its scales err as much as in scales that took twice the time (docs/experiments/learned_bases.md, "Scales in
# fewer steps").
VECTORS, RATE, SHORT = 100, 0.2, SweepSettings(steps=3000, steps_power=0.0, batch_epochs=10)
# Of max_seconds, the share of the small model. Chosen, not measured.
SMALL_MODEL_SHARE = 0.3


def learns_with_vectors(solver: Solver) -> bool:
    """Whether the solver learns a metric together with its vectors."""
    return hasattr(solver, "learn_metric")


def learning_metric(solver: Solver, problem: Problem) -> Solver:
    """The solver, set to learn the metric if it learns vectors; others take scales that are learned before.

    A ValueError says if the kernel, the rows or the loss allow neither.
    """
    if not learns_with_vectors(solver):
        check_scales(problem)
        return solver
    kernel = problem.kernel
    if not kernel.has_metric:
        hint = "; solver='exact' takes scales learned before" if kernel.form == "absolute" else ""
        raise ValueError(f"gamma='learn' needs kernel={kernels.kernels_with('has_metric')}, found {kernel!r}{hint}")
    if problem.rows.is_sparse:
        raise ValueError("gamma='learn' needs dense rows, found a sparse matrix")
    return solver if solver.learn_metric else clone(solver).set_params(learn_metric=True)


def check_scales(problem: Problem) -> None:
    """Raise a ValueError if no scales can be learned for the kernel, the rows or the loss."""
    kernel, rows, task = problem.kernel, problem.rows, problem.task
    if not isinstance(kernel, KERNELS):
        names = ", ".join(repr(known.name) for known in KERNELS)
        raise ValueError(f"gamma='learn' with a solver that learns no vectors needs kernel={names}, found {kernel!r}")
    if rows.is_sparse:
        raise ValueError("gamma='learn' needs dense rows, found a sparse matrix")
    if not rows.in_memory:
        raise ValueError("gamma='learn' with a solver that learns no vectors needs rows in memory, found rows on disk")
    if not task.decomposes and not task.class_pairs():
        raise ValueError(f"gamma='learn' needs a loss that is a sum over examples, found {task!r}")


def with_learned_scales(
    problem: Problem, X: np.ndarray, weights: np.ndarray | None, mean_gamma: float | None
) -> Problem:
    """The problem with a gamma for each feature, in the proportion that a small model has learned.

    Parameters
    ----------
    problem : Problem
        One that `check_scales` lets pass.
    X : ndarray of shape (n_samples, n_features)
        Its rows.
    weights : ndarray of shape (n_samples,) or None
    mean_gamma : float or None
        The mean of the gammas; None: what ``gamma="scale"`` is for features in the learned scales.

    Returns
    -------
    Problem

    Raises
    ------
    KeyboardInterrupt
        The small model was interrupted: there is no model with the kernel asked for that the fit could end with.
    """
    scales = learned_factors(problem)
    # Absolute differences grow with a scale, squares with its square.
    gamma = scales if problem.kernel.form == "absolute" else scales**2
    with no_limit():
        gamma = gamma * (typical_gamma(X * scales, weights) if mean_gamma is None else mean_gamma / gamma.mean())
    of_features: Any = type(problem.kernel)
    return replace(problem, kernel=of_features(gamma))


def learned_factors(problem: Problem, sweeps: SweepSettings = SHORT) -> np.ndarray:
    """Factors of the features, of mean square 1, from the gammas of the small model: an RBF of few vectors."""
    task = problem.task
    small = replace(
        problem,
        kernel=RBF(problem.kernel.gamma),
        intercept="regularized" if task.has_threshold else "none",
        max_iter=None,
        max_seconds=None if problem.max_seconds is None else SMALL_MODEL_SHARE * problem.max_seconds,
        settings=(sweeps, *problem.settings),
    )
    if pairs := task.class_pairs():
        small = with_task(small, tasks.Multiclass(1 + max(map(max, pairs))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = solvers.Refine(VECTORS, rate=RATE, learn_metric=True, finish=False).solve(small)
    if fit.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    gamma = np.asarray(fit.model.kernel.gamma, np.float64)
    return np.sqrt(gamma / gamma.mean())

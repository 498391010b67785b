"""``gamma="learn"``: one gamma for each feature.

A solver that learns vectors learns the gammas with them (`learning_metric`). Solvers that learn no vectors take the
scales of a small model of few learned vectors: it finds how fast the labels change along each feature, and the
proportion of its gammas is kept (`with_learned_scales`).
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from slimsvm import kernels, solvers, tasks
from slimsvm.core.clock import no_limit
from slimsvm.estimators._shared.gamma_scale import typical_gamma
from slimsvm.kernels.shift_invariant import KERNELS, RBF
from slimsvm.parts.descent.vector_descent import SweepSettings
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Status
from slimsvm.parts.solver import Solver
from slimsvm.size_search.reduced_models import machine_problem

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
        small = machine_problem(small, tasks.Multiclass(1 + max(map(max, pairs))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = solvers.Refine(VECTORS, rate=RATE, learn_metric=True, finish=False).solve(small)
    if fit.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    gamma = np.asarray(fit.model.kernel.gamma, np.float64)
    return np.sqrt(gamma / gamma.mean())

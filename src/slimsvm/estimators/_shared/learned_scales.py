"""``gamma="learn"`` with solvers that learn no vectors: the features' scales come from a small model before.

A model of few learned vectors finds how fast the labels change along each feature. Its gammas, one for each feature,
are kept in proportion and become those of the kernel of the whole machine.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm import solvers, tasks
from slimsvm.core.clock import no_limit
from slimsvm.estimators._shared.validation import typical_gamma
from slimsvm.kernels.shift_invariant import KERNELS, RBF
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Status
from slimsvm.size_search.machines import machine_problem

# Vectors of the small model, its steps and their rate: half as many steps as by default, at twice the rate. Machines in
# its scales err as much as in those of twice the time.
VECTORS, STEPS, RATE = 100, 3000, 0.2
# Of max_seconds, the share of the small model.
SHARE = 0.3


class _ShortRefine(solvers.Refine):
    """Learned vectors, by fewer steps."""

    def auto_steps(self, k: int) -> float:
        """See `Refine`."""
        return STEPS


def check_scales(problem: Problem) -> None:
    """An error where no scales can be learned for the kernel, the rows or the loss."""
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
        The small model was interrupted, so there is no model of the machine asked for that the fit could end with.
    """
    scales = _scales(problem)
    # Absolute differences grow with a scale, squares with its square.
    gamma = scales if problem.kernel.form == "absolute" else scales**2
    with no_limit():
        gamma = gamma * (typical_gamma(X * scales, weights) if mean_gamma is None else mean_gamma / gamma.mean())
    of_features: Any = type(problem.kernel)
    return replace(problem, kernel=of_features(gamma))


def _scales(problem: Problem) -> np.ndarray:
    """Factors of the features, of mean square 1, from the gammas of the small model: an RBF of few vectors."""
    task = problem.task
    small = replace(
        problem,
        kernel=RBF(problem.kernel.gamma),
        intercept="regularized" if task.has_threshold else "none",
        max_iter=None,
        max_seconds=None if problem.max_seconds is None else SHARE * problem.max_seconds,
    )
    if pairs := task.class_pairs():
        small = machine_problem(small, tasks.Multiclass(1 + max(map(max, pairs))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = _ShortRefine(VECTORS, rate=RATE, learn_metric=True, finish=False).solve(small)
    if fit.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    gamma = np.asarray(fit.model.kernel.gamma, np.float64)
    return np.sqrt(gamma / gamma.mean())

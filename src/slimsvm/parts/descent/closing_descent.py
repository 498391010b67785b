"""A closing descent: the vectors of a pursuit moved together for a few sweeps over the rows.

A pursuit never moves a vector again once it is in the basis. A few sweeps of `solvers.learned_vectors` from there lower
the objective and, where test rows are unlike the training rows, the error. Coefficients of vectors that nearly depend
on each other are large and of both signs, and steps of a usual size leave them so; hence the descent starts from

    (K_BB + shrink · diag K_BB)⁻¹ K_BB β

which is nearly the same function with small coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.bases.preimage import FixedPoint, GradientAscent, TrainingRows
from slimsvm.core.factors import solve_positive
from slimsvm.kernels import KernelRows
from slimsvm.kernels.pairs import between
from slimsvm.model import KernelExpansion
from slimsvm.parts.descent.vector_descent import Learning, VectorDescent
from slimsvm.parts.problem import Problem

Array = np.ndarray


@dataclass(frozen=True)
class ClosingSettings:
    """How a pursuit ends; docs/experiments/subspace_pursuit.md, "The closing descent", settles the values."""

    # Share of k(b, b) added to the diagonal of K_BB where coefficients are made small.
    shrink: float = 0.1
    # sweeps="auto": so many for up to ``vectors`` vectors, growing with their number, for dense rows; none for fewer
    # than ``rows`` rows, which make 1,000 steps of 512 rows.
    sweeps: int = 20
    vectors: int = 500
    rows: int = 25_600
    # sweeps="auto": none where small coefficients lose more than this share of ‖w‖², since sweeps then did not make up
    # for it; of up to so few vectors, which gain more by being moved, more than this share.
    most_lost: float = 0.4
    few_vectors: int = 200
    most_lost_of_few: float = 0.6


def n_sweeps(sweeps: int | str, problem: Problem, preimage: Any, max_basis: int) -> int:
    """Sweeps that a pursuit ends with; an error where they are asked for and its vectors cannot be moved."""
    if isinstance(sweeps, str) and sweeps == "auto":
        own = problem.settings_of(ClosingSettings)
        is_worth_it = not problem.rows.is_sparse and problem.rows.n_rows >= own.rows
        if not (is_worth_it and isinstance(preimage, (FixedPoint, GradientAscent))):
            return 0
        return -(-own.sweeps * max(max_basis, own.vectors) // own.vectors)
    if isinstance(sweeps, (bool, str)) or not isinstance(sweeps, (int, np.integer)) or sweeps < 0:
        raise ValueError(f"sweeps must be an integer >= 0 or 'auto', found {sweeps!r}")
    if sweeps and isinstance(preimage, TrainingRows):
        raise ValueError(f"sweeps={sweeps!r} moves the vectors: it cannot go with preimage='training-rows'; sweeps=0")
    if sweeps and not problem.kernel.has_gradient:
        raise ValueError(f"sweeps={sweeps!r} needs a differentiable kernel, found {type(problem.kernel).__name__}")
    return int(sweeps)


def most_lost(max_basis: int, settings: ClosingSettings) -> float:
    """Share of ‖w‖² that the start may lose, where nobody asked for sweeps."""
    return settings.most_lost_of_few if max_basis <= settings.few_vectors else settings.most_lost


def closing_descent(
    problem: Problem, rows: KernelRows, model: KernelExpansion, sweeps: int, most_lost: float, seed: int
) -> VectorDescent | None:
    """A descent of ``sweeps`` sweeps from a model, whose coefficients are made small; each of its steps is a sweep.

    None where that loses more than the share ``most_lost`` of ‖w‖², or there is no vector.
    """
    if not model.n_basis:
        return None
    gram = between(rows, model.basis)
    start = replace(model, coef=small_coefficients(gram, model.coef, problem.settings_of(ClosingSettings).shrink))
    lost = start.coef - model.coef
    if np.isfinite(most_lost) and np.sum(lost * (gram @ lost)) > most_lost * np.sum(model.coef * (gram @ model.coef)):
        return None
    learning = Learning(max_basis=model.n_basis, initial=start, epochs=sweeps, finish=False)
    run = VectorDescent(replace(problem, max_iter=None, max_seconds=None, random_state=seed), learning, None)
    run.kernel_rows.counter = rows.counter
    return run


def small_coefficients(gram: Array, coef: Array, shrink: float) -> Array:
    """Smaller coefficients (k, m) of nearly the same function, from K_BB (k, k)."""
    ridge = gram + shrink * np.diag(np.diagonal(gram))
    return solve_positive(ridge, gram @ coef)

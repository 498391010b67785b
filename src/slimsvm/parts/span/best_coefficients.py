"""The best coefficients of a model's own basis, by the method that its task allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.core.clock import time_left
from slimsvm.kernels import KernelRows
from slimsvm.model import KernelExpansion
from slimsvm.parts.checks import check_smoothable, warn_of_a_gap
from slimsvm.parts.problem import Problem
from slimsvm.parts.span.finish_by_cuts import finish_by_cuts
from slimsvm.parts.span.smoothed_newton import ConvexFinish, fit_coefficients
from slimsvm.parts.span.whitened_span import Coefficients

# Gaps asked for, and cuts that a finish may take.
NEWTON_TOLERANCE, CUTS_TOLERANCE, MAX_CUTS = 1e-3, 1e-2, 2000


def has_smoothed_rows(problem: Problem) -> bool:
    """Whether the loss is a sum over rows that can be smoothed: then Newton's method does it."""
    return problem.task.is_smoothable and problem.examples.offsets is None


def check_finish(problem: Problem) -> None:
    """Refuse a problem that `best_coefficients` cannot solve."""
    if has_smoothed_rows(problem):
        check_smoothable(problem)
    elif problem.intercept not in ("regularized", "none"):
        raise ValueError(
            f"{type(problem.task).__name__} is finished by cuts, which have no place for an unregularised intercept: "
            f"intercept must be 'regularized' or 'none', found {problem.intercept!r}"
        )


def best_coefficients(
    problem: Problem,
    kernel_rows: KernelRows,
    model: KernelExpansion,
    tol_relative: Any,
    rng: np.random.Generator,
    tau: float | None = None,
    halfway: dict[str, Any] | None = None,
    after_step: Callable[[ConvexFinish], None] | None = None,
) -> Coefficients:
    """Solve the convex problem in coefficients, intercept and plain parameters over a model's basis.

    Newton's method on smoothed losses for one-row tasks that have them; exact cuts for all others.

    Parameters
    ----------
    problem : Problem
        With the model's kernel.
    kernel_rows : KernelRows
        The problem's rows seen through that kernel.
    model : KernelExpansion
        Where to begin.
    tol_relative : float or "auto"
        Gap to the bound within the basis, as a share of the objective: "auto" is `NEWTON_TOLERANCE` or
        `CUTS_TOLERANCE`. Small problems are solved to rounding.
    rng : numpy.random.Generator
    tau : float or None
        What smoothed losses begin with, where it is known from a like problem.
    halfway, after_step
        As of `fit_coefficients`, by Newton's method.

    Warns
    -----
    ConvergenceWarning
        The gap was not reached.
    """
    is_smoothed = has_smoothed_rows(problem)
    if tol_relative == "auto":
        tol_relative = NEWTON_TOLERANCE if is_smoothed else CUTS_TOLERANCE
    tol_relative = problem.tolerances(tol_relative, model.n_basis)[1]
    if is_smoothed:
        start: Any = model.coef, model.intercept
        newton: Any = {"rng": rng, "tau": tau, "halfway": halfway, "after_step": after_step}
        found = fit_coefficients(problem, kernel_rows, model.basis, start, tol_relative, **newton)
        if found.objective - found.bound_in_basis > tol_relative * abs(found.objective):
            other = fit_coefficients(problem, kernel_rows, model.basis, None, tol_relative, rng=rng)
            bound = max(found.bound_in_basis, other.bound_in_basis)
            found = replace(min(found, other, key=lambda fit: fit.objective), bound_in_basis=bound)
        advice = None
    else:
        start = model.coef, model.intercept, model.plain
        found = finish_by_cuts(problem, kernel_rows, model.basis, start, tol_relative, MAX_CUTS)
        advice = "rounding allows no less" if time_left() else "a larger max_seconds may bring it down"
    whose, bound = "the coefficients' problem", found.bound_in_basis
    warn_of_a_gap(whose, found.objective, bound, tol_relative, kernel_rows.dtype, 7, advice)
    return found

"""The best coefficients over a model's own basis, by the method that its task allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.core.clock import OutOfTimeError, is_time_over, no_limit, time_left
from slimsvm.kernels import KernelRows
from slimsvm.model import KernelExpansion
from slimsvm.parts.cuts import Cut, ExactOracle, Point, Solution
from slimsvm.parts.cuts.cutting_plane_loop import CuttingPlaneRun, Plan
from slimsvm.parts.cuts.score_books import plain_products
from slimsvm.parts.problem import Problem, check_smoothable
from slimsvm.parts.run import warn_of_a_gap
from slimsvm.parts.span.smoothed_newton import ConvexFinish, fit_coefficients
from slimsvm.parts.span.whitened_span import Coefficients, Subspace, subspace

Array = np.ndarray

# -- The convex problem in the coefficients of a given basis by exact cuts, for every task whose loss is a sum ---------
#     min over β, b, v   ½ Σ_c β_cᵀ K_BB β_c + ½ b² + ½ ‖v‖² + C Σ_e ω_e ℓ_e(K_XB β + b, v),      v the plain parameters
#
# The loop of `parts.cuts.cutting_plane_loop` in whitened coordinates (`parts.span.whitened_span`), from the best point
# there is: the objective never rises above that of the start, and the QP's value bounds all models over the basis from
# below.

OVERSHOOT, MAX_IDLE = 0.1, 20


class SpannedScores:
    """The score book of a fixed basis: it keeps every cut by its coordinates.

    Parameters
    ----------
    space : Subspace
    n_outputs : int
    """

    full = False

    def __init__(self, space: Subspace, n_outputs: int):
        self.space = space
        self.z: list[Array] = []
        self.coordinates = np.zeros((space.rank + 1, n_outputs))
        self.scores = np.zeros((space.n_rows, n_outputs))

    def add(self, cut: Cut, live: list[Cut], products: Array | None = None, exact: bool = False) -> Array:
        """Add a cut; return its inner products (t + 1,) with the live cuts and with itself."""
        self.z.append(self.space.coordinates_of(cut.rows, cut.coef))
        inner = np.array([np.vdot(z, self.z[-1]) for z in self.z])
        found: Array = inner + plain_products(cut, live)
        return found

    def combine(self, alpha: Array) -> None:
        """Set ``coordinates`` and ``scores`` by Σ α_j g_j."""
        self.coordinates = sum((a * z for a, z in zip(alpha, self.z) if a), np.zeros_like(self.coordinates))
        self.scores = self.space.scores(self.coordinates)

    def keep(self, index: Array) -> None:
        """Forget all cuts but ``index``."""
        self.z = [self.z[j] for j in index]


class FinishByCuts(CuttingPlaneRun):
    """The run of exact cuts over a fixed basis.

    Parameters
    ----------
    problem : Problem
    kernel_rows : KernelRows
        The problem's rows seen through its kernel.
    basis : raw vectors of shape (k, d)
    tol_relative : float
        Gap to the bound, as a share of the objective.
    start : (coef (k, m), intercept (m,), plain (p,)) or None
    """

    def __init__(self, problem: Problem, kernel_rows: KernelRows, basis: Any, tol_relative: float, start: Any = None):
        self.space = subspace(problem, kernel_rows, basis)
        plan = Plan(tol_relative, MAX_IDLE, line_search=True, overshoot=OVERSHOOT)
        super().__init__(replace(problem, precision=np.dtype(kernel_rows.dtype).name), ExactOracle(), plan, None)
        self.kernel_rows, self.tol = kernel_rows, np.inf
        self.u = np.zeros((self.space.rank + 1, self.task.n_outputs))
        if start is not None:
            coef, intercept, plain = start
            self.u = self.space.coordinates(coef, intercept)
            norm_squared = float(np.sum(self.u**2) + plain @ plain)
            point = Point(self.space.times(self.u), np.asarray(plain, np.float64))
            self.centre.start_at(Solution((), np.zeros(0), norm_squared, None, point))
            self.point = self.target = point

    def make_book(self, intercept: bool) -> SpannedScores:
        """Make the book of the cuts' coordinates."""
        return SpannedScores(self.space, self.task.n_outputs)

    def resolve(self) -> None:
        """Solve the QP and move; the best point's coordinates follow its step."""
        super().resolve()
        k = self.centre.step
        self.u = (1 - k) * self.u + k * self.book.coordinates

    def found(self, n_steps: int) -> Coefficients:
        """Return the best point."""
        now = self.centre.now
        now = self.centre.start_at(replace(now, point=replace(now.point, scores=self.space.times(self.u))))
        coef, intercept = self.space.coefficients(self.u)
        bound = min(self.lower_bound or 0.0, now.objective)
        return Coefficients(coef, intercept, now.objective, bound, n_steps, self.converged, now.point.plain)


def finish_by_cuts(
    problem: Problem,
    kernel_rows: KernelRows,
    basis: Any,
    start: Any,
    tol_relative: float,
    max_steps: int,
) -> Coefficients:
    """Take steps until the tolerance, ``max_steps`` or the time limit; see `FinishByCuts`."""
    run = FinishByCuts(problem, kernel_rows, basis, tol_relative, start)
    n_steps = 0
    try:
        while n_steps < max_steps and not run.converged and not is_time_over():
            run.step()
            n_steps += 1
    except OutOfTimeError:
        pass
    with no_limit():
        return run.found(n_steps)


# The gaps to reach, and the most cuts of a finish.
NEWTON_TOLERANCE, CUTS_TOLERANCE, MAX_CUTS = 1e-3, 1e-2, 2000


def has_smoothed_rows(problem: Problem) -> bool:
    """Return whether the loss is a sum over rows that can be smoothed, as Newton's method needs."""
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
    saved: dict[str, Any] | None = None,
    after_step: Callable[[ConvexFinish], None] | None = None,
) -> Coefficients:
    """Solve the convex problem in coefficients, intercept and plain parameters over a model's basis.

    Newton's method on smoothed losses for one-row tasks that have them; exact cuts for all others.

    Parameters
    ----------
    problem : Problem
        The problem, with the model's kernel.
    kernel_rows : KernelRows
        The problem's rows seen through that kernel.
    model : KernelExpansion
        The start.
    tol_relative : float or "auto"
        Gap to the bound within the basis, as a share of the objective: "auto" is `NEWTON_TOLERANCE` or
        `CUTS_TOLERANCE`. Small problems are solved to rounding.
    rng : numpy.random.Generator
    tau : float or None
        The first τ of smoothed losses, if a similar problem has shown it.
    saved, after_step
        The same as for `fit_coefficients`, with Newton's method.

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
        newton: Any = {"rng": rng, "tau": tau, "saved": saved, "after_step": after_step}
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

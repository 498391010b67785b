r"""One class on a budget: the box-constrained problem with every label +1, whose C is found so that ν comes out.

    one class   min ½‖w‖² + C (Σ ω_i max(0, ρ − f(x_i)) − ν Ω ρ)
    the box     min ½‖w‖² + C' Σ ω_i max(0, 1 − f(x_i)),    dual variables 0 ≤ α_i ≤ C' ω_i

A solution of the box problem with Σ α = ν C' Ω is, times C/C', one of one class, where ρ = C/C'. Σ α / (C' Ω) falls as
C' rises, and by duality is (‖w‖² + C' Σ ω ℓ) / (C' Ω): a share that needs no dual variables. C' is bracketed in its
logarithm, and each fit starts from the one before.

Of each trial's w the best multiple is taken with its best ρ, which is a quantile of its scores. So the objective is
exact however roughly C' is met, and the trial with the lowest is the model.

Schölkopf, Platt, Shawe-Taylor, Smola, Williamson, "Estimating the Support of a High-Dimensional Distribution", Neural
Computation 2001.

Parts: `parts.budgeted.budgeted_solver` for a trial.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np

from slimsvm.budget.budgeted_model import DUAL
from slimsvm.core.clock import OutOfTimeError
from slimsvm.kernels.pairs import between
from slimsvm.model import KernelExpansion
from slimsvm.parts.budgeted.box_dual import BudgetState
from slimsvm.parts.dual_ascent.dual import Dual
from slimsvm.parts.problem import Problem
from slimsvm.parts.rounding import DualPoint, sure_value
from slimsvm.parts.run import Best, Fit, Run, Status
from slimsvm.parts.solver import nothing
from slimsvm.tasks import Binary

Array = np.ndarray

# The search for C' ends when the share is this near to ν, in units of ν: on a budget, and if all rows fit.
CLOSE, CLOSE_ALL = 1e-2, 1e-6
# The narrowest bracket of log C', and the widest search above its least value.
NARROW, WIDEST = 1e-9, log(1e12)
# The smallest rise of log C' before there is a bracket.
RISE = log(4.0)
# Rounding of a sum of weights.
ROUNDING = 1e-12


def box_problem(problem: Problem, rng: np.random.Generator) -> Problem:
    """Return the box problem of one class, at the problem's C."""
    task = Binary()
    return replace(
        problem,
        task=task,
        examples=task.encode(np.ones(problem.rows.n_rows), problem.examples.weights),
        intercept="none",
        random_state=rng,
        max_iter=None,
        verbose=0,
    )


def quantile(scores: Array, weights: Array, nu: float) -> float:
    """Return the best ρ for these scores: rows with a share ν of the weight are not above it."""
    order = np.argsort(scores, kind="stable")
    place = int(np.searchsorted(np.cumsum(weights[order]), nu * float(weights.sum()) * (1 - ROUNDING)))
    return float(scores[order[min(place, len(order) - 1)]])


def best_multiple(
    model: KernelExpansion, norm: float, rho: float, scores: Array, weights: Array, nu: float, C1: float
) -> tuple[KernelExpansion, float]:
    """Return the best multiple of w, given its squared norm, ρ and scores of weighted rows, and its objective.

    ``C1`` is C Ω; the rows may be a sample of those that Ω is the weight of.
    """
    gain = C1 * (nu * rho - float(weights @ np.maximum(0.0, rho - scores)) / float(weights.sum()))
    scale = gain / norm if norm > 0 and gain > 0 else 0.0
    return replace(model, coef=scale * model.coef, intercept=np.array([-scale * rho])), 0.0 - 0.5 * scale * gain


class OneClassRun(Run):
    """The run that searches for C'; every step is a fit at one value."""

    doing = "trials of C"
    has_models = True

    def __init__(self, problem: Problem, solver: Any, state: BudgetState | None):
        if getattr(solver, "damping", None) == "auto":  # every fit begins far from its solution, at the last one's C
            solver = type(solver)(**solver.get_params(deep=False) | {"damping": 0.0})
        self.problem, self.solver, self.nu = problem, solver, problem.task.intercept_nu
        self.kernel_rows, rng = problem.bind(), problem.generator()
        n, examples = self.kernel_rows.n_rows, problem.examples
        self.box = box_problem(problem, rng)
        solver.check(self.box, solver.finish, state)
        self.has_all = n <= solver.max_basis
        # Up to this C no score reaches 1, and every dual variable is at its bound.
        highest = float(self.kernel_rows.diag().max(initial=0.0))
        self.least = -log(examples.total_weight * (highest if highest > 0 else 1.0))
        self.log_C = self.least if state is None else max(self.least, log(state.C))
        self.below: tuple[float, float] | None = None
        self.above: tuple[float, float] | None = None
        self.state, self.converged, self.n_trials, self.bound = state, False, 0, -np.inf
        self.n_reported = 0
        self.best = Best()  # a model and the fit that it comes from

    def step(self) -> dict[str, Any]:
        """Fit at one value of C'."""
        C = exp(self.log_C)
        goes_on = self.solver.method == DUAL or self.has_all
        fit = self.solver.solve(replace(self.box, C=C), self.state if goes_on else None)
        if fit.state is None:  # there was no time for an iteration
            raise OutOfTimeError
        self.kernel_rows.counter.add(fit.counters["kernel_evals"])
        self.n_reported += fit.counters["report_kernel_evals"]
        self.state, self.n_trials = fit.state, self.n_trials + 1
        model, objective, share = self._scaled(fit.model, C)
        self.best = self.best.or_lower(objective, (model, fit))
        if fit.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        self._raise_bound(fit)
        bound = min(self.bound, self.best.objective) if np.isfinite(self.bound) else None
        record = {
            "objective": objective,
            "lower_bound": bound,
            "gap": None if bound is None else self.best.objective - bound,
            "n_basis": model.n_basis,
            "C_box": C,
            "share": share,
        }
        self._next_C(share)
        return record

    def _scaled(self, model: KernelExpansion, C: float) -> tuple[KernelExpansion, float, float]:
        """Return the best multiple of w with its best ρ, its objective, and the box problem's share Σ α / (C' Ω)."""
        rows, weights, nu = self.kernel_rows, self.problem.examples.weights, self.nu
        total, scores, norm = float(weights.sum()), np.zeros(rows.n_rows), 0.0
        if model.n_basis:
            scores = rows.scores(rows.points_of(model.basis), model.coef)[:, 0].astype(np.float64)
            norm = float(np.sum(model.coef * (between(rows, model.basis) @ model.coef)))
        share = (norm + C * float(weights @ np.maximum(0.0, 1.0 - scores))) / (C * total)
        scaled, objective = best_multiple(
            model, norm, quantile(scores, weights, nu), scores, weights, nu, self.problem.C * total
        )
        return scaled, objective, share

    def _raise_bound(self, fit: Fit) -> None:
        """Raise the bound to D of the fit's dual variables, scaled to their sum, if its vectors are training rows."""
        if fit.basis_rows is None or not len(fit.basis_rows):
            return
        v, dual = np.zeros(self.kernel_rows.n_rows), Dual.of(self.problem)
        v[fit.basis_rows] = np.maximum(fit.model.coef[:, 0], 0.0)
        v = dual.feasible(v * (dual.total / max(v.sum(), 1e-300)))
        rows = np.flatnonzero(v)
        scores = self.kernel_rows.scores(self.kernel_rows.points(rows), v[rows, None], rows=rows)[:, 0]
        point = DualPoint(rows, v[rows, None], 0.0, float(v[rows] @ scores))
        self.bound = max(self.bound, sure_value(self.kernel_rows, point))

    def _next_C(self, share: float) -> None:
        """Choose the next C' by interpolation in the bracket, every third time by bisection."""
        miss = log(max(share, 1e-300) / self.nu)
        if miss > 0:
            self.below = self.log_C, miss
        else:
            self.above = self.log_C, miss
        if abs(miss) <= (CLOSE_ALL if self.has_all else CLOSE):
            self.converged = True
        elif self.above is None:
            # Σ α does not fall as C' rises, so that log C' must rise at least by this.
            self.log_C += max(miss, RISE)
            self.converged = self.log_C > self.least + WIDEST
        elif self.below is None:
            self.log_C = max(self.least, self.log_C - RISE)
            self.converged = self.log_C >= self.above[0]
        else:
            (lo, up), (hi, down) = self.below, self.above
            part = 0.5 if self.n_trials % 3 == 0 else min(max(up / (up - down), 0.02), 0.98)
            self.log_C = lo + part * (hi - lo)
            self.converged = hi - lo <= NARROW

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the best model of all values of C'."""
        if self.best.found is None:
            if status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            return nothing(self.problem, type(self.solver).__name__, time.perf_counter())
        objective, (model, fit) = self.best.objective, self.best.found
        bound = min(self.bound, objective) if np.isfinite(self.bound) else None
        counters = {"kernel_evals": self.kernel_rows.counter.n, "report_kernel_evals": self.n_reported}
        return Fit(model, status, objective, bound, history, counters, fit.state, fit.basis_rows)

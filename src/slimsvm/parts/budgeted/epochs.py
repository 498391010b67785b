"""Epochs of compiled steps on a budgeted model, their reports, the finish, warm starts.

Parts: `budget` for the model, its rules and the steps, `parts.budgeted.box_dual` for the problem,
`parts.span.smoothed_newton` for the finish.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.budget import BudgetedModel, get_budget_rule
from slimsvm.budget.budgeted_model import DUAL, N_COUNTS, Counts
from slimsvm.core import HINGE
from slimsvm.kernels.pairs import between
from slimsvm.model import KernelExpansion
from slimsvm.parts.budgeted.box_dual import (
    BudgetState,
    dual_point,
    expansion,
    linear_part,
    relative_error,
    row_losses,
    signs,
    steps_of,
)
from slimsvm.parts.descent.batch_gradient import check_kernel
from slimsvm.parts.descent.vector_descent import Learning, VectorDescent
from slimsvm.parts.problem import Problem
from slimsvm.parts.rounding import DualPoint
from slimsvm.parts.run import Fit, Run, Status, objective_of_model
from slimsvm.parts.span.best_coefficients import check_finish
from slimsvm.parts.span.smoothed_newton import ConvexFinish, fit_coefficients
from slimsvm.tasks import Task

Array = np.ndarray

# The number of rows that reports='sample' uses.
REPORT_ROWS = 2000
# Chosen, not measured, except DAMPING. A row that has not changed in r epochs is in an epoch with probability 1 / (1 +
# r), for r up to this number.
MOST_RESTS = 7
# The plateau rule: an epoch makes progress if it lowers the primal objective, or the degradation for the length of its
# steps, by at least this share.
PLATEAU = 0.01
# damping="auto" for classes, and for targets (docs/experiments/budget.md, "Shorter steps").
DAMPING, DAMPING_OF_NUMBERS = 4.0, 1.0
# Both objectives drift away if they are above their best values by this share.
DRIFT = 0.5


def damping_of(solver: Any, task: Task) -> float:
    """Return the number that damping="auto" stands for: steps may be longer where residuals get small."""
    if solver.damping != "auto":
        return float(solver.damping)
    return DAMPING_OF_NUMBERS if task.has_targets else DAMPING


class BudgetedRun(Run):
    """The run of all epochs on one problem; after the last one it solves for the coefficients."""

    doing = "passes over the rows"
    has_models = True

    def __init__(self, problem: Problem, solver: Any, state: BudgetState | None):
        self.problem, self.solver = problem, solver
        self.kernel_rows, self.rng = problem.bind(), problem.generator()
        reporter = np.random.default_rng(self.rng.integers(2**63))  # reports do not change the fit
        if state is not None and state.random and not isinstance(problem.random_state, np.random.Generator):
            self.rng.bit_generator.state = state.random  # a seed would repeat the order
        rule = get_budget_rule(solver.maintenance)
        m, n = problem.task.n_outputs, self.kernel_rows.n_rows
        self.model = BudgetedModel(self.kernel_rows, solver.max_basis, m, rule, problem.memory_limit // 2)
        self.is_dual = solver.method == DUAL
        self.steps = steps_of(problem, solver.method, damping_of(solver, problem.task) if self.is_dual else 0.0)
        self.alpha = np.zeros((n if self.is_dual else 1, m))
        self.intercept, self.t = np.zeros(m), np.zeros(2, np.int64)
        self.n_changed = 0
        self.rests = np.zeros(n if solver.selection == "adaptive" else 0, np.int64)
        if state is not None:
            self._go_on(state)
        exact = solver.reports == "exact" or n <= REPORT_ROWS
        self.report_rows = np.arange(n) if exact else np.sort(reporter.choice(n, REPORT_ROWS, replace=False))
        limit = solver.epochs if problem.max_iter is None else problem.max_iter
        self.is_cut_short, self.n_epochs = limit < solver.epochs, min(limit, solver.epochs)
        self.epoch, self.converged, self.lower_bound, self.idle = 0, False, -np.inf, 0
        self.best_alpha: Array | None = None  # the dual variables whose dual value is the bound
        self.best = {"primal": np.inf, "degradation": np.inf, "dual": np.inf}
        if solver.descent_epochs:
            check_kernel(self.kernel_rows, learn_metric=False)
        self.solved_for: tuple[KernelExpansion, ConvexFinish] | None = None
        self.finished: tuple[KernelExpansion, float | None] | None = None

    @property
    def share_done(self) -> float:
        """Return the share of the planned work that is done."""
        return float(self.epoch / self.n_epochs)

    def _go_on(self, state: BudgetState) -> None:
        """Start from an earlier model and its dual variables, scaled into the box if C is smaller now."""
        share = min(1.0, self.problem.C / state.C) if self.is_dual else 1.0
        self.t[:] = state.n_steps, state.n_taken
        self.n_changed = state.n_changed
        unit = share if self.is_dual else max(1, state.n_steps)
        self.model.load(state.basis, state.coef * unit, state.basis_rows)
        self.intercept[:] = state.intercept * unit
        if self.is_dual and state.alpha is not None:
            self.alpha[:] = state.alpha * share

    # -- epochs ---------------------------------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """Make one epoch, and after the last one the finish."""
        self.model.end_mean()
        self.model.refresh_inverse()
        order = self._order()
        before = self.alpha.copy() if self.solver.selection == "adaptive" else None
        counted = np.zeros(N_COUNTS)
        # The mean is over as many steps as there are vectors. Over more steps mergers would move vectors, and what
        # earlier models had in them (over a whole epoch the mean is worse than any of its models).
        tail = max(0, len(order) - self.solver.max_basis)
        self._meet(order[:tail], counted)
        if self.solver.average:
            self.model.begin_mean()
        self._meet(order[tail:], counted)
        self.epoch += 1
        counts = Counts.of(counted)
        self.n_changed += int(counts.changed)
        taken_away = counts.merged + counts.removed + counts.projected
        record: dict[str, Any] = {
            "objective": None,
            "lower_bound": None,
            "gap": None,
            "steps": len(order),
            "merge_fraction": taken_away / max(1, len(order)),
            "zero_step_fraction": 1.0 - counts.changed / max(1, len(order)),
            "degradation": counts.degradation,
            "online_loss": counts.loss,
            "online_error": counts.errors / max(1, len(order)),
        }
        if before is not None:
            at_rest = (self.alpha == before).all(axis=1)[order]
            self.rests[order] = np.where(at_rest, np.minimum(self.rests[order] + 1, MOST_RESTS), 0)
        self._report(record)
        self._watch(record)
        if self.epoch >= self.n_epochs or self.idle >= (self.solver.patience or np.inf):
            self._finish(record)
        return record

    def _meet(self, order: Array, counted: Array) -> None:
        for part, rows, places in self.model.chunks(order):
            self.model.take_steps(self.steps, part, rows, places, self.alpha, self.intercept, counted, self.t)

    def _order(self) -> Array:
        """Return the order of an epoch's rows; "adaptive" takes one at rest for k epochs with odds of 1 in 1 + k."""
        n, selection = self.kernel_rows.n_rows, self.solver.selection
        if selection == "uniform":
            return self.rng.integers(0, n, n)
        order = self.rng.permutation(n)
        if selection == "adaptive":
            order = order[self.rng.random(n) * (1 + self.rests[order]) < 1]
        return order

    @property
    def unit(self) -> float:
        """Return the factor of stored coefficients: the primal method stores them times t."""
        return 1.0 if self.is_dual else 1.0 / max(1, int(self.t[0]))

    def _expansion(self) -> KernelExpansion:
        """Return the model, or, with averaging, the mean of the models after each step of the last epoch."""
        model = self.model
        coef, intercept = model.coef * self.unit, self.intercept * self.unit
        if self.solver.average and self.epoch:
            coef, intercept = model.mean_of_steps(self.intercept)
        return expansion(self.kernel_rows, model.basis, coef, intercept)

    def _half_norm(self, model: KernelExpansion) -> float:
        half = 0.5 * self.steps.constant * float(model.intercept @ model.intercept)
        if model.n_basis:
            gram = between(self.kernel_rows, model.basis)
            half += 0.5 * float(np.sum(model.coef * (gram @ model.coef)))
        return half

    def _report(self, record: dict[str, Any]) -> None:
        """Record objectives and training error of the model before any finish, on all rows or on a sample of them."""
        rows, task, index, steps = self.kernel_rows, self.problem.task, self.report_rows, self.steps
        model, n = self._expansion(), self.kernel_rows.n_rows
        scores = np.tile(model.intercept, (len(index), 1))
        if model.n_basis:
            scores += rows.scores(rows.points_of(model.basis), model.coef, rows=index)
        half_norm = self._half_norm(model)
        is_exact = len(index) == n
        primal = half_norm + float(row_losses(steps, index, scores).sum()) * n / len(index)
        examples = self.problem.examples.take(index)
        record |= {
            "n_basis": self.model.n_basis,
            "primal": primal,
            "is_exact": is_exact,
            "training_error": float(task.error(task.decode(scores, np.zeros(0), examples), examples)),
        }
        if is_exact and not steps.is_against_the_rest:
            record["objective"] = primal
        if not self.is_dual:
            record["dual_of_model"] = self._dual_of_gradient_steps()
            return
        linear = linear_part(steps, self.alpha)
        dual = float(linear.sum()) - 0.5 * self._squared_norm(linear)
        if self.solver.average:  # α is that of the last step, and so must be the model
            model = expansion(rows, self.model.basis, self.model.coef, self.intercept)
            half_norm = self._half_norm(model)
        record |= {"dual": dual, "dual_of_model": float(linear.sum()) - half_norm}
        if n <= REPORT_ROWS and steps.loss == HINGE:
            of_rows = signs(steps, index, 1) * self.alpha
            of_alpha = rows.scores(rows.points(index), of_rows) + steps.constant * of_rows.sum(axis=0)
            of_model = np.tile(model.intercept, (n, 1))
            if model.n_basis:
                of_model += rows.scores(rows.points_of(model.basis), model.coef)
            size = self.model.diagonal + steps.constant
            record["relative_error"] = relative_error(steps, self.alpha[:, 0], size, of_alpha[:, 0], of_model[:, 0])
        if is_exact and not steps.is_against_the_rest:
            if dual > self.lower_bound:
                self.lower_bound, self.best_alpha = dual, self.alpha.copy()
            record |= {"lower_bound": self.lower_bound, "gap": primal - self.lower_bound}

    def _dual_of_gradient_steps(self) -> float | None:
        """Return Σα − ½‖w̃‖² after the last step, with α_i = n C / t times the steps in which row i had a loss.

        α leaves the box, so that this bounds nothing. It is known for two classes whose rows weigh the same.
        """
        C = self.steps.C_of_row
        if self.steps.loss != HINGE or self.steps.is_against_the_rest or (C[0] != C).any():
            return None
        model = expansion(self.kernel_rows, self.model.basis, self.model.coef * self.unit, self.intercept * self.unit)
        return len(C) * float(C[0]) * self.n_changed * self.unit - self._half_norm(model)

    def dual_point(self) -> DualPoint | None:
        """Return the best dual variables."""
        return None if self.best_alpha is None else dual_point(self.steps, self.best_alpha, self.lower_bound)

    def _squared_norm(self, linear: Array) -> float:
        """Return ‖Σ α_i y_i φ(x_i)‖², from the report's rows by regression on their part of the linear term."""
        steps, index = self.steps, self.report_rows
        of_rows = signs(steps, np.arange(len(self.alpha)), self.alpha.shape[1]) * self.alpha
        used = np.flatnonzero(of_rows.any(axis=1))
        if not len(used):
            return 0.0
        scores = self.kernel_rows.scores(self.kernel_rows.points(used), of_rows[used], rows=index).astype(np.float64)
        parts = np.sum(of_rows[index] * (scores + steps.constant * of_rows.sum(axis=0)), axis=1)
        if len(index) == len(of_rows):
            return float(parts.sum())
        x = linear[index]
        slope = np.mean((x - x.mean()) * (parts - parts.mean())) / max(float(np.var(x)), 1e-300)
        return float(len(of_rows) * (parts.mean() + slope * (linear.mean() - x.mean())))

    def _watch(self, record: dict[str, Any]) -> None:
        """Count epochs without progress; warn where both objectives rise, as they do when the budget is too small."""
        best, progress = self.best, False
        # Degradation falls with the square of the steps, which get shorter anyway.
        shorter = (
            1.0 + self.steps.damping * self.t[1] if self.is_dual else max(1.0, self.t[0] / self.kernel_rows.n_rows)
        )
        for name, value in (("primal", record["primal"]), ("degradation", record["degradation"] * shorter**2)):
            progress = progress or value < (1 - PLATEAU) * best[name]
            best[name] = min(best[name], value)
        self.idle = 0 if progress else self.idle + 1
        if not self.is_dual:
            return
        primal, dual = record["primal"], record["dual_of_model"]
        drifts = primal > (1 + DRIFT) * best["primal"] and dual > best["dual"] + DRIFT * abs(best["dual"])
        best["dual"] = min(best["dual"], dual)
        if drifts and not self.solver.finish:
            warnings.warn(
                f"{type(self.solver).__name__}: the primal objective is {primal:.4g} after epoch {self.epoch}, "
                f"{best['primal']:.4g} at best, and the dual of the model rises too: max_basis={self.solver.max_basis} "
                "is too small for this problem; finish=True mends the coefficients",
                ConvergenceWarning,
                stacklevel=6,
            )

    # -- the end --------------------------------------------------------------------------------------------------

    def _finish(self, record: dict[str, Any]) -> None:
        """Solve for the coefficients of the final vectors. Epochs that max_iter ended do not count as converged."""
        if self.solver.finish:
            model = self._expansion()
            tol = self.problem.tolerances(self.solver.tol_relative, model.n_basis)[1]
            problem, rows = self.problem, self.kernel_rows

            def after_step(finish: ConvexFinish) -> None:
                self.solved_for = model, finish

            found = fit_coefficients(problem, rows, model.basis, None, tol, rng=self.rng, after_step=after_step)
            self.finished = replace(model, coef=found.coef, intercept=found.intercept), found.bound_in_basis
            record |= {"objective": found.objective, "bound_in_basis": found.bound_in_basis}
            if self.solver.descent_epochs:
                self._descend(record)
            if record["lower_bound"] is not None:
                record["gap"] = record["objective"] - record["lower_bound"]
        self.converged = not self.is_cut_short

    def _descend(self, record: dict[str, Any]) -> None:
        """Run descent on the finished model's vectors, too, where that lowers the objective."""
        assert self.finished is not None
        learning = Learning(self.solver.max_basis, epochs=self.solver.descent_epochs, initial=self.finished[0])
        problem = replace(self.problem, max_iter=None, random_state=self.rng, verbose=0)
        check_finish(problem)
        descent = VectorDescent(problem, learning, None)
        while not descent.converged:
            descent.step()
        fit = descent.finish(Status.CONVERGED, [])
        self.kernel_rows.counter.add(fit.counters["kernel_evals"])
        if fit.objective < record["objective"]:
            self.finished = fit.model, None
            record |= {"objective": fit.objective, "bound_in_basis": None}

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model with its objective over all rows."""
        rows, evals = self.kernel_rows, self.kernel_rows.counter.n
        model, bound = self._expansion(), None
        if self.finished is not None:
            model, bound = self.finished
            model = expansion(rows, model.basis, model.coef, model.intercept)
        elif self.solved_for is not None:
            model, finish = self.solved_for
            model = expansion(rows, model.basis, *finish.whole.coefficients(finish.best.found.u))
        objective = objective_of_model(self.problem, status, rows, model)
        basis_rows = self.model.basis_rows
        state = BudgetState(
            self.model.basis, self.model.coef * self.unit, self.intercept * self.unit, basis_rows,
            self.alpha.copy() if self.is_dual else None, self.problem.C, int(self.t[0]), self.problem.task,
            self.problem.examples, int(self.t[1]), self.n_changed, random=dict(self.rng.bit_generator.state),
        )  # fmt: skip
        counters = {
            "kernel_evals": evals,
            "report_kernel_evals": rows.counter.n - evals,
            "bound_in_basis": bound,
            "epochs": self.epoch,
        }
        lower_bound = min(self.lower_bound, objective) if np.isfinite(self.lower_bound) else None
        return Fit(model, status, objective, lower_bound, history, counters, state)

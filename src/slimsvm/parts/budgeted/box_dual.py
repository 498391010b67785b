r"""Box-constrained duals: one variable per row and output, with what budgeted training and plain ascent share.

two classes   max Σ c_y α − ½ ‖Σ α_i y_i φ(x_i)‖²,           0 ≤ α_i ≤ C ω_i        β = y α
several       the same for every class against the rest
regression    max Σ y θ − ε |θ| − ½ ‖Σ θ_i φ(x_i)‖²,         −C ω_i ≤ θ_i ≤ C ω_i   β = θ

Problems with no more rows than a budget has points are solved by plain dual coordinate ascent:

    for rows i in random order:   α_i ← clip(α_i + (1 − y_i f(x_i)) / k(x_i, x_i), 0, C ω_i)

with f over all rows and the whole kernel matrix in memory. It stops at a relative gap of 10⁻¹⁰ (10⁻⁶ on float32 kernel
values), or when its sweeps are spent; the finish then closes what is left of the gap. Several classes: the finish
solves the problem of Crammer and Singer over the same rows.

Hsieh, Chang, Lin, Keerthi, Sundararajan, "A Dual Coordinate Descent Method for Large-scale Linear SVM", ICML 2008.

Parts: `parts.span.smoothed_newton`; the steps: ``core/ascent/plain.cc``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm import core
from slimsvm.bases import RANK_TOLERANCE
from slimsvm.budget.budgeted_model import DUAL, Steps
from slimsvm.core import EPSILON_INSENSITIVE, HINGE, ONE_VS_REST
from slimsvm.kernels import KernelRows
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import NEARLY_TOLERANCE, SMALL_TOLERANCE, Need, Problem, no_free_intercept
from slimsvm.parts.rounding import DualPoint, RoundingErrors, sure_value
from slimsvm.parts.run import Fit, Run, Status, model_over, objective_of_model
from slimsvm.parts.span.smoothed_newton import fit_coefficients
from slimsvm.parts.span.whitened_span import Coefficients
from slimsvm.tasks import Examples, Task
from slimsvm.tasks.examples import check_same_loss

Array = np.ndarray

NEEDS = (
    Need(
        lambda problem: problem.task.step_loss is not None,
        "{solver} trains two classes, several, or one target with loss='epsilon_insensitive', found {task}; "
        "solver='refine' trains it",
    ),
    no_free_intercept("an unregularised intercept ties the dual variables together"),
)
NO_COSTS = Need(
    lambda problem: not (problem.task.step_loss == ONE_VS_REST and problem.task.has_costs),
    "{solver} with finish=False trains each class against the rest, without costs; found a cost matrix",
)


@dataclass(frozen=True)
class BudgetState:
    """The state that a budgeted fit leaves for a warm start."""

    # basis, coef, intercept, basis_rows: the model, as it was before its finish; rows are -1 for points that are
    # none
    basis: Any
    coef: Array
    intercept: Array
    basis_rows: Array
    alpha: Array | None  # (n, m): dual variables of the rows, where the method has them
    C: float
    n_steps: int  # steps so far
    # task, examples: the loss they belong to
    task: Task
    examples: Examples
    n_taken: int = 0  # points that the budget has taken away so far
    n_changed: int = 0  # steps so far that changed the model
    # n_rows, n_last, digest: of streams, rows so far, rows of the last chunk, and a digest to recognise the same
    # rows
    n_rows: int = 0
    n_last: int = 0
    digest: bytes = b""
    # State of the random numbers, to go on with where the fit is given no generator.
    random: dict[str, Any] | None = None

    def check(self, problem: Problem) -> None:
        """Refuse to go on with other examples: each has its own dual variable."""
        consequence = ", whose dual variables therefore do not hold here"
        check_same_loss(self, problem.task, problem.examples, consequence)


def steps_of(problem: Problem, method: int, damping: float = 0.0) -> Steps:
    """Return the problem as compiled steps take it; ``damping`` counts per row."""
    task, examples = problem.task, problem.examples
    assert task.step_loss is not None
    return Steps(
        method=method,
        loss=task.step_loss,
        labels=np.ascontiguousarray(examples.labels, np.float64),
        epsilon=float(getattr(task, "epsilon", 0.0)),
        cost_negative=float(getattr(task, "cost_negative", 1.0)),
        cost_positive=float(getattr(task, "cost_positive", 1.0)),
        C_of_row=problem.C * examples.weights.astype(np.float64),
        constant=0.0 if problem.intercept == "none" else 1.0,
        damping=damping / max(1, len(examples.labels)),
    )


def signs(steps: Steps, index: Array, n_outputs: int) -> Array:
    """Return the sign (b, m) that turns dual variables of rows into coefficients."""
    labels = steps.labels[index]
    if steps.loss == EPSILON_INSENSITIVE:
        return np.ones((len(index), 1))
    if steps.loss == HINGE:
        found: Array = labels[:, None]
        return found
    return np.where(np.arange(n_outputs) == labels[:, None], 1.0, -1.0)


def linear_part(steps: Steps, alpha: Array) -> Array:
    """Return each row's part of the linear term of the dual objective, shape (n,)."""
    if steps.loss == EPSILON_INSENSITIVE:
        found: Array = np.sum(steps.labels[:, None] * alpha - steps.epsilon * np.abs(alpha), axis=1)
        return found
    sign = signs(steps, np.arange(len(alpha)), alpha.shape[1])
    found = np.sum(np.where(sign > 0, steps.cost_positive, steps.cost_negative) * alpha, axis=1)
    return found


def dual_point(steps: Steps, alpha: Array, value: float) -> DualPoint:
    """Return dual variables of all rows as a dual point with the dual objective ``value``."""
    rows = np.flatnonzero(alpha.any(axis=1))
    V = (signs(steps, np.arange(len(alpha)), alpha.shape[1]) * alpha)[rows]
    rest = float(linear_part(steps, alpha).sum()) - 0.5 * steps.constant * float(np.sum(V.sum(axis=0) ** 2))
    return DualPoint(rows, V, rest, 2.0 * (rest - value))


def row_losses(steps: Steps, index: Array, scores: Array) -> Array:
    """Return C ω_i ℓ_i of rows, summed over the one-against-the-rest problems."""
    if steps.loss == EPSILON_INSENSITIVE:
        slack = np.abs(steps.labels[index, None] - scores) - steps.epsilon
    else:
        sign = signs(steps, index, scores.shape[1])
        slack = np.where(sign > 0, steps.cost_positive, steps.cost_negative) - sign * scores
    found: Array = steps.C_of_row[index] * np.maximum(slack, 0.0).sum(axis=1)
    return found


def relative_error(steps: Steps, alpha: Array, size: Array, scores: Array, model_scores: Array) -> float | None:
    """Return E(w, w̃) of the BSCA paper, for two classes: what steps by the budgeted model's scores lose, at best.

    1 less the largest ratio, over the rows, of what the dual objective rises by where the step goes by w̃ and where it
    goes by w = Σ α_i y_i φ(x_i). 0 where both are the same; from 1 on theorem 1 witnesses no progress. None at the
    optimum. ``size`` holds k(x, x).
    """
    used = size > 0
    y, C, size, alpha = steps.labels[used], steps.C_of_row[used], size[used], alpha[used]
    rise, scores, model_scores = np.zeros((2, len(alpha))), scores[used], model_scores[used]
    cost = np.where(y > 0, steps.cost_positive, steps.cost_negative)
    newton = (cost - y * scores) / size
    for side, f in enumerate((model_scores, scores)):
        step = np.clip(alpha + (cost - y * f) / size, 0.0, C) - alpha
        rise[side] = 0.5 * size * (newton**2 - (step - newton) ** 2)
    rows = rise[1] > 0
    return float(1.0 - np.max(rise[0, rows] / rise[1, rows])) if rows.any() else None


def expansion(rows: KernelRows, basis: Any, coef: Array, intercept: Array) -> KernelExpansion:
    """Return a model of these arrays, without vectors whose coefficients are all 0."""
    used = coef.any(axis=1)
    if not used.all():
        basis, coef = basis[used], coef[used]
    return model_over(rows, basis, coef, intercept)


CALL_WORK = 20_000_000  # multiply-adds in one compiled call, some 5 ms: Ctrl-C is checked between calls
TOLERANCE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): SMALL_TOLERANCE}


@dataclass(frozen=True)
class PlainAscentSettings:
    """Settings of when ascent that has not converged is left to the finish. Chosen, not measured."""

    # The most sweeps over the rows.
    sweeps: int = 20_000


class PlainAscentRun(Run):
    """The run of coordinate ascent; its k-th step makes k sweeps over the rows."""

    doing = "passes over the rows"
    has_models = True

    def __init__(self, problem: Problem, finish: bool, state: BudgetState | None, name: str):
        self.problem, self.with_finish, self.name = problem, finish, name
        self.most_sweeps = problem.settings_of(PlainAscentSettings).sweeps
        self.kernel_rows = problem.bind()
        self.rng = problem.generator()
        n, m = self.kernel_rows.n_rows, problem.task.n_outputs
        self.steps = steps_of(problem, DUAL)
        values = self.kernel_rows.block(self.kernel_rows.points(np.arange(n))).astype(np.float64)
        self.K = 0.5 * (values + values.T) + self.steps.constant
        np.fill_diagonal(self.K, self.kernel_rows.diag() + self.steps.constant)
        self.ascend = core.ascend.prepare(K=self.K, steps=self.steps.compiled, step=np.empty(m))
        self.call_rows = max(1, CALL_WORK // max(1, n * m))
        self.tolerance = TOLERANCE[self.kernel_rows.dtype]
        self.alpha = np.zeros((n, m))
        self.beta = np.zeros((n, m))
        self.scores = np.zeros((n, m))
        if state is not None and state.alpha is not None:
            self._go_on(state.alpha, state.C)
        self.n_sweeps, self.lower_bound, self.converged = 0, -np.inf, False
        self.found: Coefficients | None = None
        self.has_said_of_gap = False

    def _go_on(self, alpha: Array, C: float) -> None:
        self.alpha = alpha * min(1.0, self.problem.C / C)
        self.beta = signs(self.steps, np.arange(len(alpha)), alpha.shape[1]) * self.alpha
        self.scores = self.K @ self.beta

    def step(self) -> dict[str, Any]:
        """Make a few sweeps; the objective is a sum over outputs, each of one class against the rest."""
        task, n = self.problem.task, len(self.alpha)
        n_sweeps = self.n_sweeps
        alpha, beta, scores = self.alpha.copy(), self.beta.copy(), self.scores.copy()
        for _ in range(1 + int(np.sqrt(2 * n_sweeps))):
            order = self.rng.permutation(n)
            for lo in range(0, n, self.call_rows):
                self.ascend(order=order[lo : lo + self.call_rows], alpha=alpha, beta=beta, scores=scores)
            n_sweeps += 1
        scores = self.K @ beta
        half_norm = 0.5 * float(np.sum(beta * scores))
        primal = half_norm + float(row_losses(self.steps, np.arange(n), scores).sum())
        dual = float(linear_part(self.steps, alpha).sum()) - half_norm
        self.alpha, self.beta, self.scores, self.n_sweeps = alpha, beta, scores, n_sweeps
        decoded = task.decode(scores, np.zeros(0), self.problem.examples)
        record: dict[str, Any] = {
            "objective": None,
            "lower_bound": None,
            "gap": None,
            "primal": primal,
            "dual": dual,
            "sweeps": n_sweeps,
            "training_error": float(task.error(decoded, self.problem.examples)),
            "n_basis": int(beta.any(axis=1).sum()),
        }
        is_done = primal - dual <= self.tolerance * abs(primal)
        if not self.steps.is_against_the_rest:
            self.lower_bound = max(self.lower_bound, dual)
            record |= {"objective": primal}
        if is_done or n_sweeps >= self.most_sweeps:
            self._end(record, is_done)
        if np.isfinite(self.lower_bound):
            record["lower_bound"] = self.lower_bound
            record["gap"] = record["objective"] - self.lower_bound
        return record

    def _end(self, record: dict[str, Any], is_done: bool) -> None:
        """Run the finish if it can improve something; warn if it is left out and the gap is wide."""
        is_multiclass = self.steps.is_against_the_rest
        if self.with_finish and (is_multiclass or not is_done):
            intercept = self.steps.constant * self.beta.sum(axis=0)
            basis = self.kernel_rows.basis(np.arange(len(self.beta)))
            operands, best = (self.problem, self.kernel_rows, basis), np.inf if is_multiclass else record["primal"]
            tolerance = self.tolerance
            if is_multiclass:
                tolerance = max(tolerance, self.problem.tolerances(NEARLY_TOLERANCE, len(self.beta))[1])
            for start in (None,) if is_multiclass else ((self.beta, intercept), None):
                found = fit_coefficients(*operands, start, tolerance, rng=self.rng)
                if found.objective < best:
                    self.found, best = found, found.objective
                # The basis is all rows: a bound within it bounds everything.
                self.lower_bound = max(self.lower_bound, found.bound_in_basis)
                if best - self.lower_bound <= tolerance * abs(best):
                    break
            record |= {"objective": best}
        elif not is_done:
            self.has_said_of_gap = True
            gap = record["primal"] - record["dual"]
            warnings.warn(
                f"{self.name}: coordinate ascent ended after {self.most_sweeps} sweeps with a gap of {gap:.2g} at an "
                f"objective of {record['primal']:.6g}; finish=True closes it",
                ConvergenceWarning,
                stacklevel=6,
            )
        self.converged = True

    def sure_bound(self) -> float:
        """Return the safe bound: by the dual variables, or by the finish, whose span may lack a few directions."""
        sure: Any = -np.inf
        if not self.steps.is_against_the_rest:
            duals = [self.alpha]
            if self.found is not None:  # at the optimum coefficients are dual variables
                alpha, C = self._sign() * self.found.coef, self.steps.C_of_row[:, None]
                duals.append(np.clip(alpha, -C if self.steps.loss == EPSILON_INSENSITIVE else 0.0, C))
            points = [dual_point(self.steps, alpha, self._dual_value(alpha)) for alpha in duals]
            sure = max(sure_value(self.kernel_rows, point) for point in points)
        if self.found is not None:
            most = self.problem.C * float(self.problem.examples.weights @ np.sqrt(np.abs(self.kernel_rows.diag())))
            most *= 1 if self.beta.shape[1] == 1 else 2  # for all classes together
            share = max(RANK_TOLERANCE[self.kernel_rows.dtype], RoundingErrors(self.kernel_rows).share_of_diagonal)
            sure = max(sure, self.found.bound_in_basis - 0.5 * share * most**2)
        return float(sure)

    def allowed(self, objective: float) -> float:
        """Return the widest gap with which the fit has converged."""
        return max(self.tolerance, NEARLY_TOLERANCE) * abs(objective)

    def _sign(self) -> Array:
        return signs(self.steps, np.arange(len(self.alpha)), self.alpha.shape[1])

    def _dual_value(self, alpha: Array) -> float:
        beta = self._sign() * alpha
        return float(linear_part(self.steps, alpha).sum()) - 0.5 * float(np.sum(beta * (self.K @ beta)))

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model over the rows with coefficients."""
        beta, rows, found = self.beta, self.kernel_rows, self.found
        intercept = self.steps.constant * beta.sum(axis=0)
        coef = beta if found is None else found.coef
        basis_rows = np.flatnonzero(coef.any(axis=1))
        model = expansion(
            rows, rows.basis(basis_rows), coef[basis_rows], intercept if found is None else found.intercept
        )
        evals = rows.counter.n
        objective = objective_of_model(self.problem, status, rows, model)
        # At the optimum the two differ by rounding errors of either sign.
        lower_bound = min(self.lower_bound, objective) if np.isfinite(self.lower_bound) else None
        counters = {
            "kernel_evals": evals,
            "report_kernel_evals": rows.counter.n - evals,
            "sweeps": self.n_sweeps,
        }
        state = BudgetState(
            rows.basis(np.arange(len(beta))), beta, intercept, np.arange(len(beta)), self.alpha,
            self.problem.C, 0, self.problem.task, self.problem.examples,
        )  # fmt: skip
        return Fit(model, status, objective, lower_bound, history, counters, state, basis_rows)

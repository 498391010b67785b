r"""Box-constrained duals: one variable per row and output, with what budgeted training and plain ascent share.

two classes   max Σ c_y α − ½ ‖Σ α_i y_i φ(x_i)‖²,           0 ≤ α_i ≤ C ω_i        β = y α
several       the same for every class against the rest
regression    max Σ y θ − ε |θ| − ½ ‖Σ θ_i φ(x_i)‖²,         −C ω_i ≤ θ_i ≤ C ω_i   β = θ
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.budget.steps import Steps
from slimsvm.core import EPSILON_INSENSITIVE, HINGE, ONE_VS_REST
from slimsvm.kernels import KernelRows
from slimsvm.model import KernelExpansion
from slimsvm.parts.checks import Need, no_free_intercept
from slimsvm.parts.problem import Problem
from slimsvm.parts.rounding import DualPoint
from slimsvm.tasks import Examples, Task
from slimsvm.tasks.examples import check_same_loss

Array = np.ndarray

NEEDS = (
    Need(
        lambda problem: problem.task.step_loss is not None,
        "{solver} trains two classes, several, or regression, found {task}; solver='refine' and 'low-rank' train it",
    ),
    no_free_intercept("an unregularised intercept ties the dual variables together"),
)
NO_COSTS = Need(
    lambda problem: not (problem.task.step_loss == ONE_VS_REST and problem.task.has_costs),
    "{solver} with finish=False trains each class against the rest, without costs; found a cost matrix",
)


@dataclass(frozen=True)
class BudgetState:
    """The state that a budgeted fit leaves for a warm start.

    Parameters
    ----------
    basis, coef, intercept, basis_rows
        The model, as it was before its finish; rows are -1 for points that are none.
    alpha : ndarray of shape (n, m) or None
        Dual variables of the rows, where the method has them.
    C : float
    n_steps : int
        Steps so far.
    task, examples
        The loss they belong to.
    n_taken : int
        Points that the budget has taken away so far.
    n_changed : int
        Steps so far that changed the model.
    n_rows, n_last, digest
        For streams: rows so far, rows of the last chunk, and a digest to recognise the same rows.
    random : dict or None
        State of the random numbers, to go on with where the fit is given no generator.
    """

    basis: Any
    coef: Array
    intercept: Array
    basis_rows: Array
    alpha: Array | None
    C: float
    n_steps: int
    task: Task
    examples: Examples
    n_taken: int = 0
    n_changed: int = 0
    n_rows: int = 0
    n_last: int = 0
    digest: bytes = b""
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
        price=problem.C * examples.weights.astype(np.float64),
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
    found: Array = steps.price[index] * np.maximum(slack, 0.0).sum(axis=1)
    return found


def relative_error(steps: Steps, alpha: Array, size: Array, scores: Array, model_scores: Array) -> float | None:
    """Return E(w, w̃) of the BSCA paper, for two classes: what steps by the budgeted model's scores lose, at best.

    1 less the largest ratio, over the rows, of what the dual objective rises by where the step goes by w̃ and where it
    goes by w = Σ α_i y_i φ(x_i). 0 where both are the same; from 1 on theorem 1 witnesses no progress. None at the
    optimum. ``size`` holds k(x, x).
    """
    used = size > 0
    y, price, size, alpha = steps.labels[used], steps.price[used], size[used], alpha[used]
    rise, scores, model_scores = np.zeros((2, len(alpha))), scores[used], model_scores[used]
    cost = np.where(y > 0, steps.cost_positive, steps.cost_negative)
    newton = (cost - y * scores) / size
    for side, f in enumerate((model_scores, scores)):
        step = np.clip(alpha + (cost - y * f) / size, 0.0, price) - alpha
        rise[side] = 0.5 * size * (newton**2 - (step - newton) ** 2)
    rows = rise[1] > 0
    return float(1.0 - np.max(rise[0, rows] / rise[1, rows])) if rows.any() else None


def expansion(rows: KernelRows, basis: Any, coef: Array, intercept: Array) -> KernelExpansion:
    """Return a model of these arrays, without vectors whose coefficients are all 0."""
    used = coef.any(axis=1)
    dtype = np.dtype(rows.dtype).name
    if not used.all():
        basis, coef = basis[used], coef[used]
    return KernelExpansion(basis, coef, intercept, np.zeros(0), rows.kernel, dtype)

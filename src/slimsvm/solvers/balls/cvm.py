r"""Core vector machine: the L2-loss SVM as the smallest ball around all rows, by growing a core set.

    S = one row of each class
    repeat
        (c, R) = smallest ball around S: α over S by pairs of rows, from the α before
        stop if no row is outside of the ball (c, (1 + ε) R); otherwise the farthest of a sample joins S

Tsang, Kwok, Cheung, "Core Vector Machines: Fast SVM Training on Very Large Data Sets", JMLR 2005, Algorithm 1. Then R
is at most the radius of the smallest ball around all rows, and (1 + ε) R at least that.

Parts: `solvers.balls.enclosing_ball` (the problem, the search), `solvers.decomposition.kernel_table`,
`solvers.decomposition.row_set` (pairs of rows).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.rows import in_pieces
from slimsvm.solvers.balls.enclosing_ball import BallRun, BallSolver
from slimsvm.solvers.base import Problem
from slimsvm.solvers.decomposition.dual import DualState
from slimsvm.solvers.decomposition.kernel_table import PIECE, KernelTable
from slimsvm.solvers.decomposition.row_set import KernelBlock, solve_set

Array = np.ndarray

# Share of the memory limit for Q between the rows of the core set.
TABLE_SHARE = 0.75
# The ball around S is computed to this share of what ε allows.
INNER_SHARE = 0.5
STEPS_PER_ROW = 100


class CoreVectorRun(BallRun):
    """Q between the rows of S is kept in a table; g = −Qα."""

    def __init__(self, problem: Problem, epsilon: float, sample_size: int, state: DualState | None):
        super().__init__(problem, epsilon, sample_size, state)
        self.table = KernelTable(self.kernel_rows, int(TABLE_SHARE * problem.memory_limit), "CVM")
        rows, alpha, _ = self.latest
        self.g = np.empty(len(rows))
        for part in in_pieces(len(rows), PIECE // len(rows)):
            self.insert(rows[part])
        for part in in_pieces(len(rows), PIECE // len(rows)):
            self.g[part] = -(self.table.values[part, : len(rows)].astype(np.float64) @ alpha)
        self.keep(rows, *self.solve(alpha))

    def insert(self, rows: Array) -> None:
        """Append rows to the table, and turn their part of K into Q."""
        old = self.table.top
        slots = self.table.add(rows, np.arange(old))
        Q, size = self.table.values, old + len(rows)
        y = self.y[self.table.row[:size]]
        new = Q[old:size, :size]
        new[:] = y[old:, None] * (new + self.offset) * y
        Q[:old, old:size] = new[:, :old].T
        Q[slots, slots] += self.ridge[rows]

    def solve(self, alpha: Array) -> tuple[Array, float]:
        """The smallest ball around S, from α; Σα stays 1."""
        size = len(alpha)
        alpha, g = alpha.copy(), self.g.copy()
        tol = INNER_SHARE * self.epsilon * (self.eta + min(float(alpha @ g), 0.0))
        block, bounds = KernelBlock(self.table.values, np.arange(size)), (np.zeros(size), np.ones(size))
        solve_set(block, g, alpha, bounds, balanced=True, tol=tol, max_steps=STEPS_PER_ROW * size)
        alpha /= alpha.sum()
        self.g = g
        return alpha, -float(alpha @ g)

    def step(self) -> dict[str, Any]:
        """One row more in the core set, or the end."""
        rows, alpha, q = self.latest
        radius_squared = self.eta - q
        found = self.find_outside(radius_squared, self.epsilon, thorough=True)
        # A row of S outside the ball: rounding is all that is left to gain.
        if found is None or found[0] in rows:
            self.converged = True
        else:
            row, product = found
            self.insert(np.array([row]))
            self.g = np.append(self.g[: len(rows)], -product)
            self.keep(np.append(rows, row), *self.solve(np.append(alpha, 0.0)))
        return self.record(radius=float(np.sqrt(max(self.eta - self.latest[2], 0.0))))


class CVM(BallSolver):
    """Core vector machine for two classes: squared slacks, penalised intercept, a core set that grows row by row.

    It solves another problem than the other solvers, ½‖w‖² + (C/2) Σ max(0, 1 − y f)². Objective and bound of that
    problem are ``counters_["own_objective"]`` and ``counters_["own_lower_bound"]``; ``objective_`` is the hinge
    objective of the model.

    Parameters
    ----------
    epsilon : float, default=1e-6
        ε: the ball around all rows has at most 1 + ε times the smallest radius.
    sample_size : int, default=59
        Random rows among which the farthest is searched for.

    References
    ----------
    Tsang, Kwok, Cheung: Core Vector Machines: Fast SVM Training on Very Large Data Sets, JMLR 2005.

    Examples
    --------
    >>> from slimsvm import CVM, SVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = SVC(solver=CVM(), random_state=0).fit(X, y)
    >>> bool(clf.counters_["own_objective"] - clf.counters_["own_lower_bound"] < 0.01 * clf.counters_["own_objective"])
    True
    """

    def __init__(self, epsilon=1e-6, sample_size=59):
        self.epsilon = epsilon
        self.sample_size = sample_size

    def start(self, problem: Problem, state: DualState | None = None) -> CoreVectorRun:
        """Check the problem and set the run up."""
        self.check(problem, state)
        return CoreVectorRun(problem, self.epsilon, self.sample_size, state)

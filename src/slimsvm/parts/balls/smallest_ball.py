"""The smallest ball around all rows, found by growing a core set: what `CVM` does, and `BVM` at its end."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.parts.balls.enclosing_ball import BallRun
from slimsvm.parts.dual_ascent.dual import DualState
from slimsvm.parts.dual_ascent.kernel_table import PIECE, KernelTable
from slimsvm.parts.dual_ascent.row_set import KernelBlock, solve_set
from slimsvm.parts.problem import Problem
from slimsvm.rows import in_pieces

Array = np.ndarray

# Share of the memory limit for Q between the rows of the core set.
TABLE_SHARE = 0.75
# The ball around S is computed to this share of what ε allows.
INNER_SHARE = 0.5
STEPS_PER_ROW = 100


class SmallestBallRun(BallRun):
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

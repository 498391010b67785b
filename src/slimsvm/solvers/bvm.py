r"""Ball vector machine: a ball of known radius around all rows, its centre moved row by row.

    c = the middle of one row of each class;   r² = η, the squared length of every row
    for ε' = ½, ¼, … ε:   while a row φ is outside of the ball (c, (1 + ε') r):
        c ← φ + β (c − φ), with β such that φ comes to lie on the ball (c, r)

Tsang, Kocsor, Kwok, "Simpler Core Vector Machines with Enclosing Balls", ICML 2007, Algorithm 1, with its several
scales of ε. No optimisation inside: a step costs the kernel values of a sample with the core set.

There the paper ends. The ball found is at most (1 + ε) √(1 + q*/R*²) times the smallest one (R*² = η − q*), and many
other centres would have done: c is feasible as soon as no row's product with it is below ‖c‖²/2, so that the objective
may be four times the least one even for ε = 0. With ``shrink`` the rows of the centre are the core set that a core
vector machine goes on with, to a ball at most 1 + ε times the smallest. (Moves towards single rows get there too, with
the radius √(η − ‖c‖²), but creep: a tenth of ε takes several times the steps.)

Parts: `parts.enclosing_ball`: the problem, the search, the smallest ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.parts.dual_ascent.dual import DualState
from slimsvm.parts.enclosing_ball import BallRun, BallSolver, SmallestBallRun
from slimsvm.parts.problem import Problem, check_flag

FIRST_EPSILON = 0.5


class BallVectorRun(BallRun):
    """The run of a ball vector machine: it moves the centre α at one scale ε' after another, then grows a core set."""

    def __init__(self, problem: Problem, solver: BVM, state: DualState | None):
        super().__init__(problem, solver.epsilon, solver.sample_size, state)
        self.solver, self.scale = solver, max(FIRST_EPSILON, solver.epsilon)
        self.core: SmallestBallRun | None = None

    def step(self) -> dict[str, Any]:
        """Move the centre, or take the next scale, or add one row to the core set, or end."""
        if self.core is not None:
            record = self.core.step() | {"epsilon": self.core.epsilon}
            self.latest, self.converged = self.core.latest, self.core.converged
            return record
        is_last = self.scale <= self.epsilon
        found = self.find_outside(self.eta, self.scale, thorough=is_last)
        if found is not None:
            self.move(*found)
        elif not is_last:
            self.scale = max(0.5 * self.scale, self.epsilon)
        elif self.solver.shrink:
            self.go_on()
        else:
            self.converged = True
        return self.record(epsilon=self.scale, radius=float(np.sqrt(self.eta)))

    def go_on(self) -> None:
        """Hand the rows of the centre to a core vector machine."""
        rows, alpha, _ = self.latest
        v = np.zeros(len(self.y))
        v[rows] = alpha * self.y[rows]
        state = DualState(v, self.problem.C, self.problem.task, self.problem.examples)
        core = SmallestBallRun(self.problem, self.solver.final_epsilon, self.sample_size, state)
        core.kernel_rows.counter.add(self.kernel_rows.counter.n)
        self.core, self.kernel_rows, self.latest = core, core.kernel_rows, core.latest

    def move(self, row: int, product: float) -> None:
        """Move the centre towards a row until the ball touches it."""
        rows, alpha, q = self.latest
        own = float(self.diagonal[row])
        # If rows have several lengths, the distance includes what a row lacks to η, and the move does not.
        away = q - 2.0 * product + own
        beta = np.sqrt(max(own, 0.0) / away)
        if row in rows:
            alpha = beta * alpha
            alpha[rows == row] += 1.0 - beta
        else:
            rows, alpha = np.append(rows, row), np.append(beta * alpha, 1.0 - beta)
        self.keep(rows, alpha, beta**2 * q + 2.0 * beta * (1.0 - beta) * product + (1.0 - beta) ** 2 * own)


@dataclass(eq=False, repr=False)
class BVM(BallSolver):
    """Ball vector machine for two classes: squared slacks, penalised intercept, no inner optimisation.

    It solves another problem than the other solvers, and reports it as `CVM` does.

    Parameters
    ----------
    epsilon : float, default=1e-4
        ε: all rows lie in a ball of 1 + ε times the given radius.
    sample_size : int, default=59
        Random rows among which the farthest is searched for.
    shrink : bool, default=True
        Continue from the ball of the given radius to the smallest ball, as `CVM` does. False is the paper's algorithm,
        whose objective is up to four times the lowest one.
    final_epsilon : float, default=1e-6
        ε of the smallest ball.

    References
    ----------
    Tsang, Kocsor, Kwok: Simpler Core Vector Machines with Enclosing Balls, ICML 2007.

    Examples
    --------
    >>> from slimsvm import BVM, SVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bool(SVC(solver=BVM(), random_state=0).fit(X, y).score(X, y) > 0.85)
    True
    """

    epsilon: float = 0.0001
    sample_size: int = 59
    shrink: bool = True
    final_epsilon: float = 1e-06

    def start(self, problem: Problem, state: DualState | None = None) -> BallVectorRun:
        """Check the problem and set the run up."""
        self.check(problem, state)
        check_flag("shrink", self.shrink)
        if not 0 < self.final_epsilon < 1:
            raise ValueError(f"final_epsilon must be between 0 and 1, found {self.final_epsilon!r}")
        return BallVectorRun(problem, self, state)

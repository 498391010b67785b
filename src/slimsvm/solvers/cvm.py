r"""Core vector machine: the L2-loss SVM as the smallest ball around all rows, by growing a core set.

    S = one row of each class
    repeat
        (c, R) = smallest ball around S: α over S by pairs of rows, from the α before
        stop if no row is outside of the ball (c, (1 + ε) R); otherwise the farthest of a sample joins S

Tsang, Kwok, Cheung, "Core Vector Machines: Fast SVM Training on Very Large Data Sets", JMLR 2005, Algorithm 1. Then R
is at most the radius of the smallest ball around all rows, and (1 + ε) R at least that.

Parts: `parts.enclosing_ball`: the problem, the search, a step of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from slimsvm.parts.dual_ascent.dual import DualState
from slimsvm.parts.enclosing_ball import BallSolver, SmallestBallRun
from slimsvm.parts.problem import Problem


@dataclass(eq=False, repr=False)
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

    epsilon: float = 1e-06
    sample_size: int = 59

    def start(self, problem: Problem, state: DualState | None = None) -> SmallestBallRun:
        """Check the problem and set the run up."""
        self.check(problem, state)
        return SmallestBallRun(problem, self.epsilon, self.sample_size, state)

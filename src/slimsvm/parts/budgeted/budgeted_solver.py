"""The base class of BSCA and BSGD: their parameters and checks, and which run serves a problem.

Parts: `parts.budgeted.epochs` for the epochs, `parts.budgeted.one_class`, `parts.budgeted.chunks` for rows
in chunks, `parts.budgeted.box_dual` for the problem, and for its plain ascent where it is no larger than the budget.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from slimsvm.budget import get_budget_rule
from slimsvm.budget.budgeted_model import DUAL
from slimsvm.model import KernelExpansion
from slimsvm.parts.budgeted.box_dual import NEEDS, NO_COSTS, BudgetState, PlainAscentRun
from slimsvm.parts.budgeted.chunks import (
    AfterFit,
    after_fit,
    meet_chunk,
    meet_one_class_chunk,
    one_class_after_fit,
)
from slimsvm.parts.budgeted.epochs import BudgetedRun
from slimsvm.parts.budgeted.one_class import OneClassRun
from slimsvm.parts.problem import Problem, check_count, check_needs
from slimsvm.parts.run import Fit
from slimsvm.parts.solver import Solver

SELECTIONS = ("permutation", "uniform", "adaptive")
REPORTS = ("sample", "exact")


def is_number(value: Any) -> bool:
    """Return whether this is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


class BudgetedSolver(Solver):
    """The base class of BSCA and BSGD: their parameters and checks.

    Parameters
    ----------
    max_basis : int, default=500
        Number of basis vectors, the budget B.
    epochs : int, default=3
        Passes over the rows; the estimator's ``max_iter`` may reduce them.
    maintenance : str or BudgetRule, default="merge"
        The rule that removes vectors when there are too many: a name of `slimsvm.budget.BUDGET_RULES` ("merge",
        "project", "remove", ...), or an object. Merging needs the RBF kernel.
    finish : bool, default=True
        Solve the convex problem in the coefficients of the final vectors.
    descent_epochs : int, default=0
        After the finish, passes of descent on vectors and coefficients together, as in `Refine`.
    patience : int or None, default=None
        Stop after this many epochs in a row that lower neither the primal objective nor the weight degradation by 1 %.
    average : bool, default=True
        The model of an epoch is the mean of the models after each of its last ``max_basis`` steps, not the last model.
        This changes no step, and the finish computes its own coefficients. Without the finish it smooths most dips.
    tol_relative : float, default=1e-3
        Gap of the finish, as a share of the objective. Up to 2,000 rows it is solved to 1e-10 (1e-3 with many
        rows or points times outputs, see `LowRank`).
    """

    takes_label_sets = False
    method: ClassVar[int]

    def __init__(
        self, max_basis: int = 500, *, epochs: int = 3, maintenance: Any = "merge", finish: bool = True,
        descent_epochs: int = 0, selection: str = "permutation", patience: Any = None, average: bool = True,
        reports: str = "sample", tol_relative: float = 0.001,
    ) -> None:  # fmt: skip
        self.max_basis = max_basis
        self.epochs = epochs
        self.maintenance = maintenance
        self.finish = finish
        self.descent_epochs = descent_epochs
        self.selection = selection
        self.patience = patience
        self.average = average
        self.reports = reports
        self.tol_relative = tol_relative

    def start(self, problem: Problem, state: BudgetState | None = None) -> Any:
        """Check parameters and set the run up."""
        name = type(self).__name__
        if problem.task.intercept_nu:
            return OneClassRun(problem, self, state)
        self.check(problem, self.finish, state)
        if state is not None:
            state.check(problem)
        if problem.rows.n_rows <= self.max_basis:
            return PlainAscentRun(problem, self.finish, state, name)
        return BudgetedRun(problem, self, state)

    def check(self, problem: Problem, finish: bool, state: Any) -> None:
        """Refuse parameters, problems and states that do not suit."""
        name = type(self).__name__
        for count in ("max_basis", "epochs") if self.patience is None else ("max_basis", "epochs", "patience"):
            check_count(count, getattr(self, count))
        for option, known in (("selection", SELECTIONS), ("reports", REPORTS)):
            if getattr(self, option) not in known:
                raise ValueError(
                    f"{option} must be one of {', '.join(map(repr, known))}, found {getattr(self, option)!r}"
                )
        if not is_number(self.tol_relative) or not 0 < self.tol_relative < np.inf:
            raise ValueError(f"tol_relative must be a positive number, found {self.tol_relative!r}")
        if (
            isinstance(self.descent_epochs, bool)
            or not isinstance(self.descent_epochs, Integral)
            or self.descent_epochs < 0
        ):
            raise ValueError(f"descent_epochs must be an integer >= 0, found {self.descent_epochs!r}")
        damping: Any = getattr(self, "damping", "auto")
        if damping != "auto" and not (is_number(damping) and 0 <= damping < np.inf):
            raise ValueError(f"damping must be 'auto' or a number >= 0, found {damping!r}")
        for option in ("average", "finish"):
            if not isinstance(getattr(self, option), (bool, np.bool_)):
                raise ValueError(f"{option} must be True or False, found {getattr(self, option)!r}")
        if self.descent_epochs and not self.finish:
            raise ValueError("descent_epochs starts from the finished coefficients: it needs finish=True")
        if self.selection == "adaptive" and self.method != DUAL:
            raise ValueError(f"selection='adaptive' needs dual variables, and {name} has none")
        get_budget_rule(self.maintenance)
        check_needs(name, problem, *NEEDS, *(() if finish else (NO_COSTS,)))
        if state is not None and not isinstance(state, BudgetState):
            raise ValueError(f"{name} can only be warm-started from a budgeted fit, found {type(state).__name__}")

    def partial_solve(self, problem: Problem, state: Any = None) -> Fit:
        """Learn a chunk of rows in one pass, from ``Fit.state`` of the chunk before (`slimsvm.parts.budgeted.chunks`).

        Parameters
        ----------
        problem : Problem
            The rows of the chunk.
        state : BudgetState, OneClassState or AfterFit, optional

        Returns
        -------
        Fit
            The fit over the rows of the chunk, without a finish.
        """
        if problem.task.intercept_nu:
            state = one_class_after_fit(state) if isinstance(state, AfterFit) else state
            return meet_one_class_chunk(self, problem, state)
        state = after_fit(state) if isinstance(state, AfterFit) else state
        self.check(problem, False, state)
        return meet_chunk(self, problem, state)

    def after_fit(self, model: KernelExpansion, state: BudgetState) -> AfterFit:
        """Return a state for `partial_solve`, so that chunks go on from a fit.

        Parameters
        ----------
        model : KernelExpansion
            The fit's.
        state : BudgetState
            ``Fit.state``.
        """
        return AfterFit(model, state)

"""The base class of BSCA and BSGD: their parameters and checks, which run serves a problem, and rows in chunks.

Parts: `parts.budgeted.epochs` for the epochs, `parts.budgeted.one_class`, `parts.budgeted.box_dual` for the problem,
and for its plain ascent where it is no larger than the budget.
"""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from slimsvm.budget import get_budget_rule
from slimsvm.budget.budgeted_model import DUAL
from slimsvm.core.clock import time_limit
from slimsvm.core.threads import one_blas_thread
from slimsvm.model import KernelExpansion
from slimsvm.parts.budgeted.box_dual import NEEDS, NO_COSTS, BudgetState, PlainAscentRun
from slimsvm.parts.budgeted.epochs import BudgetedRun
from slimsvm.parts.budgeted.one_class import OneClassRun, best_multiple, box_problem, quantile
from slimsvm.parts.problem import Problem, check_count, check_flag, check_needs
from slimsvm.parts.resuming import digest_of, stacked
from slimsvm.parts.run import Fit, Status, finite
from slimsvm.parts.solver import Solver, iterate
from slimsvm.rows import as_rows
from slimsvm.tasks.examples import same_fields

Array = np.ndarray

# -- Budgeted steps on rows that come in chunks ------------------------------------------------------------------------
# A chunk is met once, in random order, by the steps of `parts.budgeted.epochs`; the model goes on from the chunks
# before.
#
# BSGD    min ½‖w‖² + C Σ_i ω_i ℓ_i(w) over all n rows met so far:  step t adds (n C ω_i / t) y_i φ(x_i)
# BSCA    the rows of earlier chunks keep their α; those of this chunk have theirs during the chunk
#
# The same chunk given again is another pass over it: BSCA's α go on, and no row counts twice for BSGD's n.
#
# Wang, Crammer, Vucetic, "Breaking the Curse of Kernelization", JMLR 2012; Qaadan, Schüler, Glasmachers, "Dual SVM
# Training on a Budget", 2018.


def comes_again(digest: bytes, problem: Problem, state: BudgetState | None) -> bool:
    """Return whether this chunk is the one that left the state."""
    if state is None or state.digest != digest:
        return False
    return same_fields(state.examples, problem.examples) and same_fields(state.task, problem.task)


class StreamRun(BudgetedRun):
    """The run of one pass over a chunk."""

    def __init__(self, problem: Problem, solver: Any, state: BudgetState | None):
        n = problem.rows.n_rows
        self.digest = digest_of(problem)
        self.is_again = comes_again(self.digest, problem, state)
        self.n_before = 0 if state is None else state.n_rows - (state.n_last if self.is_again else 0)
        if state is not None and not self.is_again:
            state = replace(state, alpha=None, basis_rows=np.full(len(state.coef), -1))
        super().__init__(problem, solver, state)
        self.n_rows = self.n_before + n
        if self.is_dual:  # a row that is used once has no later step to make up for a damped one
            self.steps = replace(self.steps, damping=0.0)
        else:  # n C ω_i of a step counts the rows of all chunks
            self.steps = replace(self.steps, C_of_row=self.steps.C_of_row * (self.n_rows / n))

    def _report(self, record: dict[str, Any]) -> None:
        """Record only what the steps themselves know."""
        record |= {"n_basis": self.model.n_basis, "n_rows": self.n_rows}

    def _watch(self, record: dict[str, Any]) -> None:
        """Do nothing: a single pass shows no trend."""

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model, its objective over the rows of the chunk, and the state for the next chunk."""
        fit = super().finish(status, history)
        fit.state = replace(fit.state, digest=self.digest, n_rows=self.n_rows, n_last=self.problem.rows.n_rows)
        return fit


@dataclass(frozen=True)
class AfterFit:
    """The model of a fit, finished or not, and the state it left. Chunks go on from it."""

    model: KernelExpansion
    state: BudgetState


def after_fit(fit: AfterFit) -> BudgetState:
    """Return the state in which chunks go on from a fit. Of its rows it keeps only the number."""
    model, state = fit.model, fit.state
    n = state.examples.n_examples
    return replace(
        state,
        basis=model.basis,
        coef=model.coef,
        intercept=model.intercept,
        basis_rows=np.full(model.n_basis, -1),
        alpha=None,
        n_steps=n,  # as after one pass, whatever the epochs: a row's share of BSGD's w is 1 / n_steps
        n_rows=n,
    )


def without_finish(solver: Any, **parameters: Any) -> Any:
    """Return the solver with steps only."""
    steps_only = {"finish": False, "descent_epochs": 0, "patience": None}
    return type(solver)(**solver.get_params(deep=False) | steps_only | parameters)


def learn_chunk(solver: Any, problem: Problem, state: BudgetState | None) -> Fit:
    """Learn the problem's rows in one pass, from the state of the pass or fit before."""
    problem = replace(problem, max_iter=None)
    problem.check_range()
    with one_blas_thread():
        run = StreamRun(problem, without_finish(solver, epochs=1), state)
        with time_limit(problem.max_seconds):
            status, history = iterate(run, problem, time.perf_counter(), (), type(solver).__name__)
        return finite(run.finish(status, history), problem)


# -- One class on a budget, rows in chunks -----------------------------------------------------------------------------
# The first chunk is fitted: its box problem (`parts.budgeted.one_class`) has the C' at which its dual variables
# have the share ν, Σ α = ν C' Ω. Every later chunk is met once by the steps of that problem over all rows met so far,
# of weight Ω: where Ω grows, C' falls, so that C' Ω stays. After each chunk
#
#     ρ  =  the ν-quantile of the scores of the rows met last: RECENT of them, the chunk's whole where it has more
#     w, the dual variables and C'  are divided by ρ
#
# At the solution ρ = 1 there. A share of rows below 1 that is not ν moves ρ, and the division moves it back.
# The model is the best multiple of w for one class over all rows met, of which those met last are the sample.

# The most rows from which ρ is taken, if the chunk has fewer.
RECENT = 1000
# A single chunk changes C' by no more than this factor.
MOST = 2.0


@dataclass(frozen=True)
class OneClassState:
    """The state that a chunk leaves for the next one."""

    box: BudgetState  # the state of the box problem, whose C is C'
    total: float  # weight of all rows met
    rows: Any  # ndarray or csr_array of shape (r, d): rows met last, at most RECENT
    weights: Array  # (r,)


def learn_one_class_chunk(solver: Any, problem: Problem, state: OneClassState | None) -> Fit:
    """Learn the problem's rows in one pass, or in a whole fit if they are the first chunk."""
    task, rng = problem.task, problem.generator()
    problem, digest = replace(problem, random_state=rng, max_iter=None), digest_of(problem)
    if state is None:
        fit = without_finish(solver).solve(problem)
        if fit.state is None:
            raise ValueError(f"max_seconds={problem.max_seconds:g} is too short for the first chunk: raise it")
        box, total, recent = _begun(fit.state, digest), problem.examples.total_weight, problem
        rho = -float(fit.model.intercept[0]) * box.C
    else:
        of_chunk = box_problem(problem, rng)
        is_again = comes_again(digest, of_chunk, state.box)
        total = state.total + (0.0 if is_again else problem.examples.total_weight)
        fit = learn_chunk(solver, replace(of_chunk, C=state.box.C * state.total / total), state.box)
        box, recent = fit.state, _recent(problem, state, is_again)
        rows, model, scores, evals = (
            recent.bind(),
            fit.model,
            np.zeros(recent.rows.n_rows),
            fit.counters["kernel_evals"],
        )
        if model.n_basis:
            scores = rows.scores(rows.points_of(model.basis), model.coef)[:, 0].astype(np.float64)
        rho = quantile(scores, recent.examples.weights, task.intercept_nu)
        fit.model, fit.objective = best_multiple(
            model, model.norm_squared(), rho, scores, recent.examples.weights, task.intercept_nu, problem.C * total
        )
        fit.counters = fit.counters | {"kernel_evals": evals, "report_kernel_evals": rows.counter.n}
    fit.state = OneClassState(_divided(box, rho), total, *_kept(recent))
    fit.basis_rows = None  # of the rows of one chunk
    found: Fit = fit
    return found


def one_class_after_fit(fit: AfterFit) -> OneClassState:
    """Return the state after a fit, scaled to the box problem in which ρ is 1."""
    rho = -float(fit.model.intercept[0])
    C = 1.0 / rho if rho > 0 else fit.state.C
    box = replace(after_fit(fit), coef=C * fit.model.coef, intercept=np.zeros(1), C=C)
    return OneClassState(box, box.examples.total_weight, fit.model.basis[:0], np.zeros(0))


def _begun(state: BudgetState, digest: bytes) -> BudgetState:
    """Return the state that a fit of the first chunk leaves."""
    n, used = len(state.examples.weights), state.coef.any(axis=1)
    return replace(
        state,
        basis=state.basis[used],
        coef=state.coef[used],
        basis_rows=state.basis_rows[used],
        digest=digest,
        n_rows=n,
        n_last=n,
        n_steps=n,  # one per row so far, whatever the search for C' took: a row's share of BSGD's w is 1 / n_steps
    )


def _recent(problem: Problem, state: OneClassState, is_again: bool) -> Problem:
    """Return the problem of the rows that ρ is taken from: this chunk's, after the last ones of earlier chunks."""
    n, n_earlier = problem.rows.n_rows, len(state.weights)
    if is_again:
        n_earlier -= min(n, n_earlier)
    first = max(0, n_earlier - max(0, RECENT - n))
    if first == n_earlier:
        return problem
    weights = np.concatenate([state.weights[first:n_earlier], problem.examples.weights])
    rows = as_rows(stacked(state.rows[first:n_earlier], problem))
    return replace(problem, rows=rows, examples=problem.task.encode(weights, weights))


def _kept(recent: Problem) -> tuple[Any, Array]:
    """Return those of these rows and their weights that the next chunk needs."""
    n = recent.rows.n_rows
    first = max(0, n - RECENT)
    return recent.rows.slice(first, n, recent.rows.exact_dtype).copy(), recent.examples.weights[first:].copy()


def _divided(box: BudgetState, rho: float) -> BudgetState:
    """Return the state divided by ρ, or by as much of it as is allowed, so that ρ becomes 1 or nearer to it."""
    share = 1.0 / min(max(rho, 1.0 / MOST), MOST) if rho > 0 else 1.0
    alpha = None if box.alpha is None else share * box.alpha
    return replace(box, coef=share * box.coef, alpha=alpha, C=share * box.C)


SELECTIONS = ("permutation", "uniform", "adaptive")
REPORTS = ("sample", "exact")


def is_number(value: Any) -> bool:
    """Return whether this is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


@dataclass(eq=False, repr=False)
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

    max_basis: int = 500
    _: KW_ONLY
    epochs: int = 3
    maintenance: Any = "merge"
    finish: bool = True
    descent_epochs: int = 0
    selection: str = "permutation"
    patience: Any = None
    average: bool = True
    reports: str = "sample"
    tol_relative: float = 0.001

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
            check_flag(option, getattr(self, option))
        if self.descent_epochs and not self.finish:
            raise ValueError("descent_epochs starts from the finished coefficients: it needs finish=True")
        if self.selection == "adaptive" and self.method != DUAL:
            raise ValueError(f"selection='adaptive' needs dual variables, and {name} has none")
        get_budget_rule(self.maintenance)
        check_needs(name, problem, *NEEDS, *(() if finish else (NO_COSTS,)))
        if state is not None and not isinstance(state, BudgetState):
            raise ValueError(f"{name} can only be warm-started from a budgeted fit, found {type(state).__name__}")

    def partial_solve(self, problem: Problem, state: Any = None) -> Fit:
        """Learn a chunk of rows in one pass, from ``Fit.state`` of the chunk before (`learn_chunk`).

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
            return learn_one_class_chunk(self, problem, state)
        state = after_fit(state) if isinstance(state, AfterFit) else state
        self.check(problem, False, state)
        return learn_chunk(self, problem, state)

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

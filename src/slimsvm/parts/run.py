"""The base class of all runs, the fit that a solver returns, and what is reported at its end.

Reports are objectives computed from the model alone, safe bounds, and whether a fit counts as converged.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from math import inf, nan
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.core.clock import Limit, OutOfTimeError, present_limit, time_limit
from slimsvm.kernels import KernelRows
from slimsvm.kernels.operands import MAP_WORK, SPARSE_WORK
from slimsvm.kernels.pairs import between
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Kept, Problem
from slimsvm.parts.rounding import DualPoint, sure_value, warn_of_rounding
from slimsvm.rows import Rows, in_pieces
from slimsvm.tasks import losses

Array = np.ndarray


class Status(StrEnum):
    """The reason why a fit ended."""

    CONVERGED = "converged"
    GAP = "gap above tolerance"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped by a callback"

    @property
    def is_cut(self) -> bool:
        """Return whether a limit or an interrupt ended the fit amid its work, so that it must return at once."""
        return self in (Status.INTERRUPTED, Status.TIME_LIMIT)


@dataclass
class Fit:
    """The result of a solver.

    Parameters
    ----------
    model : KernelExpansion
    status : Status
    objective : float
        ½‖w‖² + C Σ ω_e ℓ_e of the model over all rows (sums in float64); NaN if the solver was told not to compute it.
    lower_bound : float or None
        A bound no model of this problem can be under, where the solver has one.
    history : list of dict
        One record per iteration or epoch.
    counters : dict
        Kernel evaluations and the like.
    state : object
        Plain data for a warm start.
    basis_rows : int64 ndarray of shape (n_basis,) or None
        Training rows the basis vectors are; None where they are not rows of the data.
    solved : Problem or None
        The problem that the model is of, where the solver had a choice; None: the one it was given.
    trials : list of dict
        Results on held-out rows.
    is_too_coarse : bool
        Whether float32 kernel values were too coarse for the problem.
    kept : Kept or None
        Values that the exact solver leaves for later fits of these rows: scores, and kernel values of few rows.
    norm_squared : float or None
        ‖w‖² as the exact solver knows it of its dual point; None where nobody has computed it.
    """

    model: KernelExpansion
    status: Status
    objective: float
    lower_bound: float | None
    history: list[dict[str, Any]]
    counters: dict[str, Any]
    state: Any = None
    basis_rows: Array | None = None
    solved: Problem | None = None
    trials: list[dict[str, Any]] = field(default_factory=list)
    is_too_coarse: bool = False
    kept: Kept | None = None
    norm_squared: float | None = None

    @property
    def n_iter(self) -> int:
        """Return the number of iterations (or epochs) done."""
        return len(self.history)


@dataclass(frozen=True)
class Best:
    """The result with the lowest objective so far. It is replaced as a whole, so that an interrupt cannot tear it."""

    objective: float = np.inf
    found: Any = None

    def or_lower(self, objective: float, found: Any, or_equal: bool = False) -> Best:
        """Return the new result if its objective is lower (or, on request, as low), otherwise the best so far."""
        is_lower = objective <= self.objective if or_equal else objective < self.objective
        return Best(objective, found) if is_lower else self


class Run(ABC):
    """One solver at work on one problem.

    Attributes
    ----------
    problem : Problem
    kernel_rows : KernelRows
        Counts the kernel evaluations of the fit.
    converged : bool
        Whether the last step reached the tolerance.
    spent : str or None
        The run's own limit that it has come to, where it has one.
    doing : str or None
        The text of the progress bar, in words for users; None: the solver's name.
    has_models : bool
        Whether `finish` may be asked after every step, and the run goes on.
    can_go_on : bool
        Whether `so_far` can be asked.
    has_said_of_gap : bool
        Whether the run has warned of a gap wider than its tolerance.
    between : callable or None
        Is called within long steps, between parts of them.
    has_parts : bool
        Whether the fit is put together from fits, which have been checked each.
    largest_sum : float
        The largest Σ |coefficients| of scores on the way that those at the end were made of; 0: the model's own.
    """

    problem: Problem
    kernel_rows: KernelRows
    converged: bool = False
    spent: str | None = None
    doing: str | None = None
    has_models: bool = False
    can_go_on: bool = False
    has_said_of_gap: bool = False
    between: Callable[[], Any] | None = None
    has_parts: bool = False
    largest_sum: float = 0.0

    @abstractmethod
    def step(self) -> dict[str, Any]:
        """Do one iteration; return its record and set ``converged``.

        An interrupt inside leaves `finish` usable; so does the end of time (`core.clock`), which comes between calls
        into the core and parts of passes over rows.
        """

    @abstractmethod
    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the best model so far and what is known of it."""

    @property
    def max_records(self) -> int | None:
        """Return the largest number of iterations, None for no limit; a run may limit its parts instead."""
        return self.problem.max_iter

    @property
    def share_done(self) -> float:
        """Return the share of the planned work that is done."""
        return 0.0

    def distance(self, record: dict[str, Any]) -> float | None:
        """Return the gap after an iteration, in units of the tolerance; None if it is not known."""
        return None

    def so_far(self) -> Fit:
        """Return a quick fit with an objective of NaN, whose state goes on to the same bits (`parts.resuming`)."""
        raise TypeError(f"{type(self).__name__} cannot be asked for its state")

    def allowed(self, objective: float) -> float:
        """Return the widest gap with which the run has converged, at an objective."""
        return inf

    def dual_point(self) -> DualPoint | None:
        """Return the dual point that the bound belongs to, after `finish` was called (`parts.rounding`)."""
        return None

    def sure_bound(self) -> float | None:
        """Return the safe bound of a run that has a bound but no single dual point."""
        return None


# Kernel values among basis vectors that are computed together for ‖w‖²: some 20 ms.
NORM_PIECE = 1 << 22
# Rows that are scored together.
SCORED_ROWS = 1 << 16


def exact_objective(problem: Any, rows: KernelRows, model: KernelExpansion) -> float:
    """Return ½‖w‖² + C Σ ω_e ℓ_e of the task itself, over all rows."""
    scores = np.tile(model.intercept, (rows.n_rows, 1))
    norm = float(model.intercept @ model.intercept) if problem.intercept == "regularized" else 0.0
    if model.n_basis:
        scores += rows.scores(rows.points_of(model.basis), model.coef)
        basis = model.basis
        for part in in_pieces(model.n_basis, NORM_PIECE // model.n_basis):
            norm += float(np.sum(model.coef[part] * (between(rows, basis[part], basis) @ model.coef)))
    plain = np.zeros(0)
    augmented = problem.task.augment(scores, plain, problem.examples)
    found: float = 0.5 * norm + problem.C * float(
        problem.examples.weights @ losses(augmented, scores, plain, problem.examples)
    )
    return found


def float64_scores(problem: Problem, model: KernelExpansion) -> Array:
    """Return the scores of all rows by a model in float64."""
    model, scores = replace(model, dtype="float64"), np.empty((problem.rows.n_rows, problem.task.n_outputs))
    for lo, hi in problem.rows.blocks(SCORED_ROWS):
        scores[lo:hi] = model.scores(problem.rows.slice(lo, hi, problem.rows.exact_dtype), problem.n_jobs)
    return scores


def float64_objective(problem: Any, model: KernelExpansion, scores: Array | None = None) -> float:
    """Return ½‖w‖² + C Σ ω_e ℓ_e of a model in float64, with the term of its intercept if it has one.

    ``scores`` of all rows, where they are known.
    """
    scores = float64_scores(problem, model) if scores is None else scores
    gram = None
    if not problem.kernel.has_features:
        gram = problem.rows.slice(0, problem.rows.n_rows, np.float64)
    norm_squared = model.norm_squared(gram, problem.n_jobs)
    if problem.intercept == "regularized":
        norm_squared += float(np.sum(model.intercept**2))
    loss = losses(problem.task.augment(scores, model.plain, problem.examples), scores, model.plain, problem.examples)
    total = problem.C * float(problem.examples.weights @ loss)
    if problem.task.intercept_nu:
        total += problem.task.intercept_nu * problem.C1 * float(model.intercept[0])
    return float(0.5 * norm_squared + total)


Told = TypeVar("Told")

# Chosen, not measured. If float64 kernel values change the dual value by more than this share of the objective, float32
# ones were too coarse for the fit's model, too; if by more than a hundredth of that, for the digits of its objective.
TOO_COARSE = 1e-3
# Gaps up to these shares of the objective are rounding errors of the kernel values; objectives below NOTHING times C₁,
# in units of the loss, are rounding errors themselves.
GAP_ROUNDING, NOTHING = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-6}, 1e-6
# Gaps up to this share of the objective have a status of their own, but no warning.
GAP_WORTH_SAYING = 0.01


@dataclass(frozen=True)
class ReportSettings:
    """Limits of the report of a fit that was cut short. Chosen, not measured."""

    # The most multiply-adds at the end of a fit that was cut short, or this share of max_seconds if that is more.
    work: int = 1 << 32
    share: float = 0.05


def work_of_scores(rows: Rows, n_basis: int) -> int:
    """Return how many multiply-adds of dense rows take about as long as the scores of all rows."""
    return n_basis * (rows.n_stored * (SPARSE_WORK if rows.is_sparse else 1) + MAP_WORK * rows.n_rows)


def finite(fit: Fit, problem: Problem, has_objective: bool = True) -> Fit:
    """Return the fit; raise an error if its objective or a number of its model is not finite."""
    model, found = fit.model, None
    has_objective = has_objective and not fit.status.is_cut  # see `reported`
    is_dense = isinstance(model.basis, np.ndarray) and model.basis.dtype.kind == "f"  # others are rows of X
    if not (np.isfinite(model.coef).all() and np.isfinite(model.intercept).all() and np.isfinite(model.plain).all()):
        found = "coefficients that are NaN or infinite"
    elif is_dense and fit.basis_rows is None and not np.isfinite(model.basis).all():
        found = "basis vectors that are NaN or infinite"
    elif has_objective and not np.isfinite(fit.objective):
        found = f"an objective of {fit.objective}"
    if found is None:
        return fit
    kernel = repr(problem.kernel)[:200]
    raise ValueError(
        f"the fit ended with {found}: intermediate numbers exceeded {model.dtype}. Kernel values reach "
        f"{problem.kernel.largest(problem.rows):.3g}, C={problem.C:g} times the largest weight is "
        f"{problem.C * problem.examples.weights.max(initial=0.0):.3g}, {kernel}: scale X, lower C, the weights, "
        "degree, gamma or coef0"
    )


def model_over(
    rows: KernelRows, basis: Any, coef: Array, intercept: Array, plain: Array | None = None
) -> KernelExpansion:
    """Return the model of these vectors and coefficients, with the kernel and the precision of the rows."""
    return KernelExpansion(basis, coef, intercept, np.zeros(0) if plain is None else plain, rows.kernel, rows.precision)


def reported(problem: Problem, status: Status, n_basis: int, looked: Callable[[], Told]) -> Told | None:
    """Return what ``looked()`` computes from all rows at the end of a fit; None if it would delay the end too much
    after Ctrl-C, or after ``max_seconds``.
    """
    own = problem.settings_of(ReportSettings)
    if not status.is_cut or work_of_scores(problem.rows, n_basis) <= own.work:
        return looked()
    limit = present_limit()
    if status is Status.INTERRUPTED or limit is None:
        return None
    try:
        with time_limit(own.share * limit.seconds, least=0.0):  # what a fit needs in any case it has had
            return looked()
    except OutOfTimeError:
        return None


def reported_objective(problem: Problem, status: Status, n_basis: int, looked: Callable[[], float]) -> float:
    """Return an objective as `reported` does; NaN if there is no time for it."""
    found = reported(problem, status, n_basis, looked)
    return nan if found is None else found


def objective_of_model(problem: Problem, status: Status, rows: KernelRows, model: KernelExpansion) -> float:
    """Return `exact_objective`; NaN if there is no time for it."""
    return reported_objective(problem, status, model.n_basis, partial(exact_objective, problem, rows, model))


def with_safe_bound(fit: Fit, run: Run, may_go_on: bool = False) -> Fit:
    """Give the fit its safe bound, its objective computed again if in doubt, and the status that its gap allows.

    ``may_go_on``: whether a fit whose kernel values are too coarse goes on with others. Kernel evaluations are those of
    the report.
    """
    problem, before, value = run.problem, run.kernel_rows.counter.n, fit.lower_bound
    size, change = max(abs(fit.objective), NOTHING * problem.C1 * problem.loss_unit), 0.0
    if value is not None:
        fit.lower_bound, change = sure_bound(run, value, is_cut_short=fit.status.is_cut)
    objective = summed_again(fit, run, change, size)
    if objective is not None:
        change = max(change, abs(objective - fit.objective))
    fit.is_too_coarse = value is not None and run.kernel_rows.dtype == np.float32 and change > TOO_COARSE * size
    if not (fit.is_too_coarse and may_go_on and fit.status is Status.CONVERGED):
        if objective is not None:
            fit.objective = objective
        if value is not None and fit.lower_bound is not None:
            fit.lower_bound = min(fit.lower_bound, fit.objective)
            is_said = warn_of_rounding(run.kernel_rows, value, fit.lower_bound, size)
            fit.status = status_of_gap(fit, run, is_said)
    if n_evals := run.kernel_rows.counter.n - before:
        fit.counters["report_kernel_evals"] = fit.counters.get("report_kernel_evals", 0) + n_evals
    return fit


def summed_again(fit: Fit, run: Run, change: float, size: float) -> float | None:
    """Return the objective in float64 if it is in doubt, otherwise None; ``change``: of the bound."""
    problem, is_coarse = run.problem, run.kernel_rows.dtype == np.float32
    can_be_known = fit.lower_bound is not None or run.largest_sum > 0
    if run.has_parts or fit.status.is_cut or not can_be_known or not np.isfinite(fit.objective):
        return None
    much = TOO_COARSE * (size if is_coarse else abs(fit.objective))
    if not (is_coarse and change > 0.01 * much) and not rounds_losses(run, fit.model, much):
        return None
    run.kernel_rows.counter.add(problem.rows.n_rows * fit.model.n_basis)
    return float64_objective(problem, fit.model)


def rounds_losses(run: Run, model: KernelExpansion, much: float) -> bool:
    """Return whether rounding of one score can change the objective by ``much``, by the largest weight."""
    problem = run.problem
    terms = max(run.largest_sum, float(np.abs(model.coef).sum(axis=0).max(initial=0.0)))
    score = max(problem.units[0], terms * (problem.kernel.largest(problem.rows) or 1.0))
    largest = problem.C * float(problem.examples.weights.max(initial=0.0))
    return largest * float(np.finfo(run.kernel_rows.dtype).eps) * score > much


def status_of_gap(fit: Fit, run: Run, is_said: bool) -> Status:
    """Return the fit's status: "converged" only if the gap is no wider than the run's tolerance allows.

    A warning says why if the gap is wide, unless one has been given.
    """
    if fit.status is not Status.CONVERGED or fit.lower_bound is None:
        return fit.status
    gap, dtype = fit.objective - fit.lower_bound, run.kernel_rows.dtype
    if not gap > run.allowed(fit.objective):
        return fit.status
    if is_said or run.has_said_of_gap or gap <= GAP_WORTH_SAYING * abs(fit.objective):
        return Status.GAP
    advice = "precision='float64' or a lower C" if dtype == np.float32 else "a lower C, weights that are less apart"
    warnings.warn(
        f"the fit ended with an objective of {fit.objective:.6g} and a lower bound of {fit.lower_bound:.6g}, a wider "
        f"gap than its tolerance: rounding or the steps that are allowed leave no less; {advice} or features scaled "
        "to about 1 may",
        ConvergenceWarning,
        stacklevel=5,
    )
    return Status.GAP


def sure_bound(run: Run, bound: float, anew: bool = True, is_cut_short: bool = False) -> tuple[float, float]:
    """Return a fit's bound less what rounding can have added to it, and how much the kernel values changed it.

    Parameters
    ----------
    bound : float
        The bound as the run computed it.
    anew, is_cut_short : bool
        See `sure_value`.
    """
    point = run.dual_point()
    sure = run.sure_bound() if point is None else sure_value(run.kernel_rows, point, anew, is_cut_short)
    if sure is None:
        return bound, 0.0
    change = abs(bound - sure)
    sure = min(bound, sure)
    if bound >= 0:  # neither a loss nor an objective is below 0
        sure = max(sure, 0.0)
    return sure, change


def timed(fit: Fit, limit: Limit, name: str) -> Fit:
    """Return the fit; its status is not "converged" if the time limit ended a part of it."""
    if limit.was_reached and fit.status is Status.CONVERGED:
        fit.status = Status.TIME_LIMIT
        warnings.warn(
            f"{name} had less time for parts of its work than they asked for, to end before the time limit; raise "
            "max_seconds, or accept the model as it is",
            ConvergenceWarning,
            stacklevel=4,
        )
    return fit


def warn_of_time(name: str, what: str) -> None:
    """Warn that there was no time for an iteration."""
    warnings.warn(
        f"{name} stopped at the time limit before its first iteration: {what}; raise max_seconds, or accept it",
        ConvergenceWarning,
        stacklevel=5,
    )


# A relative tolerance is a share of the objective, or of GAINS times the gain over the zero model if that is less.
# Otherwise the zero model would be within the tolerance if little can be gained (rare classes under a loss over all
# rows). The share of the objective is never below NO_LESS.
GAINS, NO_LESS = 10.0, 1e-5


def allowed_gap(share: float, objective: float, at_zero: float) -> float:
    """Return the gap that a relative tolerance allows at an objective; the zero model has the objective ``at_zero``.

    >>> allowed_gap(0.01, 100.0, 1000.0), allowed_gap(0.01, 6000.0, 6010.0), allowed_gap(1e-10, 6000.0, 6000.0)
    (1.0, 1.0, 6e-07)
    """
    most, gain = abs(objective), max(0.0, at_zero - objective)
    return max(share * min(most, GAINS * gain), min(share, NO_LESS) * most)


def warn_of_a_gap(
    whose: str, objective: float, bound: float, share: float, dtype: Any, level: int, advice: str | None = None
) -> None:
    """Warn where rounding, or a step without progress, ended a fit before the gap was ``share`` of the objective."""
    gap, dtype = objective - bound, np.dtype(dtype)
    if gap > max(share, GAP_ROUNDING[dtype]) * abs(objective):
        mended_by = "precision='float64' or a lower C" if dtype == np.float32 else "a lower C"
        advice = f"rounding allows no less; {mended_by} may" if advice is None else advice
        warnings.warn(
            f"{whose} ended with a gap of {gap:.2g} at an objective of {objective:.6g}: {advice}",
            ConvergenceWarning,
            stacklevel=level + 1,
        )

"""Reports of fits: objectives computed from the model alone, safe bounds, and whether a fit counts as converged."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.core.clock import Limit, OutOfTimeError, present_limit, time_limit
from slimsvm.kernels import KernelRows
from slimsvm.kernels.operands import SPARSE_WORK
from slimsvm.kernels.pairs import between
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.rounding import sure_value, warn_of_rounding
from slimsvm.parts.run import Fit, Run, Status
from slimsvm.rows import Rows, in_pieces
from slimsvm.tasks import losses

Array = np.ndarray

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


def float64_objective(problem: Any, model: KernelExpansion, scores: Array | None = None) -> float:
    """Return ½‖w‖² + C Σ ω_e ℓ_e of a model in float64, with the term of its intercept if it has one.

    ``scores`` of all rows, where they are known.
    """
    if scores is None:
        model = replace(model, dtype="float64")
        scores = np.empty((problem.rows.n_rows, problem.task.n_outputs))
        for lo, hi in problem.rows.blocks(SCORED_ROWS):
            scores[lo:hi] = model.scores(problem.rows.slice(lo, hi, problem.rows.exact_dtype), problem.n_jobs)
    gram = None
    if not problem.kernel.has_features:
        gram = problem.rows.slice(0, problem.rows.n_rows, np.float64)
    norm_squared = model.norm_squared(gram, problem.n_jobs)
    if problem.intercept == "regularized":
        norm_squared += float(np.sum(model.intercept**2))
    loss = losses(problem.task.augment(scores, model.plain, problem.examples), scores, model.plain, problem.examples)
    total = problem.C * float(problem.examples.weights @ loss)
    if problem.task.intercept_price:
        total += problem.task.intercept_price * problem.C1 * float(model.intercept[0])
    found: float = 0.5 * norm_squared + total
    return found


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
    return n_basis * (rows.n_stored * (SPARSE_WORK if rows.is_sparse else 1) + 8 * rows.n_rows)


def finite(fit: Fit, problem: Problem, has_objective: bool = True) -> Fit:
    """Return the fit; raise an error if its objective or a number of its model is not finite."""
    model = fit.model
    is_finite = all(np.isfinite(part).all() for part in (model.coef, model.intercept, model.plain))
    has_objective = has_objective and not fit.status.is_cut  # see `reported`
    if is_finite and (np.isfinite(fit.objective) or not has_objective):
        return fit
    kernel = repr(problem.kernel)[:200]
    found = f"an objective of {fit.objective}" if is_finite else "coefficients that are NaN or infinite"
    raise ValueError(
        f"the fit ended with {found}: intermediate numbers exceeded {model.dtype}. Kernel values reach "
        f"{problem.kernel.largest(problem.rows):.3g}, C={problem.C:g} times the largest weight is "
        f"{problem.C * problem.examples.weights.max(initial=0.0):.3g}, {kernel}: scale X, lower C, the weights, "
        "degree, gamma or coef0"
    )


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
        with time_limit(own.share * limit.seconds):
            return looked()
    except OutOfTimeError:
        return None


def with_safe_bound(fit: Fit, run: Run, may_go_on: bool = False) -> Fit:
    """Give the fit its safe bound, its objective computed again if in doubt, and the status that its gap allows.

    ``may_go_on``: whether a fit whose kernel values are too coarse goes on with others. Kernel evaluations are those of
    the report.
    """
    if fit.lower_bound is None:
        return fit
    problem, before, value = run.problem, run.kernel_rows.counter.n, fit.lower_bound
    size = max(abs(fit.objective), NOTHING * problem.C1 * problem.loss_unit)
    is_cut_short = fit.status.is_cut
    fit.lower_bound, change = sure_bound(run, value, is_cut_short=is_cut_short)
    may_be_coarse = run.kernel_rows.dtype == np.float32
    is_of_parts = problem.task.has_columns or bool(problem.task.class_pairs())
    may_be_summed = may_be_coarse and not is_cut_short and not is_of_parts
    objective = None
    if may_be_summed and (change > 0.01 * TOO_COARSE * size or rounds_losses(problem, fit.model, TOO_COARSE * size)):
        objective = float64_objective(problem, fit.model)
        run.kernel_rows.counter.add(problem.rows.n_rows * fit.model.n_basis)
        change = max(change, abs(objective - fit.objective))
    fit.is_too_coarse = may_be_coarse and change > TOO_COARSE * size
    if not (fit.is_too_coarse and may_go_on and fit.status is Status.CONVERGED):
        if objective is not None:
            fit.objective = objective
        fit.lower_bound = min(fit.lower_bound, fit.objective)
        is_said = warn_of_rounding(run.kernel_rows, value, fit.lower_bound, size)
        fit.status = status_of_gap(fit, run, is_said)
    if n_evals := run.kernel_rows.counter.n - before:
        fit.counters["report_kernel_evals"] = fit.counters.get("report_kernel_evals", 0) + n_evals
    return fit


def rounds_losses(problem: Problem, model: KernelExpansion, much: float) -> bool:
    """Return whether float32 rounding of one score can change the objective by ``much``, by the largest weight."""
    error = float(np.finfo(np.float32).eps) * max(
        problem.units[0], float(np.abs(model.coef).sum(axis=0).max(initial=0.0))
    )
    return problem.C * float(problem.examples.weights.max(initial=0.0)) * error > much


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
    run : Run
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

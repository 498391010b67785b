"""Certificates: a model's objective, and a lower bound on the objective of every model, tell how far it is from the
exact SVM.

Any point of the dual is such a bound, whatever trained the model. Where every row has its own dual variables (two
classes, several, regression, one class) one is found by `parts.dual_ascent.block_ascent`; several classes by pairs
are two-class problems of their own, whose objectives and bounds add up. Of losses with two derivatives residuals are
dual points (`parts.dual_ascent.residual_ascent`). For sequences and losses over all rows it is a
nonnegative combination of exact cuts with Σ α ≤ C₁: the first cut is that of the model itself, the others come of
`parts.cuts.cutting_plane_loop`, until its own gap, or the model's, is below GAP.

Kernel values and sums are float64.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from tqdm import tqdm

from slimsvm.core.clock import OutOfTimeError, is_time_over, time_limit
from slimsvm.core.threads import one_blas_thread
from slimsvm.model import KernelExpansion
from slimsvm.parts.cuts import CutsState, ExactOracle, exact_cut
from slimsvm.parts.cuts.cutting_plane_loop import CuttingPlaneRun, Plan
from slimsvm.parts.cuts.explicit_weights import resolve_weights
from slimsvm.parts.dual_ascent.block_ascent import BoxAscent, ClassAscent, DualAscent
from slimsvm.parts.dual_ascent.one_vs_one import problem_of_pair, rows_of_pair
from slimsvm.parts.dual_ascent.residual_ascent import ResidualAscent
from slimsvm.parts.problem import Problem
from slimsvm.parts.reports import SCORED_ROWS, float64_objective, sure_bound
from slimsvm.parts.rounding import warn_of_rounding

Array = np.ndarray

# Cuts are added until the gap is no more than this share of the objective.
GAP = 5e-4
ASCENTS: dict[str, type[DualAscent]] = {"rows": BoxAscent, "classes": ClassAscent, "residuals": ResidualAscent}


@dataclass(frozen=True)
class Certificate:
    """A model's objective and a bound on it that holds for certain.

    Parameters
    ----------
    objective : float
        ½‖w‖² + C Σ ω_i ℓ_i of the model (with ν C Ω b for one class), kernel values and sums in float64.
    lower_bound : float
        No model of this kernel and C has a lower objective.
    n_passes : int
        Passes of dual coordinate ascent that were finished (of all pairs of classes); cuts, for sequences and losses
        over all rows.
    kernel_evals : int
        Kernel evaluations for the bound, beside those for the objective (rows times vectors).
    seconds : float
    """

    objective: float
    lower_bound: float
    n_passes: int
    kernel_evals: int
    seconds: float

    @property
    def gap(self) -> float:
        """Return the share of the objective's magnitude by which it can be lowered, at most."""
        return (self.objective - self.lower_bound) / abs(self.objective) if self.objective else 0.0


def certify(problem: Problem, model: KernelExpansion, max_seconds: float | None = None) -> Certificate:
    """Bound how far a model is from the optimum of a problem.

    Parameters
    ----------
    problem : Problem
        A free intercept for two classes, pairs of classes, regression and one class only.
    model : KernelExpansion
        The model, in float64.
    max_seconds : float or None
        Time limit; the bound so far is then returned.

    Returns
    -------
    Certificate
    """
    problem.check_range()
    begun = time.perf_counter()
    end = None if max_seconds is None else begun + max_seconds
    scores = np.empty((problem.rows.n_rows, problem.task.n_outputs))
    for lo, hi in problem.rows.blocks(SCORED_ROWS):
        scores[lo:hi] = model.scores(problem.rows.slice(lo, hi, problem.rows.exact_dtype), problem.n_jobs)
    objective = float64_objective(problem, model, scores)
    with one_blas_thread():
        if problem.task.has_columns:
            bound, n_passes, evals = _bound_by_columns(problem, model, scores, end)
        elif problem.task.class_pairs():
            bound, n_passes, evals = _bound_by_pairs(problem, model, scores, end)
        elif problem.task.bounded_by in ASCENTS:
            bound, n_passes, evals = _bound_by_ascent(problem, model, scores, objective, end)
        else:
            bound, n_passes, evals = _bound_by_cuts(problem, model, scores, objective, end)
    bound = min(bound, objective)  # rounding can make them cross
    return Certificate(objective, bound, n_passes, evals, time.perf_counter() - begun)


def _bound_by_ascent(
    problem: Problem, model: KernelExpansion, scores: Array, objective: float, end: float | None
) -> tuple[float, int, int]:
    """Return lower bound, number of passes and kernel evaluations of dual ascent that begins at the model."""
    ascent = ASCENTS[problem.task.bounded_by](problem, end)
    ascent.start(model, scores, objective)
    ascent.climb()
    warn_of_rounding(ascent.kernel_rows, ascent.value, ascent.bound, objective)
    return ascent.bound, ascent.n_passes, ascent.kernel_rows.counter.n


def _bound_by_pairs(
    problem: Problem, model: KernelExpansion, scores: Array, end: float | None
) -> tuple[float, int, int]:
    """Return the sums, over the two-class problems of all pairs of classes, of what `_bound_by_ascent` returns.

    Each pair may take its share of the time, counted by the squares of their rows.
    """
    pairs = problem.task.class_pairs()
    rows = [rows_of_pair(problem, pair) for pair in pairs]
    work = np.array([float(len(index)) ** 2 for index in rows])
    bound, n_passes, evals = 0.0, 0, 0
    for k, index in enumerate(rows):
        used = model.coef[:, k] != 0
        basis = model.basis[np.flatnonzero(used)]
        if not problem.kernel.has_features:
            basis = np.searchsorted(index, basis)
        own = replace(model, basis=basis, coef=model.coef[used][:, [k]], intercept=model.intercept[[k]])
        now = time.perf_counter()
        part_end = None if end is None else now + max(0.0, end - now) * float(work[k] / work[k:].sum())
        two, seen = problem_of_pair(problem, k, index), scores[index][:, [k]]
        part = _bound_by_ascent(two, own, seen, float64_objective(two, own, seen), part_end)
        bound, n_passes, evals = bound + part[0], n_passes + part[1], evals + part[2]
    return bound, n_passes, evals


def _bound_by_columns(
    problem: Problem, model: KernelExpansion, scores: Array, end: float | None
) -> tuple[float, int, int]:
    """Return the sums over targets, each a problem of its own."""
    bound, n_passes, evals = 0.0, 0, 0
    for k, (task, examples) in enumerate(problem.task.columns(problem.examples)):
        now = time.perf_counter()
        part_end = None if end is None else now + max(0.0, end - now) / (problem.task.n_outputs - k)
        one = replace(problem, task=task, examples=examples)
        own, seen = replace(model, coef=model.coef[:, [k]], intercept=model.intercept[[k]]), scores[:, [k]]
        part = _bound_by_ascent(one, own, seen, float64_objective(one, own, seen), part_end)
        bound, n_passes, evals = bound + part[0], n_passes + part[1], evals + part[2]
    return bound, n_passes, evals


def _bound_by_cuts(
    problem: Problem, model: KernelExpansion, scores: Array, objective: float, end: float | None
) -> tuple[float, int, int]:
    """Return lower bound, number of cuts and kernel evaluations of a fit by exact cuts that begins at the model."""
    task, examples = problem.task, problem.examples
    if end is not None and time.perf_counter() >= end:
        return 0.0, 0, 0
    cut = exact_cut(task.augment(scores, model.plain, examples), examples, task.n_plain)
    problem = replace(problem, precision="float64", tol=np.inf, max_iter=None)
    plan = Plan(GAP, max_idle=20, line_search=True, overshoot=0.05, weights=resolve_weights("auto", problem))
    run = CuttingPlaneRun(problem, ExactOracle(), plan, CutsState((cut,), task, examples, exact=True))
    bound, n_cuts, seconds = run.lower_bound or 0.0, 1, None if end is None else max(0.0, end - time.perf_counter())
    with time_limit(seconds), tqdm(desc="certificate", unit="cut", disable=not problem.verbose) as bar:
        while not run.converged and bound < (1.0 - GAP) * objective:
            if is_time_over():
                break
            try:
                bound = run.step()["lower_bound"]
            except OutOfTimeError:
                break
            n_cuts += 1
            bar.update()
            bar.set_postfix({"bound": bound}, refresh=False)
    sure, _ = sure_bound(run, bound, anew=False)
    warn_of_rounding(run.kernel_rows, bound, sure, objective)
    return sure, n_cuts, run.kernel_rows.counter.n

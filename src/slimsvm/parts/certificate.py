"""Certificates: a model's objective, and a lower bound on the objective of every model, tell how far it is from the
exact SVM.

Any point of the dual is such a bound, whatever trained the model. Where every row has its own dual variables (two
classes, several, regression, one class) one is found by `parts.dual_ascent.block_ascent`; several classes by pairs
are two-class problems of their own, whose objectives and bounds add up. For sequences and losses over all rows it is a
nonnegative combination of exact cuts with Σ α ≤ C₁: the first cut is that of the model itself, the others come of
`parts.cuts.cutting_plane_loop`, until its own gap, or the model's, is below GAP.

Of losses with two derivatives residuals at any scores are a dual point. With v_i = −C ω_i ℓ'(f_i) and
c_i = C ω_i ℓ(f_i) + v_i f_i = −(C ω_i ℓ_i)*(−v_i), whatever the scores f are,

    D(v) = Σ c_i − ½ Σ_ij v_i k(x_i, x_j) v_j  ≤  the optimum,        D(t v) ≥ t Σ c_i − ½ t² …,  0 ≤ t ≤ 1,

since no loss is below 0. A free intercept asks for Σ v_i = 0: the heavier side is scaled down.

    start    v at the model's scores, and the best t
    passes   blocks of random rows: Newton's method on f = o + K v(f), where o are the scores that the other rows give

The soft argmax of a smoothed loss is a dual point in the same way.

Keerthi, Duan, Shevade, Poo, "A Fast Dual Algorithm for Kernel Logistic Regression", Machine Learning 2005 (the dual).

Kernel values and sums are float64.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from slimsvm.core.clock import OutOfTimeError, is_time_over, time_limit
from slimsvm.core.factors import solve_positive
from slimsvm.core.threads import one_blas_thread
from slimsvm.model import KernelExpansion
from slimsvm.parts.cuts import CutsState, ExactOracle, exact_cut
from slimsvm.parts.cuts.cutting_plane_loop import CuttingPlaneRun, Plan
from slimsvm.parts.cuts.score_books import resolve_weights
from slimsvm.parts.dual_ascent.block_ascent import BoxAscent, ClassAscent, DualAscent
from slimsvm.parts.dual_ascent.one_vs_one import problem_of_pair, rows_of_pair
from slimsvm.parts.problem import Problem
from slimsvm.parts.rounding import warn_of_rounding
from slimsvm.parts.run import float64_objective, float64_scores, sure_bound
from slimsvm.tasks import Examples

Array = np.ndarray

# Cuts are added until the gap is no more than this share of the objective.
GAP = 5e-4


class Residuals(NamedTuple):
    """A dual point V (n, m), and the sum of its constants."""

    V: Array
    constant: float

    def scaled(self, t: float) -> Residuals:
        """Return the point t V, whose constants are at least t times these."""
        return Residuals(t * self.V, t * self.constant)


def residuals(problem: Problem, scores: Array, tau: float = 1.0) -> Residuals:
    """Return the dual point at scores (n, m), at a temperature where the loss is smoothed."""
    found = problem.task.smooth(scores, tau, problem.examples, problem.n_jobs or 1)
    V, (first, second) = problem.C * found.residual, found.dual
    if problem.intercept == "free":
        sums = float(np.maximum(V, 0.0).sum()), -float(np.minimum(V, 0.0).sum())
        above, below = (min(sums) / s if s > 0 else 0.0 for s in sums)
        V = np.where(V > 0, above, below) * V
        first, second = above * first, below * second
    return Residuals(V, problem.C * (first + second))


class ResidualAscent(DualAscent):
    """The ascent for losses with two derivatives; with a free intercept it makes no passes."""

    def start(self, model: KernelExpansion, scores: Array, objective: float) -> None:
        """Start from the residuals at the model's scores."""
        self.objective = objective
        V, constant = residuals(self.problem, scores)
        self.parts = self._constants(scores)
        F = np.zeros_like(V)
        with self.bar(-(-len(V) // self.settings.stride), "certificate, first bound") as bar:
            for lo in range(0, len(V), self.settings.stride):
                if self.out_of_time:
                    return
                rows = np.arange(lo, min(len(V), lo + self.settings.stride))
                F += self.kernel_rows.scores(self.kernel_rows.points(rows), V[rows])
                bar.update()
        F += self.offset * V.sum(axis=0)
        t, value = self.best_value(constant, float(np.sum(V * F)))
        self.raise_bound(value, t * V)
        self.value, self.V, self.F, self.parts = value, t * V, t * F, t * self.parts

    def climb(self) -> None:
        """Make passes over the rows."""
        if self.problem.intercept != "free":
            super().climb()

    def _constants(self, scores: Array) -> Array:
        """Return c_i of every row."""
        augmented = self.problem.task.augment(scores, np.zeros(0), self.problem.examples)
        found: Array = self.problem.C * self.problem.examples.weights * augmented.delta
        return found

    def improve(self, rows: Array) -> None:
        """Solve for a block, and update F of all rows; keep the old point if rounding makes the new one no better.

        Also where kernel values of no inner product, or rounded large ones, have no factor.
        """
        kernel_rows, examples = self.kernel_rows, self.problem.examples.take(rows)
        K = kernel_rows.block(kernel_rows.points(rows), rows=rows) + self.offset
        try:
            V, constants = self._solved(K, self.F[rows] - K @ self.V[rows], self.V[rows], examples)
        except np.linalg.LinAlgError:
            return
        change = V - self.V[rows]
        F = self.F + kernel_rows.scores(kernel_rows.points(rows), change) + self.offset * change.sum(axis=0)
        parts, whole = self.parts.copy(), self.V.copy()
        parts[rows], whole[rows] = constants, V
        value = float(parts.sum()) - 0.5 * float(np.sum(whole * F))
        if value > self.value:
            self.value, self.V, self.F, self.parts = value, whole, F, parts
            self.raise_bound(value, whole)

    def _solved(self, K: Array, others: Array, V: Array, examples: Examples) -> tuple[Array, Array]:
        """Return residuals of a block of rows, and their constants; the other rows contribute the scores ``others``."""
        task, C, plain = self.problem.task, self.problem.C, np.zeros(0)

        def value(alpha: Array, f: Array) -> float:
            return 0.5 * float(np.sum(alpha * (f - others))) + C * task.along((f, plain), (f, plain), 0.0, examples)[0]

        alpha, f = V, others + K @ V
        now = value(alpha, f)
        for _ in range(BLOCK_STEPS):
            found = task.smooth(f, 1.0, examples)
            lack = C * found.residual - alpha
            # For several classes the diagonal of shares bounds their second derivative from above.
            curvature = found.curvature if found.share is None else found.share * examples.weights[:, None]
            step = np.column_stack([_newton(K, C * curvature[:, c], lack[:, c]) for c in range(lack.shape[1])])
            moved, share = K @ step, 1.0
            for _ in range(HALVINGS):
                tried = value(alpha + share * step, f + share * moved)
                if tried <= now:
                    break
                share *= 0.5
            alpha, f, gain, now = alpha + share * step, f + share * moved, now - tried, tried
            if not gain > SHARE * abs(now):
                break
        augmented = task.augment(f, plain, examples)
        return C * task.smooth(f, 1.0, examples).residual, C * examples.weights * augmented.delta


def _newton(K: Array, w: Array, lack: Array) -> Array:
    """Return (I + W K)⁻¹ lack."""
    root = np.sqrt(w)
    inner = root[:, None] * K * root
    inner[np.diag_indices_from(inner)] += 1.0
    found: Array = lack - root * solve_positive(inner, root * (K @ lack))
    return found


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
    """
    problem.check_range()
    begun = time.perf_counter()
    end = None if max_seconds is None else begun + max_seconds
    scores = float64_scores(problem, model)
    objective = float64_objective(problem, model, scores)
    with one_blas_thread():
        if problem.task.has_columns or problem.task.class_pairs():
            bound, n_passes, evals = _bound_by_parts(problem, model, scores, end)
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


def _bound_by_parts(
    problem: Problem, model: KernelExpansion, scores: Array, end: float | None
) -> tuple[float, int, int]:
    """Return the sums of what `_bound_by_ascent` returns over columns of scores, or pairs of classes, as problems.

    Each may take its share of the time, counted for pairs by the squares of their rows.
    """
    task = problem.task
    columns = task.columns(problem.examples) if task.has_columns else []
    rows = [] if columns else [rows_of_pair(problem, pair) for pair in task.class_pairs()]
    work = np.array([float(len(index)) ** 2 for index in rows]) if rows else np.ones(len(columns))
    bound, n_passes, evals = 0.0, 0, 0
    for k in range(len(work)):
        now = time.perf_counter()
        part_end = None if end is None else now + max(0.0, end - now) * float(work[k] / work[k:].sum())
        own, seen = replace(model, coef=model.coef[:, [k]], intercept=model.intercept[[k]]), scores[:, [k]]
        if columns:
            one = replace(problem, task=columns[k][0], examples=columns[k][1])
        else:
            one, own, seen = problem_of_pair(problem, k, rows[k]), _among(problem, own, rows[k]), seen[rows[k]]
        part = _bound_by_ascent(one, own, seen, float64_objective(one, own, seen), part_end)
        bound, n_passes, evals = bound + part[0], n_passes + part[1], evals + part[2]
    return bound, n_passes, evals


def _among(problem: Problem, model: KernelExpansion, rows: Array) -> KernelExpansion:
    """Return the model of a pair of classes without vectors of others, over the pair's rows."""
    used = model.coef[:, 0] != 0
    basis = model.basis[np.flatnonzero(used)]
    if not problem.kernel.has_features:
        basis = np.searchsorted(rows, basis)
    return replace(model, basis=basis, coef=model.coef[used])


def _bound_by_cuts(
    problem: Problem, model: KernelExpansion, scores: Array, objective: float, end: float | None
) -> tuple[float, int, int]:
    """Return lower bound, number of cuts and kernel evaluations of a fit by exact cuts that begins at the model."""
    from tqdm import tqdm

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


# The most Newton steps in a block and halvings of one, and the smallest gain of a step as a share of the block's value.
BLOCK_STEPS, HALVINGS, SHARE = 20, 30, 1e-6

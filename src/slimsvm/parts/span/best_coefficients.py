"""The best coefficients over a given basis, by the method that the task allows.

Newton's method where the loss can be smoothed, exact cuts elsewhere; for hinge losses also dual coordinate ascent, pair
by pair, which is quicker and bounds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.core.clock import OutOfTimeError, is_time_over, no_limit, time_left
from slimsvm.core.threads import run_tiles
from slimsvm.kernels import KernelRows
from slimsvm.model import KernelExpansion
from slimsvm.parts.cuts import Cut, ExactOracle, Point, Solution
from slimsvm.parts.cuts.cutting_plane_loop import CuttingPlaneRun, Plan
from slimsvm.parts.cuts.score_books import plain_products
from slimsvm.parts.problem import Problem, check_smoothable, has_smoothed_rows
from slimsvm.parts.run import model_over, warn_of_a_gap
from slimsvm.parts.span.smoothed_newton import ConvexFinish, fit_coefficients
from slimsvm.parts.span.whitened_span import Coefficients, Subspace, subspace

Array = np.ndarray

# -- The convex problem in the coefficients of a given basis by exact cuts, for every task whose loss is a sum ---------
#     min over β, b, v   ½ Σ_c β_cᵀ K_BB β_c + ½ b² + ½ ‖v‖² + C Σ_e ω_e ℓ_e(K_XB β + b, v),      v the plain parameters
#
# The loop of `parts.cuts.cutting_plane_loop` in whitened coordinates (`parts.span.whitened_span`), from the best point
# there is: the objective never rises above that of the start, and the QP's value bounds all models over the basis from
# below.

OVERSHOOT, MAX_IDLE = 0.1, 20


class SpannedScores:
    """The score book of a fixed basis: it keeps every cut by its coordinates."""

    full = False

    def __init__(self, space: Subspace, n_outputs: int):
        self.space = space
        self.z: list[Array] = []
        self.coordinates = np.zeros((space.rank + 1, n_outputs))
        self.scores = np.zeros((space.n_rows, n_outputs))

    def add(self, cut: Cut, live: list[Cut], products: Array | None = None, exact: bool = False) -> Array:
        """Add a cut; return its inner products (t + 1,) with the live cuts and with itself."""
        self.z.append(self.space.coordinates_of(cut.rows, cut.coef))
        inner = np.array([np.vdot(z, self.z[-1]) for z in self.z])
        found: Array = inner + plain_products(cut, live)
        return found

    def combine(self, alpha: Array) -> None:
        """Set ``coordinates`` and ``scores`` by Σ α_j g_j."""
        self.coordinates = sum((a * z for a, z in zip(alpha, self.z) if a), np.zeros_like(self.coordinates))
        self.scores = self.space.scores(self.coordinates)

    def keep(self, index: Array) -> None:
        """Forget all cuts but ``index``."""
        self.z = [self.z[j] for j in index]


class FinishByCuts(CuttingPlaneRun):
    """The run of exact cuts over a fixed basis.

    Parameters
    ----------
    kernel_rows : KernelRows
        The problem's rows seen through its kernel.
    basis : raw vectors of shape (k, d)
    tol_relative : float
        Gap to the bound, as a share of the objective.
    """

    def __init__(self, problem: Problem, kernel_rows: KernelRows, basis: Any, tol_relative: float, start: Any = None):
        self.space = subspace(problem, kernel_rows, basis)
        plan = Plan(tol_relative, MAX_IDLE, line_search=True, overshoot=OVERSHOOT)
        super().__init__(replace(problem, precision=kernel_rows.precision), ExactOracle(), plan, None)
        self.kernel_rows, self.tol = kernel_rows, np.inf
        self.u = np.zeros((self.space.rank + 1, self.task.n_outputs))
        if start is not None:
            coef, intercept, plain = start
            self.u = self.space.coordinates(coef, intercept)
            norm_squared = float(np.sum(self.u**2) + plain @ plain)
            point = Point(self.space.times(self.u), np.asarray(plain, np.float64))
            self.centre.start_at(Solution((), np.zeros(0), norm_squared, None, point))
            self.point = self.target = point

    def make_book(self, intercept: bool) -> SpannedScores:
        """Make the book of the cuts' coordinates."""
        return SpannedScores(self.space, self.task.n_outputs)

    def resolve(self) -> None:
        """Solve the QP and move; the best point's coordinates follow its step."""
        super().resolve()
        k = self.centre.step
        self.u = (1 - k) * self.u + k * self.book.coordinates

    def found(self, n_steps: int) -> Coefficients:
        """Return the best point."""
        now = self.centre.now
        now = self.centre.start_at(replace(now, point=replace(now.point, scores=self.space.times(self.u))))
        coef, intercept = self.space.coefficients(self.u)
        bound = min(self.lower_bound or 0.0, now.objective)
        return Coefficients(coef, intercept, now.objective, bound, n_steps, self.converged, now.point.plain)


def finish_by_cuts(
    problem: Problem,
    kernel_rows: KernelRows,
    basis: Any,
    start: Any,
    tol_relative: float,
    max_steps: int,
) -> Coefficients:
    """Take steps until the tolerance, ``max_steps`` or the time limit; see `FinishByCuts`."""
    run = FinishByCuts(problem, kernel_rows, basis, tol_relative, start)
    n_steps = 0
    try:
        while n_steps < max_steps and not run.converged and not is_time_over():
            run.step()
            n_steps += 1
    except OutOfTimeError:
        pass
    with no_limit():
        return run.found(n_steps)


# The gaps to reach, and the most cuts of a finish.
NEWTON_TOLERANCE, CUTS_TOLERANCE, MAX_CUTS = 1e-3, 1e-2, 2000


def check_finish(problem: Problem) -> None:
    """Refuse a problem that `best_coefficients` cannot solve."""
    if has_smoothed_rows(problem):
        check_smoothable(problem)
    elif problem.intercept not in ("regularized", "none"):
        raise ValueError(
            f"{type(problem.task).__name__} is finished by cuts, which have no place for an unregularised intercept: "
            f"intercept must be 'regularized' or 'none', found {problem.intercept!r}"
        )


def best_coefficients(
    problem: Problem,
    kernel_rows: KernelRows,
    model: KernelExpansion,
    tol_relative: Any,
    rng: np.random.Generator,
    tau: float | None = None,
    saved: dict[str, Any] | None = None,
    after_step: Callable[[ConvexFinish], None] | None = None,
) -> Coefficients:
    """Solve the convex problem in coefficients, intercept and plain parameters over a model's basis.

    Newton's method on smoothed losses for one-row tasks that have them; exact cuts for all others.

    Parameters
    ----------
    problem : Problem
        The problem, with the model's kernel.
    kernel_rows : KernelRows
        The problem's rows seen through that kernel.
    model : KernelExpansion
        The start.
    tol_relative : float or "auto"
        Gap to the bound within the basis, as a share of the objective: "auto" is `NEWTON_TOLERANCE` or
        `CUTS_TOLERANCE`. Small problems are solved to rounding.
    tau : float or None
        The first τ of smoothed losses, if a similar problem has shown it.
    saved, after_step
        The same as for `fit_coefficients`, with Newton's method.

    Warns
    -----
    ConvergenceWarning
        The gap was not reached.
    """
    is_smoothed = has_smoothed_rows(problem)
    if tol_relative == "auto":
        tol_relative = NEWTON_TOLERANCE if is_smoothed else CUTS_TOLERANCE
    tol_relative = problem.tolerances(tol_relative, model.n_basis)[1]
    if is_smoothed:
        start: Any = model.coef, model.intercept
        newton: Any = {"rng": rng, "tau": tau, "saved": saved, "after_step": after_step}
        found = fit_coefficients(problem, kernel_rows, model.basis, start, tol_relative, **newton)
        if found.objective - found.bound_in_basis > tol_relative * abs(found.objective):
            other = fit_coefficients(problem, kernel_rows, model.basis, None, tol_relative, rng=rng)
            bound = max(found.bound_in_basis, other.bound_in_basis)
            found = replace(min(found, other, key=lambda fit: fit.objective), bound_in_basis=bound)
        advice = None
    else:
        start = model.coef, model.intercept, model.plain
        found = finish_by_cuts(problem, kernel_rows, model.basis, start, tol_relative, MAX_CUTS)
        advice = "rounding allows no less" if time_left() else "a larger max_seconds may bring it down"
    whose, bound = "the coefficients' problem", found.bound_in_basis
    warn_of_a_gap(whose, found.objective, bound, tol_relative, kernel_rows.dtype, 7, advice)
    return found


# -- Coefficients over given vectors for hinge losses: two classes, or all pairs of several ----------------------------
#     max over 0 ≤ α_i ≤ C_i of each pair   Σ_i α_i − ½‖u‖²,   u = Σ_i α_i y_i z_i
#
# with z_i the whitened coordinates of row i (`parts.span.whitened_span`) and a constant, so that ‖u‖ is the norm of
# the function and of the intercept. Rows are solved for one after another (dual coordinate ascent), until the
# derivatives of a pair are within a tolerance or its sweeps are spent: nothing bounds what is left.
#
# Hsieh, Chang, Lin, Keerthi, Sundararajan, "A Dual Coordinate Descent Method for Large-scale Linear SVM", ICML 2008.
#
# Parts: `core/ascent/linear.cc`, `parts.span.whitened_span`.

# Columns that processors take at once.
AT_ONCE = 8


@dataclass(frozen=True)
class AscentSettings:
    """Settings of when a pair is solved; docs/experiments/automatic_choice.md: 50 sweeps do not always suffice."""

    # A pair is solved when its derivatives are this small; the margin is 1 (learned_bases.md, "Several classes class by
    # class": 0.2 errs more).
    tol: float = 0.1
    # The most sweeps over the rows of each pair. Late sweeps are short: they leave out rows at a bound, which are most.
    sweeps: int = 1000
    # The most numbers that one compiled call goes through: Ctrl-C is checked between calls.
    call_work: int = 1 << 27


@dataclass(frozen=True)
class PairsInSpan:
    """The model of all pairs, with its counters."""

    model: KernelExpansion  # without the vectors that lie in the span of the others
    n_kernel_evals: int
    converged: bool  # whether the derivatives of every pair are within the tolerance


def pair_coefficients(problem: Problem, basis: Any) -> PairsInSpan:
    """Return the model of two classes, or of all pairs of several, over given vectors.

    Parameters
    ----------
    problem : Problem
        Of hinge losses: its task has `class_pairs`, or the labels -1 and +1. A free intercept is taken to be a
        regularised one.
    basis : raw vectors of shape (k, d)
    """
    kernel_rows, examples, pairs = problem.bind(), problem.examples, problem.task.class_pairs() or [(1, -1)]
    space = subspace(problem, kernel_rows, basis)
    rows = _Rows(space, problem.memory_limit // 2)
    seeds, own = problem.generator().integers(1, 2**62, len(pairs)), problem.settings_of(AscentSettings)
    members = {label: np.flatnonzero(examples.labels == label) for label in np.unique(pairs).tolist()}
    u, converged = np.zeros((space.rank + 1, len(pairs))), np.zeros(len(pairs), dtype=bool)
    sizes = [sum(len(members[label]) for label in pair) for pair in pairs]
    together = _together([size * rows.width for size in sizes], own)

    def solve(lo: int, hi: int) -> None:
        for some in together[lo:hi]:
            index = np.concatenate([np.sort(np.concatenate([members[a], members[b]])) for a, b in pairs[some]])
            first = np.repeat([pair[0] for pair in pairs[some]], sizes[some])
            sign, C_of_row = np.where(examples.labels[index] == first, 1.0, -1.0), problem.C * examples.weights[index]
            starts = np.cumsum([0, *sizes[some]])
            w, violation = _ascend(*rows.of(index), starts, sign, C_of_row, seeds[some], own)
            u[:, some], converged[some] = w[:, : space.rank + 1].T, violation <= own.tol

    run_tiles(solve, len(together), kernel_rows.n_jobs)
    coef, intercept = space.coefficients(u)
    used = coef.any(axis=1)
    model = model_over(kernel_rows, basis[used], coef[used], intercept)
    return PairsInSpan(model, kernel_rows.counter.n, bool(converged.all()))


class _Rows:
    """Whitened coordinates of rows and their squared lengths; those of all rows are stored if memory allows.

    Columns of 0 fill the last numbers that a processor takes at once: ``width`` is that of all.
    """

    def __init__(self, space: Any, memory_limit: int):
        self.space, self.whole = space, None
        self.width = -(-(space.rank + 1) // AT_ONCE) * AT_ONCE
        if space.n_rows * self.width * space.kernel_rows.dtype.itemsize <= memory_limit:
            Z = self._filled(np.arange(space.n_rows))
            self.whole = Z, _squares(Z)

    def _filled(self, index: Array) -> Array:
        Z = np.zeros((len(index), self.width), self.space.kernel_rows.dtype)
        Z[:, : self.space.rank + 1] = self.space.whitened(index)
        return Z

    def of(self, index: Array) -> tuple[Array, Array, Array]:
        """Return coordinates that contain the rows at ``index``, squared lengths, and where these rows are in them."""
        if self.whole is not None:
            return self.whole[0], self.whole[1][index], index
        Z = self._filled(index)
        return Z, _squares(Z), np.arange(len(index))


def _squares(Z: Array) -> Array:
    found: Array = np.maximum(np.einsum("ij,ij->i", Z, Z, dtype=np.float64), 1e-12)
    return found


def _together(work: list[int], own: AscentSettings) -> list[slice]:
    """Return the pairs that one compiled call solves: as many as it may go through in all their sweeps."""
    found, lo, total = list[slice](), 0, 0
    for k, of_sweep in enumerate(work):
        if k > lo and (total + of_sweep) * own.sweeps > own.call_work:
            found.append(slice(lo, k))
            lo, total = k, 0
        total += of_sweep
    return [*found, slice(lo, len(work))]


def _ascend(
    Z: Array,
    square: Array,
    rows: Array,
    starts: Array,
    sign: Array,
    C_of_row: Array,
    seeds: Array,
    own: AscentSettings,
) -> tuple[Array, Array]:
    """Return the weights u of some pairs, a row each, and their violations (within ``tol`` where sweeps converged)."""
    n, d = len(rows), Z.shape[1]
    w, violation, at_once = np.zeros((len(seeds), d)), np.zeros(len(seeds)), own.call_work // (n * d)
    at_once = int(max(1, min(own.sweeps, at_once)))
    call = core.ascend_linear.prepare(
        Z=Z, starts=starts, rows=rows, sign=sign, C_of_row=C_of_row, square=square, alpha=np.zeros(n), w=w,
        active=np.zeros(n, dtype=np.int64), tol=own.tol, max_sweeps=at_once, random=seeds.copy(), violation=violation,
    )  # fmt: skip
    for _ in range(-(-own.sweeps // at_once)):
        call()
        if violation.max() <= own.tol:
            break
    return w, violation

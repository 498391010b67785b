r"""The convex problem in the coefficients of a given basis, solved to a certified gap.

    min over β, b   ½ βᵀ K_BB β + ½ b² + C Σ_e ω_e ℓ_e(K_XB β + b)

Method: Newton's, on the smoothed losses of temperature τ (a soft maximum in place of the maximum), with τ lowered from
stage to stage. The soft argmax a is a feasible dual point of the problem itself, so that with u the whitened
coordinates, g = C Σ_i residual_i z_i and P, D the true primal and dual values

    P − D = C Σ_e ω_e τ-gap_e(a)  +  ½ ‖u − g‖²,

the first term falls with τ, the second with Newton's steps: a stage ends when a step would gain less than a share of
the first term, the whole when P − D is within the tolerance. D bounds the problem within the basis, not the kernel's.
Large sets begin with a sample of the rows, a large C with a lower one: at once at 10¹⁰ a step gets no further than to
the next row's margin. A dual point of a lower C is one of a higher C, so D stays.

Chapelle, "Training a Support Vector Machine in the Primal", Neural Computation 2007; Keerthi, Chapelle, DeCoste,
"Building Support Vector Machines with Reduced Classifier Complexity", JMLR 2006; Nesterov, "Smooth Minimization of
Non-smooth Functions", 2005.

Parts: `parts.span.whitened_span` (coordinates), `parts.span.row_passes` (sums over the rows),
`parts.span.newton_direction` (the direction), the task's `smooth`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import KernelRows
from slimsvm.parts.cuts.line_search import Bracket
from slimsvm.parts.problem import Problem, check_smoothable
from slimsvm.parts.run import Best
from slimsvm.parts.span.newton_direction import CHEAP, EXACT, Draw, direction, draw_ahead, draw_rows
from slimsvm.parts.span.row_passes import Parts, RowPasses, Slope, SmoothedRows
from slimsvm.parts.span.whitened_span import Coefficients, Subspace, subspace
from slimsvm.tasks import Examples

Array = np.ndarray

MAX_TRIALS = 20


@dataclass(frozen=True)
class NewtonSettings:
    """Settings of how Newton's method goes from τ to τ, from a sample to all rows and from C to C.

    docs/experiments/newton_in_a_fixed_basis.md settles the second values of the pairs (gaps of 1e-10), effort and the
    C; the others were chosen, not measured.
    """

    # A stage ends when the next Newton step is expected to gain less than this share of the smoothing's gap, a line
    # search when the slope has fallen to this share. The second values are for gaps below ``thorough``.
    stage_shares: tuple[float, float] = (0.1, 1e-3)
    slope_shares: tuple[float, float] = (0.3, 0.1)
    thorough: float = 1e-6
    # τ falls at most by this factor from stage to stage; the smoothing's gap aims at this share of the tolerance.
    tau_factor: float = 0.3
    gap_share: float = 0.4
    # The first τ as a share of the mean loss: if a fit starts from 0, and if it starts from given coefficients.
    first_tau: float = 1.0
    next_tau: float = 0.3
    # A direction uses ``more`` times as many rows, and rows down to a quarter of the curvature, after a step that left
    # more than the share ``slow`` of its possible gain.
    slow: float = 0.2
    more: float = 2.0
    most_effort: float = 1e6
    # The first directions use at most ``first_effort`` times the usual number of rows, one more for each
    # ``effort_rows`` rows: passes over very many rows cost more than good directions do.
    effort_rows: int = 400_000
    first_effort: float = 25.0
    # A C above the first one, in units of the targets, is reached from there, by steps of this factor.
    first_C: float = 1e3
    C_factor: float = 10.0
    # The first steps use one row in ``sample_step``, if that leaves at least ``fewest_sampled`` rows. They end at a gap
    # of ``first_tolerance`` times the objective, as do steps at a C below the problem's.
    sample_step: int = 16
    fewest_sampled: int = 2000
    first_tolerance: float = 0.05
    # The method ends after ``stalled_steps`` steps in a row that neither raised the bound nor lowered τ, the objective
    # or the smoothed objective by the share ``rounding`` of it, or after ``most_steps`` steps at one τ.
    stalled_steps: int = 5
    rounding: float = 1e-13
    most_steps: int = 200
    # Up to this many rows the smoothed losses of all are stored between passes; for more rows computing them again is
    # fast.
    kept_rows: int = 1 << 21


@dataclass(frozen=True)
class Point:
    """A point: coordinates u (r + 1, m) with the intercept last, and the scores of the rows in parts."""

    u: Array
    scores: Parts


@dataclass(frozen=True)
class Values:
    """The values at a point for one τ; ``draw`` has the rows of the next direction, if a pass copied them."""

    smoothed: SmoothedRows
    gradient: Array
    objective: float
    smoothed_objective: float
    bound: float
    smoothing_gap: float
    largest: float
    draw: Draw | None = None


class ConvexFinish:
    """Newton's method on the smoothed problem over a subspace.

    Parameters
    ----------
    tol, tol_relative : float
        Converged when objective − bound is at most tol·C₁ and at most tol_relative·objective.
    tau : float or None
        The first τ, where one is known from a like problem.
    saved : dict or None
        The checkpoint of a run that was cut off, as `saved_state` returned it.

    Attributes
    ----------
    best : Best
        The best point; during steps on the sample, the best one for the sample.
    bound : float
        The highest so far, likewise.
    """

    def __init__(
        self,
        problem: Problem,
        space: Subspace,
        rng: np.random.Generator,
        tol: float,
        tol_relative: float,
        start: tuple[Array, Array] | None = None,
        tau: float | None = None,
        saved: dict[str, Any] | None = None,
    ):
        check_smoothable(problem)
        self.settings = own = problem.settings_of(NewtonSettings)
        score, self.slope_unit = problem.units
        self.values_of_C, self.kept_tau = values_up_to(problem.C, own, score / self.slope_unit), tau
        self.idle: int
        self.values: Values
        self.problem, self.whole, self.rng = replace(problem, C=self.values_of_C.pop(0)), space, rng
        self.tol, self.tol_relative = tol * problem.C1, tol_relative
        is_thorough = tol_relative < own.thorough
        self.accuracy = EXACT if is_thorough else CHEAP
        self.stage_share, self.slope_share = own.stage_shares[is_thorough], own.slope_shares[is_thorough]
        self.free = problem.intercept == "free"
        self.penalty = np.ones((space.rank + 1, 1))
        self.penalty[-1] = 0.0 if self.free else 1.0
        self._see(space, problem.examples)
        if saved is not None:
            self._go_back(saved)
            return
        size = problem.examples.n_rows // own.sample_step
        if start is None and size >= own.fewest_sampled:
            index = np.sort(rng.choice(problem.examples.n_rows, size, replace=False))
            self._see(space.restricted(index), sampled(problem.examples, index))
        u = np.zeros((space.rank + 1, problem.task.n_outputs)) if start is None else space.coordinates(*start)
        self._enter(u, own.first_tau if start is None else own.next_tau)

    def _see(self, space: Subspace, examples: Examples) -> None:
        """Use these rows from now on."""
        self.space, self.examples = space, examples
        self.passes = self._passes(space, examples)

    def _passes(self, space: Subspace, examples: Examples) -> RowPasses:
        return RowPasses(space, self.problem.task, examples, self.settings.kept_rows)

    def training_error(self) -> float:
        """Return the task's error of the best point's predictions for the present rows."""
        return self.passes.error(self.best.found.scores)

    def loss_at(self, u: Array) -> float:
        """Return Σ ω_e ℓ_e of all rows at a point."""
        passes = self._passes(self.whole, self.problem.examples)
        return passes.smooth(passes.times(u), self.tau).loss

    @property
    def on_sample(self) -> bool:
        """Return whether steps are still taken on a sample of the rows."""
        return self.space is not self.whole

    @property
    def on_the_way(self) -> bool:
        """Return whether steps are still taken on a sample of the rows or at a lower C."""
        return self.on_sample or len(self.values_of_C) > 0

    def step(self) -> dict[str, Any]:
        """Take one Newton step; it knows objective and bound only at the problem's C on all rows."""
        if not self.converged:
            self._move()
        if self.converged and self.on_the_way:
            self.go_on()
        known = not self.on_the_way
        return {
            "objective": self.best.objective if known else None,
            "bound_in_basis": self.bound if known else None,
            "gap": self.best.objective - self.bound if known else None,
            "tau": self.tau,
            "sampled_rows": self.examples.n_rows if self.on_sample else None,
        }

    def go_on(self) -> None:
        """Go on from the best point to all rows, or to the next C."""
        if self.on_sample:
            self._see(self.whole, self.problem.examples)
            self._enter(self.best.found.u, self.settings.next_tau)
        else:
            self.problem, bound = replace(self.problem, C=self.values_of_C.pop(0)), self.bound
            self.kept_tau = self.tau
            self._enter(self.best.found.u, self.settings.next_tau)
            self._judge(max(bound, self.bound))

    def arrive(self) -> None:
        """Go on from the best point to all rows and the problem's C at once."""
        del self.values_of_C[:-1]
        while self.on_the_way:
            self.go_on()

    def saved_state(self) -> dict[str, Any] | None:
        """Return a checkpoint as arrays, to go on from to the same bits; None during steps on a sample."""
        if self.on_sample:
            return None
        best, values, smoothed = self.best.found, self.values, self.values.smoothed
        kept_tau = np.nan if self.kept_tau is None else self.kept_tau
        others = {} if best is self.point else {"best_scores": self.passes.joined(best.scores)}
        return {
            "numbers": np.array(
                [self.problem.C, kept_tau, self.tau, self.effort, self.decrement, self.bound, self.best.objective]
            ),
            "counts": np.array([len(self.values_of_C), self.idle, self.n_steps, self.converged]),
            "u": self.point.u,
            "scores": self.passes.joined(self.point.scores),
            "best_u": best.u,
            "gradient": values.gradient,
            "values": np.array(
                [values.objective, values.smoothed_objective, values.bound, values.smoothing_gap, values.largest]
            ),
            "sums": np.array([smoothed.loss, smoothed.value, *smoothed.dual, smoothed.product, smoothed.tau]),
            **others,
        }

    def _go_back(self, saved: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        C, kept_tau, self.tau, self.effort, self.decrement, self.bound, objective = saved["numbers"].tolist()
        n_values, self.idle, self.n_steps, converged = saved["counts"].tolist()
        self.problem = replace(self.problem, C=C)
        self.values_of_C = self.values_of_C[len(self.values_of_C) - n_values :]
        self.kept_tau, self.converged = None if np.isnan(kept_tau) else kept_tau, bool(converged)
        self.point = best = Point(saved["u"], self.passes.parted(saved["scores"]))
        if "best_scores" in saved:
            best = Point(saved["best_u"], self.passes.parted(saved["best_scores"]))
        self.best = Best(objective, best)
        loss, value, first, second, product, tau = saved["sums"].tolist()
        kept = [None] * len(self.passes.starts)
        smoothed = SmoothedRows(loss, value, (first, second), product, self.point.scores, tau, kept)
        self.values = Values(smoothed, saved["gradient"], *saved["values"].tolist())

    def _judge(self, bound: float) -> None:
        """Raise the bound, and check whether the present rows are solved."""
        self.bound = bound
        self.converged = self.best.objective - bound <= self.tolerance() or self.idle >= self.settings.stalled_steps

    def _enter(self, u: Array, share: float) -> None:
        """Start at u on the present rows, with τ a share of the mean loss there, or the τ of the C before."""
        own, self.point = self.settings, Point(u, self.passes.times(u))
        self.best = Best(np.inf, self.point)
        self.bound, self.converged, self.idle, self.n_steps = -np.inf, False, 0, 0
        self.effort = min(max(1.0, self.examples.n_rows / own.effort_rows), own.first_effort)
        self.decrement = np.inf
        mean_loss = self.passes.smooth(self.point.scores, 1.0).loss / self.examples.total_weight
        self.tau = self.kept_tau or (share * mean_loss if mean_loss > 0 else 1.0)
        self._evaluate()
        # From a good start, begin with the τ that gives the best bound; a bound that rises by rounding only gives none.
        tau, rises = self.tau, share < own.first_tau
        while rises and self.values.smoothing_gap > 0.5 * self.tolerance():
            bound, tau = self.bound, self.tau
            self.tau *= own.tau_factor
            self._evaluate()
            rises = self.bound - bound > own.rounding * abs(self.bound)
        if self.tau != tau and not rises:
            self.tau = tau
            self._evaluate()
        self.idle = 0

    def _move(self) -> None:
        """Take a step in Newton's direction with a line search on the smoothed objective, and choose the next τ."""
        now, own = self.values, self.settings
        du = self._direction()
        along = Point(du, self.passes.times(du))
        decrement = -float(np.sum(now.gradient * du))
        if decrement > own.slow * self.decrement:
            self.effort = min(own.more * self.effort, own.most_effort)
        self.decrement = decrement
        self.point, smoothed = self._search(along, decrement)
        target, tau = max(0.0, self.tolerance()), self.tau  # rounding may make the smoothed loss negative
        if now.smoothing_gap > 0.5 * target and 0.5 * decrement <= self.stage_share * now.smoothing_gap:
            self.tau *= max(own.tau_factor, np.sqrt(own.gap_share * target / now.smoothing_gap))
            self.decrement = np.inf
        del along  # its scores take memory
        self._evaluate(smoothed if self.tau == tau else None)
        was, least = now.smoothed_objective, own.rounding * abs(self.values.objective)
        fell = was - self.values.smoothed_objective if self.tau == tau else self.values.smoothing_gap
        self.n_steps = self.n_steps + 1 if self.tau == tau else 0
        self.idle = 0 if fell > least else self.idle
        self.converged = self.converged or self.n_steps >= own.most_steps

    def _direction(self) -> Array:
        """Return Newton's direction; its rows are those that the last pass copied, if it did."""
        now, how = self.values, (self.accuracy, self.effort)
        if now.draw is None:
            draw = draw_rows(self.passes, now.smoothed, now.largest, self.rng, *how)
        else:
            draw, self.rng.bit_generator.state = now.draw, now.draw.random
            self.values = replace(now, draw=None)
        return direction(self.passes, draw, now.gradient, self.problem.C, self.penalty, *how)

    def tolerance(self) -> float:
        """Return the gap at which the present rows are solved."""
        if self.on_the_way:
            return self.settings.first_tolerance * abs(self.best.objective)
        return min(self.tol, self.tol_relative * abs(self.best.objective) if np.isfinite(self.tol_relative) else np.inf)

    def _search(self, along: Point, decrement: float) -> tuple[Point, SmoothedRows | None]:
        """Return a point along a direction where the smoothed objective's slope is small, and the loss there."""
        there, smoothed = 0.0, self.values.smoothed

        def slope(step: float) -> float:
            nonlocal there, smoothed
            smoothed = self.values.smoothed  # frees what the step before stored
            there, smoothed = step, self.passes.smooth_along(self.point.scores, step, along.scores, self.tau)
            u = self.point.u + step * along.u
            return float(np.sum(self.penalty * u * along.u) - self.problem.C * smoothed.product)

        small, bracket = self.slope_share * decrement, Bracket(0.0, -decrement, 1.0, slope(1.0))
        for _ in range(MAX_TRIALS):
            if bracket.value_high >= -small:
                break
            bracket.climb(2 * bracket.high, slope(2 * bracket.high))
        if bracket.value_high <= small:
            return self._at(there, along), smoothed
        for _ in range(MAX_TRIALS):
            step = bracket.secant()
            value = slope(step)
            if abs(value) <= small:
                return self._at(there, along), smoothed
            bracket.narrow(step, value)
        return self._at(bracket.low, along), None

    def _at(self, step: float, along: Point) -> Point:
        """Return the point plus ``step`` times ``along``."""
        scores = self.passes.at(self.point.scores, step, along.scores)
        return Point(self.point.u + step * along.u, scores)

    def _evaluate(self, smoothed: SmoothedRows | None = None) -> None:
        """Compute the values at the present point and τ, from the loss if it is given; update the best point."""
        if self.free:
            self._balance()
            smoothed = None
        C, u = self.problem.C, self.point.u
        draw = None
        if self.space.takes_on_the_way:
            smoothed = smoothed or self.passes.smooth(self.point.scores, self.tau)
            smoothed = replace(smoothed, scores=self.point.scores)
            draw = draw_ahead(self.passes, smoothed, self.rng, self.accuracy, self.effort)
        near = None if draw is None else draw.near
        smoothed, slope = self.passes.slope(self.point.scores, self.tau, self.free, smoothed, near)
        draw = None if draw is None else draw._replace(raw=slope.taken)
        smoothing_gap = C * (smoothed.loss - sum(smoothed.dual) + slope.product)
        z, dual = balanced(slope, smoothed.dual) if self.free else (slope.coordinates, sum(smoothed.dual))
        g = C * z
        norm = 0.5 * float(np.sum(self.penalty * u * u))
        objective = norm + C * smoothed.loss
        linear, square = C * dual, float(np.sum(self.penalty * g * g))
        share = min(1.0, max(0.0, linear / square)) if square > 0 else 1.0
        bound = share * linear - 0.5 * share**2 * square
        improved = max(self.best.objective - objective, bound - self.bound) > self.settings.rounding * abs(objective)
        self.idle = 0 if improved else self.idle + 1
        self.best = self.best.or_lower(objective, self.point)
        self._judge(max(self.bound, bound))
        gradient, smoothed_objective = self.penalty * u - g, norm + C * smoothed.value
        found = objective, smoothed_objective, bound, smoothing_gap, slope.largest
        self.values = Values(smoothed, gradient, *found, draw)

    def _balance(self) -> None:
        """Move a free intercept to where the residuals cancel, so that they are a dual point."""

        def lack(shift: float) -> float:
            return -self.passes.total(self.point.scores, self.tau, shift)

        width, here = self.tau, lack(0.0)
        bracket = Bracket(0.0, here, 0.0, here)
        while bracket.value_high < 0:
            bracket.climb(bracket.high + width, lack(bracket.high + width))
            width *= 2
        while bracket.value_low > 0:
            bracket.descend(bracket.low - width, lack(bracket.low - width))
            width *= 2
        shift = bracket.low
        for _ in range(MAX_TRIALS):
            narrowest = 1e-15 * abs(self.point.u[-1, 0])
            if bracket.value_high <= bracket.value_low or bracket.high - bracket.low <= narrowest:
                break
            shift = bracket.secant()
            value = lack(shift)
            if abs(value) <= 1e-12 * self.slope_unit * self.examples.total_weight:
                break
            bracket.narrow(shift, value)
        u = self.point.u.copy()
        u[-1] += shift
        self.point = Point(u, self.passes.shifted(self.point.scores, shift))


def values_up_to(C: float, settings: NewtonSettings, unit: float = 1.0) -> list[float]:
    """Return the values of C, in a unit, to solve for one after the other; the last one is C."""
    values = [settings.first_C * unit]
    while values[-1] < C:
        values.append(settings.C_factor * values[-1])
    return [*values[:-1], C]


def balanced(slope: Slope, dual: tuple[float, float]) -> tuple[Array, float]:
    """Return the coordinates of residuals whose heavier sign is scaled down until both cancel, and their constant."""
    sums = float(slope.totals[0]), -float(slope.totals[1])
    lighter = min(sums)
    share = tuple(lighter / s if s > 0 else 0.0 for s in sums)
    z = slope.coordinates
    return share[0] * z[:, :1] + share[1] * z[:, 1:], share[0] * dual[0] + share[1] * dual[1]


def sampled(examples: Examples, index: Array) -> Examples:
    """Return some of the examples, weighted so that they stand for all."""
    part = examples.take(index)
    return replace(part, weights=part.weights * (examples.total_weight / part.total_weight))


def fit_coefficients(
    problem: Problem,
    kernel_rows: KernelRows,
    basis: Any,
    start: tuple[Array, Array] | None = None,
    tol_relative: float = 1e-3,
    max_steps: int = 200,
    rng: np.random.Generator | None = None,
    tau: float | None = None,
    saved: dict[str, Any] | None = None,
    after_step: Callable[[ConvexFinish], None] | None = None,
) -> Coefficients:
    """Solve the convex problem in the coefficients of a given basis: the last act of every solver with a small basis.

    Parameters
    ----------
    kernel_rows : KernelRows
        The problem's rows seen through its kernel.
    basis : raw vectors of shape (k, d)
        (k, 1) positions for a precomputed kernel.
    start : (coef (k, m), intercept (m,)) or None
        The start; None begins at 0, on a sample of the rows if these are many.
    tol_relative : float, default=1e-3
        Gap to the bound, as a share of the objective.
    rng : numpy.random.Generator or None
        Draws the rows of samples; None: one made of the problem's random_state.
    tau, saved
        The same as for `ConvexFinish`.
    after_step : callable or None
        Told of every step.

    Raises
    ------
    ValueError
        The task has no smoothed loss, or a free intercept is asked for with several outputs.
    """
    rng = problem.generator() if rng is None else rng
    with one_blas_thread():
        space = subspace(problem, kernel_rows, basis)
        finish = ConvexFinish(problem, space, rng, np.inf, tol_relative, start, tau, saved)
        n_steps = 0
        while n_steps < max_steps and (finish.on_the_way or not finish.converged):
            finish.step()
            n_steps += 1
            if after_step is not None:
                after_step(finish)
        if finish.on_the_way:
            finish.arrive()
        coef, intercept = space.coefficients(finish.best.found.u)
    found = finish.best.objective, finish.bound
    return Coefficients(coef, intercept, *found, n_steps, finish.converged, tau=finish.tau)

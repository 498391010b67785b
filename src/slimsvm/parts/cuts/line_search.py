"""A stabilised step: the best point on the line to the QP's solution (OCAS).

The QP's solution w_t overshoots while the cuts are few. Franc and Sonnenburg (Optimized Cutting Plane Algorithm for
Support Vector Machines, ICML 2008) keep the best point so far w_b, move it to the minimum of the true objective on the
line from w_b to w_t, and ask for the next cut a little beyond it, at (1 − μ) w_b + μ w_t. Both points are known by
their scores, so that the line search costs no kernel evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slimsvm import core
from slimsvm.parts.cuts.oracles import Point, Solution
from slimsvm.parts.cuts.working_set import Cut, WorkingSet
from slimsvm.tasks import Examples, Task

Array = np.ndarray


# -- The root search that line searches share: the Illinois method -----------------------------------------------------
# Dowell and Jarratt, "A Modified Regula Falsi Method for Computing the Root of an Equation", BIT 1971: a secant of the
# values at both ends; where the same end stays twice, its value counts half.


@dataclass
class Bracket:
    """An interval in which an increasing function changes its sign, with its values at both ends."""

    low: float
    value_low: float
    high: float
    value_high: float
    side: int = 0  # Which end the last value replaced: -1 the low one, 1 the high one.

    def secant(self) -> float:
        """Return where the secant is 0, or the middle where both values are too near to 0 to tell."""
        rise = self.value_high - self.value_low
        if not rise > 0.0:
            return self.middle()
        return (self.low * self.value_high - self.high * self.value_low) / rise

    def middle(self) -> float:
        """Return the middle, and forget which side moved last."""
        self.side = 0
        return 0.5 * (self.low + self.high)

    def narrow(self, at: float, value: float) -> None:
        """Put a value inside in the place of the end whose sign it has."""
        if value < 0:
            self.low, self.value_low = at, value
            self.value_high, self.side = (0.5 * self.value_high if self.side < 0 else self.value_high), -1
        else:
            self.high, self.value_high = at, value
            self.value_low, self.side = (0.5 * self.value_low if self.side > 0 else self.value_low), 1

    def climb(self, high: float, value: float) -> None:
        """Go on to a higher interval, from the present end."""
        self.low, self.value_low, self.high, self.value_high = self.high, self.value_high, high, value

    def descend(self, low: float, value: float) -> None:
        """Go on to a lower interval, from the present beginning."""
        self.low, self.value_low, self.high, self.value_high = low, value, self.low, self.value_low


# The longest step, and the most evaluations; a search ends at these shares of the slope and of the interval. Chosen,
# not measured.
MAX_STEP = 64.0
MAX_TRIALS = 30
SLOPE_TOLERANCE = 0.02
WIDTH_TOLERANCE = 1e-3
# A cut whose share in w_b has decayed below this is dropped: model and objective change by at most this times C² and
# the number of cuts.
NEGLIGIBLE = 1e-16


class BestPoint:
    """The best point w_b, ``now``, with its scores, norm and expansion over cuts."""

    def __init__(self, task: Task, examples: Examples, C1: float, overshoot: float, start: Point, n_jobs: int):
        self.task, self.examples, self.overshoot, self.n_jobs = task, examples, overshoot, n_jobs
        self.factor = C1 / examples.total_weight
        self.step = 0.0  # k of the last move w_b ← (1 − k) w_b + k w_t
        self.now = self._judged(Solution((), np.zeros(0), 0.0, None, start))

    def _judged(self, solution: Solution) -> Solution:
        """Return the solution with its objective."""
        here = (solution.point.scores, solution.point.plain)
        loss = self.task.along(here, here, 0.0, self.examples, self.n_jobs)[0]
        return replace(solution, objective=0.5 * solution.norm_squared + self.factor * loss)

    def move(self, working_set: WorkingSet, target: Point) -> Point:
        """Move w_b to the minimum on the line to the QP's solution; returns where the next cut is wanted."""
        now = self.now
        inner, far = float(working_set.alpha @ working_set.best_products), working_set.norm_squared
        linear, quadratic = inner - now.norm_squared, far - 2 * inner + now.norm_squared
        k, objective = self._minimise(target, linear, quadratic)
        norm_squared = now.norm_squared + 2 * k * linear + k * k * quadratic
        scores, beyond = np.empty_like(target.scores), np.empty_like(target.scores)
        flat = [array.reshape(-1) for array in (now.point.scores, target.scores, scores, beyond)]
        how = {"step": k, "overshoot": self.overshoot, "n_threads": self.n_jobs}
        core.move_scores(best=flat[0], target=flat[1], moved=flat[2], beyond=flat[3], **how)
        plain = now.point.plain + k * (target.plain - now.point.plain)
        cuts, alpha = self._mixed(working_set, k)
        self.step = k
        self.now = Solution(cuts, alpha, norm_squared, objective, Point(scores, plain))
        return Point(beyond, plain + self.overshoot * (target.plain - plain))

    def _minimise(self, target: Point, linear: float, quadratic: float) -> tuple[float, float]:
        """Return the root k ≥ 0 of the objective's slope along the line, and the objective there."""
        base = (self.now.point.scores, self.now.point.plain)
        direction = (target.scores - base[0], target.plain - base[1])

        def at(k: float) -> tuple[float, float]:
            loss, slope = self.task.along(base, direction, k, self.examples, self.n_jobs)
            value = 0.5 * (self.now.norm_squared + 2 * k * linear + k * k * quadratic) + self.factor * loss
            return value, linear + k * quadratic + self.factor * slope

        value, first = at(0.0)
        if first >= 0:
            return 0.0, value
        target_value, slope = at(1.0)
        best, bracket = min((value, 0.0), (target_value, 1.0)), Bracket(0.0, first, 1.0, slope)
        while bracket.value_high < 0 and bracket.high < MAX_STEP:
            k = 2 * bracket.high
            value, slope = at(k)
            bracket.climb(k, slope)
            best = min(best, (value, k))
        if bracket.value_high < 0:
            # Only rounding that tells w_t from w_b makes this step endless, and a longer step would make more of the
            # rounding.
            return 1.0, target_value
        widths = [np.inf, np.inf]
        for _ in range(MAX_TRIALS):
            width = bracket.high - bracket.low
            if bracket.value_high <= bracket.value_low or width <= WIDTH_TOLERANCE * bracket.high:
                break
            # Secants creep along one side of a kink, where the slope jumps: then halve the bracket.
            k = bracket.middle() if width > 0.5 * widths[-2] else bracket.secant()
            widths.append(width)
            value, slope = at(k)
            best = min(best, (value, k))
            if abs(slope) <= -SLOPE_TOLERANCE * first:
                break
            bracket.narrow(k, slope)
        value, k = best
        return k, value

    def _mixed(self, working_set: WorkingSet, k: float) -> tuple[tuple[Cut, ...], Array]:
        """Return (1 − k) w_b + k w_t as cuts and weights of these."""
        weights = {id(cut): (cut, (1 - k) * alpha) for cut, alpha in zip(self.now.cuts, self.now.alpha)}
        for cut, alpha in zip(working_set.cuts, working_set.alpha):
            if alpha > 0:
                weights[id(cut)] = (cut, weights.get(id(cut), (cut, 0.0))[1] + k * alpha)
        total = sum(abs(alpha) for _, alpha in weights.values())
        kept = [(cut, alpha) for cut, alpha in weights.values() if abs(alpha) > NEGLIGIBLE * total]
        return tuple(cut for cut, _ in kept), np.array([alpha for _, alpha in kept])

    def product(self, cut: Cut) -> float:
        """Return ⟨w_b, g⟩ of a new cut."""
        point = self.now.point
        return float(np.sum(cut.coef * point.scores[cut.rows])) + float(cut.plain @ point.plain)

    def start_at(self, solution: Solution) -> Solution:
        """Go to a point, which need not be a combination of cuts; returns it with its objective."""
        self.now = self._judged(solution)
        return self.now

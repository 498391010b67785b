"""A stabilised step: the best point on the line to the QP's solution (OCAS).

The QP's solution w_t overshoots while the cuts are few. Franc and Sonnenburg (Optimized Cutting Plane Algorithm for
Support Vector Machines, ICML 2008) keep the best point so far w_b, move it to the minimum of the true objective on the
line from w_b to w_t, and ask for the next cut a little beyond it, at (1 − μ) w_b + μ w_t. Both points are known by
their scores, so that the line search costs no kernel evaluation.
"""

from __future__ import annotations

import numpy as np

from slimsvm.cuts.cut import Cut
from slimsvm.cuts.oracles import Point, reference_loss
from slimsvm.cuts.working_set import WorkingSet
from slimsvm.tasks import Examples, Task

Array = np.ndarray

MAX_TRIALS = 8
SLOPE_TOLERANCE = 0.02
# A cut whose share in w_b has decayed below this is forgotten.
NEGLIGIBLE = 1e-9


class BestPoint:
    """w_b with its scores, norm and expansion over cuts."""

    def __init__(self, task: Task, examples: Examples, C1: float, overshoot: float, start: Point):
        self.task, self.examples, self.C1, self.overshoot = task, examples, C1, overshoot
        self.point = start
        self.norm_squared = 0.0
        self.cuts: tuple[Cut, ...] = ()
        self.alpha = np.zeros(0)

    @property
    def objective(self) -> float:
        """½‖w_b‖² + C₁ · mean loss."""
        return 0.5 * self.norm_squared + self.C1 * reference_loss(self.task, self.point, self.examples)[1]

    def move(self, working_set: WorkingSet, target: Point) -> Point:
        """Move w_b to the minimum on the line to the QP's solution; returns where the next cut is wanted."""
        inner = float(working_set.alpha @ working_set.best_products)
        far = working_set.norm_squared
        along = Point(target.scores - self.point.scores, target.plain - self.point.plain)
        k = self._minimise(along, inner - self.norm_squared, far - 2 * inner + self.norm_squared)
        self._mix(working_set, k)
        toward = working_set.qp.G @ working_set.alpha
        working_set.best_products = (1 - k) * working_set.best_products + k * toward
        self.norm_squared += 2 * k * (inner - self.norm_squared) + k * k * (far - 2 * inner + self.norm_squared)
        self.point = _between(self.point, along, k)
        return _between(self.point, _minus(target, self.point), self.overshoot)

    def product(self, cut: Cut) -> float:
        """⟨w_b, g⟩ of a new cut."""
        return float(np.sum(cut.coef * self.point.scores[cut.rows])) + float(cut.plain @ self.point.plain)

    def restart(self, working_set: WorkingSet, solution, point: Point) -> float:
        """Make the QP's solution (its cuts, alpha and norm_squared) the best point; returns the objective there."""
        working_set.best_products = working_set.qp.G @ working_set.alpha
        self.point, self.norm_squared = point, solution.norm_squared
        self.cuts, self.alpha = solution.cuts, solution.alpha
        return self.objective

    def _minimise(self, along: Point, linear: float, quadratic: float) -> float:
        """Root of the objective's slope along the line, k ≥ 0, by the Illinois method."""
        share = self.examples.weights / self.examples.total_weight

        def slope(k: float) -> float:
            here = _between(self.point, along, k)
            augmented = self.task.augment(here.scores, here.plain, self.examples)
            by_row = np.einsum("ij,ij->i", augmented.coef, along.scores)
            by_row_share = share if self.examples.offsets is None else share[self.examples.example_of_rows()]
            gain = float(by_row_share @ by_row)
            if augmented.plain is not None:
                gain += float(share @ (augmented.plain @ along.plain))
            return linear + k * quadratic - self.C1 * gain

        low, slope_low = 0.0, slope(0.0)
        if slope_low >= 0:
            return 0.0
        high, slope_high = 1.0, slope(1.0)
        while slope_high < 0 and high < 64:
            low, slope_low = high, slope_high
            high, slope_high = 2 * high, slope(2 * high)
        first, side = abs(slope_low), 0
        for _ in range(MAX_TRIALS):
            k = (low * slope_high - high * slope_low) / (slope_high - slope_low)
            value = slope(k)
            if abs(value) <= SLOPE_TOLERANCE * first:
                return k
            if value < 0:
                low, slope_low = k, value
                slope_high, side = (0.5 * slope_high if side < 0 else slope_high), -1
            else:
                high, slope_high = k, value
                slope_low, side = (0.5 * slope_low if side > 0 else slope_low), 1
        return k

    def _mix(self, working_set: WorkingSet, k: float) -> None:
        """w_b ← (1 − k) w_b + k w_t, as weights on cuts."""
        weights = {id(cut): (cut, (1 - k) * alpha) for cut, alpha in zip(self.cuts, self.alpha)}
        for cut, alpha in zip(working_set.cuts, working_set.alpha):
            if alpha > 0:
                weights[id(cut)] = (cut, weights.get(id(cut), (cut, 0.0))[1] + k * alpha)
        total = sum(abs(alpha) for _, alpha in weights.values())
        kept = [(cut, alpha) for cut, alpha in weights.values() if abs(alpha) > NEGLIGIBLE * total]
        self.cuts = tuple(cut for cut, _ in kept)
        self.alpha = np.array([alpha for _, alpha in kept])


def _between(start: Point, along: Point, k: float) -> Point:
    return Point(start.scores + k * along.scores, start.plain + k * along.plain)


def _minus(end: Point, start: Point) -> Point:
    return Point(end.scores - start.scores, end.plain - start.plain)

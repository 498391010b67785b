"""The dual of two-class problems, of ε-insensitive regression and of one class: one problem in one number v_i per row.

    max_v  D(v) = Σ t_i v_i − ε Σ |v_i| − ½ v'Kv,    lo ≤ v ≤ hi,    free intercept: Σ v_i = total

with v_i = α_i y_i, t_i = cost·y_i and ε = 0, or v_i = α_i − α_i*, t_i the target and ε the tube's; total = 0. A
regularised intercept adds 1 to K. One class: v_i = α_i, t = 0, total = ν C Ω.

Schölkopf's ν gives Σ |v_i| = mass, too, and ε is its multiplier: of two classes t = 0 and −ε is the margin. A v_i above
0 and one below it are on different sides; v_i = 0 rises with the first and falls with the others, and pairs of one side
keep both sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.parts.problem import Problem
from slimsvm.parts.rounding import DualPoint
from slimsvm.tasks import Examples, Task
from slimsvm.tasks.examples import check_same_loss
from slimsvm.tasks.task import RowDual

Array = np.ndarray

# An imbalance of Σ v up to this share of its positive part is rounding.
ROUNDING = 1e-12
# The name under which a fit stores its dual point and Kv for the next one; points are equal within this share of C.
LAST, SAME = "dual point and scores", 1e-12
# Objectives up to this share of Σ v_i² K_ii, for equal v_i, count as 0.
ZERO = 1e-6
# A fit ends when D rises by no more than LEAST_RISE times itself in MANY_STEPS steps on pairs of rows, or in
# MANY_STEPS_PER_ROW steps per row if that is more. Large sets at C = 1000 take 50 to 100 steps for each row.
# Chosen, not measured.
MANY_STEPS, MANY_STEPS_PER_ROW, LEAST_RISE = 1_000_000, 500, 1e-6
# A gap above this share of the objective is wide; if it is not wide, a fit that meets its tol has converged
# (docs/experiments/exact_solver.md, "Going on at a tenth of tol where the gap is above 0.1 %").
GAP = 1e-3
# Few rows are solved for to this share of the tolerance (`Tolerance.closing_steps`).
FINER = 1e-7


@dataclass(frozen=True)
class ToleranceSettings:
    """Settings of how far tol is lowered for a wide gap.

    docs/experiments/exact_solver.md has the runs: "Going on at a tenth of tol", "Two easy classes of few rows".
    """

    # If tol is met and the gap is wide, tol is divided by 10, repeatedly: down to ``least`` times itself, and for at
    # most ``more_steps`` times the steps that tol took.
    least: float = 1e-8
    more_steps: int = 3
    # Few rows are solved for to a finer tolerance if a fifth of the steps, or steps through this many entries of kernel
    # rows, suffice.
    more_work: int = 50_000
    # Steps to close a wide gap end at the violation at which it should be this share of GAP.
    towards_gap: float = 0.5
    # They are made in one call if they go through no more entries of kernel rows than this.
    at_once: int = 1_000_000


class Slopes(NamedTuple):
    """The derivatives of D by each v_i, and the largest violation of the optimality conditions."""

    # up, down: float64, derivatives u upwards and d downwards; ∓∞ where there is a bound
    up: Array
    down: Array
    # highest, lowest: the largest u and the smallest d; 0 is among both unless Σ v is kept. Where Σ |v| is kept,
    # too, ε is such that both sides have the same middle of the two, and the side that violates more has them.
    highest: float
    lowest: float
    violation: float  # the largest one: highest - lowest


def level(v: Array, g: Array, lo: Array, hi: Array, by_free: bool = False) -> float:
    """Return the ε at which both sides have the same middle of the largest u and the smallest d.

    ``by_free``: or the same mean of their free variables, where there are any; LIBSVM's ρ is that of two classes.
    """
    free, middles = (v > lo) & (v < hi), []
    for is_own, rises, falls in ((v > 0, (v >= 0) & (v < hi), v > 0), (v < 0, v < 0, (v <= 0) & (v > lo))):
        own = g[free & is_own] if by_free else np.zeros(0)
        ends = [] if len(own) else [g[rises].max(initial=-np.inf), g[falls].min(initial=np.inf)]
        finite = own if len(own) else np.array([end for end in ends if np.isfinite(end)])
        middles.append(float(finite.mean()) if len(finite) else np.nan)
    found = 0.5 * (middles[0] - middles[1])
    return found if np.isfinite(found) else 0.0


class Box(NamedTuple):
    """What D has beside the kernel values and g of some rows: their bounds, what is kept, and its constants."""

    # lo, hi: float64 (n,), bounds of v
    lo: Array
    hi: Array
    # 1: Σ v is kept; the offset has no effect then. 2: Σ |v| is kept, too.
    balanced: int
    offset: float = 0.0  # a constant added to K
    epsilon: float = 0.0  # the factor of −Σ |v|

    def slopes(self, v: Array, g: Array) -> Slopes:
        """Return the derivatives of D at v, and the two that violate most."""
        lo, hi, balanced, _, epsilon = self
        if balanced > 1:
            epsilon = level(v, g, lo, hi)
        if epsilon == 0:
            up, down = np.where(v < hi, g, -np.inf), np.where(v > lo, g, np.inf)
        else:
            up = np.where(v < hi, np.where(v >= 0, g - epsilon, g + epsilon), -np.inf)
            down = np.where(v > lo, np.where(v <= 0, g + epsilon, g - epsilon), np.inf)
        highest, lowest = float(up.max(initial=-np.inf)), float(down.min(initial=np.inf))
        if not balanced:
            highest, lowest = max(highest, 0.0), min(lowest, 0.0)
        return Slopes(up, down, highest, lowest, highest - lowest)

    def free(self, v: Array) -> Array:
        """Return a mask of the variables at no bound and not 0."""
        found: Array = (v > self.lo) & (v < self.hi) & (v != 0)
        return found


def _filled(room: Array, total: float) -> Array:
    """Return numbers that add up to the total, the first ones as large as there is room."""
    found: Array = np.clip(total - (np.cumsum(room) - room), 0.0, room)
    found[found <= ROUNDING * room] = 0.0
    return found


class Progress:
    """A check whether steps still raise D: it computes D once in ``every`` steps."""

    def __init__(self, n_rows: int):
        self.n_steps = self.every = max(MANY_STEPS, MANY_STEPS_PER_ROW * n_rows)
        self.value = -np.inf

    def ended(self, n_steps: int, value: Callable[[], float]) -> str | None:
        """Describe the point if D, now ``value()``, no longer rises; return None otherwise, and between checks."""
        if n_steps < self.n_steps:
            return None
        before, self.value, self.n_steps = self.value, value(), n_steps + self.every
        if self.value - before > LEAST_RISE * abs(self.value):
            return None
        return f"point where {self.every:,} more steps gained nothing"


@dataclass
class Tolerance:
    """The violation that ends a fit: ``tol``, lowered if the gap is still wide."""

    tol: float
    least_size: float = 0.0  # objectives smaller than this are rounding errors
    is_fixed: bool = False  # whether it stays as it is
    settings: ToleranceSettings = ToleranceSettings()
    gap: float = GAP  # the share of the objective above which the gap is wide
    least_steps: int = 0  # steps that a wide gap is worth even where tol took few

    def __post_init__(self) -> None:
        self.now, self._most_steps = self.tol, np.inf

    def is_lowered(self, objective: float, bound: float, n_steps: int, n_rows: int | None = None) -> bool:
        """Lower tol if it is met, the gap is wide and the steps for it are not too many; return whether it was lowered.

        ``n_rows``: of a fit that ends with `closing_steps`, which take its place where steps are cheap.
        """
        own = self.settings
        if self.now == self.tol:
            self._most_steps = max((1 + own.more_steps) * n_steps, self.least_steps)
        is_enough = n_steps > self._most_steps or self.now < 1.5 * own.least * self.tol
        is_later = n_rows is not None and own.more_steps * n_steps * n_rows <= own.at_once
        if is_enough or is_later or not self._asks_more(objective, bound):
            return False
        self.now *= 0.1
        return True

    def closing_steps(self, n_steps: int, n_rows: int) -> int:
        """Return how many steps may go towards FINER times the tolerance, once that is met.

        They cost at most a fifth of the fit: where fits are short they reach it, and a row's weight is then worth as
        many copies of it to the last digits. ``n_rows``: numbers that a step goes through, of all fits that are made
        side by side.
        """
        return max(n_steps // 5, self.settings.more_work // max(1, n_rows))

    def steps_for_gap(
        self, objective: float, bound: float, violation: float, n_steps: int, n_rows: int
    ) -> tuple[int, float]:
        """Return the steps to take after the closing ones (none if the gap is narrow), and the violation to end at.

        The gap falls about as the violation does.
        """
        if not self._asks_more(objective, bound):
            return 0, violation
        own = self.settings
        share = own.towards_gap * self.gap * max(abs(objective), self.least_size) / (objective - bound)
        goal = max(own.least * self.tol, share * violation)
        left = min(self._most_steps - n_steps, own.at_once // n_rows)
        return (max(0, int(left)) if goal < violation else 0), goal

    def _asks_more(self, objective: float, bound: float) -> bool:
        return not self.is_fixed and objective - bound > self.gap * max(abs(objective), self.least_size)


@dataclass(frozen=True)
class DualState:
    """The dual point of a fit, for a warm start with another kernel, C or X of the same examples."""

    v: Array  # float64 (n_rows,)
    C: float
    task: Task
    examples: Examples

    def check(self, task: Task, examples: Examples) -> None:
        """Refuse a warm start with another loss."""
        check_same_loss(self, task, examples, "; only the kernel, C and X may change")

    def scores_at(self, v: Array, C: float, last: tuple[Array, Array] | None) -> Array | None:
        """Return Kv if v is this point times the ratio of Cs and ``last`` has the point with its Kv; otherwise None."""
        ratio = C / self.C
        if last is None or last[0] is not self.v or np.abs(v - ratio * self.v).max(initial=0.0) > SAME * C:
            return None
        return ratio * last[1]


@dataclass(frozen=True)
class Dual(RowDual):
    """The problem above: a task's `RowDual`, the constant added to K, and the sums that are kept.

    g is t − Kv throughout; its derivatives upwards and downwards differ where v_i = 0. ``balanced`` is 1 where
    Σ v = total, 2 where Σ |v| = mass, too, and otherwise 0.
    """

    offset: float = 0.0
    balanced: int = 1
    mass: float = 0.0

    @classmethod
    def of(cls, problem: Problem, task: Task | None = None, examples: Examples | None = None) -> Dual:
        """Return the dual of a problem whose task has one, or that of another task and its examples at the same C."""
        task, examples = task or problem.task, examples or problem.examples
        dual = vars(task.row_dual(examples, problem.C * examples.weights))
        if task.intercept_nu:
            return cls(**dual)
        return cls(**dual, offset=float(problem.intercept == "regularized"), balanced=int(problem.intercept == "free"))

    def feasible(self, v: Array) -> Array:
        """Return the nearest point to v within the bounds; the heavier sign is scaled down for the balance."""
        v = np.clip(v, self.lo, self.hi)
        if self.total:
            missing = self.total - v.sum()
            room = self.hi - v if missing > 0 else v
            return v + room * (missing / room.sum()) if abs(missing) > ROUNDING * self.total else v
        if self.balanced:
            up, down = v[v > 0].sum(), -v[v < 0].sum()
            if abs(up - down) > ROUNDING * max(up, down):  # rounding alone must not take rows off their bounds
                heavy = (v > 0) == (up > down)
                v = np.where(heavy & (v != 0), v * (min(up, down) / max(up, down)), v)
        return v

    def outermost(self, g: Array) -> Array:
        """Return the point of the sums whose rows have the greatest g on the side above 0, the least on that below."""
        order, above = np.argsort(-g, kind="stable"), np.zeros(len(g))
        below, sum_of_side = np.zeros(len(g)), self.total or 0.5 * self.mass
        above[order] = _filled(self.hi[order], sum_of_side)
        if self.mass:
            below[order[::-1]] = _filled(-self.lo[order[::-1]], sum_of_side)
        return above - below

    def with_mass(self, v: Array, g: Array) -> Array:
        """Return v with Σ |v| = mass on both sides: rows of each get more, or less, in the order of g."""
        v, half, sides = np.clip(v, self.lo, self.hi), 0.5 * self.mass, []
        for sign, bound in ((1.0, self.hi), (-1.0, -self.lo)):
            own, order = np.maximum(sign * v, 0.0), np.argsort(-sign * g, kind="stable")
            missing = half - float(own.sum())
            if missing > ROUNDING * self.mass:
                own[order] += _filled(np.where(sign * v >= 0, bound - own, 0.0)[order], missing)
            elif missing < -ROUNDING * self.mass:
                own[order] = _filled(own[order], half)
            sides.append(own)
        is_free_of_both = not np.any((sides[0] > 0) & (sides[1] > 0))
        return sides[0] - sides[1] if is_free_of_both else self.outermost(self.target)

    def best_multiple(self, v: Array, g: Array) -> float:
        """Return the t in [0, 1] with the greatest D(tv), or 1 where Σ v is given.

        For a solution of another C, v C / C_before, it is 1 if most rows are at their bounds, and gives the
        solution back where none is.
        """
        gain, curvature = float(v @ self.target - self.epsilon * np.abs(v).sum()), float(v @ (self.target - g))
        if self.total or gain >= curvature:
            return 1.0
        return gain / curvature if gain > 0 else 0.0

    def best_stretch(self, v: Array, g: Array, intercept: float) -> float:
        """Return the s ≥ 1 for which s times the model has the lowest objective, with s v in the bounds (two classes).

        If the kernel separates the classes widely, ‖w‖² is tiny, and losses of a thousandth are all of the objective.
        """
        most, scores = self.hi - self.lo, self.target - g
        if self.epsilon or self.total or np.any(np.abs(self.target) != 1) or np.any(self.hi * self.lo):
            return 1.0
        margins, norm_squared = self.target * (scores + intercept), float(v @ scores)
        low = margins < 1
        falling = float(most[low] @ margins[low])
        if not norm_squared < falling:
            return 1.0
        ends = np.flatnonzero(low & (margins > 0))  # at s = 1 / margin a row's loss becomes 0
        ends = ends[np.argsort(-margins[ends], kind="stable")]
        kinks = 1.0 / margins[ends]
        before = falling - np.concatenate([[0.0], np.cumsum(most[ends] * margins[ends])])
        k = int(np.argmax(np.append(kinks * norm_squared >= before[:-1], True)))
        best = before[k] / norm_squared if norm_squared > 0 else np.inf
        best = max(best, 1.0 if k == 0 else float(kinks[k - 1]))
        used = v != 0
        return float(min(best, np.min(np.where(v > 0, self.hi, self.lo)[used] / v[used], initial=np.inf)))

    def stretched(self, v: Array, g: Array, intercept: float) -> tuple[Array, Array] | None:
        """Return v and its g times `best_stretch`; None if that is 1. ``intercept`` counts if it is free."""
        share = self.best_stretch(v, g, intercept if self.balanced else 0.0)
        return None if share == 1.0 else (share * v, self.target - share * (self.target - g))

    def least_size(self, kernel_rows: KernelRows) -> float:
        """Return the size below which objectives are rounding errors: one class has 0 if the origin is a row."""
        spread = self.total**2 / len(self.hi)
        return ZERO * spread * float(kernel_rows.diag().mean()) if self.total else 0.0

    def value(self, v: Array, g: Array) -> float:
        """Return D(v)."""
        return float(self.parts_of_value(v, g).sum())

    def parts_of_value(self, v: Array, g: Array) -> Array:
        """Return each row's part of D(v)."""
        parts = 0.5 * v * (self.target + g)
        found: Array = parts - self.epsilon * np.abs(v) if self.epsilon else parts
        return found

    def norm_squared(self, v: Array, g: Array) -> float:
        """Return vᵀKv, of K without the offset."""
        return float(v @ (self.target - g)) - self.offset * float(v.sum()) ** 2

    def point(self, v: Array, g: Array) -> DualPoint:
        """Return v as a `DualPoint`, which splits D(v) into an exact part and one that rests on kernel values."""
        rows, seen = np.flatnonzero(v), self.norm_squared(v, g)
        return DualPoint(rows, v[rows, None], self.value(v, g) + 0.5 * seen, seen)

    def penalty(self, g: Array, intercept: float) -> float:
        """Return C Σ ω ℓ of the scores t − g + intercept."""
        return float(self.losses(g, intercept).sum())

    def losses(self, g: Array, intercept: Array | float) -> Array:
        """Return C ω ℓ of each row's score t − g + intercept."""
        off = g - intercept
        found: Array = self.hi * np.maximum(off - self.epsilon, 0.0) - self.lo * np.maximum(-off - self.epsilon, 0.0)
        return found

    def box(self, rows: Any = slice(None)) -> Box:
        """Return the constraints of some rows, given by an index, a mask or a slice."""
        return Box(self.lo[rows], self.hi[rows], self.balanced, self.offset, self.epsilon)

    def slopes(self, v: Array, g: Array) -> Slopes:
        """Return the derivatives at v, and the two that violate most."""
        return Box(self.lo, self.hi, self.balanced, self.offset, self.epsilon).slopes(v, g)

    def intercept(self, v: Array, g: Array) -> float:
        """Return the model's intercept: LIBSVM's if it is free, otherwise the mean of u and d over free rows."""
        if not self.balanced:
            return self.offset * float(v.sum())
        free = np.flatnonzero(self.box().free(v))
        if len(free):
            up = g[free] - self.epsilon * np.sign(v[free]) if self.epsilon else g[free]
            return float(up.sum() / len(free))
        _, _, highest, lowest, _ = self.slopes(v, g)
        bounds = [bound for bound in (highest, lowest) if np.isfinite(bound)]
        return float(np.mean(bounds)) if bounds else 0.0

    def best_intercept(self, g: Array) -> float:
        """Return the intercept with the lowest objective for this v: the slope of `penalty` and total is 0 there."""
        kinks, rises = np.concatenate([g - self.epsilon, g + self.epsilon]), np.concatenate([self.hi, -self.lo])
        order = np.argsort(kinks, kind="stable")
        slopes = self.total - float(self.hi.sum()) + np.cumsum(rises[order])
        at = min(int(np.searchsorted(slopes, 0.0)), len(order) - 1)
        after = at + 1 if slopes[at] == 0 and at + 1 < len(order) else at
        return 0.5 * float(kinks[order[at]] + kinks[order[after]])

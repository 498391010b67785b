r"""Two classes of sparse rows with the linear kernel, by sweeps over the rows.

The dual is that of `parts.dual_ascent.dual` with w = Σ v_i x_i kept as weights of the features:

    max_v  Σ y_i v_i − ½ ‖w‖²,    0 ≤ y_i v_i ≤ C ω_i,    free intercept: Σ v_i = 0

A step on one row goes through its values twice; one on a pair of rows needs a kernel row, a product with
all rows. A regularised intercept is the weight of a constant feature. A free one, b, is the multiplier of Σ v = 0: for
a given b sweeps find v(b), whose sum falls with b, and b is where it is 0 (`Root`). Sweeps for one b begin where those
for the last ended, and are the finer, the nearer to 0 the sum is. In the end v is scaled so that its sum is 0, and the
fit has converged where `tol` is met and the gap between the objective of (w, b) and D(v) is narrow.

If sweeps take too many steps, as with large C, the levels of `solvers.exact` go on from v.

Hsieh, Chang, Lin, Keerthi, Sundararajan, "A Dual Coordinate Descent Method for Large-scale Linear SVM", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.core.clock import check_time
from slimsvm.parts.dual_ascent.dual import GAP, LAST, Dual, DualState
from slimsvm.parts.problem import DEFAULT_TOL, Kept, Problem
from slimsvm.parts.rounding import DualPoint
from slimsvm.parts.run import Fit, Run, Status, model_over


@dataclass
class Root:
    """The search for the root of a falling function, which is evaluated at ``x``."""

    x: float  # the first x
    # lowest, highest: the range of x; its end counts as the root if the root lies beyond
    lowest: float
    highest: float
    longest: float  # the longest step
    first_step: float  # for a value of 1, before there is a slope
    least: float = -np.inf  # a bracket of the root
    most: float = np.inf
    asked: list[tuple[float, float]] = field(default_factory=list)

    def is_met(self, value: float, least_value: float, least_width: float) -> bool:
        """Take the function's value at x; return whether x is the root. If not, set the next x, also where the root is
        known to so little a width that it can be taken as it is.
        """
        self.asked.append((self.x, value))
        if value > 0:
            self.least = max(self.least, self.x)
        else:
            self.most = min(self.most, self.x)
        is_beyond = self.x >= self.highest if value > 0 else self.x <= self.lowest
        step = self.first_step * value
        if len(self.asked) > 1:
            before, earlier = self.asked[-2]
            slope = (value - earlier) / (self.x - before)
            step = -value / slope if slope < 0 else np.sign(value) * np.inf
        is_narrow = min(abs(step), self.most - self.least) <= least_width
        if abs(value) <= least_value or is_beyond:
            return True
        found = float(np.clip(self.x + np.clip(step, -self.longest, self.longest), self.lowest, self.highest))
        is_inside = self.least < found < self.most
        self.x = found if is_inside else 0.5 * (self.least + self.most)
        return is_narrow


Array = np.ndarray


@dataclass(frozen=True)
class SweepSettings:
    """Settings of the sweeps."""

    # The most numbers that the sweeps of one call go through: Ctrl-C is checked between calls. Chosen, not measured.
    call_work: int = 1 << 24
    # The violation at which the sweeps for the first b end; for each next b it is this share of Σ v / Σ |v|, down to
    # tol.
    first_tol: float = 0.3
    tol_share: float = 1.0
    # The first change of b, in units of Σ v / Σ |v|, and the longest one, in units of the margin.
    first_step: float = 5.0
    longest: float = 2.0
    # Σ v counts as 0 if Σ v / Σ |v| is this small, in units of tol, or if the bracket of b is this narrow. If the gap
    # stays wide, that limit, or tol, is multiplied by ``finer``.
    least_sum: float = 0.1
    narrowest: float = 1e-7
    finer: float = 0.1
    # After this many sweeps steps on pairs of rows take over.
    most_sweeps: int = 2000


class SweepRun(Run):
    """The run of sweeps; one step is one call of the core.

    Parameters
    ----------
    by_pairs : callable
        Makes the run of pairs of rows that begins with a state.
    """

    doing = "exact SVM by sweeps"

    def __init__(self, problem: Problem, state: DualState | None, by_pairs: Callable[[DualState], Any]):
        self.problem, self.dual, self.own = problem, Dual.of(problem), problem.settings_of(SweepSettings)
        # Scores are products with w in float64; the model has the type that was asked for.
        self.kernel_rows = replace(problem, precision="float64", kept=None).bind()
        self.precision, self.by_pairs = problem.bind().precision, by_pairs
        self.rest: Any = None
        self.kept = Kept(problem.room) if problem.kept is None else problem.kept
        X: Any = problem.rows.slice(0, problem.rows.n_rows, problem.rows.exact_dtype)
        self.X, n = X, problem.rows.n_rows
        self.sign = np.asarray(problem.examples.labels, np.float64)
        self.moves = problem.intercept == "regularized"
        square = np.add.reduceat(np.append(X.data.astype(np.float64) ** 2, 0.0), X.indptr[:-1])
        square[np.diff(X.indptr) == 0] = 0.0
        self.alpha, self.w, self.b = np.zeros(n), np.zeros(problem.rows.n_features), 0.0
        if state is not None:
            v = self.dual.feasible(state.v * (problem.C / state.C))
            self.alpha = self.sign * v
            self.w, self.b = X.T @ v, float(v.sum()) if self.moves else 0.0
        self.root = self.root_from(self.b)
        self.tol, self.least_sum = problem.tol, self.own.least_sum * min(problem.tol, DEFAULT_TOL)
        self.now = max(self.tol, self.own.first_tol) if self.dual.balanced else self.tol
        self.n_sweeps, self.random, self.value = 0, 1, 0.0
        self.sweeps_at_once = max(1, self.own.call_work // (len(X.data) + n))
        tiny = np.finfo(np.float64).tiny ** 0.5
        self.call = core.ascend_sparse.prepare(
            values=np.ascontiguousarray(X.data), indices=X.indices.astype(np.int32, copy=False),
            indptr=X.indptr.astype(np.int64, copy=False), sign=self.sign, C_of_row=problem.C * problem.examples.weights,
            square=np.maximum(square + self.moves, tiny), alpha=self.alpha, w=self.w, moves=self.moves,
            active=np.zeros(n, np.int64), max_sweeps=self.sweeps_at_once,
        )  # fmt: skip

    def step(self) -> dict[str, Any]:
        """Make some sweeps; once these are within their tolerance, take the next b, or evaluate the gap."""
        if self.rest is not None:
            record: dict[str, Any] = self.rest.step()
            self.converged, self.spent = self.rest.converged, self.rest.spent
            return record
        check_time()
        self.b, self.random, made, violation = self.call(intercept=self.b, random=self.random, tol=self.now)
        self.n_sweeps += made
        objective = None
        if violation <= self.now and self.has_right_b():
            objective = self.look() if self.now == self.tol else None
            self.now = self.tol
        if not self.converged and self.n_sweeps >= self.own.most_sweeps:
            self.rest = self.by_pairs(self.state_of(self.balanced()[0]))
        return {
            "objective": objective,
            "lower_bound": self.value,
            "gap": None if objective is None else objective - self.value,
            "violation": violation,
            "sweeps": made,
            "n_basis": int(np.count_nonzero(self.alpha)),
        }

    def has_right_b(self) -> bool:
        """Return whether the sum of v is 0 for this b; otherwise set the next b."""
        if not self.dual.balanced:
            return True
        size = float(self.alpha.sum())
        share = float(self.sign @ self.alpha) / size if size else 0.0
        if self.root.is_met(share, self.least_sum, self.own.narrowest):
            self.root = self.root_from(self.b)
            return True
        self.b = self.root.x
        self.now = max(self.tol, min(self.now, self.own.tol_share * abs(share)))
        return False

    def root_from(self, b: float) -> Root:
        """Start the search for b at the best b so far."""
        return Root(b, -np.inf, np.inf, self.own.longest, self.own.first_step)

    def look(self) -> float:
        """Compute the objective of (w, b) and D(v) of the balanced point; lower the tolerances if they differ much."""
        v, g = self.balanced()
        intercept = self.dual.best_intercept(g) if self.dual.balanced else 0.0
        objective = 0.5 * float(v @ (self.dual.target - g)) + self.dual.penalty(g, intercept)
        self.value = self.dual.value(v, g)
        self.converged = objective - self.value <= self.allowed(objective)
        if not self.converged:
            self.refine(objective)
        return objective

    def refine(self, objective: float) -> None:
        """Lower the tolerance behind a wide gap: tol, if the gap is wide before balancing, too, otherwise the sum's."""
        v = self.sign * self.alpha
        g = self.dual.target - self.X @ self.w - self.b
        bound = float(v @ (self.dual.target - self.b)) - 0.5 * float(self.w @ self.w) - 0.5 * self.moves * self.b**2
        own = 0.5 * float(self.w @ self.w) + self.dual.penalty(g, 0.0) + 0.5 * self.moves * self.b**2
        if not self.dual.balanced or own - bound > 0.5 * self.allowed(objective):
            self.tol *= self.own.finer
        else:
            self.least_sum *= self.own.finer
        self.now = self.tol

    def balanced(self) -> tuple[Array, Array]:
        """Return the dual point scaled to its sum, and g of all rows."""
        v = self.dual.feasible(self.sign * self.alpha)
        g = self.dual.target - self.X @ (self.X.T @ v) - self.dual.offset * v.sum()
        return v, g

    def allowed(self, objective: float) -> float:
        """Return the widest gap with which the fit has converged."""
        return GAP * abs(objective) if self.rest is None else float(self.rest.allowed(objective))

    def state_of(self, v: Array) -> DualState:
        """Return the state for a warm start."""
        return DualState(v.copy(), self.problem.C, self.problem.task, self.problem.examples)

    def dual_point(self) -> DualPoint | None:
        """Return the last v as a dual point."""
        if self.rest is not None:
            found: DualPoint = self.rest.dual_point()
            return found
        return self.dual.point(*self.balanced())

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model that v gives, its objective and D(v)."""
        if self.rest is not None:
            fit: Fit = self.rest.finish(status, history)
            return fit
        v, g = self.balanced()
        intercept = self.dual.best_intercept(g) if self.dual.balanced else self.dual.intercept(v, g)
        objective = 0.5 * float(v @ (self.dual.target - g))
        objective += self.dual.penalty(g, intercept if self.dual.balanced else 0.0)
        rows = np.flatnonzero(v)
        model = model_over(self.kernel_rows, self.kernel_rows.basis(rows), v[rows, None], np.array([intercept]))
        model = replace(model, dtype=self.precision)
        bound = min(self.dual.value(v, g), objective)
        counters: dict[str, Any] = {"kernel_evals": self.kernel_rows.counter.n, "report_kernel_evals": 0}
        state = self.state_of(v)
        self.kept.put(LAST, (state.v, self.dual.target - g))
        self.kept.put("kernel rows", self.kernel_rows)
        return Fit(model, status, objective, bound, history, counters, state, rows, kept=self.kept)

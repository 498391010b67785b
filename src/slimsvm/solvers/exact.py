r"""The exact kernel SVM by decomposition.

Binary classification, ε-insensitive regression and one class are one dual problem in v_i = α_i y_i, or α_i − α_i*:

    max_v  D(v) = Σ t_i v_i − ε Σ |v_i| − ½ v'Kv,    lo ≤ v ≤ hi,    free intercept: Σ v_i = 0

with t_i = cost·y_i and ε = 0, or the target and the tube's ε (`parts.dual_ascent.dual`). A regularised intercept
adds 1 to K. With g = t − Kv, the derivatives of D upwards and downwards, u_i and d_i, are g_i up to ∓ε.
The stopping rule is LIBSVM's,

    max {u_i: v_i < hi_i} − min {d_i: v_i > lo_i} ≤ tol,

where 0 joins both sets unless the intercept is free. Every v is a dual point: D(v) bounds the optimum from below. Where
the objective is more than GAP above D(v) by then, as a large C and few errors make it, tol is lowered for a while.

Three levels, each in the next one:

    all rows     the active rows are solved for; then one fused pass updates g of all others. Rows that violate become
                 active, rows far from violating are shrunk away. The first active rows are a sample.
    active rows  a working set of the most violating ones is solved for; its change of v updates g of all active rows,
                 by kernel values computed again, or by kernel rows from a cache if values cost much
    working set  pairs of rows, in compiled code on a block of K (`core/decomposition/smo.cc`); now and then a
                 Newton step on all free rows (`parts.dual_ascent.smo`). Few rows begin as one working set,
                 whose kernel rows are computed as steps need them (`parts.dual_ascent.kernel_values`)

If pairs take too many steps, as with unscaled features, and rows are few enough, an interior-point method solves for
all (`parts.dual_ascent.interior_point`).

Joachims, "Making Large-Scale SVM Learning Practical", 1999 (decomposition, shrinking); Fan, Chen, Lin, JMLR 2005
(second-order selection); Steinwart, Hush, Scovel, JMLR 2011 (no free intercept). Parts:
`parts.dual_ascent.active_rows`, `parts.dual_ascent.kernel_values`, `parts.dual_ascent.smo`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.parts.dual_ascent.active_rows import ActiveRows, ActiveSettings
from slimsvm.parts.dual_ascent.dual import FINER, GAP, LAST, Dual, DualState, Progress, Tolerance, ToleranceSettings
from slimsvm.parts.dual_ascent.interior_point import InteriorSwitch
from slimsvm.parts.dual_ascent.kernel_values import KernelValues, ValueSettings, caches_rows
from slimsvm.parts.dual_ascent.one_vs_one import OneVsOneRun, PairStates, TargetsRun
from slimsvm.parts.dual_ascent.pair_sets import SharedKernelRun, fits_in_memory, largest_pair
from slimsvm.parts.dual_ascent.smo import NewtonSteps, SetSettings
from slimsvm.parts.dual_ascent.sweeps import SweepRun
from slimsvm.parts.problem import RANDOM_ACCESS, Kept, Need, Problem, check_count, check_needs
from slimsvm.parts.rounding import DualPoint
from slimsvm.parts.run import Fit, ReportSettings, Run, Status, model_over, work_of_scores
from slimsvm.parts.solver import Solver

Array = np.ndarray

# Without a random_state this seed draws the first active rows: they change only digits below the tolerance, and so two
# fits of the same rows are equal to the bit.
SEED = 0


@dataclass(frozen=True)
class ExactSettings:
    """Settings of how the three levels alternate. docs/experiments/exact_solver.md has what was measured."""

    # Shares of the memory limit for the kernel cache, and for Newton steps. Chosen, not measured.
    cache_share: float = 0.5
    newton_share: float = 0.4
    # The first active rows: this many, or this share of all if that is more. Chosen, not measured.
    first_rows: int = 4096
    first_share: float = 1 / 8
    # From so many rows on a first point of given sums is of the rows least like the others: to find these among fewer
    # takes longer than the steps that it saves.
    likeness_rows: int = 1000
    # All rows are active at first if their kernel rows take no more than this share of the cache.
    all_rows_share: float = 1.0
    # The active rows are solved for to this share of all rows' violation, and to this one if they are one working set.
    level_share: float = 0.3
    one_set_share: float = 0.1
    # A working set that is not all active rows is solved to this share of their violation.
    set_share: float = 0.3
    # The most steps in a working set: this many per row, and no more than go through this many entries of kernel rows,
    # about a second's work, since limits are checked between working sets. Chosen, not measured.
    steps_per_row: int = 20
    step_work: int = 400_000_000
    # Rows cease to be active only if at least this share of them can, which violate by less than −1 times
    # ``keep_share`` of the greatest change of g in the last pass (shrinking). Chosen, not measured.
    worth_dropping: float = 0.2
    keep_share: float = 0.5
    # Sparse rows and the linear kernel of two classes: up to so many rows by kernel values, more by sweeps
    # ("Text with the linear kernel by sweeps").
    rows_not_swept: int = 500
    # The fit ends after this many working sets in which D rose by no more than this share of itself, as rounding does.
    stalled_sets: int = 20
    rounding: float = 1e-16


class ExactRun(Run):
    """The run of the exact solver on one problem; the module's docstring describes its three levels.

    ``v`` is changed by whole working sets at a time, and ``g_of_all`` says whether g is that of v in all rows: what
    `finish` needs is there wherever an interrupt strikes.
    """

    doing = "exact SVM"

    def __init__(self, problem: Problem, working_set_size: int | None, state: DualState | None):
        self.problem, self.dual = problem, self.dual_of(problem)
        self.settings, of_values = problem.settings_of(ExactSettings), problem.settings_of(ValueSettings)
        own, self.report_work = self.settings, problem.settings_of(ReportSettings).work
        self.kept = Kept(problem.room) if problem.kept is None else problem.kept
        self.kernel_rows = problem.bind()
        n = self.kernel_rows.n_rows
        self.v, self.g = np.zeros(n), self.dual.target.astype(np.float64).copy()
        self.v_of_g = self.v.copy()  # the v that g of inactive rows belongs to
        self.checked: tuple[Array, Array] | None = None  # v and g of all rows when they were last checked
        self.g_of_all, self.converged = True, False
        self.value, self.stalled, self.drift = 0.0, 0, np.inf
        least_size, is_fixed = self.dual.least_size(self.kernel_rows), problem.to_compare
        self.tol = Tolerance(
            problem.tol * min(1.0, problem.units[0]), least_size, is_fixed, problem.settings_of(ToleranceSettings)
        )
        if state is not None:
            self.go_on(state)
        elif self.dual.total or self.dual.mass:
            self.begin(self.outermost())
        memory = int(own.cache_share * problem.memory_limit)
        is_begun = state is not None or self.dual.total > 0 or self.dual.mass > 0
        first = self.first_rows(memory, caches_rows(self.kernel_rows, of_values), is_begun)
        self.cache = KernelValues(self.kernel_rows, memory, first, problem.kept, self.kept.room, of_values)
        self.caches_all_rows = self.cache.caches_rows and self.cache.n_slots == n
        newton = NewtonSteps(int(own.newton_share * problem.memory_limit))
        in_sets = problem.settings_of(ActiveSettings), problem.settings_of(SetSettings)
        self.active = ActiveRows(self.kernel_rows, self.dual, self.cache, newton, working_set_size, *in_sets)
        self.progress = Progress(n)
        self.spent: str | None = None
        for_factors = own.newton_share * problem.memory_limit
        self.interior = InteriorSwitch(self.dual, for_factors, self.kernel_rows)
        if self.active.largest < min(2, n):
            raise ValueError(
                f"memory_limit leaves room for {self.active.largest} of {n} kernel rows; it takes at least 2"
            )
        self.goal = self.tol.tol
        self.active.collect(self.v, self.g)
        if len(first) < n:
            self.goal = max(self.tol.tol, own.level_share * self.active.slopes().violation)

    def dual_of(self, problem: Problem) -> Dual:
        """Return the problem's dual."""
        return Dual.of(problem)

    def generator(self) -> np.random.Generator:
        """Return the problem's random generator, or where it has none the same one in every fit."""
        problem = self.problem
        return (replace(problem, random_state=SEED) if problem.random_state is None else problem).generator()

    def distance(self, record: dict[str, Any]) -> float:
        """Return the gap after an iteration, in units of the tolerance."""
        return float(max(self.goal, record["violation"]) / self.tol.now)

    def begin(self, v: Array, g: Array | None = None) -> None:
        """Start from a dual point other than 0."""
        self.v, self.v_of_g = v, v.copy()
        self.g = self.gradient() if g is None else g
        self.checked = self.v_of_g, self.g
        self.value = self.dual.value(self.v, self.g)

    def go_on(self, state: DualState) -> None:
        """Start from the best multiple of another fit's dual point that the bounds allow."""
        C = self.problem.C
        v = self.dual.feasible(state.v * (C / state.C))
        scores = state.scores_at(v, C, self.kept.get(LAST))
        self.begin(v, None if scores is None else self.dual.target - scores)
        share = self.dual.best_multiple(self.v, self.g)
        self.begin(share * self.v, self.dual.target - share * (self.dual.target - self.g))

    def outermost(self) -> Array:
        """Return a first dual point of given sums, of the rows least like a random sample of their own class.

        Of targets these are the greatest and the least, of few rows the first and the last.
        """
        n, side = self.kernel_rows.n_rows, np.sign(self.dual.lo + self.dual.hi)
        if not side.any() or n < self.settings.likeness_rows:
            v = self.dual.outermost(self.dual.target)
            return self.dual.feasible(v) if self.dual.total else v
        most = self.settings.first_rows
        sample = np.arange(n) if n <= most else np.sort(self.generator().choice(n, most, replace=False))
        above, below = side[sample] > 0, side[sample] < 0
        coef = above - below * (float(above.sum()) / max(float(below.sum()), 1.0))
        likeness = self.kernel_rows.scores(self.kernel_rows.points(sample), coef[:, None])[:, 0]
        v = self.dual.outermost(-likeness)
        return self.dual.feasible(v) if self.dual.total else v

    def first_rows(self, memory: int, caches_rows: bool, is_begun: bool) -> Array:
        """Return the first active rows: all, a sample, or, from a dual point, those that violate or are not at bounds.

        All rows are active if they are few, or if the cache holds the kernel rows of all: checking others would compute
        values that are cached already, or will be.
        """
        n, itemsize, own = self.kernel_rows.n_rows, self.kernel_rows.dtype.itemsize, self.settings
        size = max(own.first_rows, int(own.first_share * n))
        if n <= 2 * own.first_rows or (caches_rows and n * n * itemsize <= own.all_rows_share * memory):
            return np.arange(n)
        if not is_begun:
            return self.sample(size)
        worst = np.argpartition(-self.violation(), size)[:size]
        return np.union1d(worst, np.flatnonzero(self.dual.box().free(self.v)))

    def violation(self) -> Array:
        """Return by how much every row violates its optimality condition; negative where it is met."""
        up, down, highest, lowest, _ = self.dual.slopes(self.v, self.g)
        middle = 0.5 * (highest + lowest) if self.dual.balanced else 0.0
        return np.maximum(up - middle, middle - down)

    def gradient(self) -> Array:
        """Compute g of all rows from nothing but v."""
        return self.gradient_at(self.v)

    def gradient_at(self, v: Array) -> Array:
        """Compute g of all rows at a dual point v."""
        rows = np.flatnonzero(v)
        scores = self.kernel_rows.scores(self.kernel_rows.points(rows), v[rows, None])[:, 0]
        found: Array = self.dual.target - scores.astype(np.float64) - self.dual.offset * v.sum()
        return found

    def sample(self, size: int) -> Array:
        """Draw rows at random, as many of each class where there are classes."""
        rng, n = self.generator(), self.kernel_rows.n_rows
        if self.problem.task.has_targets:
            return np.sort(rng.choice(n, size, replace=False))
        parts = []
        for rows in (np.flatnonzero(self.dual.target > 0), np.flatnonzero(self.dual.target < 0)):
            share = max(1, round(size * len(rows) / n))
            parts.append(rng.choice(rows, min(len(rows), share), replace=False))
        return np.sort(np.concatenate(parts))

    def improve(self, places: Array, tol: float, max_steps: int) -> float:
        """Solve for a working set of active rows, and move them; the violation that is left in the set."""
        found = self.active.solve(places, tol, max_steps)
        self.g_of_all = False
        self.active.move(found)
        self.v[self.active.latest] = found.v
        self.stalled = self.stalled + 1 if found.gain <= self.settings.rounding * abs(self.value) else 0
        self.value += max(found.gain, 0.0)
        return found.violation

    def values(self) -> Array:
        """Return kernel values of all rows."""
        return self.kernel_rows.block(self.kernel_rows.points(np.arange(len(self.v))))

    def use_interior_point(self) -> None:
        """Solve for all rows by the interior-point method; its point is taken if it is better."""
        found = self.interior.solve(self.tol.now, self.gradient_at)
        if found is None or not (
            found.violation <= self.tol.now or self.dual.value(found.v, found.g) > max(self.value, 0.0)
        ):
            return
        self.g_of_all, self.stalled = False, 0
        self.begin(found.v, found.g)
        self.active.collect(self.v, self.g)
        self.g_of_all = True

    # -- all rows ---------------------------------------------------------------------------------------------------

    def reconstruct_gradient(self) -> None:
        """Bring g of the inactive rows up to date: one pass with what has changed of v since the last one."""
        g = self.g.copy()
        g[self.active.rows] = self.active.g
        self.drift = 0.0
        inactive = np.flatnonzero(self.active.others) if len(self.active.v) < len(g) else np.zeros(0, np.int64)
        if len(inactive) and len(changed := np.flatnonzero(self.v != self.v_of_g)):
            change = self.v[changed] - self.v_of_g[changed]
            moved = self.kernel_rows.scores(self.kernel_rows.points(changed), change[:, None], rows=inactive)[:, 0]
            moved = moved.astype(np.float64) + self.dual.offset * change.sum()
            g[inactive] -= moved
            self.drift = float(np.abs(moved).max())
        self.g, self.v_of_g = g, self.v.copy()
        self.checked = self.v_of_g, g
        self.g_of_all = True

    def change_active_rows(self) -> None:
        """Make the worst violators active, and shrink: rows that are far from violating become inactive."""
        violation, own = self.violation(), self.settings
        active = self.active.rows
        added = np.flatnonzero(self.active.others & (violation > 0.5 * self.tol.now))
        most = max(len(active), own.first_rows)
        if len(added) > most:
            added = np.sort(added[np.argpartition(-violation[added], most)[:most]])
        kept = np.flatnonzero(violation[active] >= -max(own.keep_share * self.drift, self.goal))
        # With all kernel rows in the cache no row is shrunk: checking it again would compute its values again.
        if len(kept) <= (1 - own.worth_dropping) * len(active) and not self.caches_all_rows:
            self.cache.keep(kept)
        self.cache.extend(added)
        self.active.collect(self.v, self.g)

    # -- the loop ---------------------------------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """Solve for one working set, or, once the active rows are solved for, check all rows."""
        own = self.settings
        if self.interior.is_due(self.active.n_steps, self.active.newton.work_of_all, self.values):
            self.use_interior_point()
        (places, gap), n_active = self.active.choose(self.goal), len(self.active.v)
        objective, error = None, None
        if len(places) and self.stalled < own.stalled_sets:
            is_all = len(places) == n_active
            tol = 0.5 * self.goal if is_all else max(0.5 * self.goal, own.set_share * gap)
            self.improve(places, tol, min(own.steps_per_row * len(places), own.step_work // len(places)))
        else:
            self.reconstruct_gradient()
            is_known = n_active == len(self.g)
            violation = gap if is_known else self.dual.slopes(self.v, self.g).violation
            is_met = violation <= self.tol.now
            objective, intercept = self.stretched() if is_met else self.evaluate(at_best=False)
            closes = self.problem.is_small and n_active <= self.active.size
            n = len(self.v) if closes else None
            goes_on = is_met and self.tol.is_lowered(objective, self.value, self.active.n_steps, n)
            self.converged = self.stalled >= own.stalled_sets or (is_met and not goes_on)
            if self.converged and is_met and closes:
                objective, intercept = self.close()
            elif not self.converged:
                self.change_active_rows()
                share = own.level_share if len(self.active.v) > self.active.size else own.one_set_share
                self.goal = max(self.tol.now, min(self.goal, share * violation))
            error = self.training_error(intercept)
        self.spent = self.progress.ended(self.active.n_steps, lambda: self.dual.value(self.v, self.gradient()))
        return {
            "objective": objective,
            "lower_bound": self.value,
            "gap": None if objective is None else objective - self.value,
            "violation": gap,
            "n_active": len(self.active.v),
            "n_basis": int(np.count_nonzero(self.v)),
            "training_error": error,
        }

    def close(self) -> tuple[float, float]:
        """Take steps on all active rows towards a finer tolerance, and more while the gap is wide; then `evaluate`."""
        everything, n = np.arange(len(self.active.v)), len(self.v)
        most, tol = self.tol.closing_steps(self.active.n_steps, n), FINER * self.tol.now
        self.active.newton.hurry()
        while True:
            before = self.active.n_steps
            violation = self.improve(everything, tol, most)
            self.reconstruct_gradient()
            objective, intercept = self.stretched()
            most, tol = self.tol.steps_for_gap(objective, self.value, violation, self.active.n_steps, n)
            if not most or self.active.n_steps == before:
                return objective, intercept

    def evaluate(self, at_best: bool) -> tuple[float, float]:
        """Return objective and intercept, computed from g of all rows.

        ``at_best``: where the gap is wide take the intercept of the lowest objective, for which rows are sorted. A mean
        over free rows says little where these differ, or where a row of a huge weight has a loss.
        """
        dual = self.dual
        norm_squared = float(self.v @ (dual.target - self.g))

        def objective_at(added: float) -> float:
            return 0.5 * norm_squared + dual.total * added + dual.penalty(self.g, added)

        intercept = dual.intercept(self.v, self.g)
        objective = objective_at(intercept if dual.balanced else 0.0)
        if at_best and dual.balanced and objective - dual.value(self.v, self.g) > self.allowed(objective):
            best = dual.best_intercept(self.g)
            objective, intercept = min((objective, intercept), (objective_at(best), best))
        return objective, intercept

    def stretched(self) -> tuple[float, float]:
        """Take the multiple of v with the lowest objective where the gap is wide; `evaluate` after it."""
        objective, intercept = self.evaluate(at_best=True)
        if objective - self.value <= self.allowed(objective):
            return objective, intercept
        found = self.dual.stretched(self.v, self.g, intercept)
        if found is None:
            return objective, intercept
        self.g_of_all = False
        self.begin(*found)
        self.active.collect(self.v, self.g)
        self.g_of_all = True
        return self.evaluate(at_best=True)

    def training_error(self, intercept: float) -> float:
        """Return the share of the rows that the model errs on, or the task's own error, from g of all rows."""
        task, examples = self.problem.task, self.problem.examples
        scores = self.dual.target - self.g + (intercept if self.dual.balanced else 0.0)
        return task.error(task.decode(scores[:, None], np.zeros(0), examples), examples)

    def allowed(self, objective: float) -> float:
        """Return the widest gap with which the fit has converged."""
        return max(GAP, self.problem.tol) * max(abs(objective), self.tol.least_size)

    def dual_point(self) -> DualPoint:
        """Return the last v as a dual point."""
        return self.dual.point(self.v, self.g)

    def _report_work(self) -> float:
        """Return how many multiply-adds the scores of all rows take."""
        return float(work_of_scores(self.kernel_rows.rows, int(np.count_nonzero(self.v))))

    def _estimate(self) -> float:
        """Estimate the objective from the active rows and a sample of the others; the others' g show no loss then."""
        dual, rows, n = self.dual, self.kernel_rows, len(self.v)
        others = np.flatnonzero(self.active.others)
        size = min(len(others), max(1, int(self.report_work * n / self._report_work())))
        sample = np.sort(self.generator().choice(others, size, replace=False))
        points = np.flatnonzero(self.v)
        scores = rows.scores(rows.points(points), self.v[points, None], rows=sample)[:, 0]
        g = np.zeros(n)
        g[self.active.rows] = self.active.g
        intercept = dual.intercept(self.v, g) if dual.balanced else 0.0
        g[others] = intercept
        losses = dual.penalty(g, intercept)
        self.g = g.copy()
        g[:] = intercept
        g[sample] = dual.target[sample] - scores - dual.offset * self.v.sum()
        losses += len(others) / max(size, 1) * dual.penalty(g, intercept)
        if size < len(others):
            warnings.warn(
                f"the exact SVM was cut short before it had looked at all rows: its objective is estimated from "
                f"{n - len(others) + size} of {n}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return 0.5 * float(self.v @ (dual.target - self.g)) + dual.total * intercept + losses

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model that v gives, its objective and D(v).

        Of a fit that is cut short v is that of the last look at all rows, where the scores of the latest take long;
        before the first look the objective is estimated from some of the rows.
        """
        counters: dict[str, Any] = {"kernel_evals": self.kernel_rows.counter.n}
        takes_long, objective = status.is_cut and not self.g_of_all and self._report_work() > self.report_work, None
        if takes_long and self.checked is not None:
            self.v, self.g = self.checked
        elif takes_long:
            objective = self._estimate()
        elif not self.g_of_all:
            self.g = self.gradient()
        rows = np.flatnonzero(self.v)
        counters["report_kernel_evals"] = self.kernel_rows.counter.n - counters["kernel_evals"]
        if objective is None:
            objective, intercept = self.evaluate(at_best=True)
        else:
            intercept = self.dual.intercept(self.v, self.g)
        model = model_over(self.kernel_rows, self.kernel_rows.basis(rows), self.v[rows, None], np.array([intercept]))
        bound = min(self.dual.value(self.v, self.g), objective)
        state = DualState(self.v.copy(), self.problem.C, self.problem.task, self.problem.examples)
        if not takes_long or self.checked is not None:
            self.kept.put(LAST, (state.v, self.dual.target - self.g))
        self.kept.put("kernel rows", self.kernel_rows)
        fit = Fit(model, status, objective, bound, history, counters, state, rows, kept=self.kept)
        fit.norm_squared = self.dual.norm_squared(self.v, self.g)
        return fit


def sweeps_suit(problem: Problem, n_rows: int) -> bool:
    """Return whether two classes of so many rows have the linear kernel and sparse rows that fit in memory."""
    rows = problem.rows
    is_linear = problem.kernel.has_weights and rows.is_sparse and rows.in_memory
    fits = 8 * (rows.n_features + 2 * rows.n_stored) <= problem.memory_limit / 2
    return is_linear and fits and n_rows > problem.settings_of(ExactSettings).rows_not_swept


NEEDS = (
    Need(
        lambda problem: problem.task.has_dual or problem.task.has_columns or bool(problem.task.class_pairs()),
        "Exact solves problems of two classes, of pairs of classes, of one against the rest, of several labels, "
        "regression and one class, "
        "found {task}; solver='exact-cuts' solves it",
    ),
    Need(
        lambda problem: not problem.task.intercept_nu or problem.intercept == "free",
        "one class needs intercept='free', found {problem.intercept!r}",
    ),
)


@dataclass(eq=False, repr=False)
class Exact(Solver):
    """The exact kernel SVM, solved to LIBSVM's tolerance: two classes, several one-vs-one, regression, one class.

    With several labels, targets or quantiles, each is a problem that is solved separately.

    ``tol`` is the largest violation of the optimality conditions by a pair of rows, as in LIBSVM. The number of steps
    is not limited: a fit ends with a warning only if further steps (500 per row, at least a million) no longer raise
    the dual value, which rounding can cause at C = 1e10. ``max_iter`` counts working sets and passes over all rows;
    with several classes it is the limit for each pair.

    Parameters
    ----------
    working_set_size : int or None, default=None
        Rows that are solved for at a time. None: 1,024 to 8,192, more if kernel values are cheap.

    Examples
    --------
    >>> from slimsvm import SVC, Exact
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = SVC(solver=Exact(), intercept="free", tol=1e-5).fit(X, y)
    >>> bool(clf.objective_ - clf.lower_bound_ <= 1e-3 * clf.objective_)
    True
    """

    follows_libsvm = True

    working_set_size: Any = None

    def start(self, problem: Problem, state: DualState | PairStates | None = None) -> ExactRun | SweepRun | OneVsOneRun:
        """Check that the problem has this dual, and set the run up."""
        check_needs("Exact", problem, RANDOM_ACCESS, *NEEDS)
        if self.working_set_size is not None:
            check_count("working_set_size", self.working_set_size)
            if self.working_set_size < 2:
                raise ValueError(f"working_set_size must be at least 2, found {self.working_set_size}")
        if state is not None:
            is_of_parts = problem.task.has_columns or bool(problem.task.class_pairs())
            if not isinstance(state, PairStates if is_of_parts else DualState):
                raise ValueError(f"Exact can only be warm-started from its own fit, found {type(state).__name__}")
            state.check(problem.task, problem.examples)
        if problem.task.has_columns:
            assert not isinstance(state, DualState)
            return TargetsRun(problem, self, state)
        is_usual = self.working_set_size is None
        if problem.task.class_pairs():
            assert not isinstance(state, DualState)
            memory = problem.settings_of(ExactSettings).cache_share * problem.memory_limit
            is_small = fits_in_memory(problem, memory) and not sweeps_suit(problem, largest_pair(problem))
            return (SharedKernelRun if is_small and is_usual else OneVsOneRun)(problem, self, state)
        assert not isinstance(state, PairStates)
        has_margins_of_1 = problem.task.has_two_classes and not problem.task.has_costs
        if is_usual and has_margins_of_1 and sweeps_suit(problem, problem.rows.n_rows):
            return SweepRun(problem, state, lambda state: ExactRun(problem, None, state))
        return ExactRun(problem, self.working_set_size, state)

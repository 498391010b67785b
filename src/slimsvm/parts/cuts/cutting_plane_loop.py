r"""Cutting planes with exact or sampled cuts.

Yu and Joachims, "Training Structural SVMs with Kernels Using Sampled Cuts", KDD 2008, Algorithms 1 to 3.

Problem (C₁ = C·Ω):

    min_{w, ξ ≥ 0}  ½‖w‖² + C₁ ξ     s.t.  c_j − ⟨w, g_j⟩ ≤ ξ  for every cut j

    repeat
        cut (c, g), reference cut (c', g') = oracle(w)
        stop when c' − ⟨w, g'⟩ ≤ ξ + ε
        add the cut; solve the QP over the live cuts; w = Σ α_j g_j
        drop cuts that have been inactive for `max_idle` iterations

Made faster than the paper's, each part selectable (docs/experiments/sampled_cuts.md has the measurements):
  * the step: `parts.cuts.line_search.BestPoint` keeps the best point w_b and searches the line to w (OCAS); the
    reference is then P(w_b), and a cut is asked for near it;
  * an exact cut is computed from the one before it: only rows whose loss-augmented label changed are evaluated;
  * exact cuts start where a short run of sampled cuts has led (`warm_up`), so that the first one has few rows.

Parts: an oracle (`parts.cuts.oracles`), a score book (`parts.cuts.score_books`), the working set with its QP
(`parts.cuts.working_set`). With exact cuts the QP's value bounds the objective from below. With sampled cuts it bounds
nothing, and the history records it as ``model_value``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from slimsvm.model import KernelExpansion, LinearModel
from slimsvm.parts.cuts import (
    BestPoint,
    Cut,
    CutsState,
    CutState,
    FullScores,
    Point,
    SampledScores,
    Solution,
    ViolatedOracle,
    WeightScores,
    WorkingSet,
    n_distinct_rows,
    reference_loss,
    weighted_sum,
)
from slimsvm.parts.cuts.score_books import CACHE_FROM_FEATURES
from slimsvm.parts.problem import Problem, check_choice, check_count, check_needs, no_free_intercept
from slimsvm.parts.rounding import DualPoint
from slimsvm.parts.run import Best, Fit, Run, Status, allowed_gap, model_over, reported_objective
from slimsvm.parts.solver import Solver
from slimsvm.tasks import Augmented, losses

Array = np.ndarray

REPORT_ROWS = 1 << 16
# docs/experiments/sampled_cuts.md settles the restart ("One restart at the QP's solution"); the others were chosen, not
# measured. The sampled warm-up ends at this gap to the cuts' model, since few rows are violated then.
WARM_UP_TOLERANCE = 0.5
# The best point is moved to the QP's solution when this many tolerances of the gap are left.
RESTART_FACTOR = 2.0
# Coefficients are left out as long as the objective rises by less than this share of the tolerance.
TRIM_SHARE = 0.1
# Exact cuts end after this many iterations in which neither bound nor objective changed by this share of itself.
STALL, ROUNDING = 20, 1e-13
# They also end after this many in which neither was better than ever before. Chosen, not measured: runs that go on have
# a new best within a few.
NO_RECORD = 200


@dataclass(frozen=True)
class Plan:
    """The options of a cutting-plane run; the solvers' parameters describe each."""

    tol_relative: float | None
    max_idle: int
    line_search: bool = False
    overshoot: float = 0.0
    warm_up: Any = None
    final_objective: bool = True
    weights: bool = False
    keep: str = "best"


class CuttingPlaneRun(Run):
    """The run on one problem.

    Parameters
    ----------
    oracle
        Makes the cuts.
    state : CutsState or None
        Cuts of an earlier fit to start from.
    """

    doing = "cutting planes"

    def __init__(self, problem: Problem, oracle: Any, plan: Plan, state: CutsState | None):
        self.problem, self.oracle, self.plan = problem, oracle, plan
        self.tol, self.tol_relative = problem.tol * problem.loss_unit, plan.tol_relative
        if oracle.exact and plan.tol_relative is not None:
            self.tol, self.tol_relative = problem.tolerances(plan.tol_relative)
        self.task, self.examples = problem.task, problem.examples
        self.kernel_rows = problem.bind()
        self.rng = problem.generator()
        self.book: Any = self.make_book(problem.intercept == "regularized")
        self.working_set = WorkingSet()
        self.point = self.target = Point(self.book.scores, np.zeros(self.task.n_plain))
        self.centre: Any = None
        if plan.line_search:
            self.centre = BestPoint(
                self.task, self.examples, problem.C1, plan.overshoot, self.point, self.kernel_rows.n_jobs
            )
        self.latest = Solution((), np.zeros(0), 0.0, None, self.point)
        self.best = Best(np.inf, self.latest)
        self.at_zero = np.inf  # the objective of the zero model, which is the first point
        if oracle.needs_all_scores:
            self.at_zero = problem.C1 * reference_loss(self.task, self.point, self.examples)[1]
        self.lower_bound = 0.0 if oracle.exact else None
        self.largest_sum = problem.C1  # cuts have coefficients of 1 in all, and multipliers of C₁
        self.qp_seconds, self.n_merged, self.converged = 0.0, 0, False
        self.progress = np.full(2, np.inf), 0
        self.record = np.full(2, -np.inf), 0
        self.failures = 0
        self.warming_up = self.restart_due = plan.warm_up is not None and state is None
        if state is not None:
            self.restore(state)

    def distance(self, record: dict[str, Any]) -> float | None:
        """Return the gap after an iteration, in units of the tolerance."""
        objective, gap = record.get("objective"), record.get("gap")
        if objective is None or gap is None or self.warming_up:
            return None
        allowed = self.tol * self.problem.C1
        if self.tol_relative is not None:
            allowed = min(allowed, allowed_gap(self.tol_relative, objective, self.at_zero))
        return gap / allowed if allowed > 0 else None

    def allowed(self, objective: float) -> float:
        """Return the widest gap with which exact cuts have converged."""
        relative = self.plan.tol_relative
        return min(self.tol * self.problem.C1, np.inf if relative is None else relative * abs(objective))

    def make_book(self, intercept: bool) -> Any:
        """Make the score book that suits oracle and plan."""
        if not self.oracle.needs_all_scores:
            return SampledScores(self.kernel_rows, self.task.n_outputs, intercept)
        if self.plan.weights:
            return WeightScores(self.kernel_rows, self.task.n_outputs, intercept)
        cache = self.oracle.exact or self.kernel_rows.n_features >= CACHE_FROM_FEATURES
        return FullScores(self.kernel_rows, self.task.n_outputs, intercept, self.problem.memory_limit, cache)

    def restore(self, state: CutsState) -> None:
        """Go on from the cuts of an earlier fit of the same examples."""
        state.check(self.task, self.examples)
        if not state.cuts:
            return
        sampled = self.oracle.exact and not state.exact
        if sampled and self.centre is None:
            raise ValueError(
                "warm start: the earlier fit's cuts are sampled, which bound nothing; exact cuts go on from them with "
                "step='line-search' only"
            )
        self.warming_up = sampled
        for cut in state.cuts:
            self.add(cut, exact=state.exact and self.oracle.exact)
        self.resolve()
        if sampled:
            self.end_warm_up()

    def step(self) -> dict[str, Any]:
        """Do one iteration of the algorithm above."""
        working_set = self.working_set
        oracle = ViolatedOracle(self.plan.warm_up) if self.warming_up else self.oracle
        augmented, loss, objective = None, None, None
        if oracle.needs_all_scores:
            augmented, loss, objective = self.evaluate()
            self.note(replace(self.latest, objective=objective) if self.centre is None else self.centre.now)
            self.converged = self.within_tolerance(objective) or self.stalled()
            if self.restart_due and not self.warming_up and self.within_tolerance(objective, RESTART_FACTOR):
                objective = self.restart()
        record = {
            "objective": objective,
            "loss": loss,
            "model_value": working_set.value,
            "lower_bound": self.lower_bound,
            "gap": None if objective is None or self.lower_bound is None else objective - self.lower_bound,
            "training_error": None if objective is None else self.training_error(),
            "redraws": 0,
            "qp_seconds": 0.0,
        }
        if self.warming_up and self.converged:
            self.end_warm_up()
            oracle = self.oracle
            augmented, loss, objective = self.evaluate()
        if not self.converged:
            threshold = self.working_set.xi + self.epsilon(objective)
            augmented = self.violated(augmented, threshold)
            state = CutState(self.task, self.examples, self.book, self.working_set, self.target, augmented)
            proposal = oracle.find(state, threshold, self.rng)
            record["redraws"] = proposal.redraws
            # If draws keep failing, only rounding is left to gain.
            self.failures = self.failures + 1 if proposal.gave_up else 0
            self.converged = self.failures >= STALL
            if proposal.loss is not None:
                record["loss"], record["training_error"] = proposal.loss, proposal.training_error
            if proposal.cut is None:
                self.converged = True
            elif not self.converged:
                self.add(proposal.cut, proposal.products, oracle.exact)
                self.resolve()
                record["qp_seconds"] = self.qp_seconds
        record["n_cuts"], record["n_merged"] = len(self.working_set), self.n_merged
        record["n_basis"] = n_distinct_rows(self.latest.cuts, self.examples.n_rows)
        return record

    def training_error(self) -> float:
        """Return the task's error of the best point over all rows."""
        point = self.point if self.centre is None else self.centre.now.point
        return self.task.error(self.task.decode(point.scores, point.plain, self.examples), self.examples)

    def evaluate(self) -> tuple[Augmented, float, float]:
        """Return the loss-augmented argmax for the next cut, with mean loss and objective of the best point."""
        if self.centre is None:
            augmented, loss = reference_loss(self.task, self.point, self.examples)
            return augmented, loss, 0.5 * self.working_set.norm_squared + self.problem.C1 * loss
        augmented = self.task.augment(self.point.scores, self.point.plain, self.examples)
        best = self.centre.now
        return augmented, (best.objective - 0.5 * best.norm_squared) / self.problem.C1, best.objective

    def violated(self, augmented: Any, threshold: float) -> Any:
        """Return a loss-augmented argmax whose cut the QP's solution violates: this one, or else that at the solution.

        A cut near the best point may teach the QP nothing, e.g. where no example violates its margin there.
        """
        if self.centre is None or self.point is self.target:
            return augmented
        loss = losses(augmented, self.target.scores, self.target.plain, self.examples)
        if self.examples.weights @ loss > threshold * self.examples.total_weight:
            return augmented
        return self.task.augment(self.target.scores, self.target.plain, self.examples)

    def restart(self) -> float:
        """Move the best point to the QP's solution once, close to the end; returns the objective there.

        w_b still holds traces of the sampled cuts it came from, the QP's solution lies on rows of exact cuts only: a
        few more iterations make a model of half the vectors and fewer.
        """
        self.restart_due = False
        self.working_set.put_best_here()
        now = self.centre.start_at(self.latest)
        self.best = Best(now.objective, now)
        self.converged = self.within_tolerance(self.best.objective)
        return self.best.objective

    def within_tolerance(self, objective: float, factor: float = 1.0) -> bool:
        """Whether objective − bound is within ε·C₁, and within the relative tolerance where one is set."""
        if self.warming_up:
            return objective - self.working_set.value <= WARM_UP_TOLERANCE * objective
        bound = self.working_set.value if self.lower_bound is None else self.lower_bound
        gap = (objective - bound) / factor
        return gap <= self.tol * self.problem.C1 and (
            self.tol_relative is None or gap <= allowed_gap(self.tol_relative, objective, self.at_zero)
        )

    def stalled(self) -> bool:
        """Whether exact cuts have neither raised the bound nor lowered the objective for a while.

        That is rounding's work: every violated exact cut raises the bound. Losses are known to about 1e-16, so at a
        large C₁ the gap cannot fall below about 1e-16·C₁, and the bound moves up and down.
        """
        if not self.oracle.exact or self.warming_up:
            return False
        now = np.array([self.best.objective, self.working_set.value])
        before, times = self.progress
        moved = not np.all(np.abs(now - before) <= ROUNDING * np.abs(now))
        self.progress = (now, 0) if moved else (before, times + 1)
        best, since = self.record
        signed = now * (-1.0, 1.0)
        is_record = bool(np.any(signed - best > ROUNDING * np.abs(now)))
        self.record = np.maximum(best, signed), 0 if is_record else since + 1
        return self.progress[1] >= STALL or self.record[1] >= NO_RECORD

    def epsilon(self, objective: float | None) -> float:
        """Return by how much a sampled cut must be violated, in units of the mean loss."""
        if objective is None or self.tol_relative is None:
            return self.problem.tol * self.problem.loss_unit
        return min(
            self.problem.tol * self.problem.loss_unit,
            allowed_gap(self.tol_relative, objective, self.at_zero) / self.problem.C1,
        )

    def end_warm_up(self) -> None:
        """Forget the sampled cuts and go on with exact ones from the best point, whose violated rows are few."""
        self.warming_up = self.converged = False
        self.working_set = WorkingSet()
        self.book.keep(np.zeros(0, dtype=np.int64))
        self.point = self.centre.now.point

    def add(self, cut: Cut, products: Array | None = None, exact: bool = False) -> None:
        """Put a cut into the book and the working set, making room first where needed."""
        if self.book.full:
            self.make_room()
            products = None
        best = self.centre.product(cut) if self.centre is not None else 0.0
        self.working_set.add(cut, self.book.add(cut, self.working_set.cuts, products, exact), best)

    def make_room(self) -> None:
        """Drop inactive cuts, or merge the oldest live ones into one.

        Σ α_j (c_j, g_j) / Σ α_j with α = Σ α_j leaves w and the QP's value as they are.
        """
        working_set = self.working_set
        index = np.flatnonzero(working_set.alpha != 0)
        if len(index) < len(working_set):
            working_set.keep(index)
            self.book.keep(index)
            return
        n = max(2, len(working_set) // 4)
        self.book.merge(n, working_set.merge(np.arange(n)))
        self.n_merged += n

    def resolve(self) -> None:
        """Solve the QP, drop idle cuts, bring the scores up to date."""
        working_set = self.working_set
        begun = time.perf_counter()
        working_set.solve(self.problem.C1)
        self.qp_seconds = time.perf_counter() - begun
        if self.lower_bound is not None and not self.warming_up:
            self.lower_bound = max(self.lower_bound, working_set.value)
        if working_set.idle.max() >= self.plan.max_idle:
            index = np.flatnonzero(working_set.idle < self.plan.max_idle)
            if len(index):  # if w = 0 is best, no cut is active, and all stay
                working_set.keep(index)
                self.book.keep(index)
        self.book.combine(working_set.alpha)
        self.point = self.target = Point(self.book.scores, working_set.plain)
        if self.centre is not None:
            self.point = self.centre.move(working_set, self.target)
            working_set.move_best(self.centre.step)
        active = np.flatnonzero(working_set.alpha)
        cuts, alpha = tuple(working_set.cuts[j] for j in active), working_set.alpha[active]
        self.latest = Solution(cuts, alpha, working_set.norm_squared, None, self.target)

    def note(self, solution: Solution) -> None:
        """Remember a solution whose objective is known, if it is the best so far."""
        self.best = self.best.or_lower(solution.objective, solution, or_equal=True)

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the best model (or the last one, if objectives are not known) and the counters."""
        counters: dict[str, Any] = {"kernel_evals": self.kernel_rows.counter.n, "merged_cuts": self.n_merged}
        if isinstance(self.book, FullScores | WeightScores):
            if self.centre is not None:
                self.note(self.centre.now)
            elif not self.converged:
                loss = reference_loss(self.task, self.latest.point, self.examples)[1]
                self.note(replace(self.latest, objective=0.5 * self.latest.norm_squared + self.problem.C1 * loss))
            best = self.best.found
        else:
            best = self.latest
        if self.plan.keep == "last":
            best = replace(self.latest, objective=None)
        model, objective, basis_rows = self.model(best, trim=not status.is_cut)
        if objective is None:
            look, is_asked = partial(self.objective, model, best.norm_squared), self.plan.final_objective
            objective = reported_objective(self.problem, status, model.n_basis, look) if is_asked else np.nan
        counters["report_kernel_evals"] = self.kernel_rows.counter.n - counters["kernel_evals"]
        state = self.state()
        # Rounding can make the two cross.
        bound = None if self.lower_bound is None else min(self.lower_bound, objective)
        return Fit(model, status, objective, bound, history, counters, state, basis_rows)

    def dual_point(self) -> DualPoint | None:
        """Return the QP's last solution as a dual point; None if its bound is not one of exact cuts."""
        latest = self.latest
        if self.lower_bound is None or self.warming_up or not latest.cuts:
            return None
        total = weighted_sum(latest.cuts, latest.alpha)
        used = total.coef.any(axis=1)
        sure = float(total.plain @ total.plain)
        if self.book.intercept:
            sure += float(total.intercept @ total.intercept)
        return DualPoint(total.rows[used], total.coef[used], total.c - 0.5 * sure, latest.norm_squared - sure)

    def state(self) -> CutsState:
        """Return the state for a warm start."""
        return CutsState(self.latest.cuts, self.task, self.examples, self.oracle.exact and not self.warming_up)

    def model(self, solution: Solution, trim: bool = True) -> tuple[KernelExpansion, float | None, Array | None]:
        """Return Σ α_j g_j as an expansion over the rows of its cuts, or as weights, with its objective and those rows.

        Small coefficients stay where there is no time to ``trim``: it takes passes over all rows.
        """
        m, p = self.task.n_outputs, self.task.n_plain
        total = Cut(0.0, np.zeros(0, dtype=np.int64), np.zeros((0, m)), np.zeros(p))
        if len(solution.cuts):
            total = weighted_sum(solution.cuts, solution.alpha)
        used, objective = total.coef.any(axis=1), solution.objective
        intercept = total.intercept if self.book.intercept else np.zeros(m)
        if isinstance(self.book, WeightScores):
            weights, precision = self.book.weights(total), self.kernel_rows.precision
            return LinearModel.of_weights(weights, intercept, total.plain, precision), objective, None
        if trim and self.centre is not None and objective is not None:
            used, objective = self.trimmed(total, solution)
        basis = self.kernel_rows.basis(total.rows[used])
        model = model_over(self.kernel_rows, basis, total.coef[used], intercept, total.plain)
        return model, objective, total.rows[used]

    def trimmed(self, total: Cut, solution: Solution) -> tuple[Array, float]:
        """Return a mask of w_b's coefficients worth keeping, and the objective with only these.

        The smallest go, down from 1 % of the largest, as long as the objective rises by less than a tenth of the
        tolerance: it is computed for what is kept.
        """
        C1, objective = self.problem.C1, solution.objective
        scores = solution.point.scores
        size = np.abs(total.coef).max(axis=1, initial=0.0)
        allowed = min(
            self.tol * C1,
            np.inf if self.tol_relative is None else allowed_gap(self.tol_relative, objective, self.at_zero),
        )
        left = np.inf
        if self.converged and self.lower_bound is not None:  # a gap within the tolerance must stay within it
            left = max(0.0, self.lower_bound + allowed - objective)
        allowed = min(TRIM_SHARE * allowed, left)
        for share in (1e-2, 1e-3, 1e-4, 1e-6):
            small = np.flatnonzero(size <= share * size.max(initial=0.0))
            if not len(small):
                break
            rows, coef = total.rows[small], total.coef[small]
            part = self.kernel_rows.scores(self.kernel_rows.points(rows), coef)
            own = scores[rows] - (total.intercept if self.book.intercept else 0.0)
            norm_squared = solution.norm_squared - 2 * np.sum(coef * own) + np.sum(coef * part[rows])
            point = Point(scores - part, solution.point.plain)
            value = 0.5 * norm_squared + C1 * reference_loss(self.task, point, self.examples)[1]
            if value <= objective + allowed:
                return size > share * size.max(), value
        return size > 0, objective

    def objective(self, model: KernelExpansion, norm_squared: float) -> float:
        """Return ½‖w‖² + C Σ ω_e ℓ_e of a model whose scores are not kept, in one pass over the rows."""
        n, m = self.kernel_rows.n_rows, self.task.n_outputs
        points = self.kernel_rows.points_of(model.basis)
        scores = np.empty((n, m))
        for lo in range(0, n, REPORT_ROWS):
            hi = min(n, lo + REPORT_ROWS)
            scores[lo:hi] = self.kernel_rows.scores(points, model.coef, rows=(lo, hi))
        loss = reference_loss(self.task, Point(scores + model.intercept, model.plain), self.examples)[1]
        return 0.5 * norm_squared + self.problem.C1 * loss


CHOICES = {"step": ("line-search", "full"), "constant": ("sample", "all"), "keep": ("best", "last")}


class CuttingPlaneSolver(Solver):
    """The base class of the three solvers: checks, and the run with the oracle that each makes."""

    max_idle: int
    states: ClassVar[tuple[type, ...]] = (CutsState,)

    def oracle(self, problem: Problem) -> Any:
        """Make the oracle with this solver's parameters."""
        raise TypeError(f"{type(self).__name__} must define oracle(problem)")

    def plan(self, problem: Problem) -> Plan:
        """Return the options of the run."""
        raise TypeError(f"{type(self).__name__} must define plan(problem)")

    def start(self, problem: Problem, state: CutsState | None = None) -> Run:
        """Check parameters and set the run up."""
        name = type(self).__name__
        check_needs(name, problem, no_free_intercept("a cut has no place for an unregularised intercept"))
        if state is not None and not isinstance(state, self.states):
            raise ValueError(f"{name} can only be warm-started from a cutting-plane fit, found {type(state).__name__}")
        parameters = self.get_params(deep=False)
        if parameters.get("tol_relative") is not None and not parameters["tol_relative"] > 0:
            raise ValueError(f"tol_relative must be a positive number or None, found {self.tol_relative!r}")
        for choice, known in CHOICES.items():
            if choice in parameters:
                check_choice(choice, parameters[choice], *known)
        if parameters.get("keep") == "last" and parameters["step"] == "line-search":
            raise ValueError("keep='last' goes with step='full', found step='line-search'")
        for count in ("max_idle", "sample_size", "patience", "warm_up", "max_basis", "vectors_per_cut", "max_draws"):
            optional = count in ("warm_up", "vectors_per_cut")
            if count in parameters and not (optional and parameters[count] is None):
                check_count(count, parameters[count])
        if not 0 <= parameters.get("overshoot", 0) <= 1:
            raise ValueError(f"overshoot must be between 0 and 1, found {self.overshoot!r}")
        return self.make_run(problem, state)

    def make_run(self, problem: Problem, state: CutsState | None) -> Run:
        """Make the run, after the parameters were checked."""
        return CuttingPlaneRun(problem, self.oracle(problem), self.plan(problem), state)

"""Planes of every example: the dual of a structured SVM in which each example has its own slack.

`BCFW` and exact cuts with a slack for each example go on from here; each says what a step is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.core.threads import run_tiles
from slimsvm.parts.cuts.plane_store import KernelBook, Planes, Step, WeightBook
from slimsvm.parts.cuts.score_books import resolve_weights
from slimsvm.parts.problem import Problem
from slimsvm.parts.rounding import DualPoint
from slimsvm.parts.run import Best, Fit, Run, Status, reported_objective
from slimsvm.tasks import Augmented, Examples, Task, losses
from slimsvm.tasks.examples import check_same_loss

Array = np.ndarray

# The examples whose oracle is called at the same w: a share of all, up to a number; and the examples in one call of the
# task (docs/experiments/structured_outputs.md, "Block-coordinate Frank-Wolfe"). The other numbers were chosen, not
# measured.
BATCH_SHARE, MAX_BATCH, PART = 1 / 32, 64, 16
# A batch of one example costs more in Python than in the core: it has two if these are at most this share of all.
PAIR_SHARE = 1 / 16
# Examples are solved to this share of the violation that the tolerance allows them, or of the average remaining gap.
BLOCK_SHARE, LEFT_SHARE = 0.1, 0.05


@dataclass(frozen=True)
class PlanesState:
    """The dual point of a fit, for a warm start: planes hold for any kernel, C and features of the same examples."""

    planes: Planes
    C: float
    task: Task
    examples: Examples


@dataclass(frozen=True)
class BlockSteps:
    """The base class of solvers that change dual variables example by example, with the parameters of `BCFW`."""

    tol_relative: float | None
    step: str = "corrective"
    cached_passes: int = 2
    averaging: bool = False
    weights: Any = "auto"


class PlanesRun(Run):
    """The base run: planes of every example with their weights α, and the model that these give."""

    doing = "passes over the examples"

    def __init__(self, problem: Problem, solver: BlockSteps, state: PlanesState | None):
        self.problem, self.solver, self.tol = problem, solver, problem.tol * problem.loss_unit
        self.task, self.examples = problem.task, problem.examples
        self.kernel_rows = problem.bind()
        self.rng = problem.generator()
        self.C_of_example = problem.C * self.examples.weights
        intercept = problem.intercept == "regularized"
        book = WeightBook if resolve_weights(solver.weights, problem) else KernelBook
        self.book: KernelBook | WeightBook = book(
            self.kernel_rows, self.examples, self.C_of_example, self.task, intercept, problem.memory_limit
        )
        self.planes = Planes(self.examples.n_examples)
        if state is not None:
            check_same_loss(state, self.task, self.examples, "; only the kernel, C and X may change")
            self.planes = state.planes.copy(problem.C / state.C)
            self.book.restore(self.planes)
        n = self.examples.n_examples
        least = 2 if n * PAIR_SHARE >= 2 else 1
        self.batch = int(np.clip(n * BATCH_SHARE, least, MAX_BATCH))
        self.n_passes, self.converged, self.in_step = 0, False, False
        self.lower_bound, self.left = 0.0, np.inf
        self.average: tuple[Array, ...] | None = None
        self.judged: float | None = None

    def distance(self, record: dict[str, Any]) -> float | None:
        """Return the gap after an iteration, in units of the tolerance."""
        objective, gap = record.get("objective"), record.get("gap")
        return None if objective is None or gap is None else gap / max(self.allowed(objective), 1e-300)

    def allowed(self, objective: float) -> float:
        """Return the gap that ends the fit."""
        relative = self.solver.tol_relative
        return min(self.tol * self.problem.C1, np.inf if relative is None else relative * abs(objective))

    def oracle_pass(self) -> float:
        """Make a pass with the oracle; return Σ ω_e ℓ_e, each loss at the time of its example's step."""
        return self.each_batch(self.ask)

    def ask(self, batch: Array) -> float:
        """Add the oracle's planes of some examples, all at the present w; return their weighted losses."""
        parts = [batch[lo : lo + PART] for lo in range(0, len(batch), PART)]
        found: list[Any] = [None] * len(parts)

        def answer(lo: int, hi: int) -> None:
            for t in range(lo, hi):
                found[t] = self.answer(parts[t])

        run_tiles(answer, len(parts), self.kernel_rows.n_jobs)
        for index, (examples, augmented, _) in zip(parts, found):
            self.planes.add(index, examples, augmented)
        return float(sum(loss for _, _, loss in found))

    def answer(self, index: Array) -> tuple[Examples, Augmented, float]:
        """Return the loss-augmented argmax of some examples, with their weighted losses."""
        examples = self.examples.take(index)
        scores, plain = self.book.scores_of(self.examples.rows_of(index)), self.book.plain
        augmented = self.task.augment(scores, plain, examples)
        return examples, augmented, float(examples.weights @ losses(augmented, scores, plain, examples))

    def each_batch(self, before: Callable[[Array], float] = lambda batch: 0.0) -> float:
        """Take a step on every example in random order, batch by batch; return the sum of ``before(batch)``."""
        tol = BLOCK_SHARE * self.allowed(self.lower_bound) / self.problem.C1
        if np.isfinite(self.left):
            tol = max(tol, LEFT_SHARE * self.left / self.problem.C1)
        how, total = Step(self.solver.step == "corrective", tol), 0.0
        order = self.rng.permutation(self.examples.n_examples)
        for lo in range(0, len(order), self.batch):
            batch = order[lo : lo + self.batch]
            total += before(batch)
            self.book.step(self.planes, batch, how)
        return total

    def take_average(self) -> None:
        """Update the average of the iterates after each pass, the k-th counted k times."""
        share = 2.0 / (self.n_passes + 1)
        now = self.book.parameters()
        before = self.average or tuple(np.zeros_like(part) for part in now)
        self.average = tuple(old + share * (new - old) for old, new in zip(before, now))

    def judge(self) -> tuple[float, float]:
        """Compute objective and training error of the model, or of the average."""
        latest = self.book.parameters()
        if self.average is not None:
            self.book.set(self.average)
        scores, plain = self.book.all_scores(), self.book.plain
        here = scores, plain
        loss = self.task.along(here, here, 0.0, self.examples, self.kernel_rows.n_jobs)[0]
        objective = 0.5 * self.book.norm_squared + self.problem.C * loss
        self.book.set(latest)
        self.judged = objective
        return objective, self.task.error(self.task.decode(scores, plain, self.examples), self.examples)

    def settle(self) -> float:
        """Go to the model as it stands; its objective, or that of the average."""
        if self.in_step:  # after an interrupt: the scores may be older than the last step
            self.book.restore(self.planes)
        return self.judge()[0]

    def dual_point(self) -> DualPoint:
        """Return the planes with their weights as a dual point."""
        coef, plain = self.planes.coefficients(self.examples, self.task)
        rows = np.flatnonzero(coef.any(axis=1))
        sure = float(plain @ plain)
        if self.problem.intercept == "regularized":
            sure += float(np.sum(coef.sum(axis=0) ** 2))
        rest = self.planes.constants - 0.5 * sure
        return DualPoint(rows, coef[rows], rest, 2.0 * (rest - self.lower_bound))

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model with its objective."""
        counters: dict[str, Any] = {"kernel_evals": self.kernel_rows.counter.n, "n_planes": int(self.planes.n[0])}
        if self.in_step:
            self.book.take(self.planes)
        objective = None if self.in_step else self.judged
        if objective is None:
            objective = reported_objective(self.problem, status, self.book.n_basis, self.settle)
        if self.average is not None:
            self.book.set(self.average)
        model, rows = self.book.model()
        counters["report_kernel_evals"] = self.kernel_rows.counter.n - counters["kernel_evals"]
        state = PlanesState(self.planes, self.problem.C, self.task, self.examples)
        return Fit(model, status, objective, min(self.lower_bound, objective), history, counters, state, rows)


# -- Exact cuts with a slack for each example --------------------------------------------------------------------------
# Tsochantaridis, Joachims, Hofmann, Altun, "Large Margin Methods for Structured and Interdependent Output Variables",
# JMLR 2005, Algorithm 1 in the form that takes a cut of every example at one w (the n-slack algorithm of Joachims,
# Finley, Yu, "Cutting-Plane Training of Structural SVMs", Machine Learning 2009, Algorithm 1).
#
# Problem (ω_e: weight of example e):
#
#     min_{w, ξ ≥ 0}  ½‖w‖² + C Σ_e ω_e ξ_e     s.t.  c − ⟨w, g⟩ ≤ ξ_e  for every cut (c, g) of example e
#
#     repeat
#         exact pass: the loss-augmented argmax of every example at w is its cut; with their losses, P(w)
#         stop when the least P(w) so far − D is within the tolerances
#         raise the dual over all cuts there are by passes from example to example; its value is D; w = Σ_e Σ_k α_k g_k
#         drop cuts that have been inactive for `max_idle` iterations
#
# The mean over all examples, the one cut of `parts.cuts.cutting_plane_loop`, is one combination of these out of very
# many: n slacks take tens of exact passes where one slack takes hundreds. At w = 0 the cuts of all examples are alike
# and teach little; so the first pass is followed by one of block-coordinate Frank-Wolfe, whose cuts are made as w
# changes.

# The number of examples whose argmax is stored at a time.
EXAMPLES_AT_ONCE = 1024


class ExampleCutsRun(PlanesRun):
    """The run on one problem, from the cuts of an earlier fit if there is one."""

    def __init__(self, problem: Problem, solver: Any, state: PlanesState | None):
        tol, tol_relative = problem.tol * problem.loss_unit, solver.tol_relative
        if tol_relative is not None:
            tol, tol_relative = problem.tolerances(tol_relative)
        super().__init__(problem, BlockSteps(tol_relative, weights=solver.weights), state)
        self.tol = tol
        self.max_idle = solver.max_idle
        self.is_new = state is None
        self.best = Best()  # of parameters

    def step(self) -> dict[str, Any]:
        """Make one exact pass, then improve the dual over the stored cuts."""
        self.in_step = True
        norm = self.book.norm_squared
        loss = self.exact_pass()
        objective = 0.5 * norm + self.problem.C * loss
        self.best = self.best.or_lower(objective, tuple(part.copy() for part in self.book.parameters()))
        self.left = max(self.best.objective - self.lower_bound, 0.0)
        self.converged = self.left <= self.allowed(self.best.objective)
        if not self.converged:
            self.improve_dual()
            self.converged = self.left <= self.allowed(self.best.objective)
        self.in_step = False
        return {
            "objective": self.best.objective,
            "lower_bound": self.lower_bound,
            "gap": self.best.objective - self.lower_bound,
            "loss": loss / self.examples.total_weight,
            "training_error": None,
            "n_planes": int(self.planes.n[0]),
            "n_basis": self.book.n_basis,
        }

    def exact_pass(self) -> float:
        """Add the cut of every example at w; return Σ ω_e ℓ_e."""
        n, total = self.examples.n_examples, 0.0
        for lo in range(0, n, EXAMPLES_AT_ONCE):
            total += self.ask(np.arange(lo, min(n, lo + EXAMPLES_AT_ONCE)))
        return total

    def improve_dual(self) -> None:
        """Make a few passes over the stored cuts."""
        if self.is_new:
            self.is_new = False
            self.oracle_pass()
        for _ in range(self.solver.cached_passes):
            self.each_batch()
        self.lower_bound = max(self.lower_bound, self.planes.constants - 0.5 * self.book.norm_squared)
        self.left = max(self.best.objective - self.lower_bound, 0.0)
        self.planes.age(self.max_idle)

    def settle(self) -> float:
        """Go to the w of the least objective that was seen."""
        if self.best.found is None:
            return super().settle()
        self.book.set(self.best.found)
        return self.best.objective

r"""Block-coordinate Frank-Wolfe: the dual of a structured SVM, one example at a time.

Problem (δΨ_e(y) and c_e(y) are the plane that labelling y is to example e, see `tasks.task`):

    max_{α ≥ 0}  Σ_e Σ_y α_e(y) c_e(y) − ½‖w‖²,   w = Σ_e Σ_y α_e(y) δΨ_e(y),   Σ_y α_e(y) ≤ C ω_e

    repeat for all examples in random order, batch by batch:
        oracle: the loss-augmented argmax of each example of the batch at w: a plane
        step, one example after the other, at w as it is then:
            "line-search"  w_e ← (1 − γ) w_e + γ C ω_e δΨ_e(ŷ_e), γ the best (Lacoste-Julien et al., Algorithm 4)
            "corrective"   the best α_e over the planes of e that were met so far
        `cached_passes` times: the steps alone, without an oracle
    stop when P(w) − D(α) is within the tolerances

D(α) bounds the optimum from below. w is kept as weights where features are explicit (`kernel="linear"`), else as dual
coefficients of the rows with the scores of all rows; both know where the planes of an example meet.

Lacoste-Julien, Jaggi, Schmidt, Pletscher, "Block-Coordinate Frank-Wolfe Optimization for Structural SVMs", ICML 2013;
Shah, Kolmogorov, Lampert, "A Multi-Plane Block-Coordinate Frank-Wolfe Algorithm", CVPR 2015 (planes that are kept);
Osokin et al., "Minding the Gaps for Block Frank-Wolfe", ICML 2016 (steps between two planes of an example).

Parts: `solvers.cutting.plane_store`, `core/cuts/block_steps.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.core.threads import run_tiles
from slimsvm.solvers.base import Fit, Problem, Solver, Status, reported
from slimsvm.solvers.checks import RANDOM_ACCESS, Need, check_count, check_needs, no_free_intercept
from slimsvm.solvers.cutting.explicit_weights import resolve_weights
from slimsvm.solvers.cutting.plane_store import KernelBook, Planes, Step, WeightBook
from slimsvm.solvers.rounding import DualPoint
from slimsvm.tasks import Augmented, Examples, Task, losses
from slimsvm.tasks.examples import check_same_loss

Array = np.ndarray

METHODS = ("corrective", "line-search")
# Examples whose oracle is asked at the same w: a share of all, up to a number; and those of one call of the task.
BATCH_SHARE, MAX_BATCH, PART = 1 / 32, 64, 16
# A batch of one example costs more Python than work: two are taken where they are at most this share of all.
PAIR_SHARE = 1 / 16
# The objective is computed in the first passes, near the end and every so often: it takes a pass over all rows.
FIRST_PASSES, NEAR, EVERY = 3, 3.0, 5
# Examples are solved to this share of the violation that the tolerance allows them, or of what is left on average.
BLOCK_SHARE, LEFT_SHARE = 0.1, 0.05
NEEDS = (
    no_free_intercept("blocks cannot share an equality constraint"),
    Need(
        lambda problem: problem.task.decomposes,
        "BCFW needs a loss that is a sum over examples, found {task}; solver='exact-cuts' trains losses over all rows",
    ),
)
# Passes without weight after which a plane is forgotten.
MAX_IDLE = 10


@dataclass(frozen=True)
class BCFWState:
    """The dual point of a fit, to go on from: planes hold for any kernel, C and features of the same examples."""

    planes: Planes
    C: float
    task: Task
    examples: Examples


class BCFWRun:
    """The loop's state on one problem; a step is a pass over all examples."""

    doing = "passes over the examples"

    def __init__(self, problem: Problem, solver: BCFW, state: BCFWState | None):
        self.problem, self.solver = problem, solver
        self.task, self.examples = problem.task, problem.examples
        self.kernel_rows = problem.bind()
        self.rng = problem.generator()
        self.prices = problem.C * self.examples.weights
        intercept = problem.intercept == "regularized"
        book = WeightBook if resolve_weights(solver.weights, problem) else KernelBook
        self.book: Any = book(self.kernel_rows, self.examples, self.prices, self.task, intercept, problem.memory_limit)
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
        """See `solvers.progress`."""
        objective, gap = record.get("objective"), record.get("gap")
        return None if objective is None or gap is None else gap / max(self.allowed(objective), 1e-300)

    def step(self) -> dict[str, Any]:
        """One pass over all examples with the oracle, and those without."""
        self.in_step, self.judged = True, None
        loss = self.oracle_pass()
        for _ in range(self.solver.cached_passes):
            self.each_batch()
        self.in_step = False
        self.n_passes += 1
        self.planes.age(MAX_IDLE)
        if self.solver.averaging:
            self.take_average()
        norm = self.book.norm_squared
        self.lower_bound = max(self.lower_bound, self.planes.constants - 0.5 * norm)
        estimate = 0.5 * norm + self.problem.C * loss
        self.left = max(estimate - self.lower_bound, 0.0)
        near = self.left <= NEAR * self.allowed(estimate)
        objective, error = None, None
        if near or self.n_passes <= FIRST_PASSES or self.n_passes % EVERY == 0:
            objective, error = self.judge()
            self.left = max(objective - self.lower_bound, 0.0)
            self.converged = self.left <= self.allowed(objective)
        return {
            "objective": objective,
            "lower_bound": self.lower_bound,
            "gap": None if objective is None else objective - self.lower_bound,
            "loss": loss / self.examples.total_weight,
            "training_error": error,
            "n_planes": int(self.planes.n[0]),
            "n_basis": self.book.n_basis,
        }

    def allowed(self, objective: float) -> float:
        """The gap that ends the fit."""
        relative = self.solver.tol_relative
        return min(self.problem.tol * self.problem.C1, np.inf if relative is None else relative * abs(objective))

    def oracle_pass(self) -> float:
        """A pass with the oracle; returns Σ ω_e ℓ_e as the examples were met."""
        return self.each_batch(self.ask)

    def ask(self, batch: Array) -> float:
        """The oracle's planes of some examples, all at the w of this moment; returns their weighted losses."""
        parts = [batch[lo : lo + PART] for lo in range(0, len(batch), PART)]
        found: list[Any] = [None] * len(parts)

        def answer(lo: int, hi: int) -> None:
            for t in range(lo, hi):
                found[t] = self.answer(parts[t])

        run_tiles(answer, len(parts), self.kernel_rows.n_jobs)
        for index, (examples, augmented, _) in zip(parts, found):
            self.planes.add(index, examples, augmented)
        return sum(loss for _, _, loss in found)

    def answer(self, index: Array) -> tuple[Examples, Augmented, float]:
        """Loss-augmented argmax of some examples, with their weighted losses."""
        examples = self.examples.take(index)
        scores, plain = self.book.scores_of(self.examples.rows_of(index)), self.book.plain
        augmented = self.task.augment(scores, plain, examples)
        return examples, augmented, float(examples.weights @ losses(augmented, scores, plain, examples))

    def each_batch(self, before: Callable[[Array], float] = lambda batch: 0.0) -> float:
        """Steps on all examples in random order, batch by batch; returns the sum of what ``before`` says of each."""
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
        """The average of the iterates after each pass, the k-th counted k times."""
        share = 2.0 / (self.n_passes + 1)
        now = self.book.parameters()
        before = self.average or tuple(np.zeros_like(part) for part in now)
        self.average = tuple(old + share * (new - old) for old, new in zip(before, now))

    def judge(self) -> tuple[float, float]:
        """Objective and training error of the machine, or of the average."""
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
        """Go to the machine as it stands; its objective, or that of the average."""
        if self.in_step:  # an interrupt: the scores may be those of a moment before the last step
            self.book.restore(self.planes)
        return self.judge()[0]

    def dual_point(self) -> DualPoint:
        """The planes with their weights."""
        coef, plain = self.planes.coefficients(self.examples, self.task)
        rows = np.flatnonzero(coef.any(axis=1))
        sure = float(plain @ plain)
        if self.problem.intercept == "regularized":
            sure += float(np.sum(coef.sum(axis=0) ** 2))
        rest = self.planes.constants - 0.5 * sure
        return DualPoint(rows, coef[rows], rest, 2.0 * (rest - self.lower_bound))

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """The machine, with its objective."""
        counters: dict[str, Any] = {"kernel_evals": self.kernel_rows.counter.n, "n_planes": int(self.planes.n[0])}
        if self.in_step:
            self.book.take(self.planes)
        objective = None if self.in_step else self.judged
        if objective is None:
            objective = reported(self.kernel_rows, status, self.book.n_basis, self.settle)
        if self.average is not None:
            self.book.set(self.average)
        objective = np.nan if objective is None else objective
        model, rows = self.book.model(self.problem.kernel)
        counters["report_kernel_evals"] = self.kernel_rows.counter.n - counters["kernel_evals"]
        state = BCFWState(self.planes, self.problem.C, self.task, self.examples)
        return Fit(model, status, objective, min(self.lower_bound, objective), history, counters, state, rows)


class BCFW(Solver):
    """Block-coordinate Frank-Wolfe: solves the structured dual, one example at a time, to a computed gap.

    For every task whose loss is a sum over examples, and any kernel. With ``kernel="linear"`` weights are explicit.

    Parameters
    ----------
    tol_relative : float or None, default=0.01
        Largest gap as a share of the objective, in addition to ``tol`` (on the mean loss).
    step : {"corrective", "line-search"}, default="corrective"
        "line-search" is the paper's step towards the plane that the oracle found. "corrective" solves for the best mix
        of all planes of the example met so far, and needs far fewer passes to small gaps.
    cached_passes : int, default=2
        Passes over the stored planes after each pass with the oracle; 0 is the paper's algorithm.
    averaging : bool, default=False
        Return the weighted average of the iterates after each pass, in which the k-th counts k times. The gap is
        computed for its objective. It helps line searches, whose last iterate is poor, and harms corrective steps.
    weights : {"auto"} or bool, default="auto"
        Whether a linear kernel's machine is stored as weights of features. "auto" does so above 2,000 rows that have
        on average no more features than there are rows.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher: Block-Coordinate Frank-Wolfe Optimization for Structural SVMs, ICML
    2013, Algorithm 4.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import BCFW, SequenceSVM
    >>> X = [np.array([[0.0], [1.0], [0.0]]), np.array([[1.0], [1.0]])]
    >>> y = [["a", "b", "a"], ["b", "b"]]
    >>> clf = SequenceSVM(C=10.0, kernel="linear", solver=BCFW(tol_relative=1e-3), random_state=0).fit(X, y)
    >>> bool(clf.objective_ - clf.lower_bound_ <= 1e-3 * clf.objective_)
    True
    """

    def __init__(self, tol_relative=0.01, step="corrective", cached_passes=2, averaging=False, weights="auto"):
        self.tol_relative = tol_relative
        self.step = step
        self.cached_passes = cached_passes
        self.averaging = averaging
        self.weights = weights

    def start(self, problem: Problem, state: BCFWState | None = None) -> BCFWRun:
        """Check parameters and set the run up."""
        check_needs("BCFW", problem, RANDOM_ACCESS, *NEEDS)
        if state is not None and not isinstance(state, BCFWState):
            raise ValueError(f"BCFW can only be warm-started from a BCFW fit, found {type(state).__name__}")
        if self.tol_relative is not None and not self.tol_relative > 0:
            raise ValueError(f"tol_relative must be a positive number or None, found {self.tol_relative!r}")
        if self.step not in METHODS:
            raise ValueError(f"step must be 'corrective' or 'line-search', found {self.step!r}")
        if self.cached_passes != 0:
            check_count("cached_passes", self.cached_passes)
        return BCFWRun(problem, self, state)

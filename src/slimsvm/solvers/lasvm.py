r"""LASVM: the kernel SVM online, one row after the other.

    max_v  D(v) = Σ t_i v_i − ½ v'Kv,    lo ≤ v ≤ hi,    free intercept: Σ v_i = 0    (`parts.dual_ascent.dual`)

    S = a few rows of both classes
    for rows k in random order, or the one of every ``pool`` rows that is chosen:
        PROCESS(k)   take k into S if it violates the optimality conditions by more than tol; one step with it
        REPROCESS    one step on the worst violators in S; rows with v = 0 that cannot move leave S
    finishing: REPROCESS until no row of S violates by more than tol (here with second-order selection)

Bordes, Ertekin, Weston, Bottou, "Fast Kernel Classifiers with Online and Active Learning", JMLR 2005. Theirs is the
free intercept; without one, or with a regularised one, steps are made in one variable instead of two.

The finishing step solves for S only. ``tol_relative`` goes on where the paper stops: one pass over all rows computes
the gap, and rows that violate join S, until it is small enough. That also cures what PROCESS cannot: where all rows of
S are at their bounds (a small C), no single new row finds a partner to move with.

Rows in chunks: what is left of all rows met so far is S, with its dual variables. The next chunk's problem has the rows
of S and its own; all others have v = 0, so that D(v) is the dual value over every row met, and a bound on their
problem. The same chunk given again is another pass over it: its rows in S are known by their places, and none counts
twice.

Parts: `parts.dual_ascent.kernel_values` (kernel values between the rows of S), `core/decomposition/lasvm.cc`
(steps), `parts.dual_ascent.smo` (finishing), `parts.resuming` (rows in chunks).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.core.clock import time_limit
from slimsvm.core.threads import one_blas_thread
from slimsvm.parts.dual_ascent.dual import GAP, Box, Dual, DualState, Progress
from slimsvm.parts.dual_ascent.kernel_values import KernelTable, ValueSettings
from slimsvm.parts.dual_ascent.smo import KernelBlock, SetSettings, solve_set
from slimsvm.parts.problem import RANDOM_ACCESS, TWO_CLASSES, Problem, check_count, check_flag, check_needs
from slimsvm.parts.resuming import digest_of, stacked
from slimsvm.parts.rounding import DualPoint
from slimsvm.parts.run import Fit, Run, Status, finite, model_over, reported, with_safe_bound
from slimsvm.parts.solver import Solver, iterate
from slimsvm.rows import as_rows
from slimsvm.tasks import Examples, Task, losses
from slimsvm.tasks.examples import same_fields


@dataclass(frozen=True)
class OnlineState:
    """The set S after a chunk, with its dual variables."""

    rows: Any  # ndarray or csr_array of shape (k, d)
    # labels, weights, v: (k,)
    labels: Array
    weights: Array
    v: Array
    place: Array  # int64 (k,): positions in the last chunk; −1 for rows of earlier ones
    C: float
    # The loss, and the digest of the last chunk, to recognise it when it comes again.
    task: Task
    examples: Examples
    digest: bytes


@dataclass(frozen=True)
class Joined:
    """The problem of S's rows from earlier chunks, followed by the chunk."""

    problem: Problem
    v: Array  # (n_rows,): the dual point so far
    kept: Array  # int64: rows that are in S
    n_earlier: int  # rows before the chunk's
    chunk: Problem
    digest: bytes

    @classmethod
    def of(cls, chunk: Problem, state: OnlineState | None) -> Joined:
        """Join a chunk to the state that earlier ones left."""
        digest, chunk = digest_of(chunk), replace(chunk, max_iter=None)
        if state is None:
            return cls(chunk, np.zeros(chunk.rows.n_rows), np.zeros(0, np.int64), 0, chunk, digest)
        same = (state.task, chunk.task), (state.examples, chunk.examples)
        is_again = digest == state.digest and all(same_fields(a, b) for a, b in same)
        place = state.place if is_again else np.full(len(state.v), -1)
        is_earlier = place < 0
        k = int(is_earlier.sum())
        kept = np.where(is_earlier, np.cumsum(is_earlier) - 1, k + place)
        examples = replace(
            chunk.examples,
            labels=np.concatenate([state.labels[is_earlier], chunk.examples.labels]),
            weights=np.concatenate([state.weights[is_earlier], chunk.examples.weights]),
        )
        problem = replace(chunk, rows=as_rows(stacked(state.rows[is_earlier], chunk)), examples=examples)
        v = np.zeros(problem.rows.n_rows)
        v[kept] = state.v * (chunk.C / state.C)
        return cls(problem, Dual.of(problem).feasible(v), kept, k, chunk, digest)

    def left(self, rows: Array, v: Array) -> OnlineState:
        """Return the state after this chunk; S is these rows of the joined problem."""
        joint, place = self.problem, rows - self.n_earlier
        return OnlineState(
            rows=joint.rows.take(rows, joint.rows.exact_dtype),
            labels=joint.examples.labels[rows],
            weights=joint.examples.weights[rows],
            v=v,
            place=np.where(place < 0, -1, place),
            C=joint.C,
            task=self.chunk.task,
            examples=self.chunk.examples,
            digest=self.digest,
        )


Array = np.ndarray

SELECTIONS = ("random", "gradient", "margin")
# The number of seeds of either class. These numbers were chosen, not measured.
SEEDS = 5
# Rows processed in one call, at most this many and this share of all: the kernel values with S are one product.
BATCH, BATCH_SHARE = 64, 1 / 16
# Selected rows are processed in smaller batches, so that a selection knows the effect of earlier rows.
CHOSEN_BATCH = 8
# The most rows that join S after a check of all rows, or the size of S if that is more.
MOST_ADDED = 1024
# Finishing steps between two checks of the limits.
SETTLING_STEPS = 10_000
# Share of the memory limit for the kernel values between the rows of S.
TABLE_SHARE = 0.75


@dataclass(frozen=True)
class Judged:
    """A dual point with what one pass over all rows found of it: objective, bound, error and g."""

    rows: Array
    v: Array
    intercept: float
    objective: float
    bound: float
    error: float
    g: Array


class LasvmRun(Run):
    """The run on one problem.

    ``latest`` (rows, v) is replaced as a whole, so that an interrupt leaves a model. It begins with ``kept`` in S, of
    dual variables v, or with seeds where that is None; ``offered`` are the rows to pass over.
    """

    doing = "passes over the rows"

    def __init__(self, problem: Problem, solver: LASVM, offered: Array, v: Array, kept: Array | None):
        self.problem, self.solver, self.dual = problem, solver, Dual.of(problem)
        self.kernel_rows = problem.bind()
        self.rng = problem.generator()
        slots = problem.settings_of(ValueSettings).first_slots
        self.table = KernelTable(self.kernel_rows, int(TABLE_SHARE * problem.memory_limit), "LASVM", slots)
        size = len(self.table.row)
        self.v, self.g, self.target, self.lo, self.hi = (np.zeros(size) for _ in range(5))
        self.inside = np.zeros(size, bool)
        self.latest = np.zeros(0, np.int64), np.zeros(0)
        self.value, self.converged, self.n_steps = 0.0, False, 0
        self.progress = Progress(problem.rows.n_rows)
        self.spent: str | None = None
        self.judged: Judged | None = None
        self.is_settled = False
        if kept is not None:
            self.go_on(kept, v)
        self.queue = self.order(offered, with_seeds=kept is None)
        self.n_queued = max(1, len(self.queue))

    @property
    def share_done(self) -> float:
        """Return the share of the passes that is done; little work remains after them."""
        return 1.0 - len(self.queue) / self.n_queued

    def go_on(self, rows: Array, v: Array) -> None:
        """Start with these rows in S."""
        if len(rows):
            slots = self.insert(rows)
            scores = self.kernel_rows.scores(self.kernel_rows.points(rows), v[rows, None], rows=rows)[:, 0]
            self.v[slots], self.inside[slots] = v[rows], True
            self.g[slots] = self.target[slots] - scores - self.dual.offset * v.sum()
            self.note()

    def order(self, offered: Array, with_seeds: bool) -> Array:
        """Return the order of rows: seeds of both classes, then every row once in each epoch."""
        parts = []
        if with_seeds:
            own = self.rng.permutation(offered)
            for of_class in (own[self.dual.target[own] > 0], own[self.dual.target[own] < 0]):
                parts.append(of_class[:SEEDS])
        return np.concatenate([*parts, *(self.rng.permutation(offered) for _ in range(self.solver.epochs))])

    def insert(self, rows: Array) -> Array:
        """Make slots for rows that are not in S, and return them."""
        slots = self.table.add(rows, np.flatnonzero(self.inside))
        size = len(self.table.row)
        if size > len(self.v):
            more = size - len(self.v)
            self.v, self.g, self.target, self.lo, self.hi = (
                np.append(old, np.zeros(more)) for old in (self.v, self.g, self.target, self.lo, self.hi)
            )
            self.inside = np.append(self.inside, np.zeros(more, bool))
        self.v[slots] = 0.0
        self.target[slots], self.lo[slots], self.hi[slots] = (
            array[rows] for array in (self.dual.target, self.dual.lo, self.dual.hi)
        )
        return slots

    @property
    def online_set(self) -> core.Structure:
        """Return S as compiled code takes it."""
        found: core.Structure = core.OnlineSet(
            top=self.table.top,
            balanced=self.dual.balanced,
            offset=self.dual.offset,
            values=self.table.values,
            target=self.target,
            lo=self.lo,
            hi=self.hi,
            v=self.v,
            g=self.g,
            inside=self.inside,
        )
        return found

    def note(self) -> None:
        """Keep the dual point and its value."""
        used = np.flatnonzero(self.v)
        v = self.v[used]
        self.value = max(self.value, 0.5 * float(v @ (self.target[used] + self.g[used])))
        self.latest = self.table.row[used], v

    # -- the loop ---------------------------------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """Learn a batch of rows, or take some finishing steps, or check all rows."""
        seen: Judged | None = None
        if len(self.queue):
            self.learn()
            self.converged = not (len(self.queue) or self.solver.finish)
        elif not self.is_settled:
            self.settle()
            self.converged = self.is_settled and self.solver.tol_relative is None
        else:
            seen = self.look()
        self.spent = self.progress.ended(self.n_steps, lambda: self.value)
        return {
            "objective": None if seen is None else seen.objective,
            "lower_bound": self.value,
            "gap": None if seen is None else seen.objective - self.value,
            "n_active": int(np.count_nonzero(self.inside)),
            "n_basis": len(self.latest[0]),
            "training_error": None if seen is None else seen.error,
        }

    def learn(self) -> None:
        """Run PROCESS and REPROCESS on the next rows."""
        n, chooses = self.kernel_rows.n_rows, self.solver.selection != "random"
        size = max(1, min(CHOSEN_BATCH if chooses else BATCH, int(BATCH_SHARE * n)))
        pool = self.solver.pool if chooses and len(self.latest[0]) else 1
        looked_at, self.queue = self.queue[: size * pool], self.queue[size * pool :]
        rows = looked_at if pool == 1 else self.choose(looked_at, pool)
        # A batch is a set of rows that are not in S.
        is_kept = ~np.isin(rows, self.table.row[: self.table.top][self.inside[: self.table.top]])
        rows = rows[is_kept][np.sort(np.unique(rows[is_kept], return_index=True)[1])]
        if len(rows):
            slots = self.insert(rows)
            core.lasvm_learn(set=self.online_set, queue=slots, tol=self.problem.tol, seeds=2 * SEEDS, reprocesses=True)
            self.note()
        self.is_settled = False

    def settle(self) -> None:
        """Run REPROCESS, but with second-order selection, until no row of S violates by more than tol."""
        top = self.table.top
        inside = self.inside[:top]
        n_steps, *_ = solve_set(
            KernelBlock(self.table.values, np.arange(top)),
            self.g[:top],
            self.v[:top],
            # Slots that are not in S stay at 0.
            Box(self.lo[:top] * inside, self.hi[:top] * inside, self.dual.balanced, self.dual.offset),
            tol=self.problem.tol,
            max_steps=SETTLING_STEPS,
            settings=self.problem.settings_of(SetSettings),
        )
        self.is_settled, self.n_steps = n_steps < SETTLING_STEPS, self.n_steps + n_steps
        core.lasvm_evict(set=self.online_set)
        self.note()

    def choose(self, rows: Array, pool: int) -> Array:
        """Return, of every ``pool`` rows, the one with the smallest y f(x), or with the smallest |f(x)|."""
        scores = self.scores_of(rows)
        worth = np.abs(scores) if self.solver.selection == "margin" else scores * np.sign(self.dual.target[rows])
        return np.array([rows[at + np.argmin(worth[at : at + pool])] for at in range(0, len(rows), pool)])

    def scores_of(self, rows: Array | None = None) -> Array:
        """Return scores by the latest model, the intercept of S included."""
        basis, v = self.latest
        scores = self.kernel_rows.scores(self.kernel_rows.points(basis), v[:, None], rows=rows)[:, 0]
        return scores.astype(np.float64) + (self.middle() if self.dual.balanced else self.dual.offset * v.sum())

    def middle(self) -> float:
        """Return the free intercept of S: the middle between the worst violators."""
        rises, falls = self.g[self.inside & (self.v < self.hi)], self.g[self.inside & (self.v > self.lo)]
        ends = [extreme for extreme in (rises.max(initial=-np.inf), falls.min(initial=np.inf)) if np.isfinite(extreme)]
        return float(np.mean(ends)) if ends else 0.0

    def judge(self) -> Judged:
        """Compute objective and bound of the latest dual point in one pass over all rows."""
        rows, v_used = self.latest
        n, problem = self.kernel_rows.n_rows, self.problem
        v = np.zeros(n)
        v[rows] = v_used
        scores = np.zeros(n)
        if len(rows):
            scores = self.kernel_rows.scores(self.kernel_rows.points(rows), v_used[:, None])[:, 0].astype(np.float64)
        g = self.dual.target - scores - self.dual.offset * v.sum()
        intercept = self.dual.intercept(v, g)
        norm_squared = float(v @ (self.dual.target - g))
        scores, plain = (scores + intercept)[:, None], np.zeros(0)
        loss = losses(problem.task.augment(scores, plain, problem.examples), scores, plain, problem.examples)
        error = problem.task.error(problem.task.decode(scores, plain, problem.examples), problem.examples)
        objective = 0.5 * norm_squared + problem.C * float(problem.examples.weights @ loss)
        return Judged(rows, v, intercept, objective, self.dual.value(v, g), error, g)

    def stretched(self, seen: Judged) -> Judged:
        """Return the multiple of a dual point whose model has the lowest objective, if the gap is wide."""
        dual = self.dual
        if not seen.objective - seen.bound > GAP * seen.objective:
            return seen
        found = dual.stretched(seen.v, seen.g, seen.intercept)
        if found is None:
            return seen
        v, g = found
        intercept = dual.best_intercept(g) if dual.balanced else dual.offset * float(v.sum())
        objective = 0.5 * float(v @ (dual.target - g)) + dual.penalty(g, intercept if dual.balanced else 0.0)
        return replace(seen, v=v, g=g, intercept=intercept, objective=objective, bound=dual.value(v, g))

    def unjudged(self) -> Judged:
        """Return the latest dual point with the intercept of S, for when there is no time to check all rows."""
        rows, v_used = self.latest
        v = np.zeros(self.kernel_rows.n_rows)
        v[rows] = v_used
        intercept = self.middle() if self.dual.balanced else self.dual.offset * float(v_used.sum())
        return Judged(rows, v, intercept, np.nan, self.value, np.nan, np.zeros(0))

    def look(self) -> Judged:
        """Judge the point; where the gap is too wide, the rows that violate the most join S."""
        self.judged = seen = self.judge()
        inside = np.flatnonzero(self.inside)
        self.g[inside] = seen.g[self.table.row[inside]]
        up, down, *_ = self.dual.slopes(seen.v, seen.g)
        middle = seen.intercept if self.dual.balanced else 0.0
        violation = np.maximum(up - middle, middle - down)
        violation[self.table.row[inside]] = -np.inf
        violators = np.flatnonzero(violation > self.problem.tol)
        assert self.solver.tol_relative is not None
        is_near = seen.objective - self.value <= self.solver.tol_relative * seen.objective
        self.converged = is_near or not len(violators)
        if not self.converged:
            violators = violators[np.argsort(-violation[violators], kind="stable")[: max(MOST_ADDED, len(inside))]]
            slots = self.insert(violators)
            self.g[slots], self.inside[slots] = seen.g[violators], True
            self.is_settled = False
        return seen

    def allowed(self, objective: float) -> float:
        """Return the widest gap with which the fit has converged."""
        relative = self.solver.tol_relative
        return relative * abs(objective) if self.solver.finish and relative is not None else np.inf

    def dual_point(self) -> DualPoint | None:
        """Return the last dual point whose objective was computed."""
        return None if self.judged is None else self.dual.point(self.judged.v, self.judged.g)

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model that the latest dual point gives, its objective and D."""
        counters: dict[str, Any] = {"kernel_evals": self.kernel_rows.counter.n}
        seen: Judged | None = self.judged
        if seen is None or seen.rows is not self.latest[0]:
            seen = reported(self.problem, status, len(self.latest[0]), self.judge)
        seen = self.unjudged() if seen is None else self.stretched(seen)
        self.judged = seen
        counters["report_kernel_evals"] = self.kernel_rows.counter.n - counters["kernel_evals"]
        order = np.argsort(seen.rows)
        rows, problem = seen.rows[order], self.problem
        basis, intercept = self.kernel_rows.basis(rows), np.array([seen.intercept])
        model = model_over(self.kernel_rows, basis, seen.v[rows, None], intercept)
        state = DualState(seen.v, problem.C, problem.task, problem.examples)
        bound = None if np.isnan(seen.objective) else min(seen.bound, seen.objective)
        return Fit(model, status, seen.objective, bound, history, counters, state, rows)


@dataclass(eq=False, repr=False)
class LASVM(Solver):
    """The kernel SVM for two classes online: one pass over the rows, then a finishing step.

    ``tol`` is as in LIBSVM, for the rows that are kept. Like `Exact`, the finishing step also ends if further steps
    gain nothing.

    Parameters
    ----------
    selection : {"random", "gradient", "margin"}, default="random"
        "random" processes every row. "gradient" and "margin" process one of every ``pool`` random rows: the one
        misclassified worst, or the one nearest to the decision surface (active learning).
    pool : int, default=50
        Number of rows from which one is chosen.
    epochs : int, default=1
        Passes over the rows.
    finish : bool, default=True
        Solve for the kept rows after the last pass.
    tol_relative : float or None, default=0.01
        After the finishing step compute the gap over all rows, and continue with violating rows until it is at most
        this share of the objective. None stops after the finishing step, as in the paper.

    References
    ----------
    Bordes, Ertekin, Weston, Bottou: Fast Kernel Classifiers with Online and Active Learning, JMLR 2005.

    Examples
    --------
    >>> from slimsvm import LASVM, SVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = SVC(solver=LASVM(), intercept="free", random_state=0).fit(X, y)
    >>> bool(clf.objective_ - clf.lower_bound_ <= 0.01 * clf.objective_)
    True
    """

    takes_label_sets = False

    selection: str = "random"
    pool: int = 50
    epochs: int = 1
    finish: bool = True
    tol_relative: float | None = 0.01

    def check(self, problem: Problem) -> None:
        """Check the parameters, and that the problem is one of two classes."""
        check_needs("LASVM", problem, TWO_CLASSES, RANDOM_ACCESS)
        if self.selection not in SELECTIONS:
            known = ", ".join(map(repr, SELECTIONS))
            raise ValueError(f"selection must be one of {known}, found {self.selection!r}")
        check_count("pool", self.pool)
        check_count("epochs", self.epochs)
        check_flag("finish", self.finish)
        if self.tol_relative is not None and not self.tol_relative > 0:
            raise ValueError(f"tol_relative must be a positive number or None, found {self.tol_relative!r}")

    def start(self, problem: Problem, state: DualState | None = None) -> LasvmRun:
        """Check the problem and set the run up."""
        self.check(problem)
        n = problem.rows.n_rows
        v, kept = np.zeros(n), None
        if state is not None:
            if not isinstance(state, DualState):
                raise ValueError(f"LASVM can only be warm-started from its own fit, found {type(state).__name__}")
            state.check(problem.task, problem.examples)
            v = Dual.of(problem).feasible(state.v * (problem.C / state.C))
            kept = np.flatnonzero(v)
        return LasvmRun(problem, self, np.arange(n), v, kept)

    def partial_solve(self, problem: Problem, state: OnlineState | None = None) -> Fit:
        """Learn a chunk of rows in one pass, from ``Fit.state`` of the chunk before, without the finishing step.

        Parameters
        ----------
        problem : Problem
            The rows of the chunk.
        state : OnlineState, optional

        Returns
        -------
        Fit
            Its objective is that of the rows that were kept and those of the chunk; no model of all rows met so far
            is under its bound.

        Raises
        ------
        ValueError
            A parameter is out of range, or the state is not that of an earlier chunk.
        """
        once = LASVM(self.selection, self.pool, finish=False, tol_relative=self.tol_relative)
        once.check(problem)
        if state is not None and not isinstance(state, OnlineState):
            raise ValueError(f"LASVM can only go on from its own chunks, found {type(state).__name__}")
        joined = Joined.of(problem, state)
        joined.problem.check_range()
        with one_blas_thread():
            offered = np.arange(joined.n_earlier, joined.problem.rows.n_rows)
            run = LasvmRun(joined.problem, once, offered, joined.v, None if state is None else joined.kept)
            with time_limit(problem.max_seconds):
                status, history = iterate(run, joined.problem, time.perf_counter(), (), type(self).__name__)
            fit = with_safe_bound(finite(run.finish(status, history), joined.problem), run)
        inside = np.flatnonzero(run.inside)
        fit.state, fit.basis_rows = joined.left(run.table.row[inside], run.v[inside]), None
        return fit

"""Pairs of classes of few rows: each pair is one working set, of the kernel matrix of all rows or of its own.

The matrix of all rows, where they are few, is computed once. Of the exact solver's levels
(`solvers.decomposition.exact`) only the lowest is left: one compiled call solves for a pair, or a few do where it takes
long.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from slimsvm.solvers.base import SMALL_N, Kept, Problem, Solver, Status
from slimsvm.solvers.decomposition.dual import FINER, Dual, DualState, Tolerance, limit_reached, more_steps
from slimsvm.solvers.decomposition.one_vs_one import OneVsOneRun, PairFit, PairStates
from slimsvm.solvers.decomposition.row_set import CALL_WORK, KernelBlock, Solved, solve_set
from slimsvm.solvers.rounding import Doubt, sure_value
from slimsvm.tasks import Binary, Examples

Array = np.ndarray

# A pair's fit ends after a call in which D rose by no more than this share of itself: rounding's work.
ROUNDING = 1e-16
# A share of v'Kv that is as good as nothing: what rounding takes off a bound is found out for all rows at once.
LITTLE = 1e-11
TWO_CLASSES, SIGNS = Binary(), (np.int8(1), np.int8(-1))


def fits_in_memory(problem: Problem, memory_limit: float) -> bool:
    """Whether all pairs have few enough rows for it, and room for their kernel values twice."""
    most = most_rows(problem)
    return most <= SMALL_N and 2 * 8 * most**2 <= memory_limit and problem.rows.in_memory


def most_rows(problem: Problem) -> int:
    """Rows of the largest pair, or all where they are few."""
    n = problem.rows.n_rows
    return n if n <= SMALL_N else int(np.sort(np.bincount(problem.examples.labels))[-2:].sum())


class PairProblem:
    """The two-class problem of one pair, and its fit so far.

    Parameters
    ----------
    problem : Problem
        Of all classes.
    rows : int64 ndarray
        The pair's.
    positive : bool ndarray
        Which of them are of the first class.
    K : ndarray
        Kernel values.
    places : int64 ndarray
        Where the rows are in K.
    """

    def __init__(
        self, problem: Problem, rows: Array, positive: Array, state: DualState | None, K: Array, places: Array
    ):
        self.problem, self.block = problem, KernelBlock(K, places, places)
        self.examples = Examples(labels=np.where(positive, *SIGNS), weights=problem.examples.weights[rows])
        self.dual = Dual.of(problem, TWO_CLASSES, self.examples)
        self.tol = Tolerance(problem.tol, is_fixed=problem.kept is not None)
        self.n_steps, self.n_calls, self.intercept = 0, 0, 0.0
        self.v, self.g = np.zeros(len(rows)), self.dual.target.copy()
        self.objective, self.lower_bound = problem.C * self.examples.total_weight, 0.0
        if state is not None:
            self.v = self.dual.feasible(state.v * (problem.C / state.C))
            used = np.flatnonzero(self.v)
            scores = K[np.ix_(places, places[used])] @ self.v[used] + self.dual.offset * self.v.sum()
            share = self.dual.best_multiple(self.v, self.g - scores)
            self.v *= share
            self.g -= share * scores
            self.objective, self.lower_bound = self.sides()

    def improve(self, workspace: Array, tol: float, max_steps: int) -> Solved:
        """Some steps."""
        dual = self.dual
        solved = solve_set(
            self.block,
            self.g,
            self.v,
            (dual.lo, dual.hi),
            balanced=dual.balanced,
            offset=dual.offset,
            tol=tol,
            max_steps=max_steps,
            workspace=workspace,
        )
        self.n_steps, self.n_calls = self.n_steps + solved.n_steps, self.n_calls + 1
        self.intercept = solved.middle if dual.balanced else dual.offset * float(self.v.sum())
        self.objective, self.lower_bound = self.sides()
        return solved

    def solve(self, workspace: Array, end: float | None) -> Status:
        """Steps until no more are needed, or a limit is reached."""
        at_once = CALL_WORK // len(self.v)
        try:
            while True:
                solved = self.improve(workspace, self.tol.now, at_once)
                if solved.violation > self.tol.now:
                    if solved.gain <= ROUNDING * abs(self.lower_bound):
                        return Status.CONVERGED
                elif not self.tol.is_lowered(self.objective, self.lower_bound, self.n_steps):
                    more = more_steps(self.n_steps, len(self.v))
                    self.improve(workspace, FINER * self.tol.now, min(more, at_once))
                    return Status.CONVERGED
                if limit_reached(self.n_steps, len(self.v)):
                    return Status.ITERATION_LIMIT
                if end is not None and time.perf_counter() >= end:
                    return Status.TIME_LIMIT
        except KeyboardInterrupt:
            return Status.INTERRUPTED

    def sides(self) -> tuple[float, float]:
        """The objective, and D(v)."""
        dual, v, g = self.dual, self.v, self.g
        added = self.intercept if dual.balanced else 0.0
        objective = 0.5 * float(v @ (dual.target - g)) + dual.penalty(g, added)
        return objective, min(dual.value(v, g), objective)

    def fit(self, status: Status) -> PairFit:
        """What became of the pair."""
        state = DualState(self.v, self.problem.C, TWO_CLASSES, self.examples)
        return PairFit(self.v, self.intercept, self.objective, self.lower_bound, status, self.n_calls, state)


class SharedKernelRun(OneVsOneRun):
    """The pairs one after another, each in one working set."""

    def __init__(self, problem: Problem, solver: Solver, state: PairStates | None):
        super().__init__(problem, solver, state)
        labels = problem.examples.labels
        self.of_class = [labels == c for c in range(self.pairs[-1][1] + 1)]
        self.kept = Kept() if problem.kept is None else problem.kept
        self.K: Array | None = None  # of all rows
        self.doubt = Doubt(self.kernel_rows)
        self.sure = 0.0
        self.workspace = np.empty(0, np.uint8)

    def rows_of(self, pair: tuple[int, int]) -> Array:
        """Rows of the two classes."""
        return np.flatnonzero(self.of_class[pair[0]] | self.of_class[pair[1]])

    def fit_pair(self, k: int) -> PairFit:
        """Solve for pair k."""
        if not len(self.workspace):
            most = sum(sorted(int(np.count_nonzero(rows)) for rows in self.of_class)[-2:])
            self.workspace = np.empty(most * (most * 8 + 32) + 64, np.uint8)
        seconds = self.problem.max_seconds
        rows = self.rows_of(self.pairs[k])
        K, places = self.values_of(rows)
        pair = PairProblem(self.problem, rows, self.of_class[self.pairs[k][0]][rows], self.states[k], K, places)
        fit = pair.fit(pair.solve(self.workspace, None if seconds is None else self.begun + seconds))
        self.sure += self.sure_of(pair, rows, K, places)
        return fit

    def values_of(self, rows: Array) -> tuple[Array, Array]:
        """A matrix with the kernel values of a pair's rows, and their places in it."""
        n = self.kernel_rows.n_rows
        if n > SMALL_N:
            return self.kernel_rows.block(self.kernel_rows.points(rows), rows=rows), np.arange(len(rows))
        if self.K is None:
            everything = np.arange(n)
            self.K = self.kept.once("K", lambda: self.kernel_rows.block(self.kernel_rows.points(everything)))
        return self.K, rows

    def sure_of(self, pair: PairProblem, rows: Array, K: Array, places: Array) -> float:
        """What is sure of a pair's bound."""
        point = pair.dual.point(pair.v, pair.g)
        if self.K is None or K.dtype != np.float64:
            return max(0.0, min(pair.lower_bound, sure_value(self.kernel_rows, replace(point, rows=rows[point.rows]))))
        used, V = places[point.rows], point.V[:, 0]
        total = float(V @ (K[used][:, used] @ V))
        amount = self.doubt.most * float(np.abs(V).sum()) ** 2
        if amount > LITTLE * total:
            V = np.zeros((len(K), 1))
            V[used] = point.V
            amount = self.doubt.of(V)
        return max(0.0, min(pair.lower_bound, point.rest - 0.5 * (total + amount)))

    def sure_bound(self) -> float:
        """The sum of what is sure of the pairs."""
        return self.sure

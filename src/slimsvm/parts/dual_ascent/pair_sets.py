"""Two-class problems of pairs of classes on one kernel matrix, solved side by side.

Their rows stand one pair after another in the same arrays. Each is a working set of its own; one compiled call makes
steps for all that are not solved yet, and what is reckoned after it is reckoned for all at once: of few rows calls and
Python would take many times as long as the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slimsvm import core
from slimsvm.core.clock import OutOfTimeError, is_time_over
from slimsvm.parts.dual_ascent.dual import FINER, GAP, LAST, Dual, DualState, Progress, Tolerance, ToleranceSettings
from slimsvm.parts.dual_ascent.interior_point import InteriorSwitch
from slimsvm.parts.dual_ascent.one_vs_one import OneVsOneRun, PairFit, PairStates
from slimsvm.parts.dual_ascent.smo import KernelBlock, NewtonSteps, SetSettings, solve_set
from slimsvm.parts.problem import SMALL_N, Kept, Problem
from slimsvm.parts.rounding import RoundingErrors, sure_value
from slimsvm.parts.run import Status
from slimsvm.parts.solver import Solver
from slimsvm.tasks import Binary, Examples

Array = np.ndarray

# A pair's fit ends after a call in which D rose by no more than this share of itself, as rounding does.
ROUNDING = 1e-16
TWO_CLASSES, SIGNS = Binary(), (np.int8(1), np.int8(-1))


@dataclass(frozen=True)
class PairSettings:
    """Settings of which pairs are solved together; docs/experiments/exact_solver.md, "Few rows, many pairs …"."""

    # After this many steps, in all and per row, a pair is solved for alone: calls cost little beside its steps then.
    steps_together: int = 2000
    steps_per_row: int = 10
    # The most rows of pairs that are solved together. Chosen, not measured.
    rows_side_by_side: int = 1 << 16


class PairRows(NamedTuple):
    """The rows of one pair of classes."""

    classes: tuple[int, int]
    rows: Array  # int64
    positive: Array  # which of them are of the first class
    places: Array  # int64: their places in the kernel matrix
    factor: float  # what its losses are multiplied by


class PairSets:
    """The problems of some pairs of a problem's classes, and their present dual points.

    ``states`` are those of earlier fits, for a warm start. In the store of fits of the same K, each pair leaves its
    dual point and its scores Kv.
    """

    def __init__(self, problem: Problem, pairs: list[PairRows], states: list[DualState | None], K: Array, kept: Kept):
        self.problem, self.K, self.kept = problem, K, kept
        self.names = [(LAST, pair.classes) for pair in pairs]
        self.sizes = np.array([len(pair.rows) for pair in pairs])
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        own, self.in_set = problem.settings_of(PairSettings), problem.settings_of(SetSettings)
        self.most_together = [max(own.steps_together, own.steps_per_row * int(size)) for size in self.sizes]
        self.places = np.concatenate([pair.places for pair in pairs])
        rows = np.concatenate([pair.rows for pair in pairs])
        positive = np.concatenate([pair.positive for pair in pairs])
        self.examples = Examples(labels=np.where(positive, *SIGNS), weights=problem.examples.weights[rows])
        factors = np.array([pair.factor for pair in pairs])
        self.C = problem.C * factors
        weighted = replace(self.examples, weights=self.examples.weights * np.repeat(factors, self.sizes))
        self.dual = self.dual_of(weighted)
        is_fixed, of_tol = problem.to_compare, problem.settings_of(ToleranceSettings)
        self.tol = [Tolerance(problem.tol, is_fixed=is_fixed, settings=of_tol) for _ in pairs]
        self.interior: dict[int, InteriorSwitch] = {}  # for pairs that take many steps
        self.newton: dict[int, NewtonSteps] = {}
        self.progress = [Progress(int(size)) for size in self.sizes]
        self.most_calls = np.inf if problem.max_iter is None else problem.max_iter
        self.v, self.g = np.zeros(len(rows)), self.dual.target.copy()
        n = len(pairs)
        self.steps, self.n_steps, self.n_calls = (np.zeros(n, np.int64) for _ in range(3))
        self.gain, self.violation, self.middle, self.intercept = (np.zeros(n) for _ in range(4))
        for k, state in enumerate(states):
            if state is not None:
                self.go_on(k, state)
        self.update_bounds()

    def dual_of(self, weighted: Examples) -> Dual:
        """Return the dual of all pairs, whose examples have the weights times each pair's factor."""
        return Dual.of(self.problem, TWO_CLASSES, weighted)

    def part(self, k: int) -> slice:
        """Return the slice of pair k."""
        return slice(self.starts[k], self.starts[k + 1])

    def of_pair(self, k: int) -> Dual:
        """Return the dual of pair k."""
        part, dual = self.part(k), self.dual
        return replace(dual, target=dual.target[part], lo=dual.lo[part], hi=dual.hi[part])

    def sums(self, values: Array) -> Array:
        """Return the sum of ``values`` for each pair."""
        return np.add.reduceat(values, self.starts[:-1])

    def go_on(self, k: int, state: DualState) -> None:
        """Start pair k from the best feasible multiple of another fit's dual point."""
        part, dual, places = self.part(k), self.of_pair(k), self.places[self.part(k)]
        C = float(self.C[k])
        v = dual.feasible(state.v * (C / state.C))
        scores = state.scores_at(v, C, self.kept.get(self.names[k]))
        if scores is None:
            used = np.flatnonzero(v)
            scores = self.K[np.ix_(places, places[used])] @ v[used] + dual.offset * v.sum()
        share = dual.best_multiple(v, dual.target - scores)
        self.v[part] = share * v
        self.g[part] = dual.target - share * scores

    def update_bounds(self) -> None:
        """Compute intercept, objective and D of every pair."""
        dual, v, g = self.dual, self.v, self.g
        self.intercept = self.middle.copy() if dual.balanced else dual.offset * self.sums(v)
        added = np.repeat(self.intercept, self.sizes) if dual.balanced else 0.0
        self.objective = self.sums(0.5 * v * (dual.target - g) + dual.losses(g, added))
        self.lower_bound = np.minimum(self.sums(dual.parts_of_value(v, g)), self.objective)

    def update_bounds_of(self, k: int) -> None:
        """Compute intercept, objective and D of pair k."""
        part, dual = self.part(k), self.of_pair(k)
        v, g = self.v[part], self.g[part]

        def total(values: Array) -> float:
            return float(np.add.reduceat(values, [0])[0])  # which gives the same digits as `sums`

        self.intercept[k] = self.middle[k] if dual.balanced else dual.offset * total(v)
        added = float(self.intercept[k]) if dual.balanced else 0.0
        self.objective[k] = total(0.5 * v * (dual.target - g) + dual.losses(g, added))
        self.lower_bound[k] = min(total(dual.parts_of_value(v, g)), self.objective[k])

    def solve(self, workspace: Array) -> list[Status]:
        """Take steps until no pair needs more, or a limit is reached; return each pair's status."""
        found: list[Status | None] = [None] * len(self.tol)
        closing: dict[int, tuple[int, float]] = {}  # the steps and the finer tolerance of pairs that have met theirs
        try:
            while is_open := [k for k, status in enumerate(found) if status is None]:
                self.improve(is_open, closing, workspace)
                for k in is_open:
                    found[k] = self.ended(k, closing)
                if is_time_over():
                    return [status or Status.TIME_LIMIT for status in found]
        except OutOfTimeError:
            return [status or Status.TIME_LIMIT for status in found]
        except KeyboardInterrupt:
            return [status or Status.INTERRUPTED for status in found]
        return [status for status in found if status is not None]

    def improve(self, is_open: list[int], closing: dict[int, tuple[int, float]], workspace: Array) -> None:
        """Take steps for open pairs, as many as keep the call short enough for Ctrl-C."""
        at_once = max(1, self.in_set.call_work // int(self.sizes[is_open].sum()))
        together, tol = np.zeros(len(self.tol), np.int64), np.zeros(len(self.tol))
        alone: dict[int, int] = {}  # the steps of pairs that have taken many
        for k in is_open:
            most, tol[k] = closing.get(k, (at_once, self.tol[k].now))
            if k in self.newton:
                alone[k] = min(at_once, most)
            else:
                together[k] = min(at_once, most, self.most_together[k])
        if len(alone) < len(is_open):
            core.smo_sets(
                K=self.K,
                starts=self.starts,
                rows=self.places,
                lo=self.dual.lo,
                hi=self.dual.hi,
                g=self.g,
                v=self.v,
                balanced=self.dual.balanced,
                offset=self.dual.offset,
                tol=tol,
                max_steps=together,
                workspace=workspace,
                steps=self.steps,
                gain=self.gain,
                violation=self.violation,
                middle=self.middle,
            )
        for k, max_steps in alone.items():
            self.improve_alone(k, tol[k], max_steps, workspace)
        for k in is_open:
            if self.steps[k] == together[k] > 0:
                self.newton[k] = newton = NewtonSteps(self.problem.memory_limit // 4)
                newton.note(int(self.steps[k]), int(self.sizes[k]), float(self.gain[k]))
                newton.hurry()
        self.n_steps[is_open] += self.steps[is_open]
        self.n_calls[is_open] += 1
        self.update_bounds()

    def improve_alone(self, k: int, tol: float, max_steps: int, workspace: Array) -> None:
        """Take steps for a pair that needs many, Newton steps among them."""
        part = self.part(k)
        self.steps[k], self.gain[k], self.violation[k], self.middle[k] = solve_set(
            KernelBlock(self.K, self.places[part], self.places[part]),
            self.g[part],
            self.v[part],
            self.dual.box(part),
            tol=tol,
            max_steps=max_steps,
            workspace=workspace,
            newton=self.newton[k],
            settings=self.in_set,
        )

    def values(self, k: int) -> Array:
        """Return the kernel values of pair k."""
        places = self.places[self.part(k)]
        found: Array = self.K[np.ix_(places, places)]
        return found

    def use_interior_point(self, k: int) -> None:
        """Solve for pair k by the interior-point method; take its point if it is better."""
        part, tol, found = self.part(k), self.tol[k].now, self.interior[k].solve(self.tol[k].now)
        if found is None:
            return
        if found.violation <= tol or self.interior[k].dual.value(found.v, found.g) > self.lower_bound[k]:
            self.v[part], self.g[part] = found.v, found.g

    def ended(self, k: int, closing: dict[int, tuple[int, float]]) -> Status | None:
        """Return the status of a pair that is done; None if it needs more steps."""
        tol, n_steps, is_met = self.tol[k], int(self.n_steps[k]), self.violation[k] <= self.tol[k].now
        if is_met and not tol.is_fixed and self.objective[k] - self.lower_bound[k] > GAP * self.objective[k]:
            self.stretch(k)
        if k in closing:
            sides = self.objective[k], self.lower_bound[k], self.violation[k]
            closing[k] = tol.steps_for_gap(*sides, n_steps, len(self.v))
            return None if closing[k][0] and self.steps[k] else Status.CONVERGED
        if self.violation[k] > tol.now:
            if self.gain[k] <= ROUNDING * abs(self.lower_bound[k]):
                return Status.CONVERGED
        elif not tol.is_lowered(self.objective[k], self.lower_bound[k], n_steps, len(self.v)):
            closing[k] = tol.closing_steps(n_steps, len(self.v)), FINER * tol.now
            if k in self.newton:
                self.newton[k].hurry()
            return None
        if self.n_calls[k] >= self.most_calls or self.progress[k].ended(n_steps, lambda: float(self.lower_bound[k])):
            return Status.ITERATION_LIMIT
        if k not in self.interior:
            self.interior[k] = InteriorSwitch(self.of_pair(k), self.problem.memory_limit / 4)
        work = self.newton[k].work_of_all if k in self.newton else 0
        if self.interior[k].is_due(n_steps, work, lambda: self.values(k)):
            self.use_interior_point(k)
        return None

    def stretch(self, k: int) -> None:
        """Take the multiple of a pair's v with the lowest objective."""
        part, dual = self.part(k), self.of_pair(k)
        found = dual.stretched(self.v[part], self.g[part], float(self.intercept[k]))
        if found is None:
            return
        self.v[part], self.g[part] = found
        self.middle[k] = dual.best_intercept(self.g[part])
        self.update_bounds_of(k)

    def choose_intercept(self, k: int) -> None:
        """Take the best intercept of pair k for its present v, and compute the objective."""
        part, dual = self.part(k), self.of_pair(k)
        v, g = self.v[part], self.g[part]
        self.intercept[k] = dual.best_intercept(g)
        self.objective[k] = 0.5 * float(v @ (dual.target - g)) + dual.penalty(g, self.intercept[k])

    def fit(self, k: int, status: Status) -> PairFit:
        """Return the fit of pair k; its scores are left for the next fit."""
        if self.dual.balanced and self.violation[k] > self.problem.tol:
            self.choose_intercept(k)
        part, v = self.part(k), self.v[self.part(k)].copy()
        scores = self.dual.target[part] - self.g[part]
        self.kept.put(self.names[k], (v, scores))
        examples = Examples(labels=self.examples.labels[part], weights=self.examples.weights[part])
        return PairFit(
            v=v,
            intercept=float(self.intercept[k]),
            objective=float(self.objective[k]),
            lower_bound=float(self.lower_bound[k]),
            status=status,
            n_iter=int(self.n_calls[k]),
            state=DualState(v, float(self.C[k]), TWO_CLASSES, examples),
            norm_squared=float(v @ scores) - self.dual.offset * float(v.sum()) ** 2,
        )


# -- Pairs of classes of few rows: each pair is one working set, of the kernel matrix of all rows or of its own
# The matrix of all rows, if they are few, is computed once, and many pairs are solved together
# (`parts.dual_ascent.pair_sets`). Of the exact solver's levels (`solvers.exact`) only the lowest one remains.

# If rounding is at most this share of v'Kv, its effect on the bound is computed for all pairs together.
LITTLE = 1e-11


def fits_in_memory(problem: Problem, memory_limit: float) -> bool:
    """Return whether all pairs have few enough rows, and memory holds their kernel values twice."""
    n = problem.rows.n_rows
    most = n if n <= SMALL_N else largest_pair(problem)
    return most <= SMALL_N and 2 * 8 * most**2 <= memory_limit and problem.rows.in_memory


def largest_pair(problem: Problem) -> int:
    """Return the number of rows of the largest pair."""
    return int(np.sort(np.bincount(problem.examples.labels))[-2:].sum())


class SharedKernelRun(OneVsOneRun):
    """The run that fits together as many pairs as share a kernel matrix; each of them is one working set."""

    has_parts = False  # no pair's objective has been checked

    def __init__(self, problem: Problem, solver: Solver, state: PairStates | None):
        super().__init__(problem, solver, state)
        labels = problem.examples.labels
        self.of_class = [labels == c for c in range(self.pairs[-1][1] + 1)]
        self.sizes: list[int] = [int(np.count_nonzero(rows)) for rows in self.of_class]
        self.is_shared = self.kernel_rows.n_rows <= SMALL_N
        self.rounding = RoundingErrors(self.kernel_rows)
        self.sure, self.n_told = 0.0, 0
        most = sum(sorted(self.sizes)[-2:])
        self.workspace = np.empty(most * (most * 8 + 32) + 64, np.uint8)

    def rows_of(self, pair: tuple[int, int]) -> Array:
        """Return rows of the two classes."""
        return np.flatnonzero(self.of_class[pair[0]] | self.of_class[pair[1]])

    def step(self) -> dict[str, Any]:
        """Report one pair; solve for it and others first, if that is not done."""
        if self.n_told == len(self.fits):
            self.solve_some()
        k = self.n_told
        self.n_told += 1
        return self.told(k)

    def solve_some(self) -> None:
        """Solve for the next pairs."""
        first = last = len(self.fits)
        n, most = 0, self.problem.settings_of(PairSettings).rows_side_by_side
        while last < len(self.pairs) and (last == first or (self.is_shared and n <= most)):
            n += sum(self.sizes[c] for c in self.pairs[last])
            last += 1
        some = [self.rows_of(pair) for pair in self.pairs[first:last]]
        K = self.values_of(some[0])
        factors = self.problem.task.pair_factors()[first:last]
        pairs = [
            PairRows(pair, rows, self.of_class[pair[0]][rows], rows if self.is_shared else np.arange(len(rows)), factor)
            for rows, pair, factor in zip(some, self.pairs[first:last], factors, strict=True)
        ]
        sets = self.sets_of(pairs, self.states[first:last], K)
        found = sets.solve(self.workspace)
        for k, status in enumerate(found):
            fit = self.fit_of(sets, k, status)
            self.fits.append(fit)
            self.states[first + k] = fit.state
        if not self.problem.to_compare:
            self.sure += self.sure_of(sets, some)
        if Status.INTERRUPTED in found:
            raise KeyboardInterrupt

    def sets_of(self, pairs: list[PairRows], states: list[Any], K: Array) -> PairSets:
        """Return the problems of some pairs."""
        return PairSets(self.problem, pairs, states, K, self.kept)

    def fit_of(self, sets: PairSets, k: int, status: Status) -> PairFit:
        """Return the fit of the next pair, which is number k of the sets."""
        return sets.fit(k, status)

    def values_of(self, rows: Array) -> Array:
        """Return kernel values among all rows, or among a pair's."""
        if not self.is_shared:
            return self.kernel_rows.block(self.kernel_rows.points(rows), rows=rows)
        everything = np.arange(self.kernel_rows.n_rows)
        found: Array = self.kept.once("K", lambda: self.kernel_rows.block(self.kernel_rows.points(everything)))
        return found

    def sure_of(self, sets: PairSets, some: list[Array]) -> float:
        """Return the sum of the pairs' bounds, less what rounding can have added."""
        if not self.is_shared or sets.K.dtype != np.float64:
            sure: float = 0.0
            for k, rows in enumerate(some):
                point = sets.of_pair(k).point(sets.v[sets.part(k)], sets.g[sets.part(k)])
                value = sure_value(self.kernel_rows, replace(point, rows=rows[point.rows]))
                sure += max(0.0, min(sets.lower_bound[k], value))
            return sure
        dual, v = sets.dual, sets.v
        total = np.empty(len(some))
        core.set_norms(K=sets.K, starts=sets.starts, rows=sets.places, v=v, norms=total)
        # D(v) without its quadratic part, which is computed again.
        rest = sets.sums(dual.parts_of_value(v, sets.g) + 0.5 * v * (dual.target - sets.g))
        rest -= 0.5 * dual.offset * sets.sums(v) ** 2
        amount = self.rounding.most * sets.sums(np.abs(v)) ** 2
        for much in np.flatnonzero(amount > LITTLE * total):
            part, V = sets.part(int(much)), np.zeros((len(sets.K), 1))
            V[sets.places[part], 0] = v[part]
            amount[much] = self.rounding.of(V)
        return float(np.clip(rest - 0.5 * (total + amount), 0.0, np.maximum(sets.lower_bound, 0.0)).sum())

    def sure_bound(self) -> float:
        """Return the sum of all pairs' safe bounds."""
        return self.sure

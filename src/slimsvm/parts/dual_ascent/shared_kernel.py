"""Pairs of classes of few rows: each pair is one working set, of the kernel matrix of all rows or of its own.

The matrix of all rows, where they are few, is computed once, and many pairs are solved side by side
(`parts.dual_ascent.pair_sets`). Of the exact solver's levels (`solvers.exact`) only the lowest is
left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.parts.dual_ascent.one_vs_one import OneVsOneRun, PairStates
from slimsvm.parts.dual_ascent.pair_sets import PairRows, PairSets
from slimsvm.parts.problem import SMALL_N, Kept, Problem
from slimsvm.parts.rounding import Doubt, sure_value
from slimsvm.parts.run import Status
from slimsvm.parts.solver import Solver

Array = np.ndarray

# A share of v'Kv that is as good as nothing: what rounding takes off a bound is found out for all rows at once.
LITTLE = 1e-11
# Rows of pairs that are solved side by side.
ROWS_SIDE_BY_SIDE = 1 << 16


def fits_in_memory(problem: Problem, memory_limit: float) -> bool:
    """Whether all pairs have few enough rows for it, and room for their kernel values twice."""
    most = most_rows(problem)
    return most <= SMALL_N and 2 * 8 * most**2 <= memory_limit and problem.rows.in_memory


def most_rows(problem: Problem) -> int:
    """Rows of the largest pair, or all where they are few."""
    n = problem.rows.n_rows
    return n if n <= SMALL_N else int(np.sort(np.bincount(problem.examples.labels))[-2:].sum())


class SharedKernelRun(OneVsOneRun):
    """The pairs, as many side by side as share a kernel matrix and are few enough; each in one working set."""

    def __init__(self, problem: Problem, solver: Solver, state: PairStates | None):
        super().__init__(problem, solver, state)
        labels = problem.examples.labels
        self.of_class = [labels == c for c in range(self.pairs[-1][1] + 1)]
        self.sizes: list[int] = [int(np.count_nonzero(rows)) for rows in self.of_class]
        self.kept = Kept() if problem.kept is None else problem.kept
        self.is_shared = self.kernel_rows.n_rows <= SMALL_N
        self.doubt = Doubt(self.kernel_rows)
        self.sure, self.n_told = 0.0, 0
        most = sum(sorted(self.sizes)[-2:])
        self.workspace = np.empty(most * (most * 8 + 32) + 64, np.uint8)

    def rows_of(self, pair: tuple[int, int]) -> Array:
        """Rows of the two classes."""
        return np.flatnonzero(self.of_class[pair[0]] | self.of_class[pair[1]])

    def step(self) -> dict[str, Any]:
        """Tell of one pair; before, solve for it and others."""
        if self.n_told == len(self.fits):
            self.solve_some()
        k = self.n_told
        self.n_told += 1
        return self.told(k)

    def solve_some(self) -> None:
        """Solve for the next pairs."""
        first = last = len(self.fits)
        n = 0
        while last < len(self.pairs) and (last == first or (self.is_shared and n <= ROWS_SIDE_BY_SIDE)):
            n += sum(self.sizes[c] for c in self.pairs[last])
            last += 1
        some = [self.rows_of(pair) for pair in self.pairs[first:last]]
        K = self.values_of(some[0])
        pairs = [
            PairRows(pair, rows, self.of_class[pair[0]][rows], rows if self.is_shared else np.arange(len(rows)))
            for rows, pair in zip(some, self.pairs[first:last], strict=True)
        ]
        sets = PairSets(self.problem, pairs, self.states[first:last], K, self.kept)
        found = sets.solve(self.workspace)
        for k, status in enumerate(found):
            fit = sets.fit(k, status)
            self.fits.append(fit)
            self.states[first + k] = fit.state
        if self.problem.kept is None:
            self.sure += self.sure_of(sets, some)
        if Status.INTERRUPTED in found:
            raise KeyboardInterrupt

    def values_of(self, rows: Array) -> Array:
        """The kernel values of all rows, or those of a pair."""
        if not self.is_shared:
            return self.kernel_rows.block(self.kernel_rows.points(rows), rows=rows)
        everything = np.arange(self.kernel_rows.n_rows)
        found: Array = self.kept.once("K", lambda: self.kernel_rows.block(self.kernel_rows.points(everything)))
        return found

    def sure_of(self, sets: PairSets, some: list[Array]) -> float:
        """What is sure of the pairs' bounds."""
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
        # D(v) without its quadratic part, which is summed anew.
        rest = sets.sums(dual.parts_of_value(v, sets.g) + 0.5 * v * (dual.target - sets.g))
        rest -= 0.5 * dual.offset * sets.sums(v) ** 2
        amount = self.doubt.most * sets.sums(np.abs(v)) ** 2
        for much in np.flatnonzero(amount > LITTLE * total):
            part, V = sets.part(int(much)), np.zeros((len(sets.K), 1))
            V[sets.places[part], 0] = v[part]
            amount[much] = self.doubt.of(V)
        return float(np.clip(rest - 0.5 * (total + amount), 0.0, np.maximum(sets.lower_bound, 0.0)).sum())

    def sure_bound(self) -> float:
        """The sum of what is sure of the pairs."""
        return self.sure

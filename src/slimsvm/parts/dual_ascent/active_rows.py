"""The active rows, the exact solver's middle level: they are solved for by working sets (`solvers.exact`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.parts.dual_ascent.dual import Dual, Slopes
from slimsvm.parts.dual_ascent.kernel_values import KernelValues
from slimsvm.parts.dual_ascent.smo import NewtonSteps, SetSettings, solve_set

Array = np.ndarray


@dataclass(frozen=True)
class ActiveSettings:
    """Settings of the size of working sets; docs/experiments/exact_solver.md settles the numbers."""

    # A working set is half as large as the last one if that took fewer than ``few_steps`` per row, twice as large if it
    # took more than ``many_steps``; never below ``least_share`` of the largest. With smaller sets, or sets that grow
    # later, regression took up to seven times as long: thousands of sets gained little each.
    few_steps: float = 1 / 8
    many_steps: float = 1 / 4
    least_share: float = 1 / 2
    # The active rows are one working set if at least this share of them is not at a bound.
    all_if_free: float = 0.5
    # Few rows are one working set, too, up to this many steps per row: few steps cost less than Python and kernel
    # values, many cost more, and smaller working sets make steps cheaper.
    whole_steps: int = 4


class Improvement(NamedTuple):
    """The solution of a working set."""

    places: Array  # int64: the places of its rows among the active ones
    # v, g: float64 (n_places,), the new values of its rows
    v: Array
    g: Array
    gain: float  # how much D rose
    violation: float  # the violation left in the set
    n_steps: int


class ActiveRows:
    """The active rows, those of ``cache``, with their v and g; it chooses working sets, of a size by rule if None."""

    def __init__(
        self,
        kernel_rows: KernelRows,
        dual: Dual,
        cache: KernelValues,
        newton: NewtonSteps,
        working_set_size: int | None,
        settings: ActiveSettings,
        in_set: SetSettings,
    ):
        self.settings, self.in_set = settings, in_set
        self.kernel_rows, self.dual, self.cache, self.newton = kernel_rows, dual, cache, newton
        self.largest = cache.n_slots if working_set_size is None else min(working_set_size, cache.n_slots)
        self.by_rule = working_set_size is None
        self.latest = np.zeros(0, np.int64)  # the last working set, as rows
        self.share = 1.0
        self.n_steps = 0
        self.v = self.g = np.zeros(0)
        self.box = dual.box(slice(0))
        self.place_of = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.v)

    @property
    def rows(self) -> Array:
        """Return which of all rows are active."""
        return self.cache.active

    @property
    def others(self) -> Array:
        """Return a mask of the rows that are not active."""
        inactive = np.ones(self.kernel_rows.n_rows, bool)
        inactive[self.rows] = False
        return inactive

    def collect(self, v: Array, g: Array) -> None:
        """Copy the active rows' part from v and g of all rows."""
        rows, n = self.rows, self.kernel_rows.n_rows
        self.v, self.g, self.box = v[rows], g[rows], self.dual.box(rows)
        self.place_of = np.full(n, -1)
        self.place_of[rows] = np.arange(len(rows))

    def slopes(self) -> Slopes:
        """Return the derivatives of D by the active rows' v."""
        return self.box.slopes(self.v, self.g)

    @property
    def size(self) -> int:
        """Return the size of a working set: all active rows if they fit and this is worth it, otherwise a part.

        The part has room for all free rows: in smaller sets each solution undoes some of the last one.
        """
        n, own = len(self.v), self.settings
        if not self.by_rule:
            return self.largest
        is_easy = self.kernel_rows.n_rows == n <= self.cache.whole_size and self.n_steps < own.whole_steps * n
        n_free = int(np.count_nonzero(self.box.free(self.v)))
        if n <= self.cache.n_slots and (is_easy or n_free >= own.all_if_free * n):
            return n
        most = min(self.largest, self.cache.settings.largest_set)
        return max(2, int(min(self.largest, self.cache.best_size) * self.share), min(n_free, most))

    def choose(self, goal: float) -> tuple[Array, float]:
        """Return the places of the next working set, none if the violation is at most ``goal``, and the violation."""
        up, down, highest, lowest, violation = self.box.slopes(self.v, self.g)
        if violation <= goal:
            return np.zeros(0, np.int64), violation
        n = len(up)
        if n <= self.size:
            return np.arange(n), violation
        quarter = max(1, self.size // 4)
        tops = np.argpartition(-up, quarter)[:quarter]
        bottoms = np.argpartition(down, quarter)[:quarter]
        chosen = np.zeros(n, bool)
        chosen[tops[up[tops] > lowest + goal]] = True  # others have no partner to violate with
        chosen[bottoms[down[bottoms] < highest - goal]] = True
        room = self.size - np.count_nonzero(chosen)
        if len(self.latest) and room:
            places = self.place_of[self.latest]
            places = places[places >= 0]
            places = places[~chosen[places]]
            free = (self.v[places] > self.box.lo[places]) & (self.v[places] < self.box.hi[places])
            chosen[np.concatenate([places[free], places[~free]])[:room]] = True
        return np.flatnonzero(chosen), violation

    def solve(self, places: Array, tol: float, max_steps: int) -> Improvement:
        """Solve for a working set, without changing v and g."""
        v, g = self.v[places].copy(), self.g[places]
        if len(places) < len(self.v):
            self.newton.work = min(self.newton.work, 0)
        n_steps, gain, violation, _ = solve_set(
            self.cache.block(places),
            g,
            v,
            self.box._replace(lo=self.box.lo[places], hi=self.box.hi[places]),
            tol=tol,
            max_steps=max_steps,
            newton=self.newton,
            settings=self.in_set,
        )
        return Improvement(places, v, g, gain, violation, n_steps)

    def move(self, found: Improvement) -> None:
        """Take over the v of a working set, and update g of all active rows."""
        places, n_steps, own = found.places, found.n_steps, self.settings
        self.latest = self.rows[places]
        self.n_steps += n_steps
        if n_steps < own.few_steps * len(places):
            self.share = max(own.least_share, self.share / 2)
        elif n_steps > own.many_steps * len(places):
            self.share = min(1.0, 2 * self.share)
        change = found.v - self.v[places]
        self.v[places] = found.v
        if len(places) == len(self.v):
            self.g = found.g
            return
        moved = np.flatnonzero(change)
        self.cache.descend(self.g, places[moved], change[moved], self.dual.offset * float(change.sum()))

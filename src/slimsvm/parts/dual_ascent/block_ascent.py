"""Dual points for a given model, improved by blocks of rows: certificates take their bounds from them.

A dual point is V (n, m), one number per row and output, with w = Σ_i V_i φ(x_i) and D(V) = linear(V) − ½ Σ V∘F,
F = KV. Two classes and regression are in `parts.dual_ascent.dual`; several classes (Crammer and Singer) have V_ic =
Σ_c' α_ic' for c = y_i and −α_ic elsewhere, with α_ic ≥ 0, Σ_c α_ic ≤ C_i and linear(V) = Σ_ic Δ(y_i, c) α_ic.

    start    the best of: the model's own coefficients where its vectors are training rows, made feasible; dual points
             from how far rows are within their margins, for several temperatures τ; each scaled by the t ∈ [0, 1] that
             maximises D(tV). F of the own ones is that of the model's scores, if all vectors are training rows. Of
             many rows a sample says which τ, and is a first bound; then F of all rows is summed up row by row, and
             those that it has are a dual point at any time
    passes   blocks of random rows, each solved for all but exactly, then F of all rows brought up to date; until D
             rises by less than a thousandth of itself in a pass, or is that close to the model's objective. Up to
             ``block`` rows are one block

One class (`tasks.OneClass`) has linear(V) = 0 and Σ V fixed: D is negative, and nothing is scaled.

Parts: `parts.dual_ascent.smo` (pairs or single rows, two classes and regression),
`core/decomposition/class_ascent.cc` (several classes).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.kernels import KernelRows
from slimsvm.model import KernelExpansion, row_keys
from slimsvm.parts.dual_ascent.dual import Dual
from slimsvm.parts.dual_ascent.smo import TINY, KernelBlock, SetSettings, solve_set
from slimsvm.parts.problem import Problem
from slimsvm.parts.rounding import RoundingErrors
from slimsvm.tasks import Multiclass

Array = np.ndarray

# A sum is kept by changing up to this many rows, or else by scaling a whole sign.
FEW = 64
# Rounding may leave a coefficient above its bound by this share of the largest one.
ROUNDING = 1e-12


@dataclass(frozen=True)
class BlockSettings:
    """Settings of how a bound is found and improved. Chosen, not measured."""

    # The rows of a block, and how many rows contribute to F of all rows in one product.
    block: int = 2048
    stride: int = 2048
    # The most steps in a block, per row.
    steps_per_row: int = 50
    # Starts are compared on a sample of this many rows, if there are more.
    sample: int = 8192
    # τ as shares of the loss's scale: 1 for margins, the median distance from the tube for regression.
    temperatures: tuple[float, ...] = (0.02, 0.1, 0.5, 2.0)
    # The passes end when D rises by less than this share of itself.
    worth_a_pass: float = 1e-3
    # A block is solved to this share of the violation in it.
    share: float = 0.01
    # Sweeps over a block of several classes, and over all rows if they are one block, as a large C needs.
    sweeps: int = 100
    whole_sweeps: int = 1000


class DualAscent:
    """Exact dual coordinate ascent by blocks of rows. It computes kernel values and sums in float64.

    Attributes
    ----------
    bound : float
        The best value of D so far, at least 0 but for one class.
    n_passes : int
        Passes that were finished.
    """

    def __init__(self, problem: Problem, end: float | None):
        self.problem, self.end = problem, end
        self.settings, self.in_set = problem.settings_of(BlockSettings), problem.settings_of(SetSettings)
        self.kernel_rows: KernelRows = replace(problem, precision="float64").bind()
        self.offset = float(problem.intercept == "regularized")
        self.rng = problem.generator()
        shape = problem.rows.n_rows, problem.task.n_outputs
        self.V, self.F = np.zeros(shape), np.zeros(shape)
        self.value, self.bound, self.n_passes = 0.0, 0.0, 0  # value: D(V); other points may give the bound
        self.objective = np.inf
        self.rounding: RoundingErrors | None = None

    # -- what kinds of problems differ in ---------------------------------------------------------------------------

    def linear(self, V: Array) -> float:
        """Return the linear part of D(V)."""
        raise TypeError(f"{type(self).__name__} must define linear(V)")

    def feasible(self, V: Array) -> Array:
        """Return a feasible dual point near V."""
        raise TypeError(f"{type(self).__name__} must define feasible(V)")

    has_parts = True  # whether a part of a dual point's rows, after `evened`, is a dual point

    def evened(self, V: Array) -> Array:
        """Return a feasible dual point that differs from V in few rows, if there is one."""
        return self.feasible(V)

    def order(self, V: Array) -> Array:
        """Return an order of all rows in which every beginning is nearly a dual point; rows with V = 0 come last."""
        order = self.rng.permutation(len(V))
        return order[np.argsort(~V[order].any(axis=1), kind="stable")]

    def of_vector(self, i: int, has: Array, left: Array) -> Array:
        """Return how much of a vector's coefficients ``left`` row i can take beside ``has``."""
        raise TypeError(f"{type(self).__name__} must define of_vector(i, has, left)")

    def of_scores(self, scores: Array) -> list[Array]:
        """Return dual points made from the slack of each row."""
        raise TypeError(f"{type(self).__name__} must define of_scores(scores)")

    def solve_block(self, rows: Array, K: Array) -> Array:
        """Return the V of these rows that is nearly best while the others stay; K is without the constant feature."""
        raise TypeError(f"{type(self).__name__} must define solve_block(rows, K)")

    def scale(self, gain: float, curvature: float) -> float:
        """Return the t in [0, 1] with the greatest t·gain − ½ t²·curvature."""
        return float(np.clip(gain / curvature, 0.0, 1.0)) if curvature > 0 else float(gain > 0)

    # -- the same for all -------------------------------------------------------------------------------------------

    @property
    def out_of_time(self) -> bool:
        """Return whether the time ``end`` has come."""
        return self.end is not None and time.perf_counter() >= self.end

    @property
    def is_tight(self) -> bool:
        """Return whether D is so close to the model's objective that no pass is worth it."""
        return self.objective - self.bound <= self.settings.worth_a_pass * abs(self.bound)

    def bar(self, total: int, name: str) -> Any:
        """Return a progress bar, shown if the problem asks for one."""
        from tqdm import tqdm

        return tqdm(total=total, desc=name, unit="block", disable=not self.problem.verbose)

    def start(self, model: KernelExpansion, scores: Array, objective: float) -> None:
        """Take the best start that time allows; ``objective`` is the model's."""
        self.objective = objective
        placed, is_whole = self.of_model(model)
        own = self.evened(placed)
        if is_whole:
            F = scores - model.intercept + self.offset * placed.sum(axis=0)
            self.take(own, self.moved(own, placed, F))
            if self.is_tight:
                return
        starts = [] if is_whole else [own]
        starts += [self.feasible(V) for V in self.of_scores(scores)]
        if self.out_of_time:
            return
        if len(own) > self.settings.sample and self.has_parts:
            starts = [starts[self.best_on_sample(starts)]]
        self.take_best(starts)

    def best_on_sample(self, starts: list[Array]) -> int:
        """Return which start is probably the best on all rows, judged on a sample of them, which gives a bound, too."""
        n = len(self.V)
        rows = np.sort(self.rng.choice(n, self.settings.sample, replace=False))
        ratio, diagonal, values = n / len(rows), self.kernel_rows.diag(rows)[:, None] + self.offset, []
        points = self.kernel_rows.points(rows)
        for start in starts:
            part = np.zeros_like(start)
            part[rows] = start[rows]
            V = self.feasible(part)
            F = self.kernel_rows.scores(points, V[rows], rows=rows) + self.offset * V.sum(axis=0)
            gain, curvature = self.linear(V), float(np.sum(V[rows] * F))
            t, value = self.best_value(gain, curvature)
            self.raise_bound(value, t * V)
            alone = float(np.sum(diagonal * V[rows] ** 2))
            values.append(self.best_value(ratio * gain, ratio**2 * (curvature - alone) + ratio * alone)[1])
        return int(np.argmax(values))

    def take_best(self, starts: list[Array]) -> None:
        """Compute F of the starts and take the best one; when time ends, take the rows done so far."""
        n, m = self.V.shape
        order = self.order(starts[0]) if len(starts) == 1 else np.arange(n)
        V, done = np.concatenate(starts, axis=1), n
        F = np.zeros_like(V)
        with self.bar(-(-n // self.settings.stride), "certificate, first bound") as bar:
            for lo in range(0, n, self.settings.stride):
                rows = np.sort(order[lo : lo + self.settings.stride])
                rows = rows[V[rows].any(axis=1)]
                if self.out_of_time:
                    done = lo
                    break
                if len(rows):
                    F += self.kernel_rows.scores(self.kernel_rows.points(rows), V[rows])
                bar.update()
        if done < n and not (self.has_parts and len(starts) == 1):
            return
        V[order[done:]] = 0.0
        F += self.offset * V.sum(axis=0)
        for at in range(0, V.shape[1], m):
            start, own = V[:, at : at + m], F[:, at : at + m]
            even = self.evened(start)
            self.take(even, self.moved(even, start, own))

    def take(self, V: Array, F: Array) -> None:
        """Continue from V, scaled by the best t, if it is better than the present point."""
        t, value = self.best_value(self.linear(V), float(np.sum(V * F)))
        self.raise_bound(value, t * V)
        if value > self.value:
            self.value, self.V, self.F = value, t * V, t * F

    def raise_bound(self, value: float, V: Array) -> None:
        """Raise the bound to a dual point's value, less what rounding can have added to it."""
        if self.rounding is None:
            self.rounding = RoundingErrors(self.kernel_rows)
        self.bound = max(self.bound, value - 0.5 * self.rounding.of(V))

    def best_value(self, gain: float, curvature: float) -> tuple[float, float]:
        """Return the best t, and D(tV)."""
        t = self.scale(gain, curvature)
        return t, t * gain - 0.5 * t**2 * curvature

    def moved(self, V: Array, start: Array, F: Array) -> Array:
        """Return F of V, updated from that of another point in the rows where both differ."""
        change = V - start
        rows = np.flatnonzero(change.any(axis=1))
        if len(rows):
            F = F + self.kernel_rows.scores(self.kernel_rows.points(rows), change[rows])
            F += self.offset * change.sum(axis=0)
        return F

    def of_model(self, model: KernelExpansion) -> tuple[Array, bool]:
        """Return the model's coefficients at those of its vectors that are training rows, as far as the constraints
        allow, and whether all vectors are.
        """
        V, rows = np.zeros_like(self.V), self.problem.rows
        if not self.problem.kernel.has_features:
            np.add.at(V, model.basis[:, 0].astype(np.int64), model.coef)
            return V, True
        of_vector: dict[bytes, list[int]] = {}
        for j, key in enumerate(row_keys(model.basis)):
            of_vector.setdefault(key, []).append(j)
        left, row_of = model.coef.copy(), np.full(len(model.coef), -1)
        for lo, hi in rows.blocks(self.settings.stride):
            for i, key in enumerate(row_keys(rows.slice(lo, hi, model.basis.dtype)), lo):
                for j in of_vector.get(key, ()):
                    part = self.of_vector(i, V[i], left[j])
                    V[i] += part
                    left[j] -= part
                    row_of[j] = i
        # Coefficients that rounding left over go to a row that has the vector; `evened` cuts them at their bounds.
        rounding = (row_of >= 0) & (
            np.abs(left).max(axis=1, initial=0.0) <= ROUNDING * np.abs(model.coef).max(initial=0.0)
        )
        np.add.at(V, row_of[rounding], left[rounding])
        left[rounding] = 0.0
        is_same_type = np.can_cast(rows.exact_dtype, model.basis.dtype)  # rounding may make rows equal
        return V, is_same_type and not left.any()

    def climb(self) -> None:
        """Make passes over all rows until they are not worth it, or time is up."""
        n = len(self.V)
        while not self.out_of_time and not self.is_tight:
            before = self.value
            order = self.rng.permutation(n)
            with self.bar(-(-n // self.settings.block), f"certificate, pass {self.n_passes + 1}") as bar:
                for lo in range(0, n, self.settings.block):
                    if self.out_of_time:
                        return
                    self.improve(np.sort(order[lo : lo + self.settings.block]))
                    bar.update()
                    bar.set_postfix({"bound": self.bound}, refresh=False)
            self.n_passes += 1
            if self.value - before <= self.settings.worth_a_pass * abs(self.value):
                return

    def improve(self, rows: Array) -> None:
        """Solve for a block, and update F of all rows."""
        kernel_rows = self.kernel_rows
        V = self.solve_block(rows, kernel_rows.block(kernel_rows.points(rows), rows=rows))
        change = V - self.V[rows]
        moved = np.flatnonzero(change.any(axis=1))
        if len(moved):
            self.V[rows] = V
            self.F += kernel_rows.scores(kernel_rows.points(rows[moved]), change[moved])
            self.F += self.offset * change.sum(axis=0)
            self.value = self.linear(self.V) - 0.5 * float(np.sum(self.V * self.F))
            self.raise_bound(self.value, self.V)


class BoxAscent(DualAscent):
    """The ascent for two classes with the hinge loss, for regression, and for one class, with any intercept."""

    def __init__(self, problem: Problem, end: float | None):
        super().__init__(problem, end)
        self.dual = Dual.of(problem)
        # A regularised intercept is a constant feature: a Σ v far from 0 would cost more than anything else.
        self.level = replace(self.dual, balanced=self.dual.balanced or self.dual.offset > 0)
        if self.dual.total:  # the greatest −½ (Σ v_i ‖φ(x_i)‖)² of a start needs no product
            v = self.feasible(self.V)[:, 0]
            self.bound = -0.5 * float(v @ np.sqrt(np.maximum(self.kernel_rows.diag(), 0.0))) ** 2
            self.value, self.has_parts = -np.inf, False  # V = 0 is not a dual point here

    def scale(self, gain: float, curvature: float) -> float:
        """Return 1 for one class, whose Σ v is fixed."""
        return 1.0 if self.dual.total else super().scale(gain, curvature)

    def linear(self, V: Array) -> float:
        """Return Σ t_i v_i − ε Σ |v_i|."""
        return float(self.dual.target @ V[:, 0] - self.dual.epsilon * np.abs(V).sum())

    def feasible(self, V: Array) -> Array:
        """Return V clipped to the bounds, and balanced unless there is no intercept."""
        return self.level.feasible(V[:, 0])[:, None]

    def evened(self, V: Array) -> Array:
        """Take the excess of Σ v off the rows that can give most, if a few suffice."""
        dual = self.dual
        v: Array = np.clip(V[:, 0], dual.lo, dual.hi)
        excess = float(v.sum()) - dual.total
        room = np.maximum(v, 0.0) if excess > 0 else dual.hi - v if dual.total else np.maximum(-v, 0.0)
        givers = np.argsort(-room, kind="stable")[:FEW]
        if not dual.balanced or room[givers].sum() < abs(excess):
            return dual.feasible(v)[:, None]
        given = np.clip(abs(excess) - (np.cumsum(room[givers]) - room[givers]), 0.0, room[givers])
        v[givers] -= np.sign(excess) * given
        return v[:, None]

    def order(self, V: Array) -> Array:
        """Return a random order; with an intercept, every beginning has equal shares of both signs' Σ |v|."""
        order = super().order(V)
        if not self.level.balanced:
            return order
        v = V[order, 0]
        share = np.full(len(V), np.inf)
        for side in (v > 0, v < 0):
            share[side] = np.cumsum(v[side]) / v[side].sum()
        return order[np.argsort(share, kind="stable")]

    def of_vector(self, i: int, has: Array, left: Array) -> Array:
        """Return as much as the bounds allow, of one sign: parts of both would cancel, and D counts |v|."""
        v = has[0]
        least = self.dual.lo[i] - v if v <= 0 else 0.0
        most = self.dual.hi[i] - v if v >= 0 else 0.0
        return np.array([min(max(left[0], least), most)])

    def of_scores(self, scores: Array) -> list[Array]:
        """Return v_i = C_i·clip(½ + slack_i/(2τ), 0, 1) for each τ."""
        dual = self.dual
        residual = dual.target - scores[:, 0]
        sign = np.where(dual.lo == 0, 1.0, np.where(dual.hi == 0, -1.0, np.sign(residual)))
        slack = sign * residual - dual.epsilon
        scale = 1.0 if self.problem.task.has_two_classes else float(np.median(np.abs(slack))) or 1.0
        top = np.where(sign > 0, dual.hi, dual.lo)
        taus = self.settings.temperatures
        return [(top * np.clip(0.5 + slack / (2 * tau * scale), 0.0, 1.0))[:, None] for tau in taus]

    def solve_block(self, rows: Array, K: Array) -> Array:
        """Solve by steps on pairs, which keep Σ v, if the intercept is free, otherwise by steps on single rows."""
        box = self.dual.box(rows)
        v: Array = self.V[rows, 0]
        g = self.dual.target[rows] - self.F[rows, 0]
        violation = box.slopes(v, g).violation
        if violation > ROUNDING * self.problem.units[0]:
            solve_set(
                KernelBlock(K, np.arange(len(rows))),
                g,
                v,
                box,
                tol=self.settings.share * violation,
                max_steps=self.settings.steps_per_row * len(rows),
                settings=self.in_set,
            )
        return v[:, None]


class ClassAscent(DualAscent):
    """The ascent for several classes after Crammer and Singer, with any costs; a regularised intercept or none."""

    def __init__(self, problem: Problem, end: float | None):
        super().__init__(problem, end)
        self.task: Multiclass = problem.task  # type: ignore[assignment]
        self.labels = problem.examples.labels
        self.C_of_row = problem.C * problem.examples.weights
        self.own = self.labels[:, None] == np.arange(self.task.n_classes)

    def linear(self, V: Array) -> float:
        """Return Σ_ic Δ(y_i, c) α_ic, where the cost of a row's own class is 0."""
        return -float(np.sum(self.task.cost[self.labels] * V))

    def feasible(self, V: Array) -> Array:
        """Return V with the other classes' part clipped, and scaled down to C_i."""
        alpha = np.where(self.own, 0.0, np.maximum(-V, 0.0))
        total = alpha.sum(axis=1)
        alpha *= np.minimum(1.0, self.C_of_row / np.maximum(total, TINY))[:, None]
        return np.where(self.own, alpha.sum(axis=1)[:, None], -alpha)

    def of_vector(self, i: int, has: Array, left: Array) -> Array:
        """Return as much as C_i allows; row i's class gets the sum of what the other classes get."""
        y = self.labels[i]
        alpha = np.maximum(-left, 0.0)
        alpha[y] = 0.0
        total, most = alpha.sum(), min(self.C_of_row[i] - has[y], left[y])
        if not (total > 0 and most > 0):
            return np.zeros_like(left)
        alpha *= min(1.0, most / total)
        part: Array = -alpha
        part[y] = alpha.sum()
        return part

    def of_scores(self, scores: Array) -> list[Array]:
        """Return soft argmaxes: C_i times the share of each class."""
        task, examples = self.task, self.problem.examples
        return [self.problem.C * task.smooth(scores, tau, examples).residual for tau in self.settings.temperatures]

    def solve_block(self, rows: Array, K: Array) -> Array:
        """Solve row by row, each exactly."""
        V: Array = self.V[rows]
        F = self.F[rows]
        ascend = core.ascend_classes.prepare(
            K=K,
            offset=self.offset,
            labels=self.labels[rows],
            C_of_row=self.C_of_row[rows],
            cost=np.ascontiguousarray(self.task.cost),
            M=V,
            F=F,
            share=self.settings.share,
            max_updates=max(1, self.in_set.call_work // F.size),
        )
        own, row, worst, goal = self.settings, 0, 0.0, 0.0
        sweeps = own.whole_sweeps if len(rows) == len(self.V) else own.sweeps
        while sweeps:
            sweeps, row, worst, goal = ascend(sweeps=sweeps, row=row, worst=worst, goal=goal)
        return V

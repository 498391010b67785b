"""Dual points of a problem that is given with some model, improved by blocks of rows: what certificates are made of.

A dual point is V (n, m), one number per row and output, with w = Σ_i V_i φ(x_i) and D(V) = linear(V) − ½ Σ V∘F,
F = KV. Two classes and regression are in `solvers.dual`; several classes (Crammer and Singer) have V_ic = Σ_c' α_ic'
for c = y_i and −α_ic elsewhere, with α_ic ≥ 0, Σ_c α_ic ≤ C_i and linear(V) = Σ_ic Δ(y_i, c) α_ic.

    start    the best of: the model's own coefficients where its vectors are training rows, made feasible; dual points
             from how far rows are within their margins, for several temperatures τ; each scaled by the t ∈ [0, 1] that
             maximises D(tV)
    passes   blocks of random rows, each solved for all but exactly, then F of all rows brought up to date; until D
             rises by less than a thousandth of itself in a pass. Up to BLOCK rows are one block

One class (`tasks.OneClass`) has linear(V) = 0 and Σ V fixed: D is negative, and nothing is scaled.

Parts: `numerics.smo` (pairs or single rows, two classes and regression), `numerics.class_ascent` (several classes).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from tqdm import tqdm

from slimsvm.kernels import KernelRows, Precomputed
from slimsvm.model import KernelExpansion, row_keys
from slimsvm.numerics import smo
from slimsvm.numerics.class_ascent import ascend_classes
from slimsvm.solvers.base import Problem
from slimsvm.solvers.dual import Dual
from slimsvm.tasks import Multiclass, OneClass, Regression

Array = np.ndarray

# Rows of a block, and rows whose part in F of all rows is computed in one go.
BLOCK, STRIDE = 2048, 2048
# Steps in a block, by its rows.
STEPS_PER_ROW = 50
# τ as shares of the loss's scale: 1 for margins, the median distance from the tube for regression.
TEMPERATURES = (0.02, 0.1, 0.5, 2.0)
# The passes end when D rises by less than this share of itself.
WORTH_A_PASS = 1e-3
# A block is solved to this share of the violation in it.
BLOCK_SHARE = 0.01
# Sweeps over a block of several classes; over all rows where they are one block, for which large prices need them.
MAX_SWEEPS, WHOLE_SWEEPS = 100, 1000


class DualAscent:
    """Exact dual coordinate ascent by blocks of rows, kernel values and sums in float64.

    Attributes
    ----------
    bound : float
        The best value of D so far, at least 0 but for one class.
    n_passes : int
        Passes that were finished.
    """

    def __init__(self, problem: Problem, end: float | None):
        self.problem, self.end = problem, end
        self.kernel_rows: KernelRows = replace(problem, precision="float64").bind()
        self.offset = float(problem.intercept == "regularized")
        self.rng = problem.generator()
        shape = problem.rows.n_rows, problem.task.n_outputs
        self.V, self.F = np.zeros(shape), np.zeros(shape)
        self.bound, self.n_passes = 0.0, 0

    # -- what kinds of problems differ in ---------------------------------------------------------------------------

    def linear(self, V: Array) -> float:
        """D's linear part."""
        raise TypeError(f"{type(self).__name__} must define linear(V)")

    def feasible(self, V: Array) -> Array:
        """A dual point like V."""
        raise TypeError(f"{type(self).__name__} must define feasible(V)")

    def of_vector(self, i: int, has: Array, left: Array) -> Array:
        """What row i, which has ``has``, can take of a vector's coefficients ``left``."""
        raise TypeError(f"{type(self).__name__} must define of_vector(i, has, left)")

    def of_scores(self, scores: Array) -> list[Array]:
        """Dual points by how far each row is within its margin."""
        raise TypeError(f"{type(self).__name__} must define of_scores(scores)")

    def solve_block(self, rows: Array, K: Array) -> Array:
        """V of these rows, all but best with the others as they are; K between them without the constant feature."""
        raise TypeError(f"{type(self).__name__} must define solve_block(rows, K)")

    def scale(self, gain: float, curvature: float) -> float:
        """The t in [0, 1] for which t·gain − ½ t²·curvature is greatest."""
        return float(np.clip(gain / max(curvature, smo.TINY), 0.0, 1.0))

    # -- the same for all -------------------------------------------------------------------------------------------

    @property
    def out_of_time(self) -> bool:
        """Whether ``end`` has come."""
        return self.end is not None and time.perf_counter() >= self.end

    def bar(self, total: int, name: str):
        """A progress bar, if the problem asks for one."""
        return tqdm(total=total, desc=name, unit="block", disable=not self.problem.verbose)

    def start(self, model: KernelExpansion, scores: Array) -> None:
        """Take the best of the starts; none of them where time is too short to know its value."""
        n, m = self.V.shape
        starts = [self.feasible(V) for V in (self.of_model(model), *self.of_scores(scores))]
        V = np.concatenate(starts, axis=1)
        F = np.zeros_like(V)
        with self.bar(-(-n // STRIDE), "start") as bar:
            for lo in range(0, n, STRIDE):
                rows = lo + np.flatnonzero(V[lo : lo + STRIDE].any(axis=1))
                if self.out_of_time:
                    return
                if len(rows):
                    F += self.kernel_rows.scores(self.kernel_rows.points(rows), V[rows])
                bar.update()
        F += self.offset * V.sum(axis=0)
        for k, start in enumerate(starts):
            own = F[:, k * m : (k + 1) * m]
            gain, curvature = self.linear(start), float(np.sum(start * own))
            t = self.scale(gain, curvature)
            value = t * gain - 0.5 * t**2 * curvature
            if value > self.bound:
                self.bound, self.V, self.F = value, t * start, t * own

    def of_model(self, model: KernelExpansion) -> Array:
        """The model's coefficients at the training rows that its vectors are, as far as the constraints allow."""
        V, rows = np.zeros_like(self.V), self.problem.rows
        if isinstance(self.problem.kernel, Precomputed):
            np.add.at(V, model.basis[:, 0].astype(np.int64), model.coef)
            return V
        of_vector: dict[bytes, list[int]] = {}
        for j, key in enumerate(row_keys(model.basis)):
            of_vector.setdefault(key, []).append(j)
        left = model.coef.copy()
        for lo, hi in rows.blocks(STRIDE):
            for i, key in enumerate(row_keys(rows.slice(lo, hi, model.basis.dtype)), lo):
                for j in of_vector.get(key, ()):
                    part = self.of_vector(i, V[i], left[j])
                    V[i] += part
                    left[j] -= part
        return V

    def climb(self) -> None:
        """Passes over all rows until they are no longer worth it, or time is up."""
        n = len(self.V)
        while not self.out_of_time:
            before = self.bound
            order = self.rng.permutation(n)
            with self.bar(-(-n // BLOCK), f"pass {self.n_passes + 1}") as bar:
                for lo in range(0, n, BLOCK):
                    if self.out_of_time:
                        return
                    self.improve(np.sort(order[lo : lo + BLOCK]))
                    bar.update()
                    bar.set_postfix({"bound": self.bound}, refresh=False)
            self.n_passes += 1
            if self.bound - before <= WORTH_A_PASS * abs(self.bound):
                return

    def improve(self, rows: Array) -> None:
        """Solve for a block, and bring F of all rows up to date."""
        kernel_rows = self.kernel_rows
        V = self.solve_block(rows, kernel_rows.block(kernel_rows.points(rows), rows=rows))
        change = V - self.V[rows]
        moved = np.flatnonzero(change.any(axis=1))
        if len(moved):
            self.V[rows] = V
            self.F += kernel_rows.scores(kernel_rows.points(rows[moved]), change[moved])
            self.F += self.offset * change.sum(axis=0)
            self.bound = max(self.bound, self.linear(self.V) - 0.5 * float(np.sum(self.V * self.F)))


class BoxAscent(DualAscent):
    """Two classes with the hinge loss and regression with any of the three intercepts; one class."""

    def __init__(self, problem: Problem, end: float | None):
        super().__init__(problem, end)
        self.dual = Dual.of(problem)
        if self.dual.total:  # the greatest −½ (Σ v_i ‖φ(x_i)‖)² of a start is known without any product
            v = self.feasible(self.V)[:, 0]
            self.bound = -0.5 * float(v @ np.sqrt(np.maximum(self.kernel_rows.diag(), 0.0))) ** 2

    def scale(self, gain, curvature):
        """One class: 1, for Σ v is fixed."""
        return 1.0 if self.dual.total else super().scale(gain, curvature)

    def linear(self, V):
        """Σ t_i v_i − ε Σ |v_i|."""
        return float(self.dual.target @ V[:, 0] - self.dual.epsilon * np.abs(V).sum())

    def feasible(self, V):
        """Within the bounds, and balanced where the intercept is free."""
        return self.dual.feasible(V[:, 0])[:, None]

    def of_vector(self, i, has, left):
        """As much as the bounds allow, and of one sign: parts of both would cancel, and D counts |v|."""
        v = has[0]
        least = self.dual.lo[i] - v if v <= 0 else 0.0
        most = self.dual.hi[i] - v if v >= 0 else 0.0
        return np.array([min(max(left[0], least), most)])

    def of_scores(self, scores):
        """v_i = C_i·clip(½ + slack_i/(2τ), 0, 1)."""
        dual = self.dual
        residual = dual.target - scores[:, 0]
        if isinstance(self.problem.task, Regression):
            slack, sign = np.abs(residual) - dual.epsilon, np.sign(residual)
            scale = float(np.median(np.abs(slack))) or 1.0
        elif isinstance(self.problem.task, OneClass):
            slack, sign = residual, np.ones(len(residual))
            scale = float(np.median(np.abs(slack))) or 1.0
        else:
            sign = np.sign(dual.target)
            slack, scale = sign * residual, 1.0
        top = np.where(sign > 0, dual.hi, dual.lo)
        return [(top * np.clip(0.5 + slack / (2 * tau * scale), 0.0, 1.0))[:, None] for tau in TEMPERATURES]

    def solve_block(self, rows, K):
        """By pairs where they keep Σ v, which a free intercept asks for."""
        dual = self.dual
        lo, hi = dual.lo[rows], dual.hi[rows]
        v, g = self.V[rows, 0], dual.target[rows] - self.F[rows, 0]
        highest, lowest = dual.extremes(*dual.slopes(v, g, lo, hi))
        if highest - lowest > 1e-12:
            solve = smo.pairs if dual.balanced else smo.box
            limits = lo, hi, dual.epsilon, BLOCK_SHARE * (highest - lowest), STEPS_PER_ROW * len(rows)
            solve(K, np.arange(len(rows)), dual.offset, g, v, *limits)
        return v[:, None]


class ClassAscent(DualAscent):
    """Several classes after Crammer and Singer, with any costs; a regularised intercept or none."""

    def __init__(self, problem: Problem, end: float | None):
        super().__init__(problem, end)
        self.task: Multiclass = problem.task  # type: ignore[assignment]
        self.labels = problem.examples.labels
        self.price = problem.C * problem.examples.weights
        self.own = self.labels[:, None] == np.arange(self.task.n_classes)

    def linear(self, V):
        """Σ_ic Δ(y_i, c) α_ic: the cost of a row's own class is 0."""
        return -float(np.sum(self.task.cost[self.labels] * V))

    def feasible(self, V):
        """The other classes' part clipped, and scaled down to C_i."""
        alpha = np.where(self.own, 0.0, np.maximum(-V, 0.0))
        total = alpha.sum(axis=1)
        alpha *= np.minimum(1.0, self.price / np.maximum(total, smo.TINY))[:, None]
        return np.where(self.own, alpha.sum(axis=1)[:, None], -alpha)

    def of_vector(self, i, has, left):
        """As much as C_i allows; what the vector has for row i's class is the sum of what it has for the others."""
        y = self.labels[i]
        alpha = np.maximum(-left, 0.0)
        alpha[y] = 0.0
        total, most = alpha.sum(), min(self.price[i] - has[y], left[y])
        if not (total > 0 and most > 0):
            return np.zeros_like(left)
        alpha *= min(1.0, most / total)
        part = -alpha
        part[y] = alpha.sum()
        return part

    def of_scores(self, scores):
        """Soft argmaxes: C_i times the share of each class."""
        task, examples = self.task, self.problem.examples
        return [self.problem.C * task.smooth(scores, tau, examples).residual for tau in TEMPERATURES]

    def solve_block(self, rows, K):
        """By rows, each exactly."""
        V, F = self.V[rows], self.F[rows]
        cost = np.ascontiguousarray(self.task.cost)
        limits = BLOCK_SHARE, WHOLE_SWEEPS if len(rows) == len(self.V) else MAX_SWEEPS
        ascend_classes(K, self.offset, self.labels[rows], self.price[rows], cost, V, F, *limits)
        return V

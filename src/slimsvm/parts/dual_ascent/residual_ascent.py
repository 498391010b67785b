"""Bounds for losses with two derivatives, whose residuals at any scores are a dual point.

With v_i = −C ω_i ℓ'(f_i) and c_i = C ω_i ℓ(f_i) + v_i f_i = −(C ω_i ℓ_i)*(−v_i), whatever the scores f are,

    D(v) = Σ c_i − ½ Σ_ij v_i k(x_i, x_j) v_j  ≤  the optimum,        D(t v) ≥ t Σ c_i − ½ t² …,  0 ≤ t ≤ 1,

since no loss is below 0. A free intercept asks for Σ v_i = 0: the heavier side is scaled down.

    start    v at the model's scores, and the best t
    passes   blocks of random rows: Newton's method on f = o + K v(f), where o are the scores that the other rows give

The soft argmax of a smoothed loss is a dual point in the same way.

Keerthi, Duan, Shevade, Poo, "A Fast Dual Algorithm for Kernel Logistic Regression", Machine Learning 2005 (the dual).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from slimsvm.model import KernelExpansion
from slimsvm.parts.dual_ascent.block_ascent import DualAscent
from slimsvm.parts.problem import Problem
from slimsvm.tasks import Examples

Array = np.ndarray

# The most Newton steps in a block and halvings of one, and the smallest gain of a step as a share of the block's value.
BLOCK_STEPS, HALVINGS, SHARE = 20, 30, 1e-6


class Residuals(NamedTuple):
    """A dual point V (n, m), and the sum of its constants."""

    V: Array
    constant: float

    def scaled(self, t: float) -> Residuals:
        """Return the point t V, whose constants are at least t times these."""
        return Residuals(t * self.V, t * self.constant)


def residuals(problem: Problem, scores: Array, tau: float = 1.0) -> Residuals:
    """Return the dual point at scores (n, m), at a temperature where the loss is smoothed."""
    found = problem.task.smooth(scores, tau, problem.examples, problem.n_jobs or 1)
    V, (first, second) = problem.C * found.residual, found.dual
    if problem.intercept == "free":
        sums = float(np.maximum(V, 0.0).sum()), -float(np.minimum(V, 0.0).sum())
        above, below = (min(sums) / s if s > 0 else 0.0 for s in sums)
        V = np.where(V > 0, above, below) * V
        first, second = above * first, below * second
    return Residuals(V, problem.C * (first + second))


class ResidualAscent(DualAscent):
    """The ascent for losses with two derivatives; with a free intercept it makes no passes."""

    def start(self, model: KernelExpansion, scores: Array, objective: float) -> None:
        """Start from the residuals at the model's scores."""
        self.objective = objective
        V, constant = residuals(self.problem, scores)
        self.parts = self._constants(scores)
        F = np.zeros_like(V)
        with self.bar(-(-len(V) // self.settings.stride), "certificate, first bound") as bar:
            for lo in range(0, len(V), self.settings.stride):
                if self.out_of_time:
                    return
                rows = np.arange(lo, min(len(V), lo + self.settings.stride))
                F += self.kernel_rows.scores(self.kernel_rows.points(rows), V[rows])
                bar.update()
        F += self.offset * V.sum(axis=0)
        t, value = self.best_value(constant, float(np.sum(V * F)))
        self.raise_bound(value, t * V)
        self.value, self.V, self.F, self.parts = value, t * V, t * F, t * self.parts

    def climb(self) -> None:
        """Make passes over the rows."""
        if self.problem.intercept != "free":
            super().climb()

    def _constants(self, scores: Array) -> Array:
        """Return c_i of every row."""
        augmented = self.problem.task.augment(scores, np.zeros(0), self.problem.examples)
        found: Array = self.problem.C * self.problem.examples.weights * augmented.delta
        return found

    def improve(self, rows: Array) -> None:
        """Solve for a block, and update F of all rows; keep the old point if rounding makes the new one no better."""
        kernel_rows, examples = self.kernel_rows, self.problem.examples.take(rows)
        K = kernel_rows.block(kernel_rows.points(rows), rows=rows) + self.offset
        V, constants = self._solved(K, self.F[rows] - K @ self.V[rows], self.V[rows], examples)
        change = V - self.V[rows]
        F = self.F + kernel_rows.scores(kernel_rows.points(rows), change) + self.offset * change.sum(axis=0)
        parts, whole = self.parts.copy(), self.V.copy()
        parts[rows], whole[rows] = constants, V
        value = float(parts.sum()) - 0.5 * float(np.sum(whole * F))
        if value > self.value:
            self.value, self.V, self.F, self.parts = value, whole, F, parts
            self.raise_bound(value, whole)

    def _solved(self, K: Array, others: Array, V: Array, examples: Examples) -> tuple[Array, Array]:
        """Return residuals of a block of rows, and their constants; the other rows contribute the scores ``others``."""
        task, C, plain = self.problem.task, self.problem.C, np.zeros(0)

        def value(alpha: Array, f: Array) -> float:
            return 0.5 * float(np.sum(alpha * (f - others))) + C * task.along((f, plain), (f, plain), 0.0, examples)[0]

        alpha, f = V, others + K @ V
        now = value(alpha, f)
        for _ in range(BLOCK_STEPS):
            found = task.smooth(f, 1.0, examples)
            lack = C * found.residual - alpha
            # For several classes the diagonal of shares bounds their second derivative from above.
            curvature = found.curvature if found.share is None else found.share * examples.weights[:, None]
            step = np.column_stack([_newton(K, C * curvature[:, c], lack[:, c]) for c in range(lack.shape[1])])
            moved, share = K @ step, 1.0
            for _ in range(HALVINGS):
                tried = value(alpha + share * step, f + share * moved)
                if tried <= now:
                    break
                share *= 0.5
            alpha, f, gain, now = alpha + share * step, f + share * moved, now - tried, tried
            if not gain > SHARE * abs(now):
                break
        augmented = task.augment(f, plain, examples)
        return C * task.smooth(f, 1.0, examples).residual, C * examples.weights * augmented.delta


def _newton(K: Array, w: Array, lack: Array) -> Array:
    """Return (I + W K)⁻¹ lack."""
    root = np.sqrt(w)
    inner = root[:, None] * K * root
    inner[np.diag_indices_from(inner)] += 1.0
    found: Array = lack - root * cho_solve(cho_factor(inner, lower=True, overwrite_a=True), root * (K @ lack))
    return found

"""How far a model can be from the exact SVM: its objective, and a bound that no model's objective can be under.

Any point of the dual (`solvers.dual`) is such a bound, whatever trained the model:

    start    the best of: the model's own coefficients where its vectors are training rows, clipped to the bounds;
             v_i = C_i·clip(½ + slack_i/(2τ), 0, 1) by how far rows are within their margin, for several τ;
             each scaled by the t ∈ [0, 1] that maximises D(tv)
    passes   blocks of random rows, each solved for all but exactly (`numerics.smo`), then g of all rows brought up
             to date; until D rises by less than a thousandth of itself in a pass

Kernel values and sums are float64. With a free intercept the heavier side of a start is scaled down until Σ v = 0, and
blocks are solved by pairs, which keep it so.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from tqdm import tqdm

from slimsvm.kernels import KernelRows, Precomputed
from slimsvm.model import KernelExpansion, row_keys
from slimsvm.numerics import smo
from slimsvm.numerics.threads import one_blas_thread
from slimsvm.solvers.base import Problem
from slimsvm.solvers.dual import Dual
from slimsvm.tasks import Binary, Regression, losses

Array = np.ndarray

# Rows of a block, and rows whose part in g of all rows is computed in one go.
BLOCK, STRIDE = 512, 2048
SCORED_ROWS = 1 << 16
# τ as shares of the loss's scale: 1 for margins, the median distance from the tube for regression.
TEMPERATURES = (0.02, 0.1, 0.5, 2.0)
# The passes end when D rises by less than this share of itself.
WORTH_A_PASS = 1e-3
# A block is solved to this share of the violation in it.
BLOCK_SHARE = 0.01


@dataclass(frozen=True)
class Certificate:
    """What is sure about a model.

    Parameters
    ----------
    objective : float
        ½‖w‖² + C Σ ω_i ℓ_i of the model, kernel values and sums in float64.
    lower_bound : float
        No model of this kernel and C has a lower objective.
    n_passes : int
        Passes of dual coordinate ascent that were finished.
    kernel_evals : int
        Kernel evaluations it took.
    seconds : float
    """

    objective: float
    lower_bound: float
    n_passes: int
    kernel_evals: int
    seconds: float

    @property
    def gap(self) -> float:
        """Share of the objective by which it can at most be lowered."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0 else 0.0


def certify(problem: Problem, model: KernelExpansion, max_seconds: float | None = None) -> Certificate:
    """Bound how far a model is from the optimum of a problem.

    Parameters
    ----------
    problem : Problem
        Of two classes with the hinge loss, or of regression.
    model : KernelExpansion
        In float64.
    max_seconds : float or None
        Stop with the bound so far after about this time.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        The problem is another one.
    """
    if not isinstance(problem.task, Binary | Regression):
        raise ValueError(
            "a certificate can be had for two classes with loss='hinge' and for regression, "
            f"found {type(problem.task).__name__}"
        )
    begun = time.perf_counter()
    scores = np.empty((problem.rows.n_rows, 1))
    for lo, hi in problem.rows.blocks(SCORED_ROWS):
        scores[lo:hi] = model.scores(problem.rows.slice(lo, hi, problem.rows.exact_dtype), problem.n_jobs)
    with one_blas_thread():
        ascent = _Ascent(problem, begun, max_seconds)
        ascent.start(model, scores)
        ascent.climb()
    objective = _objective(problem, model, scores)
    bound = min(ascent.bound, objective)  # where the two cross, rounding is all there is between them
    evals = ascent.kernel_rows.counter.n
    return Certificate(objective, bound, ascent.n_passes, evals, time.perf_counter() - begun)


def _objective(problem: Problem, model: KernelExpansion, scores: Array) -> float:
    gram = None
    if isinstance(problem.kernel, Precomputed):
        gram = problem.rows.slice(0, problem.rows.n_rows, np.float64)
    norm_squared = model.norm_squared(gram, problem.n_jobs)
    if problem.intercept == "regularized":
        norm_squared += float(np.sum(model.intercept**2))
    plain = np.zeros(0)
    loss = losses(problem.task.augment(scores, plain, problem.examples), scores, plain, problem.examples)
    return 0.5 * norm_squared + problem.C * float(problem.examples.weights @ loss)


class _Ascent:
    """Exact dual coordinate ascent by blocks of rows."""

    def __init__(self, problem: Problem, begun: float, max_seconds: float | None):
        self.problem, self.dual = problem, Dual.of(problem)
        self.kernel_rows: KernelRows = replace(problem, precision="float64").bind()
        self.rng = problem.generator()
        self.end = None if max_seconds is None else begun + max_seconds
        self.v, self.g = np.zeros(problem.rows.n_rows), self.dual.target.astype(np.float64)
        self.bound, self.n_passes = 0.0, 0

    @property
    def out_of_time(self) -> bool:
        return self.end is not None and time.perf_counter() >= self.end

    def bar(self, total: int, name: str):
        return tqdm(total=total, desc=name, unit="block", disable=not self.problem.verbose)

    def start(self, model: KernelExpansion, scores: Array) -> None:
        """Take the best of the starts; none of them where time is too short to know its value."""
        dual, n = self.dual, len(self.v)
        V = np.stack([dual.feasible(v) for v in (self.of_model(model), *self.of_slacks(scores[:, 0]))], axis=1)
        F = np.zeros_like(V)
        with self.bar(-(-n // STRIDE), "start") as bar:
            for lo in range(0, n, STRIDE):
                rows = lo + np.flatnonzero(V[lo : lo + STRIDE].any(axis=1))
                if self.out_of_time:
                    return
                if len(rows):
                    F += self.kernel_rows.scores(self.kernel_rows.points(rows), V[rows])
                bar.update()
        F += dual.offset * V.sum(axis=0)
        gain = dual.target @ V - dual.epsilon * np.abs(V).sum(axis=0)
        curvature = np.einsum("ij,ij->j", V, F)
        t = np.clip(gain / np.maximum(curvature, smo.TINY), 0.0, 1.0)
        best = int(np.argmax(t * gain - 0.5 * t**2 * curvature))
        self.v, self.g = t[best] * V[:, best], dual.target - t[best] * F[:, best]
        self.bound = max(0.0, dual.value(self.v, self.g))

    def of_model(self, model: KernelExpansion) -> Array:
        """The model's coefficients at the training rows that its vectors are, as far as the bounds allow."""
        v, rows = np.zeros(len(self.v)), self.problem.rows
        if isinstance(self.problem.kernel, Precomputed):
            places = model.basis[:, 0].astype(np.int64)
            np.add.at(v, places, model.coef[:, 0])
            return v
        of_vector: dict[bytes, list[int]] = {}
        for j, key in enumerate(row_keys(model.basis)):
            of_vector.setdefault(key, []).append(j)
        rest = model.coef[:, 0].copy()
        for lo, hi in rows.blocks(STRIDE):
            for i, key in enumerate(row_keys(rows.slice(lo, hi, model.basis.dtype)), lo):
                for j in of_vector.get(key, ()):
                    # Parts of both signs in one row would cancel: D counts |v|.
                    least = self.dual.lo[i] - v[i] if v[i] <= 0 else 0.0
                    most = self.dual.hi[i] - v[i] if v[i] >= 0 else 0.0
                    part = min(max(rest[j], least), most)
                    v[i] += part
                    rest[j] -= part
        return v

    def of_slacks(self, scores: Array) -> list[Array]:
        """Starts by how far each row is within its margin, or outside of its tube."""
        dual = self.dual
        residual = dual.target - scores
        if dual.epsilon or isinstance(self.problem.task, Regression):
            slack, sign = np.abs(residual) - dual.epsilon, np.sign(residual)
            scale = float(np.median(np.abs(slack))) or 1.0
        else:
            sign = np.sign(dual.target)
            slack, scale = sign * residual, 1.0
        top = np.where(sign > 0, dual.hi, dual.lo)
        return [top * np.clip(0.5 + slack / (2 * tau * scale), 0.0, 1.0) for tau in TEMPERATURES]

    def climb(self) -> None:
        """Passes over all rows until they are no longer worth it, or time is up."""
        n = len(self.v)
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
            if self.bound - before <= WORTH_A_PASS * self.bound:
                return

    def improve(self, rows: Array) -> None:
        """Solve for a block, and bring g of all rows up to date."""
        dual, kernel_rows = self.dual, self.kernel_rows
        lo, hi = dual.lo[rows], dual.hi[rows]
        v, g = self.v[rows].copy(), self.g[rows].copy()
        highest, lowest = dual.extremes(*dual.slopes(v, g, lo, hi))
        violation = highest - lowest
        if not violation > 1e-12:
            return
        K = kernel_rows.block(kernel_rows.points(rows), rows=rows)
        solve = smo.pairs if dual.balanced else smo.box
        limits = lo, hi, dual.epsilon, BLOCK_SHARE * violation, 20 * len(rows)
        solve(K, np.arange(len(rows)), dual.offset, g, v, *limits)
        change = v - self.v[rows]
        moved = np.flatnonzero(change)
        if len(moved):
            self.v[rows] = v
            self.g -= kernel_rows.scores(kernel_rows.points(rows[moved]), change[moved, None])[:, 0]
            self.g -= dual.offset * change.sum()
            self.bound = max(self.bound, dual.value(self.v, self.g))

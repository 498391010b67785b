"""The distance of a model from the best one over given vectors, and its gradient in the vectors.

The mathematics are in `bases.reduced_set`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrs

from slimsvm.core.factors import cholesky
from slimsvm.core.threads import run_tiles
from slimsvm.kernels import EvalCounter, FoldedKernel, KernelRows
from slimsvm.kernels.kernel import Folding
from slimsvm.kernels.pairs import between, with_few
from slimsvm.lazy import made_once
from slimsvm.model import KernelExpansion

Array = np.ndarray

# The weight of ‖w − ŵ‖² · mean k(x, x) beside the mean squared difference of the scores, if rows are given.
NORM_WEIGHT = 1e-5
# The vectors per tile of the products, which threads share; a tile has all of them if there are fewer than MANY kernel
# values.
PANEL, MANY = 64, 1 << 17
# L-BFGS takes ‖β_j‖² for the curvature at a vector, raised to POWER, as a share of the mean and at least FLOOR of it
# (docs/experiments/learned_bases.md, "Steps by the length of coefficients").
POWER, FLOOR = 0.5, 0.1
# Candidates for the constant added to the diagonal of H, scaled to ones, for each precision: the first one with which H
# has a Cholesky factor is taken. With smaller ones, rounding in single precision alone makes D negative
# (docs/experiments/automatic_choice.md, "The distance in single precision fell below zero").
JITTERS = {np.dtype(np.float64): (1e-13, 1e-11, 1e-9, 1e-7, 1e-5), np.dtype(np.float32): (1e-6, 1e-5, 1e-4)}


@dataclass(frozen=True)
class DistanceSettings:
    """Settings of how much is computed and kept together. Chosen, not measured."""

    # The kernel values that are computed together, and the bytes of them that the sums for β store for the gradient.
    block_values: int = 1 << 22
    kept_bytes: int = 1 << 28


USUAL = DistanceSettings()


@dataclass(frozen=True)
class Part:
    """Rows of a source that stand together and are compared in some of the outputs; in the others they are 0.

    Of pairs of classes, each row is in the pairs of its class: of ten classes in 9 of 45.
    """

    rows: slice
    outputs: Any  # their places, or all as a slice

    def within(self, block: slice) -> Part | None:
        """Return the part of a block of rows, counted from its first; None if there is none."""
        lo, hi = max(self.rows.start, block.start), min(self.rows.stop, block.stop)
        return Part(slice(lo - block.start, hi - block.start), self.outputs) if lo < hi else None


@dataclass(frozen=True)
class Source:
    """Rows that D sums over: the values they are compared with, (n, m), and whether they count by their scores."""

    kernel_rows: KernelRows
    target: Array
    is_scored: bool
    parts: tuple[Part, ...]

    def parts_of(self, block: slice) -> list[Part]:
        """Return the parts of a block of rows."""
        return [part for whole in self.parts if (part := whole.within(block)) is not None]


class Distance:
    """The distance D(b) between a model and the best one over the vectors b, and its gradient.

    Parameters
    ----------
    dtype : dtype, default=numpy.float64
        Of kernel values with rows, and of products with them. Single precision takes half the time; D is then known to
        some 1e-6 of its greatest value.
    parts : tuple of Part, optional
        Of the model's vectors, where each is in some of the outputs only.
    norm_squared : float, optional
        ‖w‖² of the model, where it is known.
    """

    def __init__(
        self,
        model: KernelExpansion,
        X: Any,
        n_jobs: int | None,
        counter: EvalCounter,
        dtype: Any = np.float64,
        settings: DistanceSettings = USUAL,
        parts: tuple[Part, ...] | None = None,
        norm_squared: float | None = None,
    ):
        self.settings = settings
        self._jitters: tuple[float, ...] = JITTERS[np.dtype(dtype)]
        self.model, self.kernel, self.n_outputs, self.dtype = model, model.kernel, model.coef.shape[1], dtype
        is_sigmoid = not self.kernel.is_inner_product
        self.norm_weight = 0.0 if is_sigmoid else 1.0 if X is None else NORM_WEIGHT / _mean_square(model)

        def rows(raw):
            return KernelRows(self.kernel, raw, dtype=dtype, n_jobs=n_jobs, counter=counter)

        parts = _whole(model.n_basis) if parts is None else parts
        self.own = Source(rows(model.basis), model.coef.astype(dtype, copy=False), False, parts)
        self.sources, self._scored = [self.own], 0.0
        self._norm_squared: float | None = np.nan if is_sigmoid else norm_squared
        if X is not None:
            scores = replace(model, dtype="float64").scores(X, n_jobs) - model.intercept
            self.sources.append(Source(rows(X), scores.astype(dtype, copy=False), True, _whole(len(scores))))
            self._scored = float(np.mean(np.sum(scores**2, axis=1)))

    @property
    def norm_squared(self) -> float:
        """Return ‖w‖² (NaN for the sigmoid kernel), computed on first use: of many vectors that takes long."""
        if self._norm_squared is None:
            self._norm_squared = max(0.0, self.model.norm_squared(n_jobs=self.own.kernel_rows.n_jobs))
        return self._norm_squared

    @property
    def total(self) -> float:
        """Return D of the model without vectors."""
        return self._scored + (self.norm_weight * self.norm_squared if self.norm_weight else 0.0)

    def coefficients(self, basis: Any) -> Array:
        """Return the best coefficients (k, m) over the vectors."""
        return self._solve(basis, {})[0]

    def at(self, basis: Array) -> tuple[float, Array, Array]:
        """Return D, its gradient (k, d) in the vectors, and the best coefficients (k, m) over them."""
        kept: dict[int, list] = {}
        gram = self._gram(basis, kept)
        beta, less = self._solve(basis, kept, gram)
        gradient, mass = np.zeros_like(basis), np.zeros(len(basis))
        for source in self.sources:
            for rows, values in self._blocks(source, basis, kept):
                pull = -self._weight(source) * source.target[rows]
                if source.is_scored:
                    pull += self._weight(source) * (values @ beta.astype(self.dtype, copy=False))
                self._add(source.kernel_rows.rows.slice(*_bounds(rows), self.dtype), values, pull, beta, basis,
                          source.parts_of(rows), gradient, mass)  # fmt: skip
        if gram is not None:
            self._add(basis, gram, self.norm_weight * beta, beta, basis, _whole(len(basis)), gradient, mass)
        if self._folding.norms:
            gradient -= basis * mass[:, None]
        return self.total - less, 2.0 * self._folding.metric * gradient, beta

    def parts(self, basis: Any, beta: Array) -> tuple[float, float]:
        """Return the root mean squared difference of the scores (0 without rows), and ‖w − ŵ‖ (NaN for "sigmoid")."""
        cross, squares, n = 0.0, 0.0, 1
        for source in self.sources:
            for rows, values in self._blocks(source, basis, {}):
                there = values @ beta
                if source.is_scored:
                    squares += float(np.sum((there - source.target[rows]) ** 2))
                    n = len(source.target)
                else:
                    cross += float(np.sum(there * source.target[rows]))
        if np.isnan(self.norm_squared):
            return float(np.sqrt(squares / n)), np.nan
        square = float(np.sum(beta * (between(self.own.kernel_rows, basis) @ beta)))
        return float(np.sqrt(squares / n)), float(np.sqrt(max(0.0, self.norm_squared - 2.0 * cross + square)))

    @property
    def _differentiable(self) -> FoldedKernel:
        assert isinstance(self.kernel, FoldedKernel)
        return self.kernel

    @made_once
    def _folding(self) -> Folding:
        return self._differentiable.folding(self.model.basis.shape[1])

    @made_once
    def _steepness(self) -> float:
        return self._folding.steepness

    def _weight(self, source: Source) -> float:
        return 1.0 / len(source.target) if source.is_scored else self.norm_weight

    def _solve(self, basis: Any, kept: dict[int, list], gram: Array | None = None) -> tuple[Array, float]:
        """Solve for β; return it and how far D falls below that of no vectors; fill ``kept`` with kernel values.

        ``gram`` has the kernel values between the vectors, where they are known.
        """
        k = basis.shape[0]
        gram = self._gram(basis, kept) if gram is None else gram
        H = np.zeros((k, k)) if gram is None else self.norm_weight * gram
        T = np.zeros((k, self.n_outputs))
        for source in self.sources:
            weight = self._weight(source)
            if not weight:
                continue
            keep = len(source.target) * k * 8 <= self.settings.kept_bytes
            for rows, values in self._blocks(source, basis, kept, keep):
                scaled, target = values if weight == 1.0 else weight * values, source.target[rows]
                own = [(part.rows, part.outputs, target[part.rows, part.outputs]) for part in source.parts_of(rows)]

                def add(part, values=values, scaled=scaled, own=own, square=source.is_scored):
                    for these, outputs, target in own:
                        T[part, outputs] += scaled[these, part].T @ target
                    if square:
                        H[part] += scaled[:, part].T @ values

                self._run(add, values)
        scale = np.sqrt(np.maximum(np.diagonal(H), 1e-300))
        H /= scale * scale[:, None]
        beta = self._solve_scaled(H, T / scale[:, None]) / scale[:, None]
        return beta, float(np.sum(beta * T))

    def _gram(self, basis: Any, kept: dict[int, list]) -> Array | None:
        """Return kernel values between the vectors, None where norms do not count; fill ``kept`` if they are few."""
        if not self.norm_weight:
            return None
        found = with_few(self.own.kernel_rows, basis)
        if found is None:
            return between(self.own.kernel_rows, basis)
        kept[id(self.own)] = [(slice(0, len(found[1])), found[1])]
        return found[0]

    def _solve_scaled(self, H: Array, T: Array) -> Array:
        """Solve H⁻¹ T, adding as little to the diagonal as is needed, but never less than in an earlier call."""
        diagonal = H.flat[:: len(H) + 1].copy()
        while self._jitters:
            H.flat[:: len(H) + 1] = diagonal + self._jitters[0]
            factor = cholesky(H.T, upper=True)  # rows are read as columns, which are equal here
            if factor is not None:
                return dpotrs(factor, T)[0]
            self._jitters = self._jitters[1:]
        raise ValueError(
            "the kernel matrix of the vectors is not positive semidefinite: is the kernel an inner product?"
        )

    def _blocks(
        self, source: Source, basis: Any, kept: dict[int, list], keep: bool = False
    ) -> Iterator[tuple[slice, Array]]:
        """Yield rows of a source with their kernel values (b, k), read from ``kept`` if they are there."""
        key, kernel_rows = id(source), source.kernel_rows
        if key in kept:
            yield from kept[key]
            return
        points, done = kernel_rows.points_of(basis), []
        for lo, hi in kernel_rows.rows.blocks(max(1, self.settings.block_values // basis.shape[0])):
            block = slice(lo, hi), kernel_rows.block(points, rows=(lo, hi))
            if keep:
                done.append(block)
            yield block
        if keep:
            kept[key] = done

    def _add(
        self,
        x: Any,
        values: Array,
        pull: Array,
        beta: Array,
        basis: Array,
        parts: Iterable[Part],
        gradient: Array,
        mass: Array,
    ) -> None:
        """Add Σ_i W_ij x_i and Σ_i W_ij with W_ij = ⟨pull_i, β_j⟩ k'(x_i, b_j), k' in the folded product."""
        kernel, folding = self._differentiable, self._folding
        beta = beta.astype(pull.dtype, copy=False)
        pull = self._steepness * pull if folding.slope_is_value else pull
        products = np.multiply if self.n_outputs == 1 else np.matmul  # for one column and one row these are the same
        own = [(part.rows, pull[part.rows, part.outputs], beta[:, part.outputs]) for part in parts]

        def add(part):
            weights = np.empty((len(pull), len(beta[part])), pull.dtype)
            for these, pull_of, beta_of in own:
                products(pull_of, beta_of[part].T, out=weights[these])
            if folding.slope_is_value:
                weights *= values[:, part]
            else:
                weights *= kernel.block_with_slopes(x, basis[part], n_jobs=1)[1]
            gradient[part] += (x.T @ weights).T
            mass[part] += np.ones(len(weights), weights.dtype) @ weights

        self._run(add, values)

    def _run(self, function: Callable[[slice], None], values: Array) -> None:
        """Call a function with tiles of vectors that cover the columns of kernel values."""
        k = values.shape[1]
        panel = PANEL if values.size >= MANY else k

        def run(lo: int, hi: int) -> None:
            for tile in range(lo, hi):
                function(slice(tile * panel, (tile + 1) * panel))

        run_tiles(run, -(-k // panel), self.own.kernel_rows.n_jobs)


def _mean_square(model: KernelExpansion) -> float:
    """Return the mean of k(x, x) over the model's vectors, which bounds how much ‖w‖² = 1 adds to a squared score."""
    mean = float(np.mean(model.kernel.diag(model.basis)))
    return mean if mean > 0 else 1.0


def _whole(n: int) -> tuple[Part, ...]:
    """Return all rows, in all outputs, as one part."""
    return (Part(slice(0, n), slice(None)),)


def _bounds(rows: slice) -> tuple[int, int]:
    return rows.start, rows.stop


def descend(
    distance: Distance, basis: Array, max_iter: int, enough: float = 0.0
) -> tuple[Array, list[dict[str, Any]], int]:
    """Move all vectors together by L-BFGS; return them, the history and the number of steps.

    They never come out farther away than where they began. If D is ``enough``, a share of `total`, it is as good as 0,
    and they stay where they are.
    """
    gamma = distance.kernel.gamma if distance.kernel.has_metric else 0.5
    unit = np.broadcast_to(1.0 / np.sqrt(2.0 * np.asarray(gamma)), basis.shape[1])
    total = distance.total if distance.total > 0 else 1.0

    def share(scaled: Array) -> tuple[float, Array, Array]:
        value, gradient, beta = distance.at(scaled * unit)
        return value / total, gradient * (unit / total), _curvature(beta, total)

    points, values = least_by_lbfgs(share, basis / unit, max_iter, enough)
    history = [{"objective": value} for value in values]
    return (points * unit if len(values) > 1 else basis), history, len(values) - 1


def _curvature(beta: Array, total: float) -> Array:
    """Return rough second derivatives of D / total at each vector (k, 1), where distances are in units of γ = 1.

    2‖β_j‖² / total, as of vectors that are orthogonal and have no more to gain. These have at most 2 in all: of vectors
    that lie near to each other coefficients are large, and cancel.
    """
    squares = np.sum(beta * beta, axis=1, keepdims=True)
    mean = max(float(squares.mean()), 1e-300)
    return np.maximum(squares / mean, FLOOR) ** POWER * min(2.0 * mean / total, 2.0 / len(beta))


# -- L-BFGS: the least of a function of k points, where the curvature at each point is roughly known -------------------
#     step along −H ∇f, where H is the inverse of the curvatures, corrected by the last pairs (s, y):
#     s = a step, y = how the gradient changed in it (two loops over the pairs, no matrix)
#     while the value falls by less than DECREASE of what the slope promises: shorten the step, by a parabola
#
# Curvatures are those of the present point, scaled by the last pair. Pairs whose s·y is not positive are left out.
#
# Liu and Nocedal, "On the Limited Memory BFGS Method for Large Scale Optimization", Mathematical Programming 1989.

Pair = tuple[Array, Array, float]

# Pairs that are kept (docs/experiments/learned_bases.md, "Steps by the length of coefficients").
MEMORY = 5
# The usual ones: the share of the promised decrease that a step must have, and how often a step is tried. A step that
# lowers the value by less than LEAST_GAIN is the last one, and there is none from a gradient below it.
DECREASE, MOST_TRIED, LEAST_GAIN = 1e-4, 10, 1e-9


def least_by_lbfgs(
    function: Callable[[Array], tuple[float, Array, Array]], points: Array, max_iter: int, enough: float
) -> tuple[Array, list[float]]:
    """Return points of a lower value, and the values at the start and after every step.

    ``function`` returns the value at points (k, d), its gradient (k, d) and the curvature at each point (k, 1), which
    is positive. A value of ``enough`` is as good as the least.
    """
    value, gradient, curvature = function(points)
    values, pairs = [value], deque[Pair](maxlen=MEMORY)
    for _ in range(max_iter):
        if value <= enough or np.abs(gradient).max() <= LEAST_GAIN:
            break
        direction = -_times_inverse(gradient, curvature, pairs)
        found = _shortened(function, points, value, direction, float(np.vdot(gradient, direction)))
        if found is None:
            break
        step, (value, changed, curvature) = found
        points, change, gradient = points + step, changed - gradient, changed
        values.append(value)
        product = float(np.vdot(step, change))
        if product > 0:
            pairs.append((step, change, product))
        if values[-2] - value <= LEAST_GAIN:
            break
    return points, values


def _times_inverse(gradient: Array, curvature: Array, pairs: deque[Pair]) -> Array:
    """Return H ∇f."""
    q, shares = gradient.copy(), []
    for step, change, product in reversed(pairs):
        shares.append(np.vdot(step, q) / product)
        q -= shares[-1] * change
    q /= curvature
    if pairs:
        _, change, product = pairs[-1]
        q *= product / np.vdot(change, change / curvature)
    for (step, change, product), share in zip(pairs, reversed(shares)):
        q += (share - np.vdot(change, q) / product) * step
    return q


def _shortened(
    function: Callable[[Array], tuple[float, Array, Array]], points: Array, value: float, direction: Array, slope: float
) -> tuple[Array, tuple[float, Array, Array]] | None:
    """Return a step along a direction and what the function is behind it; None if no step lowers the value."""
    length = 1.0
    for _ in range(MOST_TRIED):
        step = length * direction
        there = function(points + step)
        promised = length * slope
        if there[0] <= value + DECREASE * promised:
            return step, there
        length *= min(max(-0.5 * promised / (there[0] - value - promised), 0.1), 0.5)
    return None

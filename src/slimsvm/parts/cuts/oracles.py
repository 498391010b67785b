"""Oracles: which examples make the next cut, and which cut the stopping rule is read from.

Yu and Joachims, "Training Structural SVMs with Kernels Using Sampled Cuts", KDD 2008: `ExactOracle` is Algorithm 1,
`UniformOracle` Algorithm 2 ("constant time"), `ViolatedOracle` Algorithm 3 ("linear time").

For a loss over all rows at once (one example) a sampled cut samples *rows* of the sum. `ViolatedOracle` finds the
argmax over all rows and draws in proportion to the size of the coefficients, so that the cut stays an unbiased estimate
of the exact one; `UniformOracle` evaluates the loss on the sampled rows as if they were all, which is biased for such
losses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.parts.cuts.working_set import Cut, WorkingSet
from slimsvm.tasks import Augmented, Examples, Task, losses
from slimsvm.tasks.examples import check_same_loss

Array = np.ndarray


@dataclass(frozen=True)
class Point:
    """A point at which a cut is asked for: scores of all rows (None where only sampled rows have scores) and v."""

    scores: Any
    plain: Array


@dataclass(frozen=True)
class CutState:
    """Everything that an oracle may read."""

    # task, examples: the loss and what it counts
    task: Task
    examples: Examples
    book: Any  # FullScores or SampledScores: has the scores
    working_set: WorkingSet  # live cuts and the QP's solution
    target: Point  # the QP's solution
    # Loss-augmented argmax over all examples where the cut is wanted: at the QP's solution, or at a stabilised
    # point. None where only sampled rows are ever scored.
    augmented: Any


@dataclass(frozen=True)
class Proposal:
    """The cut that an oracle found, and what it knows of it."""

    cut: Any  # the cut to add; None when an oracle that judges convergence itself finds nothing left to cut
    redraws: int = 0  # samples thrown away before one was violated
    gave_up: bool = False  # whether they were all that may be drawn
    # loss, training_error: estimates of the mean loss and of the task's training error, from oracles that never
    # see all rows
    loss: float | None = None
    training_error: float | None = None
    # float64 (t,): inner products of the cut with the live cuts, where the oracle had to compute them anyway.
    products: Array | None = None


def reference_loss(task: Task, point: Point, examples: Examples) -> tuple[Augmented, float]:
    """Return the loss-augmented argmax over all examples and the weighted mean loss."""
    augmented = task.augment(point.scores, point.plain, examples)
    values = losses(augmented, point.scores, point.plain, examples)
    return augmented, float(examples.weights @ values) / examples.total_weight


def mean_constant(augmented: Augmented, examples: Examples) -> float:
    """Return c = Σ ω_e Δ_e / Ω."""
    return float(examples.weights @ augmented.delta) / examples.total_weight


def mean_plain(augmented: Augmented, n_plain: int, weights: Array) -> Array:
    """Return Σ weights_e times the plain part of δΨ_e."""
    return np.zeros(n_plain) if augmented.plain is None else weights @ augmented.plain


def exact_cut(augmented: Augmented, examples: Examples, n_plain: int) -> Cut:
    """Return the mean over all examples of δΨ(ŷ_e) as a cut."""
    share = examples.weights / examples.total_weight
    nonzero = augmented.coef.any(axis=1) if augmented.coef.shape[1] > 1 else augmented.coef[:, 0]
    rows = np.flatnonzero(nonzero)
    by_row = share[rows] if examples.offsets is None else share[examples.example_of_rows()[rows]]
    coef, plain = augmented.coef[rows] * by_row[:, None], mean_plain(augmented, n_plain, share)
    return Cut(mean_constant(augmented, examples), rows, coef, plain)


@dataclass(frozen=True)
class ExactOracle:
    """The oracle of Algorithm 1: its cut is the mean over all examples."""

    needs_all_scores = True
    exact = True

    def find(self, state: CutState, threshold: float, rng: np.random.Generator) -> Proposal:
        """Return the mean over all examples of δΨ(ŷ_e) as a cut."""
        return Proposal(exact_cut(state.augmented, state.examples, state.task.n_plain))


@dataclass(frozen=True)
class Units:
    """The units that a sampled cut draws: violated examples, or violated rows of one example, with their weights."""

    index: Array
    probability: Array | None
    total: float
    by_row: bool

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draw ``size`` units with replacement by their probabilities (None: all alike); none where there are none."""
        if not len(self.index):
            return self.index
        if self.probability is None:
            return self.index[rng.integers(0, len(self.index), size)]
        return rng.choice(self.index, size, p=self.probability)


@dataclass(frozen=True)
class ViolatedOracle:
    """The oracle of Algorithm 3: it samples from the examples with δΨ_e ≠ 0, and stops by the exact mean loss."""

    sample_size: int = 400  # r, examples in a cut
    # Draw again until the sampled cut is violated by more than ε at the QP's solution, as the paper does. Without
    # it sampled cuts average to the exact cut.
    redraw: bool = True
    # "sample" or "all": whether the cut's constant is that of the examples drawn, as its g is,
    # or that of all violated ones, as the paper has it. The same for 0/1 losses. For others a constant that does
    # not belong to its g makes the cut far noisier. (A loss over all rows has one constant, which cannot be
    # sampled.)
    constant: str = "sample"
    # Samples of a cut, of which the most violated is taken where none is violated by more than ε. One is about
    # every other time; where so many are not, rounding is all that is left.
    max_draws: int = 1001
    needs_all_scores = True
    exact = False

    def find(self, state: CutState, threshold: float, rng: np.random.Generator) -> Proposal:
        """Return a cut sampled from the violated examples; ``threshold`` = ξ + ε."""
        task, examples, augmented, target = state.task, state.examples, state.augmented, state.target
        units = violated_units(task, examples, augmented)
        c = mean_constant(augmented, examples) if self.constant == "all" else None
        best, best_value, redraws = None, -np.inf, -1
        while redraws + 1 < self.max_draws and best_value <= threshold:
            redraws += 1
            cut = sampled_cut(task, examples, augmented, units, c, self.sample_size, rng)
            value = cut.c - float(np.sum(cut.coef * target.scores[cut.rows])) - float(cut.plain @ target.plain)
            if best is None or value > best_value:
                best, best_value = cut, value
            if not self.redraw or not len(units.index):
                break
        return Proposal(best, redraws=redraws, gave_up=redraws + 1 >= self.max_draws > 1)


def violated_units(task: Task, examples: Examples, augmented: Augmented) -> Units:
    """Return I = {e : δΨ_e ≠ 0}, or the rows with a coefficient where the loss is over all rows."""
    nonzero = augmented.coef[:, 0] != 0 if augmented.coef.shape[1] == 1 else augmented.coef.any(axis=1)
    if not task.decomposes:
        index = np.flatnonzero(nonzero)
        size = np.abs(augmented.coef[index]).sum(axis=1)
        same = bool(np.all(size == size[:1]))
        return Units(index, None if same else size / size.sum(), float(len(index)), by_row=True)
    if examples.offsets is not None:
        nonzero = (
            np.add.reduceat(np.append(nonzero, False), examples.offsets[:-1]) * (np.diff(examples.offsets) > 0) > 0
        )
    if augmented.plain is not None:
        nonzero = nonzero | augmented.plain.any(axis=1)
    index = np.flatnonzero(nonzero)
    weights = examples.weights[index]
    total = float(weights.sum())
    alike = len(weights) > 0 and np.all(weights == weights[0])
    return Units(index, None if alike else weights / total, total, by_row=False)


def sampled_cut(
    task: Task,
    examples: Examples,
    augmented: Augmented,
    units: Units,
    c: float | None,
    size: int,
    rng: np.random.Generator,
) -> Cut:
    """Return (Ω_I / (Ω r)) Σ_j (Δ, δΨ)_{S_j} with S drawn from the units, or with the constant c if it is given.

    Duplicated examples merge into one coefficient.
    """
    distinct, counts = np.unique(units.draw(size, rng), return_counts=True)
    if units.by_row:
        factor = counts * (units.total / size)
        if units.probability is not None:
            factor = counts / (size * units.probability[np.searchsorted(units.index, distinct)])
        coef = augmented.coef[distinct] * (factor * examples.weights[0] / examples.total_weight)[:, None]
        plain = mean_plain(augmented, task.n_plain, examples.weights / examples.total_weight)
        return Cut(mean_constant(augmented, examples), distinct, coef, plain)
    factor = counts * (units.total / (examples.total_weight * size))
    rows = examples.rows_of(distinct)
    by_row = factor if examples.offsets is None else np.repeat(factor, np.diff(examples.offsets)[distinct])
    coef = augmented.coef[rows] * by_row[:, None]
    plain = np.zeros(task.n_plain) if augmented.plain is None else factor @ augmented.plain[distinct]
    return Cut(float(factor @ augmented.delta[distinct]) if c is None else c, rows, coef, plain)


@dataclass(frozen=True)
class UniformOracle:
    """The oracle of Algorithm 2: it samples r examples each time, so that an iteration's work does not depend on n."""

    sample_size: int = 1000  # r, examples in a cut
    patience: int = 4  # p: the stopping rule must hold for this many fresh samples in a row
    needs_all_scores = False
    exact = False

    def find(self, state: CutState, threshold: float, rng: np.random.Generator) -> Proposal:
        """Return a cut at the QP's solution from a fresh sample, or none if ``patience`` samples satisfied the rule."""
        task, examples, working_set, plain = state.task, state.examples, state.working_set, state.target.plain
        loss, error = np.inf, None
        for tried in range(self.patience):
            rows, counts, sample = self.draw(task, examples, rng)
            products = state.book.evaluate(rows, working_set.cuts)
            values = np.einsum("j,juc->uc", working_set.alpha, products)
            augmented = task.augment(values, plain, sample)
            share = counts / counts.sum()
            loss = float(share @ losses(augmented, values, plain, sample))
            counted = sample if not task.decomposes else replace(sample, weights=counts)
            error = task.error(task.decode(values, plain, counted), counted)
            if loss > threshold:
                by_row = share if sample.offsets is None else share[sample.example_of_rows()]
                used = np.flatnonzero(augmented.coef.any(axis=1))
                coef = augmented.coef[used] * by_row[used, None]
                cut = Cut(float(share @ augmented.delta), rows[used], coef, mean_plain(augmented, task.n_plain, share))
                inner = np.einsum("juc,uc->j", products[:, used], coef)
                return Proposal(cut, redraws=tried, loss=loss, training_error=error, products=inner)
        return Proposal(None, redraws=self.patience, loss=loss, training_error=error)

    def draw(self, task: Task, examples: Examples, rng: np.random.Generator) -> tuple[Array, Array, Examples]:
        """Return rows (distinct, increasing), multiplicity of each sampled example, and the examples themselves."""
        if not task.decomposes:
            rows = np.unique(rng.integers(0, examples.n_rows, self.sample_size))
            return rows, np.ones(1), examples.take_rows(rows)
        drawn = examples.draw(self.sample_size, rng)
        distinct, counts = np.unique(drawn, return_counts=True)
        return examples.rows_of(distinct), counts.astype(np.float64), examples.take(distinct)


@dataclass(frozen=True)
class Solution:
    """The point w = Σ α_j g_j at one moment. Nobody changes it, so that an interrupt cannot leave it half written."""

    cuts: tuple[Cut, ...]
    alpha: Array  # float64 (t,)
    norm_squared: float  # ‖w‖²
    objective: Any  # None if it is not known
    point: Point


@dataclass(frozen=True)
class CutsState:
    """The active cuts of a fit, for a warm start: they hold for any kernel, C and features of the same examples."""

    cuts: tuple[Cut, ...]
    # task, examples: the loss they are bounds of
    task: Task
    examples: Examples
    exact: bool  # whether they are: sampled cuts bound nothing

    def check(self, task: Task, examples: Examples) -> None:
        """Refuse a warm start with another loss: its cuts are others."""
        consequence = ", whose cuts therefore do not hold; only the kernel, C and X may change"
        check_same_loss(self, task, examples, consequence)

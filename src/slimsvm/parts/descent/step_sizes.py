"""How large the steps of `solvers.learned_vectors` are, in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.parts.descent.batch_gradient import Rates, known_loss
from slimsvm.parts.principal_directions import Directions
from slimsvm.parts.problem import Problem
from slimsvm.rows import is_sparse
from slimsvm.tasks import Examples, Task, losses

Array = np.ndarray


@dataclass(frozen=True)
class StepSettings:
    """Sizes of steps beside the solver's rate, pull of a learned metric, and noise.

    docs/experiments/learned_bases.md settles ``rate_vectors``, ``loss_share``, ``pull_vectors`` and ``noise``,
    structured_outputs.md ``most_push``. The others were chosen, not measured.
    """

    # Rates relative to that of the basis: of the coefficient of a single vector, for a unit of the score; of the
    # intercept.
    coef_rate: float = 100.0
    intercept_rate: float = 1.0
    # The rate is that of up to so many vectors; beyond it falls with the root of their number.
    rate_vectors: int = 25
    # Pull of the metric on all features together: this share of the mean loss for up to so many vectors; beyond it
    # falls with the root of their number. On each feature it is at least one row's loss.
    loss_share: float = 1 / 8
    pull_vectors: int = 50
    # Where score columns compete in a loss of several rows, or in one that only the task knows, all coefficients of a
    # column together push a score by at most so many units in a step: labels that overtake each other by more at the
    # start never settle. So many rows, and as many vectors, are what this is estimated from.
    most_push: float = 2.0
    push_sample: int = 500
    # noise="auto": standard deviations, for dense rows of at least so many features, where classes are learned in the
    # kernel's own metric.
    noise: float = 0.4
    noise_features: int = 200
    # Rows that the features' spread is taken from.
    spread_rows: int = 20_000


def basis_rate(rate: float, k: int, settings: StepSettings) -> float:
    """Size of a step of k vectors, in standard deviations of the features."""
    return rate / float(np.sqrt(max(1.0, k / settings.rate_vectors)))


def mean_loss(task: Task, scores: Array, plain: Array, examples: Examples) -> float:
    """Weighted mean loss of the examples."""
    augmented = task.augment(scores, plain, examples)
    return float(np.average(losses(augmented, scores, plain, examples), weights=examples.weights))


def loss_of_zero(problem: Problem) -> float:
    """Mean loss of the model that is zero."""
    task, examples = problem.task, problem.examples
    return mean_loss(task, np.zeros((examples.n_rows, task.n_outputs)), np.zeros(task.n_plain), examples)


def slope_of_zero(problem: Problem) -> float:
    """Mean slope of a smooth loss at the model that is zero, of all scores together: by it the mean loss there is in
    units of scores. Slopes of other losses are about 1.
    """
    task, examples = problem.task, problem.examples
    if not task.is_smooth:
        return 1.0
    slopes = np.abs(task.augment(np.zeros((examples.n_rows, task.n_outputs)), np.zeros(0), examples).coef)
    return float(np.average(slopes.sum(axis=1), weights=examples.weights)) or 1.0


def step_sizes(
    problem: Problem,
    kernel_rows: KernelRows,
    solver: Any,
    basis: Any,
    unit: float,
    rng: np.random.Generator,
    directions: Directions | None = None,
) -> Rates:
    """Step sizes in the units of the data: features by their spread, scores by the loss of the zero model.

    Parameters
    ----------
    problem : Problem
    kernel_rows : KernelRows
        Its rows.
    solver : Refine
    basis : raw vectors (k, d)
        Where the descent starts.
    unit : float
        Mean loss of the zero model.
    rng : numpy.random.Generator
    directions : Directions or None
        Directions that vectors are learned along; sizes are then of steps along them.
    """
    n, k, examples, own = kernel_rows.n_rows, basis.shape[0], problem.examples, problem.settings_of(StepSettings)
    index = np.arange(n) if n <= own.spread_rows else np.sort(rng.choice(n, own.spread_rows, replace=False))
    block = kernel_rows.rows.take(index, np.float64)
    spread = spread_of(block, kernel_rows)
    noise = noise_of(problem, kernel_rows, solver) * spread
    if directions is not None:
        noise, spread = directions.along(noise), spread_of(block, kernel_rows, directions)
    # Halfway between one rate for all features and one in proportion to each one's spread, as the kernel sees them.
    gamma = kernel_rows.kernel.gamma if kernel_rows.kernel.has_metric and directions is None else 1.0
    scale = np.sqrt(gamma) if np.ndim(gamma) else 1.0
    halfway = np.sqrt(spread * scale * np.sqrt(np.mean(np.square(spread * scale)))) / scale
    rate, share = basis_rate(solver.rate, k, own), own.loss_share / np.sqrt(max(1.0, k / own.pull_vectors))
    score = unit * examples.n_examples / examples.n_rows / slope_of_zero(problem)
    coef, known = rate * own.coef_rate / np.sqrt(k) * score, known_loss(problem)
    if (known is None or known.sequences is not None) and problem.task.n_outputs > 1:
        value = mean_kernel_value(kernel_rows, basis, index, rng, own.push_sample)
        coef = min(coef, own.most_push * score / max(1e-12, k * value))
    return Rates(
        basis=rate * halfway,
        coef=coef,
        intercept=rate * own.intercept_rate * score,
        scale=rate,
        plain=rate * own.intercept_rate * score,
        pull=solver.metric_pull * unit * max(1.0 / n, share / len(spread)),
        noise=noise if noise.any() else None,
    )


def spread_of(block: Any, kernel_rows: KernelRows, directions: Directions | None = None) -> Array:
    """Standard deviation of each feature, or along each direction, of the rows that are not far from the others."""
    near = kernel_rows.bulk.holds(block)
    block = block if near.all() else block[near]
    block = block if directions is None else directions.of_vectors(block)
    square = (block.multiply(block) if is_sparse(block) else np.square(block)).mean(axis=0)
    found: Array = np.sqrt(np.maximum(np.asarray(square) - np.asarray(block.mean(axis=0)) ** 2, 0.0))
    return found


def noise_of(problem: Problem, kernel_rows: KernelRows, solver: Any) -> float:
    """Standard deviation of the noise, in that of each feature."""
    if not isinstance(solver.noise, str):
        found: float = solver.noise
        return found
    task, own = problem.task, problem.settings_of(StepSettings)
    is_classes = task.is_compiled and task.has_class_scores and problem.examples.offsets is None
    is_wide = kernel_rows.n_features >= own.noise_features and not kernel_rows.rows.is_sparse
    return own.noise if is_wide and is_classes and not solver.learn_metric else 0.0


def mean_kernel_value(kernel_rows: KernelRows, basis: Any, index: Array, rng: np.random.Generator, most: int) -> float:
    """Of at most so many rows and basis vectors, without its sign."""
    some = rng.choice(index, min(most, len(index)), replace=False)
    points = kernel_rows.points_of(basis[rng.permutation(basis.shape[0])[:most]])
    return float(np.abs(kernel_rows.block(points, rows=np.sort(some))).mean())

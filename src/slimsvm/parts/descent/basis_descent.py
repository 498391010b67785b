"""Descent on basis vectors, coefficients and feature scales together: sizes of steps, schedule, batches, the model.

Parts: `batch_gradient` for the gradient of a batch, `adam` for the step along it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.kernels import Kernel, KernelRows
from slimsvm.parts.descent.batch_gradient import Adam, BatchGradient, Parameters, Rates, known_loss
from slimsvm.parts.principal_directions import Directions
from slimsvm.parts.problem import Problem
from slimsvm.rows import in_pieces, is_sparse, taken
from slimsvm.tasks import Examples, Task, losses

Array = np.ndarray

# -- How large the steps are, in the units of the data -----------------------------------------------------------------

# Numbers that the features' spread is taken from between two looks at the clock.
SPREAD_NUMBERS = 1 << 20
# … and that are turned from vectors to features, or back, at a time: half the time of all of 20,000 features at once.
TURNED_NUMBERS = 1 << 14


@dataclass(frozen=True)
class StepSettings:
    """Sizes of steps beside the solver's rate, pull of a learned metric, and noise.

    docs/experiments/learned_bases.md settles ``usual_ratio``, ``rate_vectors``, ``loss_share``, ``pull_vectors`` and
    ``noise``, structured_outputs.md ``most_push``. The others were chosen, not measured.
    """

    # Rates relative to that of the basis: of the coefficient of a single vector, for a unit of the score; of the
    # intercept.
    coef_rate: float = 100.0
    # … times √k / ‖k(x, b_1..k)‖ over this number, at least 1: in a narrow kernel few of k vectors move a score.
    usual_ratio: float = 5.0
    intercept_rate: float = 1.0
    # The rate is that of up to so many vectors; beyond it falls with the root of their number.
    rate_vectors: int = 25
    # Pull of the metric on all features together: this share of the mean loss for up to so many vectors; beyond it
    # falls with the root of their number. On each feature it is at least one row's loss.
    loss_share: float = 1 / 8
    pull_vectors: int = 50
    # Where score columns compete in a loss of several rows, or in one that only the task knows, all coefficients of a
    # column together push a score by at most so many units in a step: labels that overtake each other by more at the
    # start never settle.
    most_push: float = 2.0
    # Rows, and as many vectors, that kernel values between rows and vectors are estimated from.
    value_sample: int = 500
    # noise="auto": standard deviations, for dense rows of at least so many features, where classes are learned in the
    # kernel's own metric.
    noise: float = 0.4
    noise_features: int = 200
    # Rows that the features' spread is taken from.
    spread_rows: int = 20_000


def basis_rate(rate: float, k: int, settings: StepSettings) -> float:
    """Return the size of a step of k vectors, in standard deviations of the features."""
    return rate / float(np.sqrt(max(1.0, k / settings.rate_vectors)))


def mean_loss(task: Task, scores: Array, plain: Array, examples: Examples) -> float:
    """Return the weighted mean loss of the examples."""
    augmented = task.augment(scores, plain, examples)
    return float(np.average(losses(augmented, scores, plain, examples), weights=examples.weights))


def loss_of_zero(problem: Problem) -> float:
    """Return the mean loss of the model that is zero."""
    task, examples = problem.task, problem.examples
    return mean_loss(task, np.zeros((examples.n_rows, task.n_outputs)), np.zeros(task.n_plain), examples)


def slope_of_zero(problem: Problem) -> float:
    """Return the mean slope of a smooth loss at the model that is zero, of all scores together.

    By it the mean loss there is in units of scores. Slopes of other losses are about 1.
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
    """Return step sizes in the units of the data: features by their spread, scores by the loss of the zero model.

    ``unit`` is the mean loss of the zero model. If vectors are learned along directions, sizes are of steps along them.
    """
    n, k, examples, own = kernel_rows.n_rows, basis.shape[0], problem.examples, problem.settings_of(StepSettings)
    index = np.arange(n) if n <= own.spread_rows else np.sort(rng.choice(n, own.spread_rows, replace=False))
    block = taken(kernel_rows.rows, index, np.float64)
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
    if kernel_rows.kernel.has_metric:
        coef *= max(1.0, ratio_of_norms(kernel_rows, basis, index, own.value_sample) / own.usual_ratio)
    if (known is None or known.sequences is not None) and problem.task.n_outputs > 1:
        value = mean_kernel_value(kernel_rows, basis, index, rng, own.value_sample)
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
    """Return the standard deviation of each feature, or direction, of the rows that are not far from the others."""
    n, total, squares = 0, 0.0, 0.0
    width = block.nnz // max(1, block.shape[0]) if is_sparse(block) else block.shape[1]
    for part in in_pieces(block.shape[0], SPREAD_NUMBERS // max(1, width)):
        near = kernel_rows.bulk.holds(block[part])
        some: Any = block[part] if near.all() else block[part][near]
        some = some if directions is None else directions.of_vectors(some)
        square = some.multiply(some) if is_sparse(some) else np.square(some)
        n, total, squares = n + some.shape[0], total + some.sum(axis=0), squares + square.sum(axis=0)
    found: Array = np.sqrt(np.maximum(np.asarray(squares / n - np.square(total / n)), 0.0))
    return found


def noise_of(problem: Problem, kernel_rows: KernelRows, solver: Any) -> float:
    """Return the standard deviation of the noise, in that of each feature."""
    if not isinstance(solver.noise, str):
        return float(solver.noise)
    task, own = problem.task, problem.settings_of(StepSettings)
    is_classes = task.is_compiled and task.has_class_scores and problem.examples.offsets is None
    is_wide = kernel_rows.n_features >= own.noise_features and not kernel_rows.rows.is_sparse
    return own.noise if is_wide and is_classes and not solver.learn_metric else 0.0


def mean_kernel_value(kernel_rows: KernelRows, basis: Any, index: Array, rng: np.random.Generator, most: int) -> float:
    """Return the mean magnitude of kernel values between at most so many rows and basis vectors."""
    some = rng.choice(index, min(most, len(index)), replace=False)
    points = kernel_rows.points_of(basis[rng.permutation(basis.shape[0])[:most]])
    return float(np.abs(kernel_rows.block(points, rows=np.sort(some))).mean())


def ratio_of_norms(kernel_rows: KernelRows, basis: Any, index: Array, most: int) -> float:
    """Return √k by the root mean square, over at most so many rows, of the norm of their kernel values with k vectors.

    It is at most √k, which one vector for each row has.
    """
    some = index[np.linspace(0, len(index) - 1, min(most, len(index)), dtype=np.int64)]
    values = kernel_rows.block(kernel_rows.points_of(basis), rows=some).astype(np.float64)
    return 1.0 / float(np.sqrt(max(np.square(values).mean(), 1.0 / basis.shape[0])))


# -- Schedule, batches, and the model that they make -------------------------------------------------------------------

# The rates rise for this share of the steps, from and to these shares of the top, as Smith and Topin have it: chosen,
# not measured.
RISING, FIRST, LAST = 0.3, 0.04, 0.001


@dataclass(frozen=True)
class Expansion:
    """Basis vectors (k, d) in the rows' own coordinates, coef (k, m), intercept (m,), log_scale (d,) of features, and
    the task's plain parameters (p,).
    """

    basis: Any
    coef: Array
    intercept: Array
    log_scale: Array
    plain: Array

    @classmethod
    def zeros(cls, shape: tuple[int, int, int], n_plain: int) -> Expansion:
        """Make one of k vectors of d features and m outputs, shape = (d, k, m), with everything 0."""
        d, k, m = shape
        return cls(np.zeros((k, d)), np.zeros((k, m)), np.zeros(m), np.zeros(d), np.zeros(n_plain))


@dataclass(frozen=True)
class Sweep:
    """Mean loss and share of wrong predictions as each batch was met, and the last estimate of ½‖w‖²/C₁."""

    loss: float
    error: float
    norm: float


class Schedule:
    """Factors of the rates over a descent whose number of sweeps may yet shrink: it comes to its end all the same.

    Rates rise in a share ``rising`` of the steps; the mean of a share ``averaging`` of them, at the end, counts.
    """

    def __init__(self, n_epochs: int, averaging: float, rising: float = RISING):
        self.left, self.averaging, self.rising = n_epochs, averaging, rising
        self.progress, self.n_averaged = 0.0, 0

    @property
    def done(self) -> bool:
        """Whether the last sweep has been asked for."""
        return self.left == 0

    def saved_state(self) -> Array:
        """Return what `go_back` is given."""
        return np.array([self.left, self.progress, self.n_averaged], np.float64)

    def go_back(self, saved: Array) -> None:
        """Go to where another schedule was."""
        left, self.progress, n_averaged = saved.tolist()
        self.left, self.n_averaged = int(left), int(n_averaged)

    def sweep(self, n_batches: int) -> tuple[Array, Array]:
        """Return factors of the rates, and shares of the running mean, of the next sweep's steps."""
        width = (1.0 - self.progress) / self.left
        at = self.progress + width * (np.arange(n_batches) + 0.5) / n_batches
        self.left -= 1
        self.progress += width
        n_rising = int(np.searchsorted(at, self.rising))
        factors, shares = np.empty(n_batches), np.zeros(n_batches)
        if n_rising:
            factors[:n_rising] = _between(FIRST, at[:n_rising] / self.rising)
        if n_rising < n_batches:
            factors[n_rising:] = _between(LAST, 1 - (at[n_rising:] - self.rising) / (1 - self.rising))
        n_averaged = n_batches - int(np.searchsorted(at, 1.0 - self.averaging))
        if n_averaged:
            shares[-n_averaged:] = 1.0 / np.arange(self.n_averaged + 1, self.n_averaged + n_averaged + 1)
            self.n_averaged += n_averaged
        return factors, shares


def _between(low: float, x: Array) -> Array:
    """Return what rises from low at x = 0 to 1 at x = 1, along a cosine."""
    return low + (1 - low) * 0.5 * (1 - np.cos(np.pi * x))


class Descent:
    """Parameters being learned on one problem.

    The norm's gradient is estimated from ``norm_tiles`` times ``GradientSettings.norm_rows`` vectors at each step. The
    unit of losses is ``loss``, the mean loss of the zero model.
    """

    def __init__(
        self,
        problem: Problem,
        kernel_rows: KernelRows,
        start: Expansion,
        rates: Rates,
        batch_size: int,
        learn_metric: bool = False,
        norm_tiles: int = 1,
        loss: float = 1.0,
    ):
        self.problem, self.kernel_rows, self.examples = problem, kernel_rows, problem.examples
        self.batch_size = max(1, min(batch_size, self.examples.n_examples))
        self.n_steps, self.learn_metric = 0, learn_metric
        # To within a power of 2^16, as `core/gradients/adam.h` has rates.
        self.loss_unit = float(np.exp2(16 * np.round(np.log2(loss) / 16))) if loss > 0 else 1.0
        k, m = start.coef.shape
        self.shape = kernel_rows.n_features, k, m
        self.parameters = Parameters.zeros(self.shape, problem.task.n_plain, kernel_rows.dtype)
        self.gradient = BatchGradient(
            problem,
            kernel_rows,
            self.parameters,
            self.batch_size,
            learn_metric,
            norm_tiles,
            rates.noise,
            self.loss_unit,
        )
        self._set_start(start)
        rates = replace(rates, pull=rates.pull / self.loss_unit)
        self.adam = Adam(len(self.parameters.flat), kernel_rows.dtype, np.abs(self.gradient.unit), rates)

    def _set_start(self, start: Expansion) -> None:
        raw, to = start.basis.toarray() if is_sparse(start.basis) else start.basis, self.parameters
        centre, unit = self.kernel_rows.centre, self.gradient.unit
        for part in self._features():
            to.basis[part] = ((raw[:, part] - centre[part]) * unit[part]).T
        for name in ("coef", "intercept", "log_scale", "plain"):
            getattr(to, name)[:] = getattr(start, name)

    def slow_down(self) -> None:
        """Halve all step sizes, and forget the moments of the gradients as at the first step."""
        self.adam.slow_down()
        self.n_steps = 0

    def saved_state(self) -> dict[str, Any]:
        """Return what `go_back` is given: parameters, moments of their gradients, rates."""
        adam = self.adam
        own = {"flat": self.parameters.flat, "first": adam.first, "second": adam.second, "mean": adam.mean}
        own = {name: values.copy() for name, values in own.items()}
        return own | {"rates": vars(adam.rates), "n_steps": self.n_steps}

    def go_back(self, saved: dict[str, Any]) -> None:
        """Go to where another descent was."""
        self.set(saved["flat"])
        for name in ("first", "second", "mean"):
            getattr(self.adam, name)[:] = saved[name]
        self.adam.set_rates(Rates(**saved["rates"]))
        self.n_steps = saved["n_steps"]

    # -- what has been learned ------------------------------------------------------------------------------------

    def expansion(self, flat: Array | None = None) -> Expansion:
        """Return the parameters, or those in a vector like theirs, in the rows' own coordinates and float64."""
        flat = self.parameters.flat if flat is None else flat
        at = Parameters.zeros(self.shape, self.problem.task.n_plain, flat.dtype)
        at.flat[:] = flat
        centre, unit, vectors = self.kernel_rows.centre, self.gradient.unit, np.empty(at.basis.shape[::-1])
        for part in self._features():
            vectors[:, part] = at.basis[part].T / unit[part] + centre[part]
        others = at.coef, at.intercept, at.log_scale, at.plain
        return Expansion(vectors, *(own.astype(np.float64) for own in others))

    def _features(self) -> Iterator[slice]:
        """Yield features whose numbers of all vectors the processor's caches hold, one part after another."""
        return in_pieces(self.shape[0], TURNED_NUMBERS // self.shape[1])

    def kernel(self, log_scale: Array) -> Kernel:
        """Return the problem's kernel, with the learned scales."""
        kernel: Any = self.kernel_rows.kernel
        if not self.learn_metric:
            found: Kernel = kernel
            return found
        found = replace(kernel, gamma=np.asarray(kernel.gamma) * np.exp(2.0 * log_scale))
        return found

    def set(self, flat: Array) -> None:
        """Go to other parameters."""
        self.parameters.flat[:] = flat

    # -- steps ----------------------------------------------------------------------------------------------------

    def sweep(self, order: Array, factors: Array, shares: Array) -> Sweep:
        """Make one pass over examples in this order, each at most once, in len(factors) batches of about the same size.

        Every step has its factor of the rates, and its share by which the running mean moves.
        """
        n_batches, stats = len(factors), np.zeros(3)
        cuts = np.arange(n_batches + 1) * len(order) // n_batches
        schedule = np.empty((n_batches, 3))
        schedule[:, 0] = np.arange(self.n_steps + 1, self.n_steps + n_batches + 1)
        schedule[:, 1], schedule[:, 2] = factors, shares
        step = self._step_by_task if self.gradient.loss is None else self._steps_in_core
        for a, b in self._parts(n_batches):
            step(order[cuts[a] : cuts[b]], cuts[a : b + 1] - cuts[a], schedule[a:b], stats)
        self.n_steps += n_batches
        n_rows = len(order) if self.examples.offsets is None else len(self.examples.rows_of(order))
        n_vectors = n_batches * self.gradient.norm_tiles * self.gradient.norm_rows
        self.kernel_rows.counter.add((n_rows + n_vectors) * self.shape[1])
        return Sweep(stats[0] / len(order), stats[1] / len(order), stats[2])

    def _parts(self, n_batches: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of batches that are worked on together: all, unless rows must be folded for it."""
        size = n_batches
        if self.gradient.loss is None:
            size = 1
        elif not self.kernel_rows.is_kept:
            row_bytes = self.kernel_rows.dtype.itemsize * max(1, self.kernel_rows.n_features)
            size = max(1, self.gradient.settings.folded_bytes // (row_bytes * self.batch_size))
        for a in range(0, n_batches, size):
            yield a, min(n_batches, a + size)

    def _steps_in_core(self, part: Array, cuts: Array, schedule: Array, stats: Array) -> None:
        """Take steps on batches of examples whose loss compiled code knows."""
        loss, chosen, ends = self.gradient.loss, self.examples.rows_of(part), None
        assert loss is not None
        rows, index = self.kernel_rows.folded_rows(chosen)
        if index is not chosen:
            loss = loss.taken(chosen)
        if loss.sequences is not None:
            lengths = np.diff(self.examples.row_offsets)[part]
            last = np.cumsum(lengths)
            ends = np.repeat(last, lengths)
            cuts = np.append(0, last)[cuts]
        stats /= self.loss_unit
        self.gradient.descend(self.adam, rows, index, cuts, ends, loss, schedule, stats)
        stats *= self.loss_unit

    def _step_by_task(self, part: Array, cuts: Array, schedule: Array, stats: Array) -> None:
        """Take a step on a batch of examples whose losses only the task knows: scores, then r, then the gradient."""
        task, examples, gradient = self.problem.task, self.examples, self.gradient
        batch, chosen, plain = examples.take(part), examples.rows_of(part), self.parameters.plain.astype(np.float64)
        rows, index = self.kernel_rows.folded_rows(chosen)
        number, factor, averaging = schedule[0]
        scores = gradient.scores(rows, index, int(number)).astype(np.float64)
        augmented = task.augment(scores, plain, batch)
        weights = batch.weights * (examples.n_examples / examples.total_weight)
        shares = weights / (len(part) * self.loss_unit)
        r = -augmented.coef * shares[batch.example_of_rows(), None]
        lossy, norm = np.flatnonzero(r.any(axis=1)), np.zeros(3)
        gradient.by_slopes(rows, index[lossy], r[lossy], int(number), self.adam.rates.pull, norm)
        if augmented.plain is not None:
            gradient.gradient[-len(plain) :] = plain / (
                self.problem.C1 * self.loss_unit
            ) - weights @ augmented.plain / (len(part) * self.loss_unit)
        core.adam_step(descent=gradient.data, adam=self.adam.data, number=number, factor=factor, averaging=averaging)
        stats[0] += float(weights @ losses(augmented, scores, plain, batch))
        stats[1] += task.error(task.decode(scores, plain, batch), batch) * len(part)
        stats[2] = norm[2] * self.loss_unit + 0.5 * float(plain @ plain) / self.problem.C1
        self.kernel_rows.counter.add(len(lossy) * self.shape[1])

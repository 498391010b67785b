"""Descent on basis vectors, coefficients and feature scales together: the arrays, the batches, the model they make.

Parts: the compiled steps of `numerics.descent` on rows as `KernelRows` folds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.kernels import RBF, Folding, Kernel, KernelRows
from slimsvm.numerics import descent, refine
from slimsvm.numerics.chain import CHAIN_LOSSES
from slimsvm.numerics.maps import EXP2
from slimsvm.numerics.team import run_team
from slimsvm.rows import is_sparse
from slimsvm.solvers.base import Problem
from slimsvm.tasks import Binary, Chain, Multiclass, Regression, losses

Array = np.ndarray

# Rows worked on at a time, and basis vectors that the norm's gradient is estimated from at each step, or a multiple.
TILE, NORM_ROWS = 128, 32
# Multiply-adds of a step from which it is shared out to threads, with this many parameters in a block.
SHARED_WORK, BLOCK_WORK = 1e6, 8192
# What a kernel value costs beside its inner product, in multiply-adds.
MAP_WORK = 16
# Rows of whole sequences that a group has about, and the longest sequence that compiled code takes.
SEQUENCE_ROWS, MAX_LENGTH = 64, 1024
# Bytes that the sums of all groups may take, and rows that are folded at a time where they are not kept.
SUMS_BYTES, CHUNK_BYTES = 1 << 25, 1 << 26
# Adam's moments forget as 0.95^t and 0.99^t: the second faster than usual, since gradients shrink as rows get right.
BETAS = 0.95, 0.99
# The rates rise for this share of the steps, from and to these shares of the top.
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


@dataclass(frozen=True)
class Rates:
    """Sizes of a step at the top of the schedule: of every feature of the basis (d,), in the rows' own units, and of
    coefficients, intercept, log_scale and plain; the pull of log_scale to its mean, against the mean loss; and the
    standard deviation of the noise that rows get at every step, by feature (d,) in their own units (None: no noise).
    """

    basis: Array
    coef: float
    intercept: float
    scale: float = 0.0
    plain: float = 0.0
    pull: float = 0.0
    noise: Array | None = None


@dataclass(frozen=True)
class Sweep:
    """Mean loss and share of wrong predictions as each batch was met, and the last estimate of ½‖w‖²/C₁."""

    loss: float
    error: float
    norm: float


class Schedule:
    """Factors of the rates over a descent whose number of sweeps may yet shrink: it comes to its end all the same.

    Parameters
    ----------
    n_epochs : int
    averaging : float
        Share of the steps, at the end, whose mean counts.
    rising : float
        Share of the steps, at the beginning, in which rates rise.
    """

    def __init__(self, n_epochs: int, averaging: float, rising: float = RISING):
        self.left, self.averaging, self.rising = n_epochs, averaging, rising
        self.progress, self.n_averaged = 0.0, 0

    @property
    def done(self) -> bool:
        """Whether the last sweep has been asked for."""
        return self.left == 0

    def sweep(self, n_batches: int) -> tuple[Array, Array]:
        """Factors of the rates, and shares of the running mean, of the next sweep's steps."""
        width = (1.0 - self.progress) / self.left
        at = self.progress + width * (np.arange(n_batches) + 0.5) / n_batches
        self.left -= 1
        self.progress += width
        rising, falling = at / self.rising, (at - self.rising) / (1 - self.rising)
        factors = np.where(at < self.rising, _between(FIRST, rising), _between(LAST, 1 - falling))
        averaged = at >= 1.0 - self.averaging
        count = self.n_averaged + np.cumsum(averaged)
        self.n_averaged = int(count[-1])
        return factors, np.where(averaged, 1.0 / np.maximum(count, 1), 0.0)


def _between(low: float, x: Array) -> Array:
    """From low at x = 0 to 1 at x = 1, along a cosine."""
    return low + (1 - low) * 0.5 * (1 - np.cos(np.pi * x))


class Descent:
    """Parameters being learned on one problem.

    Parameters
    ----------
    problem : Problem
    kernel_rows : KernelRows
    start : Expansion
    rates : Rates
    batch_size : int
        Examples in a batch.
    learn_metric : bool
    norm_tiles : int
        So many times `NORM_ROWS` vectors is the norm's gradient estimated from at each step.

    Raises
    ------
    ValueError
        The kernel has no derivative that is known here, or no feature scales.
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
    ):
        self.problem, self.kernel_rows, self.examples = problem, kernel_rows, problem.examples
        self.folding = check_kernel(kernel_rows, learn_metric)
        self.batch_size = max(1, min(batch_size, self.examples.n_examples))
        self.n_steps = 0
        d, dtype = kernel_rows.n_features, kernel_rows.dtype
        self.shape = d, k, m = d, *start.coef.shape
        self.sizes = d * k, k * m, m, d, problem.task.n_plain
        scales = self.folding.row_scale, self.folding.point_scale
        row_scale, self.point_scale = (np.broadcast_to(np.asarray(scale, np.float64), d) for scale in scales)
        self.kind = refine.Kind(
            code=self.folding.code,
            degree=self.folding.degree,
            shift=float(self.folding.shift),
            norms=self.folding.norms,
            form=refine.CSR if kernel_rows.rows.is_sparse else refine.DENSE,
            ratio=(row_scale / self.point_scale).astype(dtype),
            metric=bool(learn_metric),
            intercept={"none": 0, "regularized": 1, "free": 2}[problem.intercept],
            noise=(np.zeros(0) if rates.noise is None else rates.noise * abs(row_scale) * np.sqrt(12)).astype(dtype),
        )
        self.loss = known_loss(problem, dtype)
        self.parameters = self._parameters(start)
        self.set(self.parameters.flat)
        self._make_room(norm_tiles)
        self.set_rates(rates)

    def _parameters(self, start: Expansion) -> refine.Parameters:
        (d, k, m), dtype = self.shape, self.kernel_rows.dtype
        flat = np.zeros(sum(self.sizes), dtype)
        basis, coef, intercept, log_scale, plain = np.split(flat, np.cumsum(self.sizes[:-1]))
        parts = basis.reshape(d, k), coef.reshape(k, m), intercept, log_scale, plain
        raw = start.basis.toarray() if is_sparse(start.basis) else start.basis
        parts[0][:] = ((raw - self.kernel_rows.centre) * self.point_scale).T
        for part, value in zip(parts[1:], (start.coef, start.intercept, start.log_scale, start.plain)):
            part[:] = value
        return refine.Parameters(flat, *parts, np.ones(d, dtype), np.empty((d, k), dtype), np.empty(k, dtype))

    def _make_room(self, norm_tiles: int) -> None:
        """Arrays that compiled code works in; how a step is shared out, the same for any number of threads."""
        (d, k, m), dtype, rows = self.shape, self.kernel_rows.dtype, self.kernel_rows.rows
        per_row = rows.n_stored / max(1, rows.n_rows)
        n_batch = -(-self.batch_size * self.examples.n_rows // self.examples.n_examples)
        n_group, n_groups, self.n_blocks = min(TILE, n_batch), 1, 1
        n_tile = n_group
        if self.loss is not None and self.loss.code == refine.SEQUENCES:
            n_group = min(SEQUENCE_ROWS, n_batch)
            n_tile = n_group + int(np.diff(self.examples.row_offsets).max())
        self.is_shared = n_batch * k * (per_row + MAP_WORK) >= SHARED_WORK
        if self.is_shared:
            n_groups = max(1, min(-(-n_batch // n_group), SUMS_BYTES // (d * k * dtype.itemsize)))
            self.n_blocks = max(1, min(d, d * k // BLOCK_WORK))
        shapes = (d, k), (k, m), (k,), (m,), (d,)
        sums = (np.zeros((n_groups + 1, *shape), dtype) for shape in shapes)
        self.sums = refine.Sums._make([*sums, np.zeros((n_groups + 1, self.sizes[-1])), np.zeros((n_groups + 1, 2))])

        def scratch(n_groups: int, n: int, width: int) -> refine.Scratch:
            derivative = (1, 1) if self.folding.code == EXP2 else (n, k)
            K, D, tile, half, scores, r = (
                np.empty((n_groups, *shape), dtype) for shape in ((n, k), derivative, (n, width), (n,), (n, m), (n, m))
            )
            return refine.Scratch(K, D, tile, half, np.empty((n_groups, n), np.int64), scores, r)

        self.tiles = scratch(n_groups, n_tile, 0 if rows.is_sparse else d)
        self.norm_tile = scratch(norm_tiles, min(k, NORM_ROWS), d)
        vectors = (np.zeros_like(self.parameters.flat) for _ in range(4))
        self.moments = descent.Moments._make([*vectors, np.zeros(k, dtype), np.zeros(k, dtype)])

    def set_rates(self, rates: Rates) -> None:
        """Fix the step sizes that the schedule's factors multiply."""
        basis = rates.basis * np.abs(self.point_scale)
        numbers = (rates.coef, rates.intercept, rates.scale, rates.plain, rates.pull)
        values = [float(self.problem.C1), basis, *map(float, numbers), *BETAS]
        self.settings = descent.Settings._make(values)

    def slow_down(self) -> None:
        """Halve all step sizes, and forget the moments of the gradients as at the first step."""
        s = self.settings
        halves = {name: 0.5 * getattr(s, name) for name in ("basis", "coef", "intercept", "scale", "plain")}
        self.settings = s._replace(**halves)
        self.n_steps = 0
        self.moments.first[:] = 0
        self.moments.second[:] = 0

    # -- what has been learned ------------------------------------------------------------------------------------

    def expansion(self, flat: Array | None = None) -> Expansion:
        """The parameters, or those in a vector like theirs, in the rows' own coordinates and float64."""
        d, k, m = self.shape
        flat = (self.parameters.flat if flat is None else flat).astype(np.float64)
        basis, coef, *others = np.split(flat, np.cumsum(self.sizes[:-1]))
        vectors = np.ascontiguousarray(basis.reshape(d, k).T / self.point_scale + self.kernel_rows.centre)
        return Expansion(vectors, coef.reshape(k, m), *others)

    def kernel(self, log_scale: Array) -> Kernel:
        """The problem's kernel, with the learned scales."""
        kernel = self.kernel_rows.kernel
        if not self.kind.metric:
            return kernel
        assert isinstance(kernel, RBF)
        return RBF(tuple((np.asarray(kernel.gamma) * np.exp(2.0 * log_scale)).tolist()))

    def set(self, flat: Array) -> None:
        """Go to other parameters."""
        self.parameters.flat[:] = flat
        descent.follow(self.parameters, self.kind)

    # -- steps ----------------------------------------------------------------------------------------------------

    def sweep(self, order: Array, factors: Array, shares: Array) -> Sweep:
        """One pass over examples in the given order, in len(factors) batches of about the same size.

        Parameters
        ----------
        order : int64 ndarray
            Examples, each at most once.
        factors, shares : ndarrays of shape (n_batches,)
            Factor of the rates, and share by which the running mean moves, at every step.
        """
        n_batches, stats = len(factors), np.zeros(3)
        cuts = np.arange(n_batches + 1) * len(order) // n_batches
        steps = np.arange(self.n_steps + 1, self.n_steps + n_batches + 1)
        schedule = np.column_stack([steps, factors, shares]).astype(np.float64)
        step = self._known if self.loss is not None else self._given
        for a, b in self._parts(n_batches):
            step(order[cuts[a] : cuts[b]], cuts[a : b + 1] - cuts[a], schedule[a:b], stats)
        self.n_steps += n_batches
        n_rows = len(order) if self.examples.offsets is None else len(self.examples.rows_of(order))
        self.kernel_rows.counter.add((n_rows + n_batches * self.norm_tile.half.size) * self.shape[1])
        return Sweep(stats[0] / len(order), stats[1] / len(order), stats[2])

    def _parts(self, n_batches: int) -> Iterator[tuple[int, int]]:
        """Ranges of batches that are worked on in one call: all, unless rows must be folded for it."""
        size = n_batches
        if self.loss is None:
            size = 1
        elif not self.kernel_rows.is_kept:
            row_bytes = self.kernel_rows.dtype.itemsize * max(1, self.kernel_rows.n_features)
            size = max(1, CHUNK_BYTES // (row_bytes * self.batch_size))
        for a in range(0, n_batches, size):
            yield a, min(n_batches, a + size)

    def _known(self, part: Array, cuts: Array, schedule: Array, stats: Array) -> None:
        """Steps on batches of examples whose loss compiled code knows."""
        loss, chosen = self.loss, self.examples.rows_of(part)
        assert loss is not None
        rows, index = self.kernel_rows.folded(chosen)
        if index is not chosen:
            weight = loss.weight[chosen] if len(loss.weight) else loss.weight
            loss = loss._replace(target=loss.target[chosen], weight=weight)
        if loss.code == refine.SEQUENCES:
            lengths = np.diff(self.examples.row_offsets)[part]
            ends = np.cumsum(lengths)
            loss = loss._replace(ends=np.repeat(ends, lengths))
            cuts = np.append(0, ends)[cuts]
        self._descend(rows, index, cuts, loss, schedule, stats)

    def _given(self, part: Array, cuts: Array, schedule: Array, stats: Array) -> None:
        """One step on a batch of examples whose losses only the task knows: scores, then r, then the gradient."""
        task, examples, dtype = self.problem.task, self.examples, self.kernel_rows.dtype
        batch, chosen, nothing, no_ends = (
            examples.take(part),
            examples.rows_of(part),
            np.zeros(0),
            np.zeros(0, np.int64),
        )
        plain = self.parameters.plain.astype(np.float64)
        rows, index = self.kernel_rows.folded(chosen)
        cuts, out = np.array([0, len(index)]), np.empty((len(index), task.n_outputs), dtype)
        scoring = refine.Loss(refine.SCORES, nothing, nothing, nothing, out, no_ends)
        self._descend(rows, index, cuts, scoring, schedule, np.zeros(3))
        scores = out.astype(np.float64)
        augmented = task.augment(scores, plain, batch)
        weights = batch.weights * (examples.n_examples / examples.total_weight)
        r = -augmented.coef * (weights[batch.example_of_rows()] / len(part))[:, None]
        if augmented.plain is not None:
            self.moments.gradient[-len(plain) :] = plain / self.problem.C1 - weights @ augmented.plain / len(part)
        lossy = np.flatnonzero(r.any(axis=1))
        given = refine.Loss(refine.GIVEN, nothing, nothing, nothing, r[lossy].astype(dtype), no_ends)
        self._descend(rows, index[lossy], np.array([0, len(lossy)]), given, schedule, norm := np.zeros(3))
        stats[0] += float(weights @ losses(augmented, scores, plain, batch))
        stats[1] += task.error(task.decode(scores, plain, batch), batch) * len(part)
        stats[2] = norm[2] + 0.5 * float(plain @ plain) / self.problem.C1
        self.kernel_rows.counter.add(len(lossy) * self.shape[1])

    def _descend(self, rows, index: Array, cuts: Array, loss, schedule: Array, stats: Array) -> None:
        """Compiled steps over the batches index[cuts[b]:cuts[b + 1]]."""
        state = self.parameters, self.kind, self.tiles, self.norm_tile, self.sums, self.moments, self.settings
        fixed = rows, index, cuts, loss, *state, schedule, self.n_blocks, stats
        n_jobs = self.kernel_rows.n_jobs if self.is_shared else 1
        run_team(lambda sync, is_leader: descent.descend(*fixed, sync, is_leader), n_jobs)


def check_kernel(kernel_rows: KernelRows, learn_metric: bool) -> Folding:
    """How the kernel reads from folded rows; an error if it has no derivative that is known here."""
    kernel = kernel_rows.kernel
    folding = kernel.folding(kernel_rows.n_features)
    if folding is None or folding.manhattan:
        raise ValueError(
            "Refine moves basis vectors along the kernel's derivative: it needs kernel 'rbf', 'poly', 'linear' or "
            f"'sigmoid', found {kernel!r}; solver='cpsp' and 'low-rank' train with any kernel"
        )
    if learn_metric and not isinstance(kernel, RBF):
        raise ValueError(f"learn_metric=True needs kernel 'rbf', found {kernel!r}")
    if learn_metric and kernel_rows.rows.is_sparse:
        raise ValueError("learn_metric=True needs dense rows, found a sparse matrix")
    return folding


def known_loss(problem: Problem, dtype: Any) -> refine.Loss | None:
    """The loss in compiled form; None for tasks that only Python code knows."""
    task, examples = problem.task, problem.examples
    if type(task) is Binary:
        code, cost = refine.BINARY, np.array([task.cost_negative, task.cost_positive], np.float64)
    elif type(task) is Multiclass:
        code, cost = refine.MULTICLASS, np.array(task.cost, np.float64).ravel()
    elif type(task) is Regression:
        code, cost = refine.REGRESSION, np.array([task.epsilon], np.float64)
    elif type(task) is Chain and np.diff(examples.row_offsets).max() <= MAX_LENGTH:
        code, cost = refine.SEQUENCES, np.array([CHAIN_LOSSES[task.loss], examples.n_examples / examples.n_rows])
    else:
        return None
    weight = np.zeros(0)
    if not examples.are_alike:
        weight = (examples.weights * (examples.n_examples / examples.total_weight))[examples.example_of_rows()]
    nothing = np.zeros((0, task.n_outputs), dtype), np.zeros(0, np.int64)
    return refine.Loss(code, examples.labels.astype(np.float64), weight, cost, *nothing)

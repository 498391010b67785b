"""The gradient of a batch's mean loss and of the norm, in everything that a descent learns.

With r_ic the gradient of the loss in the score f_ic and W_ij = k'(x_i, b_j) Σ_c r_ic β_jc, where k' is the kernel's
derivative in the inner product of folded rows and vectors:

    ∂/∂β_jc = Σ_i r_ic k(x_i, b_j)        ∂/∂b_j = Σ_i W_ij x_i − [RBF] b_j Σ_i W_ij
    [RBF] ∂/∂ log scale_c = −Σ_ij W_ij (x_ic − b_jc)²

A batch is cut into groups of rows, the same for any number of threads, whose sums are added up in their order
(``core/gradients``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.core.products import CALL_MICROSECONDS, in_calls
from slimsvm.kernels import Folding, KernelRows, kernels_with
from slimsvm.parts.problem import Problem

Array = np.ndarray

# -- The optimiser of a descent: Adam, with a rate for each kind of parameter ------------------------------------------
# Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.

# Moments forget as 0.95^t and 0.99^t: the second faster than usual, since gradients shrink as rows get right.
BETAS = 0.95, 0.99


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

    def halved(self) -> Rates:
        """Return steps of half the size."""
        halves = {name: 0.5 * getattr(self, name) for name in ("basis", "coef", "intercept", "scale", "plain")}
        return replace(self, **halves)


class Adam:
    """Moments of the gradient of n parameters, and their running mean; 1 in a feature of a row is ``unit`` in them."""

    def __init__(self, n: int, dtype: np.dtype, unit: Array, rates: Rates):
        self.first, self.second, self.mean = (np.zeros(n, dtype) for _ in range(3))
        self._unit = unit
        self.set_rates(rates)

    def set_rates(self, rates: Rates) -> None:
        """Fix the step sizes that the schedule's factors multiply."""
        self.rates = rates
        self.data = core.Adam(
            basis_rates=np.ascontiguousarray(rates.basis * self._unit, np.float64),
            coef_rate=rates.coef,
            intercept_rate=rates.intercept,
            scale_rate=rates.scale,
            plain_rate=rates.plain,
            pull=rates.pull,
            beta1=BETAS[0],
            beta2=BETAS[1],
            first=self.first,
            second=self.second,
            mean=self.mean,
        )

    def slow_down(self) -> None:
        """Halve all step sizes, and forget the moments as at the first step."""
        self.set_rates(self.rates.halved())
        self.first[:] = 0
        self.second[:] = 0


@dataclass(frozen=True)
class GradientSettings:
    """How a batch is cut up; none but ``norm_rows`` changes more than roundings.

    docs/experiments/many_learned_vectors.md has what more ``norm_rows`` gain with thousands of vectors. The others were
    chosen, not measured.
    """

    # Rows worked on at a time.
    tile_rows: int = 128
    # Basis vectors that the norm's gradient is estimated from at each step, or a multiple of so many.
    norm_rows: int = 32
    # Rows of smooth losses whose gradient in the scores is less than so many times the mean of their tile take part by
    # chance, in proportion to it; 0: all take part.
    thinned: float = 1.0
    # Multiply-adds of a step from which it is shared out to threads, and parameters in a thread's block.
    shared_work: float = 1e6
    block_parameters: int = 8192
    # Rows of whole sequences that a group has about, and rows of the longest sequence that compiled code takes.
    sequence_rows: int = 64
    longest_sequence: int = 1024
    # Bytes that the sums of all groups may take.
    sums_bytes: int = 1 << 25
    # Bytes of rows that are folded at a time where they are not kept.
    folded_bytes: int = 1 << 26
    # Microseconds of a call into the core: Ctrl-C is heard between two.
    call_microseconds: float = CALL_MICROSECONDS


# What a kernel value costs beside its inner product, and a parameter beside its gradient, in multiply-adds.
MAP_WORK, STEP_WORK = 16, 16
# Multiply-adds of one thread in a microsecond, about.
WORK_PER_MICROSECOND = 30_000
INTERCEPTS = {"none": core.NO_INTERCEPT, "regularized": core.REGULARIZED, "free": core.FREE}
CHAIN_LOSSES = {"hamming": core.HAMMING, "zero-one": core.ZERO_ONE}


@dataclass(frozen=True)
class Parameters:
    """What is learned, in folded coordinates: views of one vector ``flat``."""

    flat: Array
    basis: Array
    coef: Array
    intercept: Array
    log_scale: Array
    plain: Array

    @classmethod
    def zeros(cls, shape: tuple[int, int, int], n_plain: int, dtype: np.dtype) -> Parameters:
        """Make room for k vectors of d features and m outputs, shape = (d, k, m), and for plain parameters."""
        d, k, m = shape
        sizes = d * k, k * m, m, d, n_plain
        flat = np.zeros(sum(sizes), dtype)
        basis, coef, *others = np.split(flat, np.cumsum(sizes[:-1]))
        return cls(flat, basis.reshape(d, k), coef.reshape(k, m), *others)


@dataclass(frozen=True)
class KnownLoss:
    """A loss that compiled code knows, of all rows: that of every row, or that of every sequence."""

    rows: Any = None
    sequences: Any = None

    def taken(self, chosen: Array) -> KnownLoss:
        """Return the loss of some rows."""
        return KnownLoss(_taken(self.rows, chosen), _taken(self.sequences, chosen))


def _taken(loss: Any, chosen: Array) -> Any:
    if loss is None:
        return None
    by_row = {name: loss.arguments.get(name) for name in ("signs", "classes", "targets", "weights")}
    n_rows = len(by_row["weights"])
    # Signs and targets have a number for each score of a row, one row after another.
    parts = {name: a.reshape(n_rows, -1)[chosen].reshape(-1) for name, a in by_row.items() if a is not None}
    return core.Structure(loss.layout, **(loss.arguments | parts))


def known_loss(problem: Problem, loss_unit: float = 1.0) -> KnownLoss | None:
    """Return the loss in compiled form, divided by ``loss_unit``; None for tasks that only Python code knows."""
    task, examples = problem.task, problem.examples
    shares = examples.weights * (examples.n_examples / examples.total_weight / loss_unit)
    weights = shares[examples.example_of_rows()]
    if not task.is_compiled:
        return None
    loss = task.core_loss(examples)
    loss = core.Structure(loss.layout, **(loss.arguments | {"weights": weights}))
    if examples.offsets is None:
        return KnownLoss(loss)
    longest = problem.settings_of(GradientSettings).longest_sequence
    return KnownLoss(sequences=loss) if np.diff(examples.offsets).max() <= longest else None


def check_kernel(kernel_rows: KernelRows, learn_metric: bool) -> Folding:
    """Return how the kernel reads from folded rows; raise an error if no derivative of it is known here."""
    kernel = kernel_rows.kernel
    folding = kernel.folding(kernel_rows.n_features)
    if folding is None or not kernel.has_gradient:
        raise ValueError(
            "Refine moves basis vectors along the kernel's derivative: it needs kernel "
            f"{kernels_with('has_gradient')}, found {kernel!r}; solver='cpsp' and 'low-rank' train with any kernel"
        )
    if learn_metric and not kernel.has_metric:
        raise ValueError(f"learn_metric=True needs kernel {kernels_with('has_metric')}, found {kernel!r}")
    if learn_metric and kernel_rows.rows.is_sparse:
        raise ValueError("learn_metric=True needs dense rows, found a sparse matrix")
    return folding


class BatchGradient:
    """Gradients at parameters, and steps of an optimiser along them.

    The norm's gradient is estimated from ``norm_tiles`` times ``norm_rows`` vectors at each step. Rows get ``noise`` at
    every step: its standard deviation by feature, in their own units. Losses and the norm are divided by ``loss_unit``.
    ``gradient`` is as the last batch had it; ``unit`` (d,) is what 1 in a feature of the rows is in the parameters.
    """

    def __init__(
        self,
        problem: Problem,
        kernel_rows: KernelRows,
        parameters: Parameters,
        batch_size: int,
        learn_metric: bool,
        norm_tiles: int,
        noise: Array | None,
        loss_unit: float,
    ):
        self.kernel_rows, self.parameters, self.loss = kernel_rows, parameters, known_loss(problem, loss_unit)
        self.settings = problem.settings_of(GradientSettings)
        folding = check_kernel(kernel_rows, learn_metric)
        (d, k), dtype = parameters.basis.shape, kernel_rows.dtype
        scales = folding.row_scale, folding.point_scale
        row_scale, self.unit = (np.broadcast_to(np.asarray(scale, np.float64), d) for scale in scales)
        self.gradient = np.zeros_like(parameters.flat)
        self.norm_rows, self.norm_tiles = min(k, self.settings.norm_rows), norm_tiles
        n_blocks = self._cut(problem, batch_size)
        m, n_plain = parameters.coef.shape[1], len(parameters.plain)
        self.data = core.Descent(
            k=k,
            m=m,
            n_blocks=n_blocks,
            tile_rows=self.tile_rows,
            norm_rows=self.norm_rows,
            norm_tiles=norm_tiles,
            code=folding.code,
            degree=folding.degree,
            has_norms=int(folding.norms),
            learns_scales=int(learn_metric),
            intercept=INTERCEPTS[problem.intercept],
            shift=folding.shift,
            C1=problem.C1 * loss_unit,
            thinned=self.settings.thinned if problem.task.is_smooth else 0.0,
            ratio=(row_scale / self.unit).astype(dtype),
            noise=None if noise is None else (noise * abs(row_scale) * np.sqrt(12)).astype(dtype),
            flat=parameters.flat,
            gradient=self.gradient,
            sums=np.empty(_room_for_sums(self.n_groups, d, k, m, dtype), dtype),
            plain_sums=np.empty((self.n_groups + 1, n_plain + 2)),
        )

    def _cut(self, problem: Problem, batch_size: int) -> int:
        """Share a step out, the same for any number of threads; return the number of blocks of features."""
        examples, rows, (d, k) = problem.examples, self.kernel_rows.rows, self.parameters.basis.shape
        own = self.settings
        n_batch = -(-batch_size * examples.n_rows // examples.n_examples)
        n_group, self.n_groups, n_blocks = min(own.tile_rows, n_batch), 1, 1
        self.tile_rows = n_group
        if self.loss is not None and self.loss.sequences is not None:
            n_group = min(own.sequence_rows, n_batch)
            self.tile_rows = n_group + int(np.diff(examples.row_offsets).max())
        work = n_batch * k * (rows.n_stored / max(1, rows.n_rows) + MAP_WORK)
        self.is_shared = work >= own.shared_work
        if self.is_shared:
            most = own.sums_bytes // (d * k * self.kernel_rows.dtype.itemsize)
            self.n_groups = max(1, min(-(-n_batch // n_group), most))
            n_blocks = max(1, min(d, d * k // own.block_parameters))
        work += self.norm_tiles * self.norm_rows * k * (d + MAP_WORK)
        self.batch_microseconds = (2 * work + d * k * (self.n_groups + STEP_WORK)) / WORK_PER_MICROSECOND
        n_tiles = max(self.norm_tiles, -(-n_batch // (self.tile_rows * self.n_groups)))
        self.max_tiles = max(1, int(own.call_microseconds * n_tiles / self.batch_microseconds))
        return n_blocks

    def descend(
        self, adam: Adam, rows: Any, index: Array, cuts: Array, ends: Array | None, loss: KnownLoss, schedule: Array,
        stats: Array,
    ) -> None:  # fmt: skip
        """Take steps over the batches index[cuts[b]:cuts[b + 1]] of folded rows, as slimsvm.h has them."""
        batch = tile = 0
        while batch < len(schedule):
            # Not prepared: that takes as long as a sweep over 150 rows, which is one call.
            batch, tile = core.descend(
                descent=self.data, adam=adam.data, rows=rows, row_loss=loss.rows, sequence_loss=loss.sequences,
                index=index, cuts=cuts, ends=ends, schedule=schedule, stats=stats, max_tiles=self.max_tiles,
                batch=batch, tile=tile, **self._threads(len(schedule)),
            )  # fmt: skip

    def scores(self, rows: Any, index: Array, step: int) -> Array:
        """Return scores (n, m) of the folded rows at ``index``, with the noise of a step."""
        out = np.empty((len(index), self.parameters.coef.shape[1]), self.kernel_rows.dtype)
        call = core.batch_scores.prepare(descent=self.data, rows=rows, step=step, **self._threads(1))
        for part in in_calls(len(index), self.batch_microseconds / max(1, len(index))):
            call(index=index[part], out=out[part])
        return out

    def by_slopes(self, rows: Any, index: Array, r: Array, step: int, pull: float, stats: Array) -> None:
        """Set the gradient to that of losses whose gradients in the scores (n, m) are given."""
        call = core.batch_gradient.prepare(
            descent=self.data, rows=rows, index=index, given=r.astype(self.kernel_rows.dtype), step=step, pull=pull,
            stats=stats, max_tiles=self.max_tiles, **self._threads(1),
        )  # fmt: skip
        tile = call(tile=0)
        while tile:
            tile = call(tile=tile)

    def _threads(self, n_batches: int) -> dict[str, Any]:
        n_threads = self.kernel_rows.n_jobs if self.is_shared else 1
        return {"n_threads": n_threads, "microseconds": n_batches * self.batch_microseconds}


def _room_for_sums(n_groups: int, d: int, k: int, m: int, dtype: np.dtype) -> int:
    """Return numbers that the sums of all groups and of the norm take, every row padded to whole vectors."""
    lanes = core.library().slimsvm_vector_bytes() // dtype.itemsize
    width, rest = -(-k // lanes) * lanes, -(-(d + m) // lanes) * lanes
    return int((n_groups + 1) * ((d + m + 1) * width + rest) + 64 // dtype.itemsize)

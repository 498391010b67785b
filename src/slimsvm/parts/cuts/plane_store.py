"""The planes of block-coordinate ascent in memory, and where the scores of the rows come from while α changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slimsvm import core
from slimsvm.core.products import add_transposed, in_calls
from slimsvm.kernels import FeatureRows, KernelRows
from slimsvm.model import KernelExpansion, LinearModel
from slimsvm.parts.run import model_over
from slimsvm.tasks import Augmented, Examples, Task

Array = np.ndarray

# Multiply-adds of one compiled call, below 50 ms, and about how many elements two sparse rows' merge passes in 1 µs.
MAX_WORK, MERGED_PER_MICROSECOND = 50_000_000, 300


class Planes:
    """All planes with their weights α, as flat arrays of a ``struct slimsvm_planes``."""

    def __init__(self, n_examples: int):
        self.n = np.zeros(2, np.int64)
        self.first = np.full(n_examples, -1)
        self.following, self.where, self.idle = (np.zeros(1, np.int64) for _ in range(3))
        self.row, self.column = (np.zeros(0, np.int32) for _ in range(2))
        self.value, self.constant, self.alpha = np.zeros(0), np.zeros(1), np.zeros(1)
        self._compiled: core.Structure | None = None

    def __getstate__(self) -> dict[str, Array]:
        """Return the arrays, without the structure that holds their addresses."""
        return {name: value for name, value in vars(self).items() if name != "_compiled"}

    def __setstate__(self, state: dict[str, Array]) -> None:
        """Take these arrays."""
        vars(self).update(state, _compiled=None)

    @property
    def compiled(self) -> core.Structure:
        """Return the structure for compiled code, made again when the arrays have grown."""
        if self._compiled is None:
            self._compiled = core.Planes(**self.__getstate__())
        return self._compiled

    @property
    def constants(self) -> float:
        """Return Σ α_k c_k."""
        k = self.n[0]
        return float(self.alpha[:k] @ self.constant[:k])

    def copy(self, factor: float = 1.0) -> Planes:
        """Return a copy with the weights times a factor."""
        other = Planes(len(self.first))
        for name, array in self.__getstate__().items():
            setattr(other, name, array.copy())
        other.alpha *= factor
        return other

    def add(self, index: Array, examples: Examples, augmented: Augmented) -> None:
        """Enter the loss-augmented argmax of some examples; ``examples`` are those."""
        found = {
            "index": index,
            "starts": starts_of(examples),
            "delta": np.ascontiguousarray(augmented.delta, np.float64),
            "coef": np.ascontiguousarray(augmented.coef, np.float64),
            "part": np.zeros((len(index), 0)) if augmented.plain is None else np.ascontiguousarray(augmented.plain),
        }
        self._reserve(("following", "where", "idle", "constant", "alpha"), int(self.n[0]) + len(index) + 1)
        n_missing = core.add_planes(planes=self.compiled, **found)
        if n_missing:
            self._reserve(("row", "column", "value"), len(self.value) + n_missing)
            core.add_planes(planes=self.compiled, **found)

    def _reserve(self, names: tuple[str, ...], needed: int) -> None:
        """Make room for further planes, or for further entries."""
        if needed <= len(getattr(self, names[0])):
            return
        grown = {}
        for name in names:
            old = getattr(self, name)
            grown[name] = np.zeros(2 * needed, old.dtype)
            grown[name][: len(old)] = old
        vars(self).update(grown, _compiled=None)  # in one assignment, so that an interrupt leaves arrays of one length

    def age(self, max_idle: int) -> None:
        """Forget the planes that had no weight for ``max_idle`` passes."""
        core.forget_planes(planes=self.compiled, max_idle=max_idle)

    def coefficients(self, examples: Examples, task: Task) -> tuple[Array, Array]:
        """Return Σ α_k g_k: coefficients over rows and outputs, and the plain parameters."""
        coef, plain = np.zeros((examples.n_rows, task.n_outputs)), np.zeros(task.n_plain)
        blocks = blocks_of(examples, np.zeros(examples.n_examples))
        core.sum_planes(planes=self.compiled, blocks=blocks, coef=coef, plain=plain)
        return coef, plain


def starts_of(examples: Examples) -> Array:
    """Return the first row of each example, and the end of the last one."""
    return np.arange(examples.n_rows + 1) if examples.offsets is None else examples.offsets


def blocks_of(examples: Examples, C_of_example: Array) -> core.Structure:
    """Return a ``struct slimsvm_blocks``: the rows of each example, and the largest sum of its planes' weights."""
    starts = starts_of(examples)
    longest = int(np.diff(starts).max(initial=0))
    found: core.Structure = core.Blocks(
        n_rows=examples.n_rows, starts=starts, C_of_example=C_of_example, place=np.zeros(longest, np.int64)
    )
    return found


@dataclass
class Step:
    """The rule by which examples are improved, and the violation below which they are left alone."""

    is_corrective: bool
    tol: float


def take_steps(function: core.Function, batch: Array, **arguments: Any) -> None:
    """Call a function for steps on the examples of a batch until all are done."""
    at = 0
    while at < len(batch):
        at = function(order=batch, at=at, max_work=MAX_WORK, **arguments)


class Book(ABC):
    """The base of both books: where scores come from while planes change.

    Half of the memory may hold a kernel matrix, a quarter the inner products among the rows of each example.
    """

    # The arrays that averaging works on.
    averaged: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        kernel_rows: KernelRows,
        examples: Examples,
        C_of_example: Array,
        task: Task,
        intercept: bool,
        memory_limit: int,
    ):
        self.kernel_rows, self.examples, self.task, self.intercept = kernel_rows, examples, task, intercept
        self.starts, self.blocks = starts_of(examples), blocks_of(examples, C_of_example)
        self.plain = np.zeros(task.n_plain)
        self.begin(memory_limit)

    @abstractmethod
    def begin(self, memory_limit: int) -> None:
        """Set up the model that is 0."""

    @abstractmethod
    def restore(self, planes: Planes) -> None:
        """Compute the model of the planes, and its scores if they are stored."""

    def take(self, planes: Planes) -> None:
        """Compute the model of the planes; scores that are stored stay as they were."""
        self.restore(planes)

    def parameters(self) -> tuple[Array, ...]:
        """Return the arrays that averaging works on."""
        return tuple(getattr(self, name) for name in self.averaged)

    def set(self, parameters: tuple[Array, ...]) -> None:
        """Take these parameters."""
        vars(self).update(zip(self.averaged, parameters))


class KernelBook(Book):
    """The book of a kernel model: the scores of all rows, updated by one fused product per batch of examples."""

    averaged = "coef", "plain", "scores"

    def begin(self, memory_limit: int) -> None:
        """Compute the kernel matrix, if memory allows."""
        n = self.kernel_rows.n_rows
        self.matrix: Array | None = None
        if n * n * self.kernel_rows.dtype.itemsize <= memory_limit // 2:
            self.matrix = self.kernel_rows.block(self.kernel_rows.points(np.arange(n)))
        self.coef, self.scores = (np.zeros((n, self.task.n_outputs)) for _ in range(2))

    def take(self, planes: Planes) -> None:
        """Take the coefficients of the planes; scores are as they were."""
        self.coef, self.plain = planes.coefficients(self.examples, self.task)

    def restore(self, planes: Planes) -> None:
        """Take the coefficients of the planes, and compute the scores again."""
        self.take(planes)
        rows = np.flatnonzero(self.coef.any(axis=1))
        self.scores = np.zeros_like(self.scores)
        if len(rows):
            self._add_to_scores(rows, self.coef[rows])

    def _add_to_scores(self, rows: Array, coef: Array) -> None:
        """Let the scores of all rows follow coefficients that were added to some."""
        if self.matrix is not None:
            add_transposed(self.matrix[rows], coef, self.scores, self.kernel_rows.n_jobs)
        else:
            self.scores += self.kernel_rows.scores(self.kernel_rows.points(rows), coef)
        if self.intercept:
            self.scores += coef.sum(axis=0)

    def scores_of(self, rows: Array) -> Array:
        """Return scores of some rows."""
        found: Array = self.scores[rows]
        return found

    def step(self, planes: Planes, batch: Array, how: Step) -> None:
        """Take a step on each example of a batch."""
        rows = np.sort(self.examples.rows_of(batch))
        if self.matrix is not None:
            K = self.matrix.take(rows[:, None] * len(self.matrix) + rows)  # half the time of indexing with np.ix_
        else:
            K = self.kernel_rows.block(self.kernel_rows.points(rows), rows=rows)
        coef = np.zeros((len(rows), self.task.n_outputs))
        take_steps(
            core.step_by_kernel,
            batch,
            planes=planes.compiled,
            blocks=self.blocks,
            K=K,
            constant=float(self.intercept),
            scores=np.ascontiguousarray(self.scores[rows].T),
            coef=coef,
            plain=self.plain,
            base=np.searchsorted(rows, self.starts[batch]),
            is_corrective=int(how.is_corrective),
            tol=how.tol,
        )
        changed = np.flatnonzero(coef.any(axis=1))
        if len(changed):
            self.coef[rows] += coef
            self._add_to_scores(rows[changed], coef[changed])

    def all_scores(self) -> Array:
        """Return scores of all rows."""
        return self.scores

    @property
    def norm_squared(self) -> float:
        """Return ‖w‖²."""
        return max(0.0, float(np.sum(self.coef * self.scores) + self.plain @ self.plain))

    @property
    def n_basis(self) -> int:
        """Return rows with a coefficient."""
        return int(np.count_nonzero(self.coef.any(axis=1)))

    def model(self) -> tuple[KernelExpansion, Array | None]:
        """Return the model, and which rows its vectors are."""
        rows = np.flatnonzero(self.coef.any(axis=1))
        intercept = self.coef.sum(axis=0) if self.intercept else np.zeros(self.task.n_outputs)
        basis = self.kernel_rows.basis(rows)
        return model_over(self.kernel_rows, basis, self.coef[rows], intercept, self.plain.copy()), rows


class WeightBook(Book):
    """The book of a linear model: its weights, updated by every step, over rows as CSR."""

    averaged = "weights", "bias", "plain"

    def begin(self, memory_limit: int) -> None:
        """Compute the inner products among the rows of each example, if memory allows."""
        self.features = FeatureRows(self.kernel_rows.rows, self.kernel_rows.n_jobs)
        m = self.task.n_outputs
        self.weights, self.bias = np.zeros((self.kernel_rows.n_features, m)), np.zeros(m)
        self.gram_offsets = np.concatenate([[0], np.cumsum(np.diff(self.starts) ** 2)])
        self.grams: Array | None = None
        if self.gram_offsets[-1] * self.weights.itemsize <= memory_limit // 4:
            self.grams = self._multiply_examples()

    def _multiply_examples(self) -> Array:
        """Return inner products among the rows of each example, one square block after another."""
        grams, rows = np.empty(self.gram_offsets[-1]), self.features.csr
        longest, stored = len(self.blocks.place), len(rows.values) / max(1, self.examples.n_rows)
        per_row = longest * stored / MERGED_PER_MICROSECOND
        for part in in_calls(self.examples.n_rows, per_row):
            core.multiply_examples(
                rows=rows,
                blocks=self.blocks,
                first=part.start,
                n=part.stop - part.start,
                gram_offsets=self.gram_offsets,
                grams=grams,
                n_threads=self.kernel_rows.n_jobs,
                microseconds=per_row * (part.stop - part.start),
            )
        return grams

    def restore(self, planes: Planes) -> None:
        """Compute the weights of the planes again."""
        coef, self.plain = planes.coefficients(self.examples, self.task)
        self.weights = self.features.gather(coef)
        self.bias = coef.sum(axis=0) if self.intercept else np.zeros_like(self.bias)

    def scores_of(self, rows: Array) -> Array:
        """Return scores of some rows."""
        return self.features.scores_of(rows, self.weights, self.bias)

    def step(self, planes: Planes, batch: Array, how: Step) -> None:
        """Take a step on each example of a batch."""
        take_steps(
            core.step_by_weights,
            batch,
            planes=planes.compiled,
            blocks=self.blocks,
            rows=self.features.csr,
            grams=self.grams,
            gram_offsets=None if self.grams is None else self.gram_offsets,
            constant=float(self.intercept),
            weights=self.weights,
            bias=self.bias,
            plain=self.plain,
            is_corrective=int(how.is_corrective),
            tol=how.tol,
        )

    def all_scores(self) -> Array:
        """Return scores of all rows."""
        return self.features.scores(self.weights, self.bias)

    @property
    def norm_squared(self) -> float:
        """Return ‖w‖²."""
        return float(sum(np.vdot(part, part) for part in (self.weights, self.bias, self.plain)))

    @property
    def n_basis(self) -> int:
        """Return features with a weight."""
        return int(np.count_nonzero(self.weights.any(axis=1)))

    def model(self) -> tuple[KernelExpansion, Array | None]:
        """Return the model, whose vectors are not training rows."""
        own = self.weights, self.bias.copy(), self.plain.copy()
        return LinearModel.of_weights(*own, self.kernel_rows.precision), None
